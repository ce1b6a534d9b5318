"""Provide the real service to the programs of the documentation, as in tests/e2e."""

from tests.e2e.conftest import start_service

__all__ = ["start_service"]
