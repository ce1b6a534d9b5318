"""The HTTP API, on plain ASGI.

`https_only.py` admits only HTTPS and loopback requests. `router.py` lists every route. The four session endpoints are
plain ASGI in `sessions.py`, because polling is most of the traffic. The developer API is FastAPI in `developer.py`,
with the models of `schemas.py`, filled by `serializers.py`. `login.py` serves `taproof login`, `health.py` and
`metrics.py` operations. `errors.py` turns every failure into one JSON shape. The API calls `taproof.service`.
"""
