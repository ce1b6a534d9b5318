"""The network's proxy: the variables that curl reads, and both clients behind such a proxy."""

from pathlib import Path
from typing import Any

import pytest
from tests.http_proxy import http_proxy
from tests.sdk.either_client import NewClient
from tests.sdk.test_client_settings import https_server

from taproof import AsyncClient, Client, ConnectionFailed
from taproof.sdk.environment_proxy import UnusableProxy, find_proxy

API = "https://api.telegram.org"


def test_which_proxy_is_used() -> None:
    """The scheme's variable counts before ALL_PROXY, lower case before upper case, and NO_PROXY before all."""
    p, q = "http://p:1", "http://q:2"
    for url, environment, expected in [
        (API, {}, None),
        (API, {"HTTPS_PROXY": p}, p),
        (API, {"https_proxy": p, "HTTPS_PROXY": q}, p),
        (API, {"https_proxy": "", "HTTPS_PROXY": q}, q),
        (API, {"HTTP_PROXY": p}, None),
        (API, {"HTTP_PROXY": p, "ALL_PROXY": q}, q),
        (API, {"HTTPS_PROXY": p, "all_proxy": q}, p),
        (API, {"HTTPS_PROXY": " p:1 "}, p),
        (API, {"HTTPS_PROXY": "https://p"}, "https://p:443"),
        (API, {"HTTPS_PROXY": "http://[::1]:3128"}, "http://[::1]:3128"),
        ("http://bot-api:8081", {"HTTP_PROXY": p}, p),
        ("http://bot-api:8081", {"HTTPS_PROXY": p}, None),
        # This machine is reached directly.
        *[
            (f"http://{host}:8081", {"HTTP_PROXY": p, "ALL_PROXY": p}, None)
            for host in ("localhost", "bot.localhost", "127.0.0.1", "127.9.9.9", "[::1]")
        ],
        *[
            (API, {"HTTPS_PROXY": p, name: value}, expected)
            for name, value, expected in [
                ("NO_PROXY", "*", None),
                ("NO_PROXY", "api.telegram.org", None),
                ("no_proxy", "API.Telegram.ORG.", None),
                ("NO_PROXY", "a.example, telegram.org", None),
                ("NO_PROXY", ".telegram.org", None),
                ("NO_PROXY", "*.telegram.org", None),
                ("NO_PROXY", "api.telegram.org:443", None),
                ("NO_PROXY", "api.telegram.org:8443", p),
                ("NO_PROXY", "gram.org", p),
                ("NO_PROXY", "x.api.telegram.org", p),
                ("NO_PROXY", ",", p),
            ]
        ],
        *[
            (f"https://{host}", {"HTTPS_PROXY": p, "NO_PROXY": value}, expected)
            for host, value, expected in [
                ("10.1.2.3", "10.0.0.0/8", None),
                ("10.1.2.3", "10.1.2.3", None),
                ("10.1.2.3", "10.1.2.3:443", None),
                ("10.1.2.3", "11.0.0.0/8 192.168.0.0/16", p),
                ("[2001:db8::1]", "2001:db8::/32", None),
                ("[2001:db8::1]", "[2001:db8::1]:443", None),
                ("[2001:db8::1]", "[2001:db8::2]", p),
            ]
        ],
    ]:
        found = find_proxy(url, environment)
        assert (None if found is None else found.address) == expected, (url, environment)


def test_a_password_is_read_and_never_shown() -> None:
    """The user and the password may be percent-encoded; what is printed contains neither."""
    found = find_proxy(API, {"HTTPS_PROXY": "http://ada:p%40ss%3A@proxy.example:3128"})
    assert found is not None
    assert (found.username, found.password) == ("ada", "p@ss:")
    assert f"{found} {found!r}" == " ".join(["http://proxy.example:3128 (HTTPS_PROXY)"] * 2)


@pytest.mark.parametrize(
    "value",
    ["socks5://ada:secret@p:1080", "http://ada:secret@p:x", "http://ada:secret%C3%A4@p", "http://", "http://a b"],
)
def test_a_proxy_that_cannot_be_used_is_refused(value: str) -> None:
    """The sentence names the variable, and not the value. Both clients refuse it at once."""
    with pytest.raises(UnusableProxy, match="HTTPS_PROXY") as refusal:
        find_proxy(API, {"HTTPS_PROXY": value})
    assert "secret" not in str(refusal.value)


def test_the_clients_refuse_socks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that cannot be used is not ignored, because the direct way may be forbidden."""
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    for client in (Client, AsyncClient):
        with pytest.raises(ValueError, match="SOCKS"):
            client("https://signin.example.com")


def test_a_service_behind_a_proxy(new_client: NewClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clients tunnel through the proxy; TLS is with the service. A refusal names the proxy, without a password."""
    with (
        https_server(tmp_path, "127.0.0.1", "signin.example.com") as (port, ca_file),
        http_proxy(port, login="ada:pass") as proxy,
    ):
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        options: dict[str, Any] = {"ca_file": str(ca_file), "timeout": 5.0}
        assert new_client("https://signin.example.com", **options).list_access_tokens() == []
        assert set(proxy.asked) == {"CONNECT signin.example.com:443"}
        monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("pass@", "wrong@"))
        stranger = new_client("https://signin.example.com", **options)
        named = rf"the proxy http://127\.0\.0\.1:{proxy.port} \(HTTPS_PROXY\)"
        with pytest.raises(ConnectionFailed, match=named) as no:
            stranger.list_access_tokens()
        assert "wrong" not in str(no.value)
