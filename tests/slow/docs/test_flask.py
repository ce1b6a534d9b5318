"""docs/how-to/flask.md: its application signs a user in and out."""

import threading
from pathlib import Path
from typing import Any

import pytest
from tests.docs.blocks import block_of
from tests.e2e.conftest import StartService
from tests.slow.docs.signing_in import settings_of, sign_in_and_out
from werkzeug.serving import make_server

PAGE = "how-to/flask.md"
pytestmark = pytest.mark.browser


def test_the_application(start_service: StartService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A visitor is sent to the button; after signing in the members' page greets them until they sign out."""
    service = start_service()
    for name, value in settings_of(service).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "app"}
    exec(compile(block_of(PAGE, "python").text, PAGE, "exec"), names)  # noqa: S102 — it is this repository's own.
    server = make_server("127.0.0.1", 0, names["app"], threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sign_in_and_out(f"http://127.0.0.1:{server.server_port}", service)
    server.shutdown()
    server.server_close()
