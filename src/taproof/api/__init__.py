"""The JSON API.

`router.py` lists every route. The session endpoints are plain ASGI in `sessions.py` and `mini_apps.py`, because polling
is most of the traffic. The developer API is FastAPI in `developer.py`; `models.py` makes its models from
`taproof.contract`. `login.py` serves `taproof login`, `health.py` serves operators, and `openapi/` describes
the API.

`taproof.http` holds what all HTTP surfaces share, such as the JSON error shape. The API calls `taproof.service`.
"""
