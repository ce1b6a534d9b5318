"""The OpenAPI document (`document.py`) and the page that shows it (`reference_page.py`).

FastAPI describes the developer API. `sign_in.py`, `login.py` and `webhooks.py` describe the rest by hand, and
`failures.py` describes every error.
"""
