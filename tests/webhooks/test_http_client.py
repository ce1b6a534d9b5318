"""The client that posts webhooks, over real HTTP and TLS: its requests, its checks, and its names for failures."""

import asyncio
import contextlib
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs
from tests.webhooks.conftest import Run
from tests.webhooks.name_server import open_name_server
from tests.webhooks.receiver import NAME, OK, Authority, Names, RawReceiver, opened, receiving, signed

from taproof.core.address_rules import AddressRules
from taproof.core.webhook_url import webhook_url_problem
from taproof.webhooks.http_client import open_webhook_client


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """Create an authority that this process trusts, added as an operator adds one."""
    authority = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    return authority


async def test_what_is_sent() -> None:
    """A request is one POST to the URL as spelled, with exactly the signed bytes and headers, and no cookie."""
    time = asyncio.get_running_loop().time
    async with receiving(OK) as receiver, opened(receiver) as client:
        began = time()
        answer = await client.post(signed(f"http://{NAME.title()}:{receiver.port}//a/./%7Eb/../c%2F?d=%40e+%20&?"))
        assert (answer.status, answer.error, answer.body) == (200, None, b"hello")
        assert isinstance(answer.duration, int)
        assert 0 <= answer.duration <= 1_000 * (time() - began) + 1
    head, *headers = receiver.heads[0].strip().split("\r\n")
    assert head == "POST //a/./%7Eb/../c%2F?d=%40e+%20&? HTTP/1.1"
    assert sorted(headers) == [
        "Accept-Encoding: identity",
        "Accept: */*",
        "Content-Length: 15",
        "Content-Type: application/json",
        f"Host: {NAME.title()}:{receiver.port}",
        "User-Agent: Taproof/test",
        "X-Service-Signature: ab",
    ]
    assert receiver.bodies == [b'{"id": "evt_1"}']


async def test_connections_are_used_again() -> None:
    """Consecutive posts to one URL share a connection; posts to two URLs never do."""
    async with receiving(OK) as receiver, opened(receiver) as client:
        for path in ("a", "b", "a", "b", "a"):
            assert (await client.post(signed(f"http://{NAME}:{receiver.port}/{path}"))).status == 200
    assert receiver.connections == 2
    assert len(receiver.heads) == 5


async def test_a_connection_that_closes_at_the_next_request_is_replaced() -> None:
    """If the receiver closes an idle connection just then, the event is sent again, as "at least once" allows."""

    async def reply(writer: asyncio.StreamWriter) -> None:
        if len(receiver.heads) % 2 == 1:
            writer.write(OK)
        else:
            writer.close()

    async with receiving(reply) as receiver, opened(receiver) as client:
        for _ in range(2):
            assert (await client.post(signed(f"http://{NAME}:{receiver.port}/"))).status == 200
    assert (receiver.connections, len(receiver.bodies)) == (2, 3)


async def test_an_address_that_fails_is_not_the_last(authority: Authority) -> None:
    """If a name has several addresses, one that refuses or has another certificate does not end the attempt."""
    names = Names("127.0.0.3", "127.0.0.2", "127.0.0.1")
    async with (
        receiving(OK, authority.server(NAME)) as receiver,
        receiving(OK, authority.server("other.test"), "127.0.0.2", receiver.port),
        opened(receiver, resolver=names, allow_http=False) as client,
    ):
        assert (await client.post(signed(f"https://{NAME}:{receiver.port}/"))).status == 200


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_an_answer(status: int) -> None:
    """A redirect is never followed, above all not to an internal address."""
    async with receiving(OK, host="127.0.0.2") as inside:
        to = f"http://127.0.0.2:{inside.port}/".encode()
        reply = b"HTTP/1.1 %d Moved\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % (status, to)
        async with receiving(reply) as receiver, opened(receiver) as client:
            assert (await client.post(signed(f"http://{NAME}:{receiver.port}/"))).status == status
    assert len(receiver.heads) == 1
    assert inside.connections == 0


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch, authority: Authority) -> None:
    """A proxy would resolve the name itself, and could connect anywhere."""
    async with receiving(OK) as proxy, receiving(OK) as plain, receiving(OK, authority.server(NAME)) as encrypted:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "WS_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
            monkeypatch.setenv(name.lower(), f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        async with opened(plain) as client:
            assert (await client.post(signed(f"http://{NAME}:{plain.port}/"))).status == 200
        async with opened(encrypted) as client:
            assert (await client.post(signed(f"https://{NAME}:{encrypted.port}/"))).status == 200
    assert proxy.connections == 0
    assert plain.heads[0].startswith("POST / ")
    assert encrypted.heads[0].startswith("POST / ")


def test_tls_is_verified_for_the_name(run: Run, authority: Authority) -> None:
    """The connection goes to the checked address with the name as SNI and Host. No other certificate is accepted."""

    async def posted(tls: Any) -> tuple[str | int | None, RawReceiver]:
        async with receiving(OK, tls) as receiver, opened(receiver, allow_http=False) as client:
            answer = await client.post(signed(f"https://{NAME}:{receiver.port}/"))
            again = await client.post(signed(f"https://{NAME}:{receiver.port}/"))
            dotted = await client.post(signed(f"https://{NAME}.:{receiver.port}/"))
            assert {(each.status, each.error) for each in (again, dotted)} == {(answer.status, answer.error)}
            return answer.status or answer.error, receiver

    async def scenario() -> None:
        result, receiver = await posted(authority.server(NAME))
        assert result == 200
        assert receiver.server_names == [NAME, NAME]
        assert receiver.connections == 2
        for head, name in zip(receiver.heads, (NAME, NAME, f"{NAME}."), strict=True):
            assert f"\r\nHost: {name}:{receiver.port}\r\n" in head
        for wrong in (
            authority.server("other.example.test"),
            authority.server("*.test"),
            authority.server(NAME, days=-1),
            authority.server(NAME, self_signed=True),
            authority.server("127.0.0.1"),
        ):
            result, receiver = await posted(wrong)
            assert result == "tls_failed"
            assert receiver.heads == []

    run(scenario())


def test_what_no_connection_comes_of(run: Run) -> None:
    """A refused connection, a server without TLS and a disconnect in the handshake have different errors."""

    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        async with opened() as client:
            assert (await client.post(signed(f"http://127.0.0.1:{port}/"))).error == "connection_refused"
        for said, error in ((b"", "connection_lost"), (b"220 mail.example.test ESMTP\r\n", "tls_failed")):

            async def meet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, said: bytes = said) -> None:
                writer.write(said)
                writer.close()

            async with await asyncio.start_server(meet, "127.0.0.1", 0) as server, opened() as client:
                port = server.sockets[0].getsockname()[1]
                assert (await client.post(signed(f"https://127.0.0.1:{port}/"))).error == error

    run(scenario())


def test_names_that_lead_nowhere(run: Run) -> None:
    """For unknown and invalid names and silent name servers, the developer is told that the name is the problem."""

    async def scenario() -> None:
        async with open_name_server() as (server, resolver), opened(resolver=resolver, lookup_timeout=1.5) as client:
            for name in ("nobody.test", "a..b", "xn--a", "-", "_.test", "x" * 64 + ".test", "x." * 200 + "test"):
                assert (await client.post(signed(f"https://{name}/"))).error == "dns_failed", name
            server.silent = True
            assert (await client.post(signed("https://silent.test/"))).error == "dns_failed"
        async with opened(resolver=Names(delay=60), lookup_timeout=1.5) as client:
            answer = await client.post(signed("https://slow.test/"))
        assert answer.error == "dns_failed"
        assert answer.duration >= 1_500

    run(scenario())


async def test_a_port_that_is_not_allowed_is_not_even_looked_up() -> None:
    """A lookup would tell a name server about it, and might be slow. Plain HTTP is for the sandbox only."""
    names = Names()
    async with opened(resolver=names, allow_http=False) as client:
        for url in (f"https://{NAME}:22/", f"https://{NAME}:80/", f"http://{NAME}/", "https://127.0.0.1:6379/"):
            assert (await client.post(signed(url))).error == "port_not_allowed", url
        assert (await client.post(signed(f"http://{NAME}:443/"))).error == "tls_failed"
    async with opened(resolver=names) as client:
        assert (await client.post(signed(f"https://{NAME}:22/"))).error == "port_not_allowed"
    assert names.asked == []


async def test_the_sandbox_posts_to_any_port_of_this_machine() -> None:
    """A developer's own server may listen on any port of `localhost` with plain HTTP."""
    async with receiving(OK) as receiver, opened(resolver=None) as client:
        for host in ("localhost", "hooks.localhost", "127.0.0.1"):
            assert (await client.post(signed(f"http://{host}:{receiver.port}/"))).status == 200, host


async def test_a_bug_ends_one_attempt_and_is_logged_by_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sender continues; an error's text may contain anything, so only its type is logged."""

    async def broken(*_arguments: object) -> None:
        raise LookupError("a secret")

    async with opened() as client:
        monkeypatch.setattr(client, "_exchange", broken)
        with capture_logs() as entries:
            answer = await client.post(signed(f"https://{NAME}/"))
    assert answer.error == "connection_failed"
    assert entries == [{"event": "webhooks.bug", "log_level": "error", "error": "LookupError"}]


def test_every_url_that_can_be_stored_can_be_posted_to() -> None:
    """Every URL that passes as a webhook URL ends in an answer or in a named error, never in a bug."""
    with asyncio.Runner() as runner:
        stack = contextlib.AsyncExitStack()
        rules, ports = AddressRules(), frozenset({443, 8443})
        _, resolver = runner.run(stack.enter_async_context(open_name_server()))
        client = runner.run(stack.enter_async_context(open_webhook_client(rules, ports, resolver=resolver)))

        @given(st.text(alphabet="az09.-_[]:%xn/?#&=+~!$'()*,;@|^`{}<>\"", max_size=30), st.sampled_from(["", ":8443"]))
        def post(rest: str, port: str) -> None:
            for url in (f"https://{rest}", f"https://{rest}{port}/{rest}", f"https://a.test{port}/{rest}"):
                if webhook_url_problem(url, rules=rules, ports=ports, allow_loopback_http=False) is None:
                    with capture_logs() as entries:
                        assert runner.run(client.post(signed(url))).error == "dns_failed", url
                    assert entries == [], url

        try:
            post()
        finally:
            runner.run(stack.aclose())
