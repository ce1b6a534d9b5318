"""The webhook sender. `sender.py` sends due events, and `scheduler.py` chooses the next event.

`http_client.py` posts an event. `bounded_connection.py` limits what a connection receives. `taproof.service.webhooks`
builds the events and schedules the retries.
"""
