"""The sandbox's Bot API server, as strict as the real one (`server.py`, `methods.py`, `request.py`).

`people.py`, `chats.py` and `messenger.py` contain the users, their chats and their actions. `updates.py` and
`webhook.py` deliver updates to bots, and `faults.py` makes calls fail on request.
"""
