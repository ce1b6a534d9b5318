"""OpenTelemetry traces. It wraps the parts at the edges of a process; the parts themselves know nothing of it.

`provider.py` starts and stops the export, and `traced.py` wraps the parts: HTTP requests (`requests.py`), operations of
the store (`store.py`), the bot (`telegram.py`) and webhooks (`webhooks.py`). Only `taproof.runtime` imports this
package, and only if traces are on. No other package imports OpenTelemetry.

No span contains a secret or personal data: no path, query, address, id of a user, parameter or text of an error.
"""
