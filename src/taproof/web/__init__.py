"""Everything that is asked over HTTP, on ASGI.

The way of a request: `transport.py` lets only HTTPS and loopback through; `server.py` has every route on one screen;
the four session endpoints are plain ASGI in `session_api.py`, since polling is most of all traffic; the developer API
is FastAPI in `developer_api.py`, taking and giving what `schemas.py` says, filled in by `showing.py`; health, metrics
and the reference pages are fixed answers from `operations.py`, `metrics.py`, `openapi*.py` and `docs_page.py`.
Whatever fails becomes an answer in `errors.py`. It calls `service/` and never a storage driver;
`wiring.py` and `app.py` wire it.
"""
