"""Provide the sandbox and the pages of tests/sdk_js."""

from tests.sdk_js.conftest import client, open_context, phone, project, sandbox, site, way

__all__ = ["client", "open_context", "phone", "project", "sandbox", "site", "way"]
