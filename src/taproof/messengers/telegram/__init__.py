"""Sign-in with Telegram: a bot that asks a user to Confirm or Cancel.

`bot_api.py` and `types.py` are the Bot API client, and `connection.py` waits while the API cannot be reached. Updates
arrive through `polling.py` or `webhook.py`, which pass them to `updates.py`. `handlers.py` handles sign-ins and
`user_control.py` everything else; both reply through `chat.py`. `prompts.py` builds the messages.
`service/sessions/decide.py` makes the decisions.

An update is claimed in the store, handled, answered and marked as finished before it is acknowledged. A repeated update
therefore has one effect, and a failed one is delivered again.
"""
