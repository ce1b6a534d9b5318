"""`pip install taproof` without extras installs few packages, and the SDK works with only these."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.either_client import reply, scripted_server

from taproof.core.identity import MessengerIdentity
from taproof.core.proof import sign_proof

ROOT = Path(__file__).parents[3]
SECRET = "whsec_" + "A" * 43 + "="
ACCOUNT = {
    "id": "dev_1",
    "email": "ada@example.com",
    "plan": "free",
    "created_at": "2026-11-20T22:44:03.127Z",
    "usage": {"projects": 2, "projects_limit": 3, "sign_ins_this_month": 120, "sign_ins_limit": None},
}


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command that must succeed, untouched by the environment of the tests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TAPROOF_"))}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment into which pip installed only the wheel."""
    directory = tmp_path_factory.mktemp("install")
    wheels = sorted((ROOT / "build" / "wheel").glob("taproof-*.whl"))
    if not wheels:
        options = ("--quiet", "--no-deps", "--no-build-isolation", "-w", directory)
        run(sys.executable, "-m", "pip", "wheel", *options, ROOT, cwd=directory)
        wheels = sorted(directory.glob("taproof-*.whl"))
    (wheel,) = wheels
    run(sys.executable, "-m", "venv", "--without-pip", directory / "venv", cwd=directory)
    python = directory / "venv" / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", wheel, cwd=directory)
    return python


def test_at_most_two_packages_come_along(python: Path) -> None:
    """An application that adds sign-in gets two packages beside taproof, and none of the server's."""
    listed: list[dict[str, Any]] = json.loads(
        run(sys.executable, "-m", "pip", "--python", python, "list", "--format=json", cwd=python.parent)
    )
    assert {each["name"].lower() for each in listed} == {"taproof", "pyjwt", "urllib3"}


def test_a_proof_is_checked(python: Path) -> None:
    """A proof of the service is accepted once, with PyJWT alone and without a cryptography package."""
    proof = sign_proof(MessengerIdentity("1001", "Ada", ""), "proj_1", "T" * 43, SECRET, int(time.time() * 1000))
    program = """
import sys, taproof
guard = taproof.SqliteGuard("used.db")
print(taproof.verify_proof(sys.argv[1], sys.argv[2], project_id="proj_1", guard=guard).messenger_id)
try:
    taproof.verify_proof(sys.argv[1], sys.argv[2], guard=guard)
except taproof.ProofAlreadyUsed:
    print("once")
"""
    assert run(python, "-I", "-c", program, proof, SECRET, cwd=python.parent).split() == ["1001", "once"]


def test_the_client_calls_a_service(python: Path) -> None:
    """Client works with urllib3 alone, and trusts a certificate without a package of certificates."""
    program = """
import sys, taproof
taproof.Client("https://signin.example.com")
with taproof.Client(sys.argv[1], access_token="tap_" + "a" * 49) as client:
    print(client.read_account().email)
"""
    with scripted_server() as server:
        server.replies = [reply(200, ACCOUNT)]
        assert run(python, "-I", "-c", program, server.base_url, cwd=python.parent) == "ada@example.com\n"


def test_the_async_client_says_what_to_install(python: Path) -> None:
    """AsyncClient can be imported; creating one without httpx names the extra to install."""
    program = """
from taproof import AsyncClient
try:
    AsyncClient("https://signin.example.com")
except ImportError as error:
    print(error)
"""
    assert "pip install 'taproof[async]'" in run(python, "-I", "-c", program, cwd=python.parent)
