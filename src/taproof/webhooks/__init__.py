"""The webhook sender. `sender.py` sends due events, and `scheduler.py` chooses the next event.

`http_client.py` posts an event, over connections that `bounded_connection.py` limits. `taproof.service.webhooks`
builds the events and schedules the retries.
"""
