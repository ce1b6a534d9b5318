"""Sign-in with Telegram: a bot that asks a user to Confirm or Cancel.

`connection.py` is the connection to the Bot API. Updates arrive by `polling.py` or `webhook.py`, both through
`updates.py`. `handlers.py` handles a sign-in and `user_control.py` the rest, both through `chat.py`. `prompts.py` draws
the messages. An update is claimed in the store, handled, answered and marked as finished before it is acknowledged, so
a repeated update has one effect and a failed one comes again. `service/sessions/decide.py` makes the decision.
"""

from taproof.messengers.telegram import lazy_models as lazy_models
