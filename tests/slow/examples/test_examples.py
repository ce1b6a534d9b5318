"""Each example application is started with `./run`, and a user signs in to it in a browser."""

from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser
from tests.chromium import open_chromium
from tests.e2e.conftest import OwnProject, Phone, Service
from tests.slow.examples.conftest import Example, StartExample, refuses_without_settings, walk_through

pytestmark = pytest.mark.browser
NAMES = ["fastapi", "django", "express"]


@pytest.fixture(scope="module", params=NAMES)
def example(start_example: StartExample, request: pytest.FixtureRequest) -> Example:
    return start_example(request.param)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with open_chromium() as browser:
        yield browser


@pytest.mark.asyncio(loop_scope="module")
async def test_a_user_signs_in(example: Example, service: Service, browser: Browser, phone: Phone) -> None:
    """The button, the phone, the members' page and sign-out work, and the browser reports no problem."""
    await walk_through(browser, example, service, phone)


def test_another_site_is_refused(example: Example) -> None:
    """A request from a page of another site signs nobody in or out."""
    for path in ("/auth/taproof", "/auth/taproof/sign-out"):
        headers = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
        assert httpx.post(f"{example.base_url}{path}", json={"proof": "x"}, headers=headers).status_code == 403


@pytest.mark.parametrize("name", NAMES)
def test_how_to_get_the_settings(service: Service, project: OwnProject, name: str) -> None:
    """Without settings, `./run` says how to get them, and its commands work."""
    refuses_without_settings(name, service, project)
