"""Provide the real service and its users, as in tests/e2e."""

from tests.e2e.conftest import client, developer, loop_is_never_held, new_phone, phone, project, service, start_service

__all__ = ["client", "developer", "loop_is_never_held", "new_phone", "phone", "project", "service", "start_service"]
