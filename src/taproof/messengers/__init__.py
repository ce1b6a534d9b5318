"""The messengers that users sign in with.

`telegram/` is the bot, and `texts/` contains the texts that it sends. `browsers.py` names a request's browser, and
`reply_limits.py` limits the replies to one user.
"""
