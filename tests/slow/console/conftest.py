"""Provide the console and its visitors, as in tests/console."""

from tests.console.conftest import clock, console, in_sandbox, visitor

__all__ = ["clock", "console", "in_sandbox", "visitor"]
