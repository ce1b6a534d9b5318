"""Run the programs of a page as a reader would: in order, in one shell, in the directory of a running service.

The shell has TAPROOF_BASE_URL, TAPROOF_PROJECT_ID, TAPROOF_WEBHOOK_SECRET, TAPROOF_SECRET_KEY and a fresh PROOF of a
project of its own, and the developer's ACCESS_TOKEN and EMAIL; `taproof` finds the service's database, in sandbox mode.
"""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import httpx
from tests.docs.blocks import ROOT, Block
from tests.e2e.conftest import Developer, Phone, Service, make_phone
from tests.ports import free_port

_PORT = "18080"
"""The port that pages use where a reader may choose one; the test chooses a free one."""
_PATIENCE = 5
"""The number of times that a link is opened until the bot replies."""


def environment_of(service: Service) -> dict[str, str]:
    """Return the variables of a new project of the service, and the proof of a sign-in to it."""
    with httpx.Client(base_url=service.base_url, timeout=60) as client:
        project = Developer(client, service.access_token).create_project("My shop")
        phone, session = make_phone(client), project.generate()
        opened(client, phone, session["deeplink"])
        phone.tap("Confirm")
        proof = project.verify(session["session_token"])["proof"]
        me = client.get("/api/v1/dev/me", headers={"Authorization": f"Bearer {service.access_token}"})
    return {
        "TAPROOF_BASE_URL": service.base_url,
        "ACCESS_TOKEN": service.access_token,
        "EMAIL": me.json()["email"],
        "TAPROOF_SANDBOX": "1",
        "TAPROOF_PROJECT_ID": project.id,
        "TAPROOF_SECRET_KEY": project.secret_key,
        "TAPROOF_WEBHOOK_SECRET": project.webhook_secret,
        "PROOF": proof,
        "TAPROOF_DATABASE_URL": "sqlite:///taproof.db",
    }


def opened(client: httpx.Client, phone: Phone, deeplink: str) -> None:
    """Let a user open a link, repeatedly until the bot replies."""
    for _ in range(_PATIENCE):
        answer = client.post(f"/sandbox/users/{phone.messenger_id}/open", json={"deeplink": deeplink})
        if answer.json()["answered"]:
            return
    raise AssertionError("The bot did not reply.")


def script_of(blocks: Iterable[Block], directory: Path) -> str:
    """Return a shell script of some blocks. Programs in other languages are saved as files and run in order."""
    node = shutil.which("node")
    assert node is not None, "Install node: JavaScript of the documentation is run with it."
    lines = ["set -euo pipefail"]
    for number, block in enumerate(blocks):
        lines.append(block.before)
        if block.language == "console":
            lines += commands_of(block)
        elif block.language in {"bash", "sh"}:
            lines.append(block.text)
        else:
            is_python = block.language == "python"
            suffix = "py" if is_python else "cjs" if "require(" in block.text else "mjs"
            program = directory / f"program{number}.{suffix}"
            program.write_text(block.text, encoding="utf-8")
            lines.append(shlex.join([sys.executable if is_python else node, str(program)]))
    return "\n".join(lines)


def install_package(directory: Path) -> None:
    """Make `import "taproof/…"` work for programs in a directory, as `npm install taproof` does."""
    (directory / "node_modules").mkdir()
    (directory / "node_modules/taproof").symlink_to(ROOT / "sdk/js")


def commands_of(block: Block) -> list[str]:
    """Return the commands of a console block. Output of commands is in separate blocks."""
    lines: list[str] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            lines.append(line.removeprefix("$ "))
        else:
            assert "".join(lines[-1:]).endswith("\\"), f"{block.name}: {line!r} is no command and no part of one."
            lines.append(line)
    return lines


def run(
    blocks: Iterable[Block], service: Service, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run some blocks with a service."""
    directory = service.directory
    bin_directory = Path(sys.executable).parent
    place = directory / ".venv/bin"
    if not place.exists():
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(bin_directory)
        install_package(directory)
    settings = service.environment | (environment_of(service) if variables is None else dict(variables))
    settings["PATH"] = f"{bin_directory}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", script_of(blocks, directory).replace(_PORT, str(free_port()))],
        cwd=directory,
        env=settings,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
