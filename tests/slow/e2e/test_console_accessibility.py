"""The console is accessible on a desktop too; tests/e2e checks the same pages on a phone."""

import pytest
from playwright.async_api import Browser
from tests.axe import DESKTOP
from tests.e2e.conftest import Service
from tests.e2e.test_console_accessibility import addresses, client, sandbox, visit_every_page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
__all__ = ["addresses", "client", "sandbox"]


async def test_axe(browser: Browser, sandbox: Service, addresses: list[str]) -> None:
    """axe-core finds nothing on any page of a desktop."""
    await visit_every_page(browser, sandbox, addresses, DESKTOP)
