"""A project's pages without a script: the tests of tests/console/test_projects_browser.py, with JavaScript off."""

import pytest
from tests.console.test_projects_browser import (
    client,
    page,
    service,
    test_a_delivery_updates_itself,
    test_secrets_do_not_come_back,
    test_try_it,
)

__all__ = [
    "client",
    "page",
    "service",
    "test_a_delivery_updates_itself",
    "test_secrets_do_not_come_back",
    "test_try_it",
]
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture
def with_script() -> bool:
    return False
