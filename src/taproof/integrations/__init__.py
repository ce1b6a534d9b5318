"""Sign-in for web frameworks: the endpoint that receives the proof from the page, and the application's own session.

`endpoint.py` contains the common part, without a framework or I/O: it checks a request and returns the answer.
`starlette.py` (also for FastAPI), `flask.py`, `django.py` and `django_auth.py` (for `request.user`) adapt it to one
framework each; only they import that framework. They import `taproof.sdk`, but no server code. `examples/` contains
complete applications.
"""
