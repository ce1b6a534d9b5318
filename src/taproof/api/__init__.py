"""The JSON API.

`router.py` lists every route. The four session endpoints are plain ASGI in `sessions.py`, because polling is most of
the traffic. The developer API is FastAPI in `developer.py`, with the models of `schemas.py`, filled by
`serializers.py`. `login.py` serves `taproof login`, `health.py` operations, and `openapi/` the API's description.

What every HTTP surface shares, such as the JSON error shape, is `taproof.http`. The API calls `taproof.service`.
"""
