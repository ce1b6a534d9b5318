"""Provide the databases and services of tests/faults."""

from tests.faults.conftest import loop_is_never_held, place, start_service

__all__ = ["loop_is_never_held", "place", "start_service"]
