"""docs/how-to/ci-with-the-sandbox.md: its fixture starts a sandbox for tests and stops it, and its test passes."""

import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tests.docs.blocks import block_of
from tests.ports import free_port

PAGE = "how-to/ci-with-the-sandbox.md"
TEST = """
from taproof import Client

def test_a_session(taproof_settings):
    with Client(taproof_settings["TAPROOF_BASE_URL"], project_id=taproof_settings["TAPROOF_PROJECT_ID"]) as client:
        assert client.verify_session(client.create_session()).status == "pending"
    assert taproof_settings["TAPROOF_WEBHOOK_SECRET"].startswith("whsec_")
"""


def test_the_fixture(tmp_path: Path) -> None:
    """Its tests can start a sign-in, and sign in with OpenID Connect; afterwards nothing listens on the port."""
    port = str(free_port())
    fixture = block_of(PAGE, "python", "@pytest.fixture").text
    assert "18080" in fixture
    (tmp_path / "conftest.py").write_text(fixture.replace("18080", port), encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (tmp_path / "test_shop.py").write_text(TEST, encoding="utf-8")
    openid = block_of(PAGE, "python", "def test_sign_in_with_openid").text
    (tmp_path / "test_openid.py").write_text(openid, encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", "temporary"],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.1:{port}/readyz")
