"""The SDK, which applications import. It needs only PyJWT, and urllib3 for `Client`, but no server code.

`proof.py` checks the proof that a browser sends, and `guard.py` accepts each proof only once. `webhook.py` checks the
service's webhooks. `client.py` and `async_client.py` call the service. `session_calls.py` and `developer_calls.py`
define the calls without I/O, with the retries from `retries.py`. `reading.py` converts the answers to the types in
`taproof.contract`. The package `taproof` exports the public names.
"""
