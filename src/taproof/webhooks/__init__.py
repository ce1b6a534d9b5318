"""The webhook sender. `sender.py` sends due events, and `scheduler.py` chooses the next event.

`http_client.py` posts an event to an allowed address. `connection.py` reads the answer, within limits.
`taproof.service.webhooks` builds the events and schedules the retries.
"""
