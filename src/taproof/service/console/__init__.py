"""Signing in to the console.

`sign_in.py` starts sign-ins and reads their results, `sessions.py` keeps console sessions.
"""
