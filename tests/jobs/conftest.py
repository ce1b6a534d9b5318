"""The jobs run on the store and the use cases of the webhook tests."""

from tests.webhooks.conftest import clock, shop

__all__ = ["clock", "shop"]
