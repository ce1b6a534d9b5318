"""Sign developers in to the console.

`sign_in.py` starts sign-ins and reads their results. `sessions.py` opens, authenticates and ends console sessions.
"""
