"""Ask the service in this container, print its answer, and exit with 0 if that is 200, else with 1.

An argument names the path: /healthz (the default: the process is alive), /readyz (sign-ins can start) or /metrics. The
check calls from loopback, the only place where plain HTTP is answered, so no outside checker needs to be trusted.
"""
# ruff: noqa: INP001 — a script of the image, not a package.

import contextlib
import http.client
import os
import sys
from pathlib import Path

words: list[str] = []
with contextlib.suppress(OSError):
    # The container's first process is the service. As there, options take precedence over the environment.
    words = Path("/proc/1/cmdline").read_text("utf-8", "replace").replace("=", "\0").split("\0")


def setting(option: str, variable: str) -> str:
    """Return the value with which the service was started; "" for its default."""
    given = words[words.index(option) + 1 :][:1] if option in words else [os.environ.get(variable, "")]
    return "".join(given).strip()


port = setting("--port", "TAPROOF_PORT")
# Kubernetes sets tcp://… in pods beside a Service called taproof. The service ignores it too.
number = int(port) if port.isdecimal() else 8080
host = setting("--host", "TAPROOF_HOST")
loopback = "::1" if ":" in host else "127.0.0.1"
address = loopback if host in {"", "localhost", "0.0.0.0", "::"} else host  # noqa: S104 — compared only.
# A service that listens on one other address of this container also sees a caller from loopback.
source = (loopback, 0)
connection: http.client.HTTPConnection
if setting("--tls-cert", "TAPROOF_TLS_CERT"):
    import ssl

    # The certificate names the public host, so it cannot match here. Nothing secret is sent.
    unchecked = ssl._create_unverified_context()  # noqa: S323, SLF001
    connection = http.client.HTTPSConnection(address, number, timeout=5, source_address=source, context=unchecked)
else:
    connection = http.client.HTTPConnection(address, number, timeout=5, source_address=source)
try:
    connection.request("GET", sys.argv[1] if len(sys.argv) > 1 else "/healthz")
    answer = connection.getresponse()
    text = answer.read().decode(errors="replace")
except (OSError, http.client.HTTPException) as error:
    sys.exit(f"No answer on port {number}: {error}")
# Kubernetes shows this text among the pod's events. The answer names what is missing, and contains no secret.
if answer.status != 200:
    sys.exit(f"The answer is {answer.status}: {text}")
sys.stdout.write(text)
