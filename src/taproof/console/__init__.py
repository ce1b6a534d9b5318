"""The console, in which developers set up and inspect projects in a browser.

Each request passes `guard.py`, which sets headers, refuses other sites and turns failures into pages. `app.py` routes
it to the page module for its concept: `projects.py`, `sessions.py`, `analytics.py`, … Like the developer API, each
module calls the use cases in `taproof.service`; it then renders a template from `templates/` with `rendering.py`.
`access.py` recognises the signed-in developer. Pages work without JavaScript unless they say otherwise; `static/`
contains the ES modules.

The package builds on `taproof.http`; `taproof.runtime.services` and `taproof.runtime.app` wire it.
"""
