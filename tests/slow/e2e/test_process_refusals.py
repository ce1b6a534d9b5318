"""`taproof serve` refuses to start with one sentence that says what to do and an exit code; nothing changes."""

import base64
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.ports import free_port

from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.service.installation import check_master_key, check_mode
from taproof.storage.sqlite.store import SqliteStorage

BOT_TOKEN = "123456789:AAabcdefghijklmnopqrstuvwxyz0123456"
OTHER_KEY = base64.b64encode(bytes(range(32))).decode()
EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 — to be refused.


def refusal(directory: Path, *arguments: str, code: int = 1, **environment: str) -> str:
    """Start a service that must refuse, and return its sentence."""
    inherited = {name: value for name, value in os.environ.items() if not name.upper().startswith("TAPROOF_")}
    done = subprocess.run(
        [sys.executable, "-m", "taproof", "serve", *arguments],
        cwd=directory,
        env=inherited
        | {"TAPROOF_DATABASE_URL": "sqlite:///taproof.db", "TAPROOF_PORT": str(free_port())}
        | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.endswith(".\n")
    return done.stderr


async def make_database(directory: Path, *, sandbox: bool) -> None:
    """Create the files of a service that ran and was stopped: a database bound to a mode and a key."""
    storage = SqliteStorage.open(directory / "taproof.db", 0)
    key = new_master_key(system_entropy)
    (directory / "taproof.db.key").write_text(f"{key}\n")
    await check_mode(storage, sandbox=sandbox)
    await check_master_key(storage, Encryptor(key), system_entropy)
    await storage.close()


def test_a_taken_port(tmp_path: Path) -> None:
    """Two services cannot share a port, although SO_REUSEPORT would allow it; the sentence names the option."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        sentence = refusal(tmp_path, "--sandbox", "--port", port)
    assert f"127.0.0.1:{port}" in sentence
    assert "--port (TAPROOF_PORT)" in sentence
    assert list(tmp_path.iterdir()) == []


def test_no_bot_token(tmp_path: Path) -> None:
    """Without a messenger nobody can sign in; the sentence names both solutions."""
    sentence = refusal(tmp_path, code=2)
    assert "--bot-token (TAPROOF_BOT_TOKEN)" in sentence
    assert "--sandbox" in sentence
    assert list(tmp_path.iterdir()) == []


def test_a_sandbox_beyond_this_machine(tmp_path: Path) -> None:
    """A sandbox, where anybody can sign in as anybody, leaves the machine only with a second option."""
    sentence = refusal(tmp_path, "--sandbox", "--host", EVERY_ADDRESS, code=2)
    assert "--sandbox-allow-remote (TAPROOF_SANDBOX_ALLOW_REMOTE)" in sentence
    assert list(tmp_path.iterdir()) == []


async def test_another_master_key(tmp_path: Path) -> None:
    """A master key that does not fit the stored secrets is refused at the start, not at the first proof."""
    await make_database(tmp_path, sandbox=True)
    sentence = refusal(tmp_path, "--sandbox", TAPROOF_MASTER_KEY=OTHER_KEY)
    assert "master key does not belong" in sentence
    assert "TAPROOF_MASTER_KEY" in sentence
    assert OTHER_KEY not in sentence


async def test_a_lost_key_file(tmp_path: Path) -> None:
    """A lost key file is never silently replaced by a new key."""
    await make_database(tmp_path, sandbox=True)
    (tmp_path / "taproof.db.key").unlink()
    sentence = refusal(tmp_path, "--sandbox")
    assert "taproof.db.key, which is missing" in sentence
    assert "TAPROOF_MASTER_KEY" in sentence
    assert not (tmp_path / "taproof.db.key").exists()


@pytest.mark.parametrize("sandbox", [True, False])
async def test_a_database_of_the_other_mode(tmp_path: Path, *, sandbox: bool) -> None:
    """Simulated users can never sign in to real projects, whichever mode created the database."""
    await make_database(tmp_path, sandbox=sandbox)
    sentence = refusal(tmp_path, TAPROOF_BOT_TOKEN=BOT_TOKEN) if sandbox else refusal(tmp_path, "--sandbox")
    assert ("created in sandbox mode" if sandbox else "belongs to a real service") in sentence
    assert "--database (TAPROOF_DATABASE_URL)" in sentence
    assert BOT_TOKEN not in sentence


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """A wrong file name in the settings does not destroy that file."""
    content = b"These are my notes, which are no database.\n" * 100
    (tmp_path / "taproof.db").write_bytes(content)
    assert "taproof.db" in refusal(tmp_path, "--sandbox")
    assert (tmp_path / "taproof.db").read_bytes() == content


def test_a_certificate_that_is_none(tmp_path: Path) -> None:
    """An unusable certificate is found at the start; the sentence names the option."""
    (tmp_path / "cert.pem").write_text("no certificate")
    (tmp_path / "key.pem").write_text("no key")
    sentence = refusal(tmp_path, "--sandbox", "--tls-cert", "cert.pem", "--tls-key", "key.pem")
    assert "--tls-cert" in sentence
