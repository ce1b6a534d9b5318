"""Provide the sites of tests/integrations."""

from tests.integrations.conftest import start

__all__ = ["start"]
