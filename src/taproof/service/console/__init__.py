"""Signing in to the console: `sign_in.py` starts and ends a sign-in, `sessions.py` keeps console sessions.

`try_sign_in.py` signs a developer in to one of their own projects, to try it.
"""
