"""No spelling of an internal address, and no trick with names, leads to a connection into the operator's network.

Every `connect` of a socket is recorded, on both event loops, and a listener on this machine's loopback addresses sees
whoever comes. Nothing leaves this machine: what is not loopback is recorded and refused before it is connected to.
"""

import asyncio
import socket
import unicodedata
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any
from urllib.parse import unquote

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from structlog.testing import capture_logs
from tests.webhooks.address_spellings import RESOLVED, SPELLINGS, TRICKS
from tests.webhooks.conftest import Run
from tests.webhooks.name_server import open_name_server
from tests.webhooks.receiver import resolved

from taproof.core.address_rules import AddressRules
from taproof.core.webhook_url import webhook_url_problem
from taproof.service.webhooks import SignedRequest, WebhookResponse
from taproof.webhooks.http_client import WebhookClient, open_webhook_client


class Names(AbstractResolver):
    """A very lenient resolver: besides its own names, it accepts every spelling that any system library accepts."""

    def __init__(self, **names: list[list[str]]) -> None:
        self.names = names

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002 — every answer is given.
    ) -> list[ResolveResult]:
        turns = self.names.get(host) or [[self._read(host)]]
        found = turns.pop(0) if len(turns) > 1 else turns[0]
        return [resolved(host, address, port) for address in found]

    def _read(self, host: str) -> str:
        plain = unicodedata.normalize("NFKC", unquote(host)).rstrip(".").partition("\0")[0]
        if plain == "localhost" or plain.endswith(".localhost"):
            return "127.0.0.1"
        return plain if ":" in plain else socket.inet_ntoa(socket.inet_aton(plain))

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


class Inside:
    """A listener on one port of both loopback addresses that counts connections and records every connected address."""

    def __init__(self, connects: list[tuple[Any, ...]]) -> None:
        self.connects = connects
        self.visits = 0
        self.port = 0
        self.has_six = False

    async def meet(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.visits += 1
        writer.close()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["Inside"]:
        async with AsyncExitStack() as stack:
            four = await stack.enter_async_context(await asyncio.start_server(self.meet, "127.0.0.1", 0))
            self.port = four.sockets[0].getsockname()[1]
            with suppress(OSError):  # A machine without IPv6 has one way in less.
                await stack.enter_async_context(await asyncio.start_server(self.meet, "::1", self.port))
                self.has_six = True
            yield self

    @asynccontextmanager
    async def client(self, rules: AddressRules, resolver: AbstractResolver) -> AsyncIterator[WebhookClient]:
        async with open_webhook_client(rules, frozenset({443, self.port}), resolver=resolver) as client:
            yield client

    def assert_untouched(self, why: object) -> None:
        assert (self.connects, self.visits) == ([], 0), why


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> Inside:
    """Record every connection of Python's sockets, and let none leave this machine."""
    connects: list[tuple[Any, ...]] = []

    def spied(real: Callable[..., Any]) -> Callable[..., Any]:
        def connect(self: socket.socket, address: Any) -> Any:
            if self.type == socket.SOCK_STREAM:
                connects.append(tuple(address[:2]))
                if address[0] not in {"127.0.0.1", "::1"}:
                    raise ConnectionRefusedError
            return real(self, address)

        return connect

    monkeypatch.setattr(socket.socket, "connect", spied(socket.socket.connect))
    monkeypatch.setattr(socket.socket, "connect_ex", spied(socket.socket.connect_ex))
    return Inside(connects)


async def post(client: WebhookClient, url: str) -> WebhookResponse:
    with capture_logs() as entries:
        result = await client.post(SignedRequest(url, {"Content-Type": "application/json"}, b"{}"))
    assert entries == [], url
    assert (result.status, result.body) == (None, b""), url
    return result


def test_no_spelling_of_an_internal_address_is_connected_to(inside: Inside, run: Run) -> None:
    """The address is refused when it is stored and when it is connected to, without a real DNS query."""

    async def scenario() -> None:
        rules, names = AddressRules(), Names()
        async with inside.listening(), inside.client(rules, names) as client:
            urls = [f"https://{host}:{inside.port}/hooks" for group in SPELLINGS.values() for host in group]
            urls += [trick.format(inside.port, inside.port) for trick in TRICKS]
            for url in urls:
                error = (await post(client, url)).error
                inside.assert_untouched(url)
                assert error in {"address_not_allowed", "dns_failed", "port_not_allowed", "tls_failed"}, url
                assert webhook_url_problem(url, rules=rules, ports={inside.port}, allow_loopback_http=False), url

    run(scenario())


def test_no_name_that_resolves_inside_is_connected_to(inside: Inside, run: Run) -> None:
    """An internal address is refused in every form of a name server's answer, and among any number of others."""

    async def scenario() -> None:
        names = Names(**{f"n{at}.test": [[address]] for at, address in enumerate(RESOLVED)})
        names.names["all.test"] = [RESOLVED]
        names.names["zone.test"] = [["fe80::1%lo", "::1%lo"]]
        names.names["odd.test"] = [["127.1", "2130706433", "0x7f.0.0.1", "localhost", "", "\u0661.1.1.1", "[::1]"]]
        async with inside.listening(), inside.client(AddressRules(), names) as client:
            for name in list(names.names):
                for port in (443, inside.port):
                    assert (await post(client, f"https://{name}:{port}/")).error == "address_not_allowed", name
                    inside.assert_untouched(name)

    run(scenario())


def test_the_listener_and_the_record_do_notice_a_connection(inside: Inside, run: Run) -> None:
    """As a control, an allowed address is connected to exactly as the name resolved, and is recorded."""

    async def scenario() -> None:
        names = Names(**{"four.test": [["127.0.0.1"]], "six.test": [["::1"]], "out.test": [["203.0.113.7"]]})
        rules = AddressRules(["loopback", "203.0.113.0/24"])
        async with inside.listening(), inside.client(rules, names) as client:
            hosts = {"four.test": "127.0.0.1", "127.0.0.1": "127.0.0.1"}
            hosts |= {"six.test": "::1", "[::1]": "::1"} if inside.has_six else {}
            for host in hosts:
                assert (await post(client, f"https://{host}:{inside.port}/")).error == "connection_lost"
            assert inside.visits == len(hosts)
            assert (await post(client, f"https://out.test:{inside.port}/")).error == "connection_refused"
        assert inside.connects == [(address, inside.port) for address in [*hosts.values(), "203.0.113.7"]]

    run(scenario())


def test_only_the_public_addresses_of_a_name_are_tried(inside: Inside, run: Run) -> None:
    """A name with internal and public addresses leads only to public ones, and to few of them."""

    async def scenario() -> None:
        mixed = ["127.0.0.1", "10.0.0.5", "203.0.113.7", "::1", "::ffff:203.0.113.9", "169.254.169.254"]
        many = [f"203.0.113.{last}" for last in range(256)] + [f"2001:db8::{last:x}" for last in range(1, 256)]
        names = Names(**{"mixed.test": [mixed], "many.test": [many]})
        rules = AddressRules(["203.0.113.0/24", "2001:db8::/32"])
        async with inside.listening(), inside.client(rules, names) as client:
            assert (await post(client, f"https://mixed.test:{inside.port}/")).error == "connection_refused"
            assert inside.connects == [("203.0.113.7", inside.port)]
            assert (await post(client, f"https://many.test:{inside.port}/")).error is not None
        tried = {address for address, _ in inside.connects}
        assert len(tried) <= 9
        assert len(inside.connects) < 50
        assert inside.visits == 0

    run(scenario())


def test_names_of_a_real_name_server_do_not_lead_inside(inside: Inside, run: Run) -> None:
    """A, AAAA and CNAME records are resolved over DNS with the service's resolver; also texts that are not names."""

    async def scenario() -> None:
        async with open_name_server() as (server, resolver), inside.listening():
            server.answers |= {
                "a.test": [["127.0.0.1"]],
                "aaaa.test": [["::1"]],
                "both.test": [["10.0.0.1", "fd00::1"]],
                "mapped.test": [["::ffff:127.0.0.1"]],
                "meta.test": [["169.254.169.254"]],
                "public.test": [["203.0.113.7", "192.168.0.1"]],
            }
            server.aliases |= {"alias.test": "a.test", "way.test": "public.test"}
            async with inside.client(AddressRules(["203.0.113.0/24"]), resolver) as client:
                for name in ("a.test", "aaaa.test", "both.test", "mapped.test", "meta.test", "alias.test", "localhost"):
                    # Without IPv6 on this machine, c-ares does not ask for AAAA at all.
                    expected = {"address_not_allowed"} | (
                        {"dns_failed"} if name in {"aaaa.test", "mapped.test"} else set()
                    )
                    assert (await post(client, f"https://{name}:{inside.port}/")).error in expected, name
                for name in ("nobody.test", "127.1", "0x7f.0.0.1", "0177.0.0.1", "2130706433", "127.0.0.1.", "a..b"):
                    assert (await post(client, f"https://{name}:{inside.port}/")).error is not None, name
                inside.assert_untouched("nothing yet")
                assert (await post(client, f"https://way.test:{inside.port}/")).error == "connection_refused"
        assert inside.connects == [("203.0.113.7", inside.port)]

    run(scenario())


def test_a_name_that_turns_inwards_is_not_followed(inside: Inside, run: Run) -> None:
    """If a name resolves to a public and then a private address, the used address is checked, with and without DNS."""

    async def scenario() -> None:
        async with open_name_server() as (server, resolver), inside.listening():
            turns = [["203.0.113.7"], ["127.0.0.1"], ["203.0.113.8", "127.0.0.1"], ["10.0.0.1"], ["203.0.113.9"]]
            server.answers["turning.test"] = [list(each) for each in turns]
            names = Names(**{"turning.test": [list(each) for each in turns]})
            for source in (resolver, names):
                inside.connects.clear()
                errors = []
                # A client of its own each time keeps no answer of the time before.
                for _ in turns:
                    async with inside.client(AddressRules(["203.0.113.0/24"]), source) as client:
                        errors.append((await post(client, f"https://turning.test:{inside.port}/")).error)
                assert {address for address, _ in inside.connects} == {"203.0.113.7", "203.0.113.8", "203.0.113.9"}
                assert errors[0] == errors[2] == errors[4] == "connection_refused"
                assert errors[1] == errors[3] == "address_not_allowed"
        assert inside.visits == 0

    run(scenario())


class ChangingRules(AddressRules):
    """Rules that allow an address once, as a check of the name alone would."""

    def __init__(self) -> None:
        super().__init__(["203.0.113.0/24"])
        self.asked: set[str] = set()

    def problem(self, address: str) -> str | None:
        if super().problem(address) == "unreadable" or address in self.asked:
            return super().problem(address)
        self.asked.add(address)
        return None


def test_the_connection_is_checked_again(inside: Inside, run: Run) -> None:
    """The last check alone prevents a socket for an address that passed the check of the name."""

    async def scenario() -> None:
        addresses = [each for each in RESOLVED if not each.startswith("203.0.113.")]
        names = Names(**{f"n{at}.test": [[address]] for at, address in enumerate(addresses)})
        async with inside.listening(), inside.client(ChangingRules(), names) as client:
            for at, address in enumerate(addresses):
                error = (await post(client, f"https://n{at}.test:{inside.port}/")).error
                assert error == "address_not_allowed", address
        inside.assert_untouched("the last check")

    run(scenario())
