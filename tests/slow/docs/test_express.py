"""docs/how-to/express.md: its application, started as the page says, signs a user in and out."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.docs.blocks import ROOT, block_of
from tests.e2e.conftest import StartService, wait_for_server
from tests.ports import free_port
from tests.slow.docs.signing_in import settings_of, sign_in_and_out
from tests.slow.docs.walk import commands_of, install_package

PAGE = "how-to/express.md"
pytestmark = pytest.mark.browser


def test_the_application(start_service: StartService, tmp_path: Path) -> None:
    """Without a SESSION_SECRET, a visitor is sent to the button, signs in, is greeted by name, and signs out."""
    service = start_service()
    (tmp_path / "app.mjs").write_text(block_of(PAGE, "js").text, encoding="utf-8")
    install_package(tmp_path)
    for name in ("express", "express-session"):
        (tmp_path / "node_modules" / name).symlink_to(ROOT / "sdk/js/node_modules" / name)
    [command] = commands_of(block_of(PAGE, "console", "node"))
    port = free_port()
    address, output = f"http://127.0.0.1:{port}", tmp_path / "output"
    with output.open("wb") as written:
        process = subprocess.Popen(
            command.split(),
            cwd=tmp_path,
            env=os.environ | settings_of(service) | {"PORT": str(port), "SESSION_SECRET": ""},
            stdout=written,
            stderr=written,
        )
    try:
        wait_for_server(process, address, output)
        sign_in_and_out(address, service)
        assert output.read_text(encoding="utf-8") == f"My shop: {address}\n"
    finally:
        process.terminate()
        process.wait(30)
