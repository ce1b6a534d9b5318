"""The console: a developer sees, sets up and understands everything in a browser.

A request passes `guard.py` (headers, other sites kept out, failures become pages), is routed by `app.py`, and ends in
the page module that has its concept's name: `projects.py`, `sessions.py`, `analytics.py`, … Each asks the use cases of
`taproof.service` as the developer API does, and shows a template of `templates/` through `rendering.py`. Who is signed
in is `access.py`. Everything works without JavaScript but what says otherwise; `static/` has the ES modules.

Built on `taproof.http`, and wired by `taproof.runtime.services` and `taproof.runtime.app`.
"""
