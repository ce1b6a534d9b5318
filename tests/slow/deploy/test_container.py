"""The Dockerfile works: its steps and commands run without an engine, in a directory that acts as the root.

As root, the tests run the service as the image's user, which can write only to /data, as on a read-only root file
system. As another user, they make the surrounding directories read-only.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.dockerfile import Stage, copy_context, read_dockerfile
from tests.ports import free_port
from tests.waiting import wait_until

ROOT = Path(__file__).parents[3]
PLACES = re.compile(r"(?<![\w.])/(?:opt/taproof|source|data)\b")
IS_ROOT = os.geteuid() == 0
PATIENCE = 60.0


@dataclass
class Image:
    """The result of the steps: the image's root directory and run configuration."""

    root: Path
    stage: Stage
    any_user: int = 0
    """The user that OpenShift chooses instead of the image's; 0 for the image's."""
    package: frozenset[str] = frozenset()
    """The files of the package that the builder got."""

    def here(self, text: str) -> str:
        """The result."""
        return PLACES.sub(lambda place: f"{self.root}{place[0]}", text)

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def user(self) -> dict[str, Any]:
        """Return how a process becomes the image's user, or any other one in group 0, if the tests run as root."""
        if not IS_ROOT:
            return {}
        user, group = (int(part) for part in self.stage.one("USER").split(":"))
        user, group = (self.any_user, 0) if self.any_user else (user, group)
        return {"user": user, "group": group, "extra_groups": []}

    def environment(self, **given: str) -> dict[str, str]:
        """Return the image's ENV, and additions as of `docker run --env`. Nothing is inherited."""
        environment = {"PATH": os.defpath}
        for setting in shlex.split(self.stage.one("ENV")):
            name, _, value = setting.partition("=")
            environment[name] = self.here(value).replace("$PATH", environment["PATH"])
        return environment | given

    def command(self, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run a command as `docker exec` does."""
        return subprocess.run(
            [self.program(arguments[0]), *arguments[1:]],
            cwd=self.data,
            env=self.environment(**environment),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            **self.user,
        )

    def program(self, name: str) -> str:
        """Return the program that the image's PATH finds."""
        found = shutil.which(name, path=self.environment()["PATH"])
        assert found, name
        return found


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    """Run the whole Dockerfile in a directory that other users may enter."""
    build, final = read_dockerfile(ROOT / "deploy/docker/Dockerfile")[1]
    root = Path(tempfile.mkdtemp(prefix="taproof-image-")).resolve()
    root.chmod(0o755)
    made = Image(root, final)
    try:
        context = root / "context"
        copy_context(ROOT, context)
        for stage in (build, final):
            follow(stage, made, context)
        made.package = files(context / "src/taproof")
        # No COPY copies these.
        shutil.rmtree(context)
        shutil.rmtree(root / "source")
        set_writable(root / "opt", writable=False)
        yield made
    finally:
        set_writable(root, writable=True)
        shutil.rmtree(root)


def follow(stage: Stage, image: Image, context: Path) -> None:
    """Run the steps of a stage. Files copied from the build stage are already in place."""
    directory = image.root
    for name, arguments in stage.instructions:
        if name == "WORKDIR":
            directory = Path(image.here(arguments))
            directory.mkdir(exist_ok=True)
        elif name == "COPY" and not arguments.startswith("--from"):
            *sources, target = arguments.split()
            place = directory / image.here(target)
            for source in sources:
                if (context / source).is_dir():
                    shutil.copytree(context / source, place)
                else:
                    place.mkdir(parents=True, exist_ok=True)
                    shutil.copy(context / source, place)
        elif name == "RUN" and "install -d -o" in arguments and not IS_ROOT:
            image.data.mkdir(mode=0o700)
        elif name == "RUN":
            step = image.here(re.sub(r"--mount=\S+ |PIP_CACHE_DIR=\S+ ", "", arguments))
            # The index of pip and the interpreter depend on the machine.
            done = subprocess.run(
                ["/bin/sh", "-c", step],
                cwd=directory,
                env={**os.environ, "PYTHON": interpreter()},
                capture_output=True,
                text=True,
                timeout=540,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr


def files(package: Path) -> frozenset[str]:
    """Return the names of all files of a package, without the interpreter's caches."""
    return frozenset(
        path.relative_to(package).as_posix()
        for path in package.rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    )


def interpreter() -> str:
    """Return a Python that every user may run: that of the tests unless it is in root's home, else Debian's."""
    for candidate in (os.path.realpath(sys.executable), "/usr/bin/python3"):
        ways = [Path(candidate), *Path(candidate).parents]
        if all(path.exists() and path.stat().st_mode & stat.S_IXOTH for path in ways):
            return candidate
    raise AssertionError("No Python that every user may run: install Debian's python3 and python3-venv.")


def set_writable(top: Path, *, writable: bool) -> None:
    """Allow or forbid writing in the directories below."""
    for directory, _, _ in os.walk(top):
        Path(directory).chmod(0o755 if writable else 0o555)


def settings(port: int) -> dict[str, str]:
    """Return the settings of a real service's container; nothing answers at its Bot API address."""
    return {
        "TAPROOF_HOST": "127.0.0.1",
        "TAPROOF_PORT": str(port),
        "TAPROOF_BASE_URL": "https://signin.example.com",
        "TAPROOF_TRUSTED_PROXY": "127.0.0.1/32",
        "TAPROOF_BOT_TOKEN": "123456789:AAabcdefghijklmnopqrstuvwxyz0123456",
        "TAPROOF_BOT_API_URL": "http://127.0.0.1:9",
    }


@contextlib.contextmanager
def running(image: Image, port: int) -> Iterator["subprocess.Popen[str]"]:
    """Run the image's command until its start screen appears; kill what is left of it afterwards."""
    command = json.loads(image.stage.one("ENTRYPOINT")) + json.loads(image.stage.one("CMD"))
    log = image.root / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [image.program(command[0]), *command[1:]],
            cwd=image.data,
            env=image.environment(**settings(port)),
            stdout=out,
            stderr=out,
            text=True,
            **image.user,
        )
    try:
        wait_until(lambda: process.poll() is not None or "Ctrl+C" in log.read_text(), "the start screen")
        assert process.poll() is None, log.read_text()
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def health(image: Image, port: int, *path: str) -> int:
    """Return the exit code of the image's health check."""
    command = json.loads(image.here(image.stage.one("HEALTHCHECK").partition("CMD ")[2]))
    return image.command(*command, *path, **settings(port)).returncode


def test_the_environment_is_the_locked_one_and_the_whole_package(image: Image) -> None:
    """The environment is exactly the locked one, and has every file of the package, even templates and migrations."""
    listed = json.loads(image.command("python", "-m", "pip", "list", "--format", "json").stdout)
    installed = {re.sub(r"[-_.]+", "-", each["name"]).lower(): each["version"] for each in listed}
    text = (ROOT / "requirements/run.txt").read_text(encoding="utf-8")
    locked = dict(re.findall(r"^([a-z0-9.-]+)==(\S+)", text, re.MULTILINE))
    del installed["taproof"]
    assert {name: installed.get(name) for name in locked} == locked
    assert installed.keys() - locked.keys() <= {"pip", "setuptools"}
    (package,) = image.root.glob("opt/taproof/lib/python3*/site-packages/taproof")
    assert files(package) == image.package


@pytest.mark.parametrize("any_user", [0, 1_000_650_000], ids=["the image's user", "any user"])
def test_it_serves_with_data_as_the_only_place_to_write_and_drains_on_sigterm(image: Image, any_user: int) -> None:
    """The service runs as an unprivileged user on a read-only root file system; SIGTERM ends it with exit code 0."""
    image.any_user = any_user
    for previous in image.data.iterdir():
        previous.unlink()
    port = free_port()
    assert health(image, port) == 1, "nothing listens yet"
    with running(image, port) as process:
        assert health(image, port) == 0
        assert health(image, port, "/readyz") == 1, "nothing answers at its Bot API address"
        assert health(image, port, "/api/v1/dev/me") == 1, "any other answer than 200 is no health"
        added = image.command("taproof", "developers", "add", "ada@example.com", "--json", **settings(port))
        assert added.returncode == 0, added.stderr
        assert json.loads(added.stdout)["access_token"].startswith("tap_")
        process.send_signal(getattr(signal, image.stage.one("STOPSIGNAL")))
        assert process.wait(PATIENCE) == 0
    assert health(image, port) == 1
    assert {path.name for path in image.data.iterdir()} <= {
        "taproof.db",
        "taproof.db-wal",
        "taproof.db-shm",
        "taproof.db.key",
    }
    key = image.data / "taproof.db.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    if IS_ROOT:
        own = image.user["user"]
        assert key.stat().st_uid == own
        # World-writable places, which a read-only root file system removes too.
        elsewhere = [Path(tempfile.gettempdir()), Path("/var/tmp"), Path("/dev/shm")]  # noqa: S108 — only looked at.
        left = [path for place in elsewhere for path in place.glob("*") if path.stat().st_uid == own]
        assert left == []
