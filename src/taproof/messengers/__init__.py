"""The messengers that users sign in with.

`telegram/` is the bot, and `texts/` holds the texts that it sends. `browsers.py` names the browser of a request, and
`reply_limits.py` limits the replies to one user.
"""
