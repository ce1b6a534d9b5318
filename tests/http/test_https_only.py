"""HTTPS only, and the client's address behind a proxy (service-spec.md, opening; contract.md)."""

import json
from ipaddress import IPv4Address, ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taproof.http.https_only import HttpsOnly

HSTS = (b"strict-transport-security", b"max-age=31536000")
REFUSED = "refused"
INNER_HEADERS = [(b"content-length", b"0")]


class Recorder:
    """The application behind the middleware: records the scope and answers 200."""

    def __init__(self) -> None:
        self.scopes: list[Any] = []

    async def __call__(self, scope: Any, _receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": INNER_HEADERS})
        await send({"type": "http.response.body", "body": b""})


async def request(
    app: HttpsOnly, scheme: str, host: str | None, headers: list[tuple[bytes, bytes]] | None = None
) -> tuple[int, dict[bytes, bytes], bytes]:
    """Send one request as granian does: the port is a string too."""
    sent: list[Any] = []

    async def receive() -> Any:
        raise AssertionError("The body of a refused request is not read.")

    async def send(message: Any) -> None:
        sent.append(message)

    client = None if host is None else (host, "40000")
    scope = {"type": "http", "scheme": scheme, "client": client, "headers": headers or []}
    await app(scope, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"]), sent[1]["body"]


@pytest.mark.parametrize("host", ["203.0.113.9", "127.0.0.1", "2001:db8::1", "10.0.0.1", "", "unix:", None])
async def test_https_is_answered_with_hsts(host: str | None) -> None:
    """Every HTTPS request is answered, and the answer tells the browser to keep using HTTPS."""
    inner = Recorder()
    status, headers, _ = await request(HttpsOnly(inner), "https", host)
    assert (status, headers[HSTS[0]]) == (200, HSTS[1])
    assert INNER_HEADERS == [(b"content-length", b"0")]


async def test_hsts_covers_subdomains_only_when_asked() -> None:
    """HSTS covers subdomains only if the operator asks for it, because a subdomain may not have HTTPS yet."""
    _, headers, _ = await request(HttpsOnly(Recorder(), include_subdomains=True), "https", "203.0.113.9")
    assert headers[HSTS[0]] == b"max-age=31536000; includeSubDomains"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"])
async def test_plain_http_from_loopback_is_answered_without_hsts(host: str) -> None:
    """Loopback never leaves the machine; HSTS over plain HTTP is forbidden (RFC 6797, section 7.2)."""
    inner = Recorder()
    status, headers, _ = await request(HttpsOnly(inner), "http", host, [(b"host", b"localhost")])
    assert status == 200
    assert HSTS[0] not in headers
    assert inner.scopes[0]["client"] == (host, "40000")


# 0.0.0.0 is compared, never bound.
ELSEWHERE = ["203.0.113.9", "10.0.0.1", "192.168.0.1", "2001:db8::1", "::ffff:10.0.0.1", "0.0.0.0", "", "x", None]  # noqa: S104


async def test_plain_http_from_elsewhere_is_refused(subtests: pytest.Subtests) -> None:
    """Plain HTTP is refused with a sentence, not redirected, and no header changes that."""
    for headers in [[], [(b"x-forwarded-proto", b"https"), (b"x-forwarded-for", b"127.0.0.1")]]:
        for host in ELSEWHERE:
            with subtests.test(host=host, headers=headers):
                inner = Recorder()
                status, answer, body = await request(HttpsOnly(inner), "http", host, headers)
                assert (status, answer[b"x-error-code"]) == (400, b"https_required")
                assert "https://" in json.loads(body)["error"]
                assert b"location" not in answer
                assert HSTS[0] not in answer
                assert inner.scopes == []


FROM_THIS_MACHINE = [
    ({b"x-forwarded-for": b"203.0.113.9"}, 400),
    ({b"x-forwarded-for": b"203.0.113.9", b"x-forwarded-proto": b"https"}, 400),
    ({b"x-forwarded-for": b"127.0.0.1, 203.0.113.9"}, 400),
    ({b"x-forwarded-for": b"203.0.113.9, 127.0.0.1"}, 400),
    ({b"x-forwarded-for": b"unknown"}, 400),
    ({b"x-forwarded-for": b""}, 400),
    ({b"x-forwarded-proto": b"https"}, 400),
    ({b"x-forwarded-proto": b"http"}, 400),
    ({b"forwarded": b"for=203.0.113.9;proto=https"}, 400),
    ({b"forwarded": b'for="[2001:db8::1]:4711"'}, 400),
    ({b"forwarded": b"proto=https"}, 400),
    ({b"forwarded": b"for=127.0.0.1, for=_hidden"}, 400),
    ({b"forwarded": b"for=127.0.0.1" + b";a=b" * 7}, 200),
    ({b"forwarded": b"for=127.0.0.1" + b";a=b" * 8}, 400),
    ({b"forwarded": b"for=127.0.0.1", b"x-forwarded-for": b"203.0.113.9"}, 400),
    ({b"forwarded": b"for=203.0.113.9", b"x-forwarded-for": b"127.0.0.1"}, 400),
    ({b"x-forwarded-for": b"203.0.113.9" + b", 127.0.0.1" * 1_000}, 400),
    ({b"x-forwarded-for": b"127.0.0.1, "}, 400),
    ({b"x-forwarded-for": b"127.0.0.1", b"x-forwarded-proto": b"http"}, 200),
    ({b"x-forwarded-for": b"::1, 127.0.0.1"}, 200),
    ({b"forwarded": b'For="[::1]:4711";proto=http'}, 200),
    ({b"x-forwarded-host": b"localhost:5173"}, 200),
]


async def test_an_untrusted_proxy_on_this_machine_is_noticed(subtests: pytest.Subtests) -> None:
    """A proxy on loopback must be listed as trusted; otherwise, plain HTTP that it forwards would pass as local.

    A development proxy that forwards a browser of this machine is as local as the browser.
    """
    for headers, status in FROM_THIS_MACHINE:
        with subtests.test(headers=headers, status=status):
            found, _, body = await request(HttpsOnly(Recorder()), "http", "127.0.0.1", list(headers.items()))
            assert found == status
            if status == 400:
                assert "--trusted-proxy 127.0.0.1/32 (TAPROOF_TRUSTED_PROXY)" in json.loads(body)["error"]


FORWARDED = [
    ("http", "10.0.0.1", [b"203.0.113.9"], [b"https"], "203.0.113.9"),
    ("http", "10.0.0.1", [b"203.0.113.9"], [b"HTTPS"], "203.0.113.9"),
    ("http", "10.0.0.1", [b"1.1.1.1, 203.0.113.9"], [b"https"], "203.0.113.9"),
    ("http", "10.0.0.1", [b"1.1.1.1", b"203.0.113.9"], [b"https"], "203.0.113.9"),
    ("http", "10.0.0.1", [b"1.1.1.1, 203.0.113.9, 10.0.0.7"], [b"https, https"], "203.0.113.9"),
    ("http", "10.0.0.1", [b"203.0.113.9:5000"], [b"https"], "203.0.113.9"),
    ("http", "10.0.0.1", [b"[2001:db8::1]:5000"], [b"https"], "2001:db8::1"),
    ("http", "10.0.0.1", [b"::ffff:203.0.113.9"], [b"https"], "203.0.113.9"),
    ("http", "10.0.0.1", [b"203.0.113.9, garbage, 10.0.0.7"], [b"https"], "10.0.0.7"),
    ("http", "10.0.0.1", [b"garbage"], [b"https"], "10.0.0.1"),
    ("http", "10.0.0.1", [b"\xff\x00, ,"], [b"https"], "10.0.0.1"),
    # An entry that a proxy left empty, or could not tell: what its client wrote before it does not take its place.
    ("http", "10.0.0.1", [b"1.1.1.1, "], [b"https"], "10.0.0.1"),
    ("http", "10.0.0.1", [b"1.1.1.1", b""], [b"https"], "10.0.0.1"),
    ("http", "10.0.0.1", [b"1.1.1.1, unknown"], [b"https"], "10.0.0.1"),
    ("http", "10.0.0.1", [b"1.1.1.1, unix:"], [b"https"], "10.0.0.1"),
    ("http", "10.0.0.1", [b"1.1.1.1, _hidden"], [b"https"], "10.0.0.1"),
    ("http", "10.0.0.1", [b"1.1.1.1, 203.0.113.9:x"], [b"https"], "10.0.0.1"),
    ("http", "10.0.0.1", [b"1.1.1.1, [2001:db8::1"], [b"https"], "10.0.0.1"),
    ("http", "10.0.0.1", [b"1.1.1.1, [2001:db8::1]x"], [b"https"], "10.0.0.1"),
    ("http", "10.0.0.1", [b"1.1.1.1, [203.0.113.9]:80"], [b"https"], "10.0.0.1"),
    ("http", "10.0.0.1", [b"1.1.1.1, 010.0.0.9"], [b"https"], "10.0.0.1"),
    ("http", "10.0.0.1", [b"1.1.1.1, 10.0.0.1 "], [b"https"], "1.1.1.1"),
    ("http", "10.0.0.1", [b"127.0.0.1"], [b"https"], "127.0.0.1"),
    ("http", "10.0.0.1", [b"::ffff:10.0.0.9, ::ffff:203.0.113.9"], [b"https"], "203.0.113.9"),
    ("http", "10.0.0.1", [b"203.0.113.9, ::ffff:10.0.0.9"], [b"https"], "203.0.113.9"),
    ("http", "10.0.0.1", [b"fe80::1%eth0"], [b"https"], "fe80::1"),
    ("http", "10.0.0.1", [b"[fe80::1%25eth0]:80"], [b"https"], "fe80::1"),
    ("http", "10.0.0.1", [b"203.0.113.9%eth0"], [b"https"], "10.0.0.1"),
    ("http", "fd00::7%2", [b"203.0.113.9"], [b"https"], "203.0.113.9"),
    ("http", "10.0.0.1", [b"1.1.1.1," * 50_000 + b"203.0.113.9"], [b"https"], "203.0.113.9"),
    ("http", "10.0.0.1", [b"1.1.1.1"] * 90 + [b"203.0.113.9"], [b"https"], "203.0.113.9"),
    ("http", "10.0.0.1", [b"203.0.113.9, " + b"10.0.0.9, " * 50_000 + b"10.0.0.9"], [b"https"], "10.0.0.9"),
    ("http", "10.0.0.1", [b"1" * 400_000], [b"https"], "10.0.0.1"),
    ("http", "10.0.0.1", [b"203.0.113.9"], [b"http," * 50_000 + b"https"], REFUSED),
    ("http", "10.0.0.1", [b"203.0.113.9"], [b"https," * 50_000 + b"https"], REFUSED),
    ("http", "10.0.0.1", [], [b"https"], "10.0.0.1"),
    ("http", "10.0.0.1", [b"10.0.0.9, 10.0.0.8"], [b"https"], "10.0.0.9"),
    ("http", "::ffff:10.0.0.1", [b"203.0.113.9"], [b"https"], "203.0.113.9"),
    ("http", "fd00::7", [b"203.0.113.9"], [b"https"], "203.0.113.9"),
    ("http", "127.0.0.1", [b"203.0.113.9"], [b"https"], "203.0.113.9"),
    ("https", "10.0.0.1", [b"203.0.113.9"], [b"https"], "203.0.113.9"),
    ("https", "10.0.0.1", [], [], "10.0.0.1"),
    ("http", "10.0.0.1", [b"203.0.113.9"], [], REFUSED),
    ("http", "10.0.0.1", [b"203.0.113.9"], [b"http"], REFUSED),
    ("http", "10.0.0.1", [b"203.0.113.9"], [b""], REFUSED),
    ("http", "10.0.0.1", [b"203.0.113.9"], [b"https", b"http"], REFUSED),
    ("http", "10.0.0.1", [b"203.0.113.9"], [b"http, https"], REFUSED),
    ("https", "10.0.0.1", [b"203.0.113.9"], [b"http"], REFUSED),
    ("http", "11.0.0.1", [b"203.0.113.9"], [b"https"], REFUSED),
]


async def test_a_trusted_proxy_names_client_and_protocol(subtests: pytest.Subtests) -> None:
    """The clients of a trusted proxy must use HTTPS; the client is the rightmost address that is not a trusted proxy's.

    Addresses further left were sent by the client itself, which could claim any address.
    """
    for scheme, host, forwarded_for, proto, expected in FORWARDED:
        with subtests.test(scheme=scheme, host=host, forwarded_for=forwarded_for, proto=proto, expected=expected):
            inner = Recorder()
            networks = [ip_network("10.0.0.0/8"), ip_network("fd00::/8"), ip_network("127.0.0.1/32")]
            headers = [(b"x-forwarded-for", value) for value in forwarded_for]
            headers += [(b"x-forwarded-proto", value) for value in proto]
            status, answer, body = await request(HttpsOnly(inner, networks), scheme, host, headers)
            if expected is REFUSED:
                assert (status, answer[b"x-error-code"]) == (400, b"https_required")
                assert list(json.loads(body)) == ["error"]
                assert inner.scopes == []
            else:
                assert (status, answer[HSTS[0]]) == (200, HSTS[1])
                assert inner.scopes[0]["client"] == (expected, 0)
                assert inner.scopes[0]["scheme"] == "https"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("headers", [[(b"x-forwarded-for", b"127.0.0.1")], [(b"forwarded", b"for=127.0.0.1")]])
async def test_clients_of_a_local_proxy_are_no_local_programs(host: str, headers: list[tuple[bytes, bytes]]) -> None:
    """An untrusted proxy on loopback is answered over HTTPS, but its clients do not count as local programs."""
    inner = Recorder()
    status, _, _ = await request(HttpsOnly(inner), "https", host, headers)
    assert (status, inner.scopes[0]["client"]) == (200, (host, 0))
    await request(HttpsOnly(inner), "https", host, [])
    assert inner.scopes[1]["client"] == (host, "40000")


async def test_forwarded_beside_x_forwarded_for_is_not_believed() -> None:
    """`Forwarded` is ignored next to X-Forwarded-For, because a proxy that sets one passes on the client's other."""
    inner = Recorder()
    headers = [(b"forwarded", b"for=127.0.0.1;proto=https"), (b"x-forwarded-for", b"203.0.113.9")]
    app = HttpsOnly(inner, [ip_network("10.0.0.0/8")])
    assert (await request(app, "http", "10.0.0.1", headers))[0] == 400
    await request(app, "http", "10.0.0.1", [*headers, (b"x-forwarded-proto", b"https")])
    assert inner.scopes[0]["client"] == ("203.0.113.9", 0)


@given(st.lists(st.ip_addresses().map(str) | st.text(max_size=20), max_size=40), st.ip_addresses(v=4))
async def test_a_client_cannot_forge_its_address(written: list[str], address: IPv4Address) -> None:
    """The entry that the trusted proxy adds is the client, regardless of the rest of the header."""
    inner = Recorder()
    own = ", ".join(written).encode("utf-8")
    app = HttpsOnly(inner, [ip_network("240.0.0.1/32")])
    headers = [(b"x-forwarded-for", own), (b"x-forwarded-for", str(address).encode()), (b"x-forwarded-proto", b"https")]
    await request(app, "http", "240.0.0.1", headers)
    if str(address) != "240.0.0.1":
        assert inner.scopes[0]["client"] == (str(address), 0)


async def test_a_local_call_past_a_local_proxy_is_local() -> None:
    """A health check, or the sandbox's own bot, connects without a proxy and without forwarding headers."""
    inner = Recorder()
    status, answer, _ = await request(HttpsOnly(inner, [ip_network("127.0.0.1/32")]), "http", "127.0.0.1", [])
    assert (status, inner.scopes[0]["scheme"]) == (200, "http")
    assert HSTS[0] not in answer


async def test_the_cache_of_peers_is_bounded() -> None:
    """The cache of addresses does not grow beyond its limit."""
    app = HttpsOnly(Recorder())
    for number in range(5000):
        await request(app, "https", f"10.1.{number // 256}.{number % 256}")
    assert len(app.peers) <= 4096
    assert (await request(app, "http", "10.1.0.1"))[0] == 400


async def test_lifespan_passes_and_websockets_are_closed() -> None:
    """The server's start and stop reach the application; a websocket is closed before it is accepted."""
    passed: list[str] = []
    sent: list[Any] = []

    async def inner(scope: Any, _receive: Any, _send: Any) -> None:
        passed.append(scope["type"])

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message["type"])

    await HttpsOnly(inner)({"type": "lifespan"}, receive, send)
    await HttpsOnly(inner)({"type": "websocket", "scheme": "wss"}, receive, send)
    assert passed == ["lifespan"]
    assert sent == ["websocket.close"]


async def test_a_repeated_message_gets_one_hsts_header() -> None:
    """The session endpoints send the same message object for every poll, so the middleware must not change it."""
    start = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]}

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send(start)
        await send({"type": "http.response.body", "body": b""})

    for _ in range(3):
        status, answer, _ = await request(HttpsOnly(app), "https", "203.0.113.9")
        assert (status, answer[HSTS[0]]) == (200, HSTS[1])
    assert start["headers"] == [(b"content-type", b"application/json")]
