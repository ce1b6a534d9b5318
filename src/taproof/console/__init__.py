"""The console: a developer sets up and inspects projects in a browser.

A request passes `guard.py`, which sets headers, refuses other sites and turns failures into pages. `app.py` routes it
to the page module of its concept: `projects.py`, `sessions.py`, `analytics.py`, … Each module calls the use cases of
`taproof.service`, as the developer API does, and renders a template of `templates/` through `rendering.py`. `access.py`
recognises the signed-in developer. Pages work without JavaScript unless they say otherwise; `static/` has the ES
modules.

The package builds on `taproof.http`; `taproof.runtime.services` and `taproof.runtime.app` wire it.
"""
