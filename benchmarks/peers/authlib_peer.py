"""Authlib with its device flow on Flask, all of an application in one file; gunicorn serves `application`.

Run by the Python of its own virtual environment: `python authlib_peer.py` makes the tables in the file that
PEER_DATABASE names. Nothing here is imported by the rest of the suite. Authlib has no storage and no pages: the classes
below are what its documentation tells an application to write (https://docs.authlib.org, RFC 8628).
"""
# mypy: disable-error-code="import-not-found, misc, untyped-decorator"

import os
import sqlite3
import threading
import time
from typing import Any, Final

os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"  # HTTP on loopback, as for all peers. Authlib reads it at each request.

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import ClientMixin
from authlib.oauth2.rfc8628 import (
    DEVICE_CODE_GRANT_TYPE,
    DeviceAuthorizationEndpoint,
    DeviceCodeGrant,
    DeviceCredentialDict,
)
from flask import Flask, Response, jsonify, request

CLIENT_ID: Final = "bench"
_SCHEMA: Final = """
CREATE TABLE device_codes (
  device_code TEXT PRIMARY KEY, user_code TEXT NOT NULL UNIQUE, client_id TEXT NOT NULL, scope TEXT,
  expires_at INTEGER NOT NULL, user TEXT
) WITHOUT ROWID;
CREATE TABLE tokens (
  access_token TEXT PRIMARY KEY, client_id TEXT NOT NULL, user TEXT NOT NULL, scope TEXT, issued_at INTEGER NOT NULL,
  expires_in INTEGER NOT NULL
) WITHOUT ROWID;
"""
_local = threading.local()


def database() -> sqlite3.Connection:
    """Return the connection of this thread; each statement commits by itself."""
    if not hasattr(_local, "connection"):
        _local.connection = sqlite3.connect(os.environ["PEER_DATABASE"], timeout=20, isolation_level=None)
        _local.connection.execute("PRAGMA journal_mode = WAL")
        _local.connection.execute("PRAGMA synchronous = FULL")
    connection: sqlite3.Connection = _local.connection
    return connection


class Client(ClientMixin):
    """The only client, which has no secret."""

    client_id = CLIENT_ID

    def get_client_id(self) -> str:
        """Return its id."""
        return CLIENT_ID

    def get_allowed_scope(self, scope: str) -> str:
        """Return the scopes that it may have: all that it asks for."""
        return scope

    def check_endpoint_auth_method(self, method: str, _endpoint: str) -> bool:
        """Return whether it may authenticate in this way."""
        return method == "none"

    def check_grant_type(self, grant_type: str) -> bool:
        """Return whether it may use this grant."""
        return bool(grant_type == DEVICE_CODE_GRANT_TYPE)


class DeviceEndpoint(DeviceAuthorizationEndpoint):
    """The endpoint that starts a sign-in, which is valid for an hour."""

    EXPIRES_IN = 3600

    def get_verification_uri(self) -> str:
        """Return the address of the page where a user enters the code."""
        return "http://127.0.0.1/device"

    def save_device_credential(self, client_id: str, scope: str | None, data: dict[str, Any]) -> None:
        """Store a new sign-in."""
        values = (data["device_code"], data["user_code"], client_id, scope, int(time.time()) + data["expires_in"])
        database().execute("INSERT INTO device_codes VALUES (?, ?, ?, ?, ?, NULL)", values)


class DeviceGrant(DeviceCodeGrant):
    """The grant that a device polls with."""

    def query_device_credential(self, device_code: str) -> DeviceCredentialDict | None:
        """Return a stored sign-in."""
        statement = "SELECT user_code, client_id, scope, expires_at FROM device_codes WHERE device_code = ?"
        row = database().execute(statement, (device_code,)).fetchone()
        names = ("user_code", "client_id", "scope", "expires_at")
        return None if row is None else DeviceCredentialDict(zip(names, row, strict=True))

    def query_user_grant(self, user_code: str) -> tuple[str, bool] | None:
        """Return the user who approved, or None while nobody has."""
        (user,) = database().execute("SELECT user FROM device_codes WHERE user_code = ?", (user_code,)).fetchone()
        return None if user is None else (user, True)

    def should_slow_down(self, _credential: DeviceCredentialDict) -> bool:
        """Let every poll pass."""
        return False


def save_token(token: dict[str, Any], asked: Any) -> None:
    """Store an access token."""
    values = (token["access_token"], CLIENT_ID, asked.user, token.get("scope"), int(time.time()), token["expires_in"])
    database().execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?)", values)


application = Flask(__name__)
_client: Final = Client()
_server: Final = AuthorizationServer(application, lambda name: _client if name == CLIENT_ID else None, save_token)
_server.register_endpoint(DeviceEndpoint)
_server.register_grant(DeviceGrant)


@application.post("/device/code")
def start() -> Any:
    """Start a sign-in."""
    return _server.create_endpoint_response("device_authorization")


@application.post("/token")
def poll() -> Any:
    """Answer a poll, or redeem an approved sign-in."""
    return _server.create_token_response()


@application.post("/bench/decide")
def decide() -> tuple[Response, int]:
    """Approve as the simulated user."""
    statement = "UPDATE device_codes SET user = 'simulated-user' WHERE user_code = ? AND user IS NULL"
    is_done = database().execute(statement, (request.form["user_code"],)).rowcount == 1
    return jsonify(approved=is_done), 200 if is_done else 409


if __name__ == "__main__":
    database().executescript(_SCHEMA)
