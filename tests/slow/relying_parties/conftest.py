"""Applications that use OpenID Connect through third-party libraries, each a process, and their provider.

`TAPROOF_TEST_OIDC_PROVIDER=oidc-provider` replaces Taproof with a certified provider: if a test fails with both, the
fault is in the test or the library.
"""

import os
from collections.abc import AsyncIterator, Callable, Iterator

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page
from tests.e2e.conftest import Developer, Phone, launch
from tests.slow.relying_parties.processes import Program, node_command, start_party, start_program
from tests.slow.relying_parties.providers import Provider, Registered, StandIn, Taproof

StartParty = Callable[..., Program]


@pytest.fixture(scope="session")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    """Return the provider of all tests of this process."""
    place = tmp_path_factory.mktemp("provider")
    if os.environ.get("TAPROOF_TEST_OIDC_PROVIDER") == "oidc-provider":
        program = start_program(node_command("stand_in.mjs", place), place)
        with httpx.Client(base_url=program.base_url, timeout=60) as client:
            yield StandIn(client)
        program.stop()
        return
    service = launch(place)
    with httpx.Client(base_url=service.base_url, timeout=60) as client:
        yield Taproof(Developer(client, service.access_token).create_project("The corner shop"))
    service.stop()


@pytest.fixture
def phone(provider: Provider) -> Phone:
    return provider.new_phone()


@pytest.fixture
def start(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartParty]:
    """Return a function that starts a relying party with its registration, and more variables in its environment."""
    started: list[Program] = []

    def start(name: str, registered: Registered, **environment: str) -> Program:
        place = tmp_path_factory.mktemp(name.partition(".")[0])
        started.append(start_party(name, place, provider.issuer, registered, **environment))
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def context(browser: Browser, provider: Provider) -> AsyncIterator[BrowserContext]:
    """Yield a new browser. Assert afterwards that it reported no problem at the provider."""
    context = await browser.new_context(locale="en-US")
    complaints: list[str] = []

    def on_console(line: ConsoleMessage) -> None:
        if line.type in {"error", "warning"} and line.location["url"].startswith(provider.issuer):
            complaints.append(line.text)

    context.on("console", on_console)
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    yield context
    await context.close()
    assert complaints == []


@pytest_asyncio.fixture(loop_scope="session")
async def page(context: BrowserContext) -> Page:
    return await context.new_page()
