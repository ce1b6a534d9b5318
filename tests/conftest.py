"""Share one browser, and set how long Hypothesis searches: for hours with `--hypothesis-profile=soak`."""

from collections.abc import AsyncIterator

import pytest_asyncio
from hypothesis import settings
from playwright.async_api import Browser
from tests.chromium import open_chromium

# The tests run on a shared and sometimes slow machine, where a deadline would measure its other users.
settings.register_profile("quick", max_examples=60, stateful_step_count=40, deadline=None)
settings.register_profile("soak", max_examples=2_000, stateful_step_count=80, deadline=None)
settings.load_profile("quick")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Yield the browser of all tests of this process; each test opens its own context in it."""
    async with open_chromium() as browser:
        yield browser
