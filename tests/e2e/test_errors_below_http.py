"""Requests that are wrong below or at HTTP get the answers that docs/reference/errors.md lists."""

import gzip
import json
import socket

import httpx
import pytest
from tests.e2e.conftest import OwnProject, Service
from tests.e2e.raw_http import assert_refusals
from tests.e2e.test_spec_tables import assert_error


def test_refusals(service: Service) -> None:
    """The table of the page is what the server really sends. test_process_https.py checks the same over TLS."""
    assert_refusals(lambda: socket.create_connection(("127.0.0.1", service.port), timeout=60))


def test_a_compressed_body_is_not_expanded(project: OwnProject, subtests: pytest.Subtests) -> None:
    """Every endpoint that reads a body refuses a compressed one with 415, and names what it accepts (RFC 9110)."""
    client, developer = project.developer.client, project.developer.headers
    key = {"Authorization": f"Bearer {project.secret_key}"}
    body = gzip.compress(json.dumps({"project_id": project.id, "name": "Shop"}).encode())
    for path, credential in (
        ("/api/v1/generate/public", {}),
        ("/api/v1/verify/public", {}),
        ("/api/v1/generate", key),
        ("/api/v1/verify", key),
        ("/api/v1/login", {}),
        ("/api/v1/login/token", {}),
        ("/api/v1/dev/projects", developer),
        (f"/api/v1/dev/projects/{project.id}/clients", developer),
    ):
        with subtests.test(path=path):
            headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"} | credential
            answer: httpx.Response = client.post(path, headers=headers, content=body)
            assert "uncompressed" in assert_error(answer, 415, "unsupported_content_encoding")
            assert answer.headers["Accept-Encoding"] == "identity"
            assert answer.headers.get("Access-Control-Allow-Origin") == ("*" if path.endswith("/public") else None)
    assert project.read()["sessions_count"] == 0
