"""The SDK, which applications import. It needs only PyJWT, and urllib3 for `Client`, but nothing of the server.

`proof.py` checks the proof that a browser sends, and `guard.py` accepts each proof only once. `webhook.py` checks the
webhooks of the service. `client.py` and `async_client.py` call the service. `session_calls.py` and `developer_calls.py`
define the calls without input or output, with the retries of `retries.py`. `reading.py` turns the answers into the
values of `results.py`. The package `taproof` exports the public names.
"""
