"""Check the health of the service in this container: exit with 0 if it is healthy, else with 1.

An argument names the path: /healthz (the default: the process is alive) or /readyz (sign-ins can start). The check uses
loopback, the only place where plain HTTP is answered, so no outside checker needs to be trusted.
"""
# ruff: noqa: INP001 — a script of the image, not a package.

import http.client
import os
import sys

port = int(os.environ.get("TAPROOF_PORT") or 8080)
connection: http.client.HTTPConnection
if os.environ.get("TAPROOF_TLS_CERT"):
    import ssl

    # The certificate names the public host, so it cannot match here. Nothing secret is sent.
    unchecked = ssl._create_unverified_context()  # noqa: S323, SLF001
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=unchecked)
else:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
try:
    connection.request("GET", sys.argv[1] if len(sys.argv) > 1 else "/healthz")
    answer = connection.getresponse()
    text = answer.read(2_000).decode(errors="replace")
except (OSError, http.client.HTTPException) as error:
    sys.exit(f"No answer on port {port}: {error}")
# Kubernetes shows this text among the pod's events. The answer names what is missing, and contains no secret.
sys.exit(None if answer.status == 200 else f"The answer is {answer.status}: {text}")
