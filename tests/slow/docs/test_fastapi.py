"""docs/how-to/fastapi.md: its application, started as the page says, signs a user in and out."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.blocks import block_of
from tests.e2e.conftest import StartService, wait_for_server
from tests.ports import free_port
from tests.slow.docs.signing_in import settings_of, sign_in_and_out
from tests.slow.docs.walk import commands_of

PAGE = "how-to/fastapi.md"
pytestmark = pytest.mark.browser


def test_the_application(start_service: StartService, tmp_path: Path) -> None:
    """A visitor is sent to the button; after signing in the members' page greets them until they sign out."""
    service = start_service()
    (tmp_path / "app.py").write_text(block_of(PAGE, "python").text, encoding="utf-8")
    [command] = commands_of(block_of(PAGE, "console", "granian"))
    address = f"http://127.0.0.1:{free_port()}"
    words = shlex.split(command.replace("8000", address.rpartition(":")[2]))
    output = tmp_path / "output"
    with output.open("wb") as written:
        process = subprocess.Popen(
            [str(Path(sys.executable).parent / words[0]), *words[1:]],
            cwd=tmp_path,
            env=os.environ | settings_of(service),
            stdout=written,
            stderr=written,
        )
    try:
        wait_for_server(process, address, output)
        sign_in_and_out(address, service)
    finally:
        process.terminate()
        process.wait(30)
