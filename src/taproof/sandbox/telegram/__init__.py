"""The sandbox's Bot API server, as strict as the real one (`server.py`, `methods.py`, `request.py`).

`people.py`, `chats.py` and `messenger.py` hold what users see. `updates.py` and `webhook.py` deliver updates to bots,
and `faults.py` fails on demand.
"""
