"""Check the parts of the service that depend on a setting."""

import pytest

from taproof.config.settings import load_settings
from taproof.core.mini_apps import PRODUCTION_KEY, TEST_KEY
from taproof.runtime.app import telegram_key


@pytest.mark.parametrize(
    ("given", "key"),
    [({}, PRODUCTION_KEY), ({"telegram_environment": "test"}, TEST_KEY)],
    ids=["production", "test"],
)
def test_the_key_of_telegram_is_that_of_the_environment(given: dict[str, object], key: bytes) -> None:
    """The user ids of the test environment belong to other people, so its signatures count only if it is chosen."""
    assert telegram_key(load_settings({"bot_token": "123456:" + "A" * 35, **given})) == key
