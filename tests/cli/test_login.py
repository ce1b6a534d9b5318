"""`taproof login`, `logout` and `token` against a real service; a simulated phone confirms."""

import asyncio
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import segno
from tests.cli.output_schema import validate
from tests.e2e.conftest import Phone, Service, launch, make_phone

from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.identifiers import is_key
from taproof.core.identity import MessengerIdentity
from taproof.service.invitations import Invitations
from taproof.storage.sqlite.store import SqliteStorage

NUMBER: Final = re.compile(r"tap the number (\d\d) in the messenger")
LINK: Final = re.compile(r"http://\S+\?start=[\w-]{43}")
OWNER: Final = "sandbox@localhost"
PATIENCE: Final = 60


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = launch(tmp_path_factory.mktemp("login"))
    yield service
    service.stop()


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.base_url, timeout=60) as client:
        yield client


def accept(service: Service, code: str, phone: Phone) -> None:
    """Accept an invitation beside the running service, as the console does after the confirmation."""

    async def work() -> None:
        storage = SqliteStorage.open(service.database, system_clock())
        identity = MessengerIdentity(phone.messenger_id, "Ada", "")
        await Invitations(storage, system_clock, system_entropy).accept_invitation(code, identity, address="")
        await storage.close()

    asyncio.run(work())


@pytest.fixture(scope="module")
def ada(service: Service, client: httpx.Client) -> Phone:
    """The phone of the sandbox's developer, linked with the link that `developers invite` printed."""
    done = service.command("developers", "invite", OWNER, "--json")
    assert done.returncode == 0, done.stderr
    phone = make_phone(client)
    accept(service, json.loads(done.stdout)["link"].rpartition("#")[2], phone)
    return phone


@dataclass
class Terminal:
    """Commands of one user, whose files are below `home`."""

    service: Service
    home: Path
    config: str = ""

    @property
    def environment(self) -> dict[str, str]:
        return self.service.environment | {"HOME": str(self.home), "XDG_CONFIG_HOME": self.config}

    @property
    def file(self) -> Path:
        return self.home / ".config" / "taproof" / "credentials.json"

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "taproof", *arguments],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=PATIENCE)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def login(self, phone: Phone, button: str | None = None, *options: str) -> subprocess.CompletedProcess[str]:
        """Run `taproof login`; let the phone open the link that it prints, and tap the number or another button."""
        with self.start("login", self.service.base_url, *options) as process:
            # With --json, stdout is for the result.
            asking = process.stderr if "--json" in options else process.stdout
            assert asking is not None
            shown = ""
            for line in asking:
                shown += line
                if (found := LINK.search(line)) is not None:
                    number = NUMBER.search(shown)
                    assert number is not None, shown
                    phone.sign_in({"deeplink": found[0]}, button or number[1])
                    break
            # `communicate` would lose the lines that have been read with the link's.
            shown += asking.read()
            out, err = process.communicate(timeout=PATIENCE)
        if asking is process.stderr:
            return subprocess.CompletedProcess("login", process.returncode, out, shown + err)
        return subprocess.CompletedProcess("login", process.returncode, shown + out, err)

    def kept(self) -> dict[str, Any]:
        services: dict[str, Any] = json.loads(self.file.read_text())["services"]
        return services


@pytest.fixture
def terminal(service: Service, tmp_path: Path) -> Terminal:
    return Terminal(service, tmp_path)


def me(service: Service, token: str) -> httpx.Response:
    return httpx.get(f"{service.base_url}/api/v1/dev/me", headers={"Authorization": f"Bearer {token}"})


def test_login_token_logout(service: Service, terminal: Terminal, ada: Phone) -> None:
    """The login stores a working token in a private file; the logout removes it there and at the service."""
    done = terminal.login(ada)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1), done.stderr
    link = LINK.search(done.stdout)
    assert link is not None
    assert f"\n  /start {link[0].rpartition('=')[2]}\n" in done.stdout, "for apps that lose the code of the link"
    assert f"Signed in to {service.base_url} as {OWNER}" in done.stdout
    kept = terminal.kept()[service.base_url]
    assert kept.keys() == {"access_token", "token_id", "email"}
    assert terminal.file.stat().st_mode & 0o777 == 0o600
    assert terminal.file.parent.stat().st_mode & 0o777 == 0o700
    assert [each.name for each in terminal.file.parent.iterdir()] == ["credentials.json"]
    printed = terminal.run("token")
    assert printed.stdout == kept["access_token"] + "\n"
    assert is_key(kept["access_token"], "tap")
    assert me(service, kept["access_token"]).json()["email"] == OWNER
    suggested = done.stdout.splitlines()[-1]
    assert suggested == f"Try it: taproof projects list --service {service.base_url}"
    listed = terminal.run(*suggested.partition("taproof ")[2].split())
    assert (listed.returncode, listed.stderr) == (0, "")
    out = terminal.run("logout", service.base_url + "/")
    assert (out.returncode, out.stdout) == (0, f"Signed out of {service.base_url}.\n")
    assert me(service, kept["access_token"]).status_code == 401
    assert terminal.kept() == {}
    for shown in (done.stdout + done.stderr + out.stdout + out.stderr, service.log()):
        assert kept["access_token"] not in shown


def test_programs_get_json(service: Service, terminal: Terminal, ada: Phone) -> None:
    """With --json, stdout is one document of the documented form; the link is on stderr."""
    printed = {}
    printed["login"] = terminal.login(ada, None, "--json")
    for name in ("token", "logout"):
        printed[name] = terminal.run(name, "--json")
    answers = {}
    for name, done in printed.items():
        assert done.returncode == 0, done.stderr
        answers[name] = json.loads(done.stdout)
        validate(answers[name], name)
    assert answers["login"]["email"] == answers["token"]["email"] == OWNER
    assert answers["token"]["access_token"] not in printed["login"].stdout + printed["login"].stderr
    assert answers["logout"] == {"service": service.base_url, "revoked": True}


def test_another_login_ends_the_token_before(service: Service, terminal: Terminal, ada: Phone) -> None:
    """A new login revokes the previous token, which would otherwise stay valid unnoticed.

    Tokens that it created stay valid, also after logout.
    """
    terminal.login(ada)
    before = terminal.kept()[service.base_url]["access_token"]
    headers = {"Authorization": f"Bearer {before}"}
    created = httpx.post(f"{service.base_url}/api/v1/dev/tokens", headers=headers, json={"name": "deploy script"})
    deployed = created.json()["access_token"]
    assert terminal.login(ada).returncode == 0
    now = terminal.kept()[service.base_url]["access_token"]
    assert now != before
    assert (me(service, before).status_code, me(service, now).status_code) == (401, 200)
    terminal.run("logout")
    assert (me(service, now).status_code, me(service, deployed).status_code) == (401, 200)


def test_logout_of_a_token_that_is_gone(service: Service, terminal: Terminal, ada: Phone) -> None:
    """A token that was revoked elsewhere is removed from the file too."""
    terminal.login(ada)
    kept = terminal.kept()[service.base_url]
    assert service.command("tokens", "revoke", "--sandbox", kept["token_id"], "--yes").returncode == 0
    done = terminal.run("logout")
    assert (done.returncode, terminal.kept()) == (0, {})
    assert "was already invalid" in done.stdout


def test_cancelled_and_unknown_accounts(terminal: Terminal, ada: Phone, client: httpx.Client) -> None:
    """Each ends with its own sentence and exit code 1, and creates no file."""
    cancelled = terminal.login(ada, "Cancel")
    assert cancelled.returncode == 1
    assert "The sign-in was cancelled, or a wrong number was tapped. Run taproof login again.\n" in cancelled.stderr
    stranger = terminal.login(make_phone(client, "Eve"))
    assert stranger.returncode == 1
    assert "taproof developers invite" in stranger.stderr
    assert not terminal.file.exists()


def test_a_token_that_cannot_be_kept_is_revoked(service: Service, terminal: Terminal, ada: Phone) -> None:
    """If no file can be written, the command says so and revokes the token, which nobody could use or revoke."""
    before = service.command("tokens", "list", "--sandbox", "--json").stdout
    terminal.config = "/proc"
    done = terminal.login(ada)
    assert done.returncode == 1
    assert "credentials.json cannot be written" in done.stderr
    assert service.command("tokens", "list", "--sandbox", "--json").stdout == before


def test_a_terminal_shows_a_qr_code(service: Service, tmp_path: Path) -> None:
    """The QR code is exactly that of the link, dark on light whatever the terminal's colours are."""
    shown = _on_a_terminal(service, tmp_path, until="Waiting")
    link = LINK.search(shown)
    assert link
    lines = re.findall(r"\x1b\[97;40m([█▀▄ ]+)\x1b\[0m", shown)
    rows = [[1 - _HALVES[each][half] for each in line] for line in lines for half in (0, 1)]
    expected = [list(row) for row in segno.make_qr(link[0], error="l").matrix]
    size = len(expected)
    assert [row[2 : 2 + size] for row in rows[2 : 2 + size]] == expected
    assert not any(any(row) for row in rows[:2])


_HALVES: Final = {"█": (1, 1), "▀": (1, 0), "▄": (0, 1), " ": (0, 0)}
"""For each character, whether its upper and its lower half are light."""


def _on_a_terminal(service: Service, home: Path, until: str) -> str:
    """Run `taproof login` on a terminal and return its output up to the prompt."""
    own, terminal = pty.openpty()
    environment = service.environment | {"HOME": str(home), "TERM": "xterm", "COLUMNS": "100", "PYTHONUTF8": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "taproof", "login", service.base_url], env=environment, stdout=terminal, stderr=terminal
    )
    os.close(terminal)
    shown = b""
    try:
        while until.encode() not in shown:
            shown += os.read(own, 65_536)
    finally:
        process.kill()
        process.wait()
        os.close(own)
    return shown.decode()


def test_the_start_screen_shows_the_way_in(service: Service, ada: Phone, tmp_path: Path) -> None:
    """The screen has the console's address and, until an account is linked, a one-time link.

    The log never has its code.
    """
    code = re.findall(r"/console/invite#(inv_\w+)", service.screen())[0]
    assert is_key(code, "inv")
    assert f"Console       {service.base_url}/console\n" in service.screen()
    assert code not in service.log()
