"""The sandbox of `taproof serve --sandbox`: a simulated messenger and a demo application, for development and CI.

`telegram/` is a Bot API server as strict as the real one. `control/` is the JSON API that acts as its users and as
@BotFather. `phone/` is the simulated phone, and `demo/` is the demo application. `seed.py` creates the first developer,
project and OpenID Connect client, and `server.py` puts the parts together. All state is in memory and limited in size.
The bot cannot tell the sandbox from Telegram.
"""
