"""The webhook sender. `sender.py` sends due events, and `scheduler.py` says which event is sent next.

`http_client.py` posts an event, over connections that `bounded_connection.py` limits. `taproof.service.webhooks`
decides what is sent and when it is retried.
"""
