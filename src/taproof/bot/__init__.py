"""The messenger's side of a sign-in: a Telegram bot that asks a person to Confirm or Cancel.

Owns the connection to the Bot API (`connection.py`), what the bot says (`texts.py` and its neighbours, one object per
language) and shows (`prompts.py`), what it does (`handlers.py` for a sign-in, `user_control.py` for the rest, both
through `chat.py`), and how updates reach it: `polling.py` or `webhook.py`, both through `updates.py`. Flow: an update
is claimed in the store, handled, answered, written down as finished, and only then acknowledged, so that an update
that comes twice has one effect and one that failed comes again. Below it stands `service/decisions.py`, which decides;
the bot only shows. It never imports `web`, `worker` or `sandbox`. `lazy_models.py` imports aiogram in a way that does
not take seconds.
"""

from taproof.bot import lazy_models as lazy_models  # Before any other import of aiogram: see there.
