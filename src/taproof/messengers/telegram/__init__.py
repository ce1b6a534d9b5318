"""Sign-in with Telegram: a bot that asks a user to Confirm or Cancel.

`bot_api.py` and `types.py` are the client of the Bot API, and `connection.py` waits while it cannot be reached. Updates
arrive by `polling.py` or `webhook.py`, both through `updates.py`. `handlers.py` handles a sign-in and `user_control.py`
the rest, both through `chat.py`. `prompts.py` builds the messages. `service/sessions/decide.py` makes the decision.

An update is claimed in the store, handled, answered and marked as finished before it is acknowledged. A repeated update
therefore has one effect, and a failed one is delivered again.
"""
