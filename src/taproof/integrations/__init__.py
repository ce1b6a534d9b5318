"""Sign-in in an application's own web framework: the endpoint that its page sends the proof to, and its own session.

`endpoint.py` is what all of them do, without a framework and without I/O: which requests are taken, what is checked and
what is answered. `starlette.py` (for FastAPI too), `flask.py`, `django.py` and `django_auth.py` (for `request.user`)
put it into one framework each, and are all that imports that framework. They import `taproof.sdk`, and nothing of the
server's. `examples/` holds whole applications.
"""
