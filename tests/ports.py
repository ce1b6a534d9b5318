"""Ports on loopback, for servers that cannot listen on port 0 because others must know their port first."""

import contextlib
import secrets
import socket


def free_port() -> int:
    """Return a port that nobody listens on, below the range from which the system takes ports for connections."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
