"""The OpenAPI document (`document.py`) and the page that shows it (`reference_page.py`).

FastAPI describes the developer API. `sign_in.py`, `login.py` and `webhooks.py` contain handwritten descriptions of the
rest, and `failures.py` describes every error.
"""
