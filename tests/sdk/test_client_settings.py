"""The settings of a client: immediate refusals, TLS, and texts without secrets."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from tests.e2e.test_process_https import issue
from tests.sdk.either_client import PROJECT, EitherClient, HandClock, NewClient, ScriptedServer, reply

from taproof import (
    AsyncClient,
    Client,
    ConnectionFailed,
    CreatedProject,
    SignIn,
    SignInResult,
    code_challenge,
    new_code_verifier,
)
from taproof.sdk.reading import read

BOTH: list[Any] = [Client, AsyncClient]


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    "base_url",
    [
        "https://signin.example.com",
        "https://signin.example.com/",
        "https://signin.example.com:8443/taproof",
        "http://localhost:8080",
        "http://127.0.0.1",
        "http://127.3.2.1:80",
        "http://[::1]:8080/prefix/",
    ],
)
def test_addresses_that_are_taken(kind: Any, base_url: str) -> None:
    """Https is accepted everywhere, http only on this machine; a path may precede that of the API."""
    assert base_url.rstrip("/") in repr(kind(base_url))


REFUSED_ADDRESSES = [
    "http://signin.example.com",
    "http://10.0.0.1",
    "http://localhost.example.com",
    "http://127.0.0.1.example.com",
    "http://user:hidden@localhost",
    "https://user:hidden@signin.example.com",
    "https://signin.example.com?x=hidden",
    "https://signin.example.com/?",
    "https://signin.example.com/#",
    "https://signin.example.com/../x",
    "https://signin.example.com/a b",
    "https://signin.example.com/\r\nX: hidden",
    "https://signin.example.com:99999",
    "https://",
    "https:signin.example.com",
    "ftp://signin.example.com",
    "signin.example.com",
    "",
    "https://[::1",
    None,
    b"https://signin.example.com",
    7,
]


def test_addresses_that_are_refused(subtests: pytest.Subtests) -> None:
    """Credentials never travel unencrypted over a network, and the sentence says what to give instead."""
    for base_url in REFUSED_ADDRESSES:
        for kind in BOTH:
            with subtests.test(kind=kind, base_url=base_url):
                with pytest.raises(ValueError, match="must be the https:// address") as caught:
                    kind(base_url)
                assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    "options",
    [
        {"access_token": "sk_secret"},
        {"access_token": "tap_secret\r\nX: y"},
        {"access_token": "tap_secret\n"},
        {"access_token": b"tap_secret"},
        {"access_token": ""},
        {"secret_key": "tap_secret"},
        {"secret_key": "whsec_secret"},
        {"project_id": "proj_/../secret"},
        {"timeout": 0},
        {"timeout": float("nan")},
        {"timeout": float("inf")},
        {"timeout": "secret"},
    ],
)
def test_settings_that_cannot_be_right_are_refused(kind: Any, options: dict[str, Any]) -> None:
    """A credential of the wrong kind is refused immediately, without showing it."""
    with pytest.raises(ValueError, match=next(iter(options))) as caught:
        kind("https://signin.example.com", **options)
    assert "secret" not in str(caught.value).replace("secret_key", "").replace("secret key", "")


def test_a_call_says_which_credential_is_missing(new_client: NewClient) -> None:
    """A client without the credential that a call needs sends nothing, and says what to give."""
    client = new_client(access_token=None, secret_key=None, project_id=None)
    for act, missing in (
        (client.read_account, "access_token"),
        (client.list_sessions, "access_token"),
        (client.create_session, "project_id"),
    ):
        with pytest.raises(ValueError, match=missing):
            act()


@pytest.mark.parametrize("project_id", ["../../me", "..", "", "proj_1/../x", "proj_1?x", "proj_1#", "é", None])
def test_an_id_leads_nowhere_else(client: EitherClient, project_id: Any) -> None:
    """An id from an untrusted source cannot turn a call into another one."""
    with pytest.raises(ValueError, match="id"):
        client.delete_project(project_id)


def test_a_path_before_the_api_stays(new_client: NewClient, server: ScriptedServer) -> None:
    """A service below a proxy's path is called there."""
    server.replies = [reply(200, {"projects": []})]
    assert new_client(f"{server.base_url}/taproof/").list_projects() == []
    assert server.lines == ["GET /taproof/api/v1/dev/projects HTTP/1.1"]


def test_times_need_their_zone(client: EitherClient, server: ScriptedServer) -> None:
    """A naive datetime is ambiguous and therefore refused; an aware one is sent as UTC."""
    server.replies = [reply(200, {"sessions": [], "next_cursor": None})]
    with pytest.raises(ValueError, match="since"):
        client.list_sessions(since=datetime(2026, 1, 1))  # noqa: DTZ001 — that is what is refused.
    client.list_sessions(since=datetime.fromisoformat("2026-01-01T02:00:00+02:00"), status="used", page_size=7)
    assert server.lines == ["GET /api/v1/dev/sessions?status=used&since=2026-01-01T00%3A00%3A00.000Z&limit=7 HTTP/1.1"]


@pytest.mark.parametrize("host", ["999.1.1.1", "a..b", "xn--", "xn--a.invalid", f"{'a' * 64}.invalid", "[v1.a]"])
def test_a_host_that_cannot_be_is_not_reached(new_client: NewClient, host: str) -> None:
    """For any error of the HTTP library, the caller gets the SDK's own error."""
    with pytest.raises(ConnectionFailed):
        new_client(f"https://{host}:9").read_account()


# ---- TLS


@contextmanager
def https_server(directory: Path, address: str, name: str = "localhost") -> Iterator[tuple[int, Path]]:
    """Serve on a loopback address with a certificate for `name`; yield the port and the authority's file."""
    authority = issue("Test authority", None)
    certificate, key = issue(name, authority)
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (directory / "ca.pem").write_bytes(authority[0].public_bytes(pem))
    (directory / "server.pem").write_bytes(certificate.public_bytes(pem) + private)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.wfile.write(reply(200, {"tokens": []}))

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    class Quiet(HTTPServer):
        def handle_error(self, *_: object) -> None:
            """Ignore clients that disconnect because they do not trust the certificate."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "server.pem")
    with Quiet((address, 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server.server_port, directory / "ca.pem"
        finally:
            server.shutdown()
            thread.join()


def test_tls_is_verified(new_client: NewClient, clock: HandClock, tmp_path: Path) -> None:
    """An unknown authority is refused immediately; `ca_file` names a trusted one, but not for another host name."""
    with https_server(tmp_path, "127.0.0.1") as (port, ca_file):
        base_url = f"https://127.0.0.1:{port}"
        with pytest.raises(ConnectionFailed, match="certificate"):
            new_client(base_url).list_access_tokens()
        assert clock.slept == [], "a certificate does not get better when it is looked at again"
        assert new_client(base_url, ca_file=str(ca_file)).list_access_tokens() == []
    with https_server(tmp_path, "127.0.0.2") as (port, ca_file):
        client = new_client(f"https://127.0.0.2:{port}", ca_file=str(ca_file))
        with pytest.raises(ConnectionFailed, match="certificate"):
            client.list_access_tokens()


@pytest.mark.parametrize("kind", BOTH)
def test_a_ca_file_that_is_not_there_is_told_at_once(kind: Any, tmp_path: Path) -> None:
    """A wrong path is an error when the client is created, so that it never trusts other authorities instead."""
    with pytest.raises(FileNotFoundError):
        kind("https://signin.example.com", ca_file=str(tmp_path / "missing.pem"))


# ---- what is never shown


def test_reprs_hold_no_secret() -> None:
    """Clients, sign-ins and results can be logged without a secret."""
    secret = "x" * 43
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    sign_in = SignIn(
        session_token=secret, deeplink=f"https://t.me/a?start={secret}", code_verifier=secret, expires_at=moment
    )
    created = read(CreatedProject, PROJECT | {"secret_key": f"sk_{secret}", "webhook_secret": f"whsec_{secret}"})
    client = Client("https://signin.example.com", access_token=f"tap_{secret}", secret_key=f"sk_{secret}")
    for each in (sign_in, created, SignInResult(status="confirmed", proof=secret), client, client._service):
        assert secret not in repr(each)


def test_the_code_challenge_is_that_of_rfc_7636() -> None:
    """The challenge equals the one in RFC 7636, appendix B."""
    assert (
        code_challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    )


def test_verifiers_are_new_each_time() -> None:
    """A verifier is 43 characters of 256 random bits."""
    made = {new_code_verifier() for _ in range(100)}
    assert (len(made), {len(verifier) for verifier in made}) == (100, {43})


@pytest.mark.parametrize("verifier", ["a" * 42, "a" * 129, "a" * 42 + "+", "a" * 43 + "\n", "é" * 43, None, b"a" * 43])
def test_a_verifier_of_another_form_is_refused(verifier: Any) -> None:
    """Only a verifier that every service accepts gives a challenge (RFC 7636, 4.1); the sentence does not show it."""
    with pytest.raises(ValueError, match="43 to 128") as caught:
        code_challenge(verifier)
    assert "aaaa" not in str(caught.value)
