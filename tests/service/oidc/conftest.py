"""The use cases of the OpenID provider on a real store, with a clock that tests set."""

from collections.abc import Iterator

import pytest
from tests.databases import DRIVERS, OpenStore
from tests.openid_provider import Provider, Shop, quick_keys
from tests.service.conftest import Node

__all__ = ["quick_keys"]


@pytest.fixture
def provider(node: Node) -> Provider:
    return Provider(node)


@pytest.fixture
async def shop(provider: Provider) -> Shop:
    """Return a client with a secret, in a project of its own."""
    return await provider.shop()


@pytest.fixture
def open_store(driver: str) -> Iterator[OpenStore]:
    """Return a function that opens the test's one database, which need not survive a crash."""
    with DRIVERS[driver](quick=True) as opener:
        yield opener
