"""`taproof login` and `logout` with invalid addresses, and with services that lie or fail."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.impostor import Impostor

from taproof.cli.credentials import Credential, Credentials
from taproof.core.entropy import system_entropy
from taproof.core.identifiers import new_key

_TOKEN = new_key("tap", system_entropy)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "signin.example.com",
        "http://signin.example.com",
        "http://203.0.113.7",
        "ftp://127.0.0.1",
        "https://",
        "https://user:password@signin.example.com",
        "https://signin.example.com/console",
        "https://signin.example.com?x=1",
        "https://signin.example.com/#x",
        "https://signin.example.com:x",
        "https://[::1",
        "https://sign in.example.com",
        "https://$(id)",
        "https://`id`.example.com",
        "https://a;id",
        "https://\u0441ignin.example.com",
    ],
)
def test_only_https_addresses_are_called(run: Run, tmp_path: Path, url: str) -> None:
    """Only https addresses without a password, and plain http to this machine, are called."""
    for name in ("login", "logout", "token"):
        result = run(name, "--", url, HOME=str(tmp_path), XDG_CONFIG_HOME="")
        assert result.exit_code == 1
        assert result.stderr.startswith("URL must be the https:// address")
    assert list(tmp_path.iterdir()) == []


def started(**changed: Any) -> bytes:
    answer = {
        "device_code": "x" * 50,
        "verification_uri_complete": "https://t.me/a_bot?start=x",
        "match_code": "42",
        "expires_in": 600,
        "interval": 1,
    }
    return json.dumps({**answer, **changed}).encode()


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b""),
        (200, b"[]"),
        (200, b"<html>"),
        (200, b"[" * 60_000),
        (200, b"{}" + b" " * 100_000),
        (200, started(verification_uri_complete="javascript:alert(1)")),
        (200, started(verification_uri_complete="http://203.0.113.7/x")),
        (200, started(verification_uri_complete="https://t.me/\x1b[2J")),
        (200, started(verification_uri_complete="https://t.me/ x")),
        (200, started(verification_uri_complete="https://[")),
        (200, started(verification_uri_complete="https://t.me/" + "x" * 5_000)),
        (200, started(device_code=5)),
        (200, started(device_code="")),
        (200, started(device_code="x" * 2_001)),
        (200, started(match_code=42)),
        (200, started(match_code="\x1b[2J")),
        (200, started(match_code="")),
        (200, started(expires_in="soon")),
        (200, started(expires_in=float("nan"))),
        (200, started(interval=float("nan"))),
        (200, started(interval=float("inf"))),
        (200, started(interval=-1)),
        (200, started(interval=True)),
        (301, b""),
        (404, b"not here"),
        (500, b'{"error": "\\u001b[2J\\u202eowned"}'),
    ],
)
def test_what_is_no_service_gets_one_printable_sentence(
    run: Run, tmp_path: Path, impostor: Impostor, status: int, body: bytes
) -> None:
    """Any answer that is not a service's gives one sentence.

    It prints no traceback, escape codes or misleading link, and stores nothing.
    """
    impostor.default = (status, {"Location": "http://203.0.113.7/"}, body)
    result = run("login", impostor.url, HOME=str(tmp_path), XDG_CONFIG_HOME="")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert result.stderr[:-1].isprintable()
    assert result.stderr.startswith(impostor.url)
    assert result.stdout == ""
    assert impostor.lines == ["POST /api/v1/login"]


@pytest.mark.parametrize(
    "answer",
    [
        {"access_token": "tap_x\n", "token_id": "tok_1", "email": "a@b.c"},
        {"access_token": "tap_" + "0" * 49, "token_id": "tok_1", "email": "a@b.c"},
        {"token_id": "tok_1", "email": "a@b.c"},
        {"access_token": ["x"], "token_id": "../me", "email": "a@b.c"},
        {"access_token": _TOKEN, "token_id": "tok_1", "email": "a@b.c"},
        {"access_token": _TOKEN, "expires_in": -1, "token_id": "tok_1", "email": "a@b.c"},
        {"access_token": _TOKEN, "expires_in": 600, "token_id": "tok_1", "email": ""},
        {"access_token": _TOKEN, "expires_in": 600, "token_id": "tok_1", "email": "a" * 2_001},
    ],
)
def test_only_an_access_token_is_kept(run: Run, tmp_path: Path, impostor: Impostor, answer: Any) -> None:
    """A stored token has exactly the form of a token, because scripts put it into a header."""
    impostor.answers["/api/v1/login"] = [(200, {}, started())]
    impostor.answers["/api/v1/login/token"] = [(200, {}, json.dumps(answer).encode())]
    result = run("login", impostor.url, HOME=str(tmp_path), XDG_CONFIG_HOME="")
    assert result.exit_code == 1
    assert not (tmp_path / ".config").exists()


def test_a_login_goes_on_through_trouble(run: Run, tmp_path: Path, impostor: Impostor) -> None:
    """A service that is briefly unavailable, limits calls, or has no place for a wait is asked again."""
    token = new_key("tap", system_entropy)
    answer = {"access_token": token, "expires_in": 90 * 86_400, "token_id": "tok_1", "email": "ada@example.com"}
    impostor.answers["/api/v1/login"] = [(200, {}, started())]
    impostor.answers["/api/v1/login/token"] = [
        (503, {"X-Error-Code": "store_unavailable"}, b'{"error": "Away."}'),
        (400, {"X-Error-Code": "authorization_pending"}, b'{"error": "Pending."}'),
        (429, {"X-Error-Code": "rate_limited", "Retry-After": "1"}, b'{"error": "Too many requests."}'),
        (200, {}, json.dumps(answer).encode()),
    ]
    result = run("login", impostor.url, HOME=str(tmp_path), XDG_CONFIG_HOME="")
    assert result.exit_code == 0, result.stderr
    assert "is valid for 90 days" in result.stdout
    assert run("token", HOME=str(tmp_path), XDG_CONFIG_HOME="").stdout == f"{token}\n"


def test_a_logout_that_did_not_reach_the_service_forgets_nothing(run: Run, tmp_path: Path, impostor: Impostor) -> None:
    """If the service is down, another one or failing, the token may still be valid, so it stays in the file."""
    credentials = Credentials(tmp_path / "taproof" / "credentials.json")
    credential = Credential("tap_x", "tok_1", "ada@example.com")
    for status, code in ((500, "internal_error"), (404, "not_found"), (301, ""), (200, "")):
        credentials.replace(impostor.url, credential)
        impostor.answers["/api/v1/dev/tokens/tok_1"] = [(status, {"X-Error-Code": code}, b"")]
        result = run("logout", XDG_CONFIG_HOME=str(tmp_path))
        assert result.exit_code == 1
        assert "still signed in" in result.stderr
        assert credentials.read() == {impostor.url: credential}
    away = "http://127.0.0.1:9"
    credentials.replace(away, credential)
    assert "cannot be reached" in run("logout", away, XDG_CONFIG_HOME=str(tmp_path)).stderr
    assert away in credentials.read()
