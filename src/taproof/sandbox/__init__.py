"""The sandbox of `taproof serve --sandbox`: a pretend messenger and a demo application, for development and CI.

`telegram/` is a Bot API server as strict as the real one. `control/` is the JSON API that plays its users and
@BotFather, `phone/` the pretend phone, `demo/` the demo application. `seed.py` creates what a sandbox starts with,
`server.py` puts the parts together. All state is in memory and bounded. The bot cannot tell it from Telegram.
"""
