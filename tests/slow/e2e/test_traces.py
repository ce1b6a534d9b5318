"""Traces when they are off, with several processes, and with a receiver that never answers."""

import socket
import sys
from pathlib import Path

import httpx
import pytest
from tests.e2e.conftest import TRUST, Developer, StartService, make_phone
from tests.otlp_receiver import OtlpReceiver

NOT_IMPORTED = ("opentelemetry.sdk", "opentelemetry.exporter", "opentelemetry.proto", "google.protobuf", "requests")
"""FastAPI itself imports `opentelemetry.trace`, the interface without the SDK."""
IMPORTS_AT_EXIT = """
import atexit, pathlib, sys
atexit.register(lambda: pathlib.Path("modules").write_text("\\n".join(sys.modules)))
from taproof.__main__ import main
main()
"""
REQUESTS = 20


def sign_in(client: httpx.Client, access_token: str) -> None:
    project = Developer(client, access_token).create_project()
    session = project.generate()
    make_phone(client).sign_in(session)
    assert project.verify(session["session_token"])["status"] == "confirmed"


@pytest.mark.parametrize("traces", ["off", "link"])
def test_modules_of_a_service(
    traces: str, start_service: StartService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service without traces imports neither the package nor the SDK, through a whole sign-in and the stop."""
    monkeypatch.setattr("tests.e2e.conftest.guarded", lambda _: [sys.executable, "-c", IMPORTS_AT_EXIT])
    service = start_service(directory=tmp_path, TAPROOF_TRACES=traces)
    with httpx.Client(base_url=service.base_url, timeout=60) as client:
        sign_in(client, service.access_token)
    assert service.stop() == 0
    modules = (tmp_path / "modules").read_text().split()
    assert "taproof.runtime.app" in modules
    found = [each for each in modules if each.startswith((*NOT_IMPORTED, "taproof.tracing"))]
    assert bool(found) == (traces != "off"), found


def test_several_processes(start_service: StartService) -> None:
    """Each process of --workers exports its own spans, at the latest when it stops."""
    with OtlpReceiver() as traces:
        service = start_service(
            *("--workers", "2", "--role", "api"),
            sandbox=False,
            OTEL_BSP_SCHEDULE_DELAY="3600000",
            OTEL_EXPORTER_OTLP_ENDPOINT=traces.url,
            TAPROOF_MESSENGER_LINK_BASE="https://t.me/some_bot",
            TAPROOF_TRACES="link",
        )
        headers = {"Authorization": f"Bearer {service.add_developer('ada@example.com')}"}
        for _ in range(REQUESTS):
            # A new connection each time: the kernel chooses its process, so all in one is one chance in 500,000.
            assert httpx.get(f"{service.base_url}/api/v1/dev/me", headers=headers, verify=TRUST).status_code == 200
        assert traces.spans == []
        assert service.stop() == 0
    assert len(traces.named("GET /api/v1/dev/me")) == REQUESTS


def test_a_receiver_that_hangs(start_service: StartService) -> None:
    """A receiver that accepts connections and never answers delays neither a request nor the stop."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        service = start_service(
            OTEL_BSP_SCHEDULE_DELAY="10",
            OTEL_BSP_MAX_QUEUE_SIZE="10",
            OTEL_BSP_MAX_EXPORT_BATCH_SIZE="10",
            OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{silent.getsockname()[1]}",
            OTEL_EXPORTER_OTLP_TIMEOUT="3600",
            TAPROOF_TRACES="link",
        )
        with httpx.Client(base_url=service.base_url, timeout=60) as client:
            for _ in range(5):
                sign_in(client, service.access_token)
        assert service.stop() == 0
    assert "Queue full, dropping Span." in service.log()
