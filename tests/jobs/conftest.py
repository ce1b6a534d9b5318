"""The jobs run on the service that the tests of the webhook sender put together."""

from tests.webhooks.conftest import clock, shop

__all__ = ["clock", "shop"]
