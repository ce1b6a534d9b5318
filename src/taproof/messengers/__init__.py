"""The messengers that users sign in with: `telegram/`, and the texts that a bot sends, in `texts/`.

`browsers.py` names the browser of a request, and `reply_limits.py` limits the replies to one user.
"""
