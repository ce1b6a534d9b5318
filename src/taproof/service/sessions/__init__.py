"""The use cases of sign-in sessions, one file each.

`create_and_verify.py` serves the application, `decide.py` the user in the messenger, `wait.py` clients that wait for a
decision, and `list.py` the developer. `core/session_state.py` has the rules.
"""
