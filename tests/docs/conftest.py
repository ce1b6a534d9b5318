"""What the documentation is tried out on: the real service, as in tests/e2e."""

from tests.e2e.conftest import start_service

__all__ = ["start_service"]
