"""What `taproof serve --sandbox` adds: a pretend messenger, and an application to try it with. For development and CI.

Owns a Bot API server that is as strict as the real one (`bot_api.py`, its methods in `bot_methods.py`), its bots
(`bots.py`), the people who use the messenger (`people.py`), what they say to each bot (`messenger.py`, `chats.py`,
keyboards in `reply_markup.py`), how updates reach the bot (`updates.py`, `webhook.py`), failures on demand
(`faults.py`), the JSON API that plays the people and @BotFather (`control_api.py`, `control_bots.py`), the phone in a
web page (`phone.py`, `static/`), the demo application (`demo.py`) and what a sandbox starts with (`seed.py`).
Everything of the messenger lies in memory and is bounded; `server.py` puts it together. Flow: a person opens a
deeplink, by the phone or by the JSON API; the bot gets an update over real HTTP and answers; the person taps, the bot
gets a callback query. The bot cannot tell that this is not Telegram, and nothing here knows the bot's code. It never
imports `web`, `bot` or `worker`.
"""
