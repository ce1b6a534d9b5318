"""Asks the service in this container whether it is well: exits with 0 if so, else with 1.

An argument names the path: /healthz (the default: the process is alive) or /readyz (the store answers too). It asks
over loopback, the only place where plain HTTP is answered, so whoever checks from outside needs no trust for it.
"""
# ruff: noqa: INP001 — a script of the image, and no package.

import http.client
import os
import sys

port = int(os.environ.get("TAPROOF_PORT") or 8080)
connection: http.client.HTTPConnection
if os.environ.get("TAPROOF_TLS_CERT"):
    import ssl

    # The certificate names the public host, and nothing secret is sent.
    unchecked = ssl._create_unverified_context()  # noqa: S323, SLF001
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=unchecked)
else:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
try:
    connection.request("GET", sys.argv[1] if len(sys.argv) > 1 else "/healthz")
    status = connection.getresponse().status
except (OSError, http.client.HTTPException) as error:
    sys.exit(f"No answer on port {port}: {error}")
sys.exit(None if status == 200 else f"The answer is {status}.")
