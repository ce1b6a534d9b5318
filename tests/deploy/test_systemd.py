"""Check the systemd unit with systemd's own programs from Debian's package systemd, without running systemd."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from taproof.config.settings import load_settings

SYSTEMD = Path(__file__).parents[2] / "deploy/systemd"
UNIT = (SYSTEMD / "taproof.service").read_text(encoding="utf-8")


def analyze(*arguments: str) -> str:
    """Return the output of `systemd-analyze`, which must succeed."""
    program = shutil.which("systemd-analyze")
    assert program, "install Debian's package systemd"
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(params=[False, True], ids=["behind a proxy", "with tls.conf"])
def unit(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return the unit where systemd looks for it, alone or with the drop-in, and with an existing program."""
    path = tmp_path / "taproof.service"
    path.write_text(UNIT.replace("/opt/taproof/bin/taproof", sys.executable))
    if request.param:
        (tmp_path / "taproof.service.d").mkdir()
        shutil.copy(SYSTEMD / "tls.conf", tmp_path / "taproof.service.d")
    return path


def test_systemd_finds_nothing_to_complain_about(unit: Path) -> None:
    """No line of the unit is unknown to systemd, which would silently ignore it."""
    # systemd-analyze warns about unknown lines, but succeeds.
    assert str(unit) not in analyze("verify", "--man=no", str(unit))


def test_the_sandbox_is_tight(unit: Path) -> None:
    """On systemd's own exposure scale from 0 to 10, the unit scores below 2."""
    said = analyze("security", "--offline=true", "--threshold=20", "--no-pager", str(unit))
    assert re.search(r"Overall exposure level for \S+: [01]\.\d", said)


def test_it_drains_and_a_mistake_in_the_settings_is_not_tried_again() -> None:
    """SIGTERM allows the supervisor's full time, and exit code 2 (invalid settings) causes no restart."""
    # Imported here because it takes a second.
    from taproof.runtime.supervisor import STOP_SECONDS  # noqa: PLC0415

    found = re.search(r"^TimeoutStopSec=(\d+)$", UNIT, re.MULTILINE)
    assert found
    assert int(found[1]) > STOP_SECONDS
    assert "\nRestartPreventExitStatus=2\n" in UNIT
    assert "\nRestart=on-failure\n" in UNIT


def test_the_example_of_settings_is_read_alike_by_systemd_and_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    """`set -a; . /etc/taproof/env` gives a shell the same valid settings as the unit gives the service."""
    example = SYSTEMD / "env.example"
    # systemd.exec(5), EnvironmentFile: NAME='value' on one line, comments on separate lines.
    lines = [line for line in example.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    by_systemd = dict(re.findall(r"^([A-Z_]+)='([^']*)'$", "\n".join(lines), re.MULTILINE))
    assert len(by_systemd) == len(lines)
    script = 'set -a; . "$1"; env'
    said = subprocess.run(
        ["/bin/sh", "-c", script, "sh", example], env={}, capture_output=True, text=True, check=True
    ).stdout
    by_shell = {line.partition("=")[0]: line.partition("=")[2] for line in said.splitlines()}
    assert {name: by_shell[name] for name in by_systemd} == by_systemd
    for name, value in by_systemd.items():
        monkeypatch.setenv(name, value)
    assert load_settings({}).base_url == "https://signin.example.com"


def test_the_user_of_the_unit_is_made() -> None:
    """sysusers.conf creates the unit's user."""
    user = re.search(r"^User=(\w+)$", UNIT, re.MULTILINE)
    assert user
    assert re.search(
        rf'^u {user[1]} - "[^"]+" /var/lib/taproof$', (SYSTEMD / "sysusers.conf").read_text(), re.MULTILINE
    )


def test_the_page_s_command_runs_as_the_user_with_the_settings_of_the_unit(tmp_path: Path) -> None:
    """The function of docs/how-to/deploy-systemd.md passes a command its arguments, settings and directory."""
    page = (SYSTEMD.parents[1] / "docs/how-to/deploy-systemd.md").read_text(encoding="utf-8")
    (function,) = re.findall(r"^taproof\(\) \{\n.*?^\}$", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "env").write_text("TAPROOF_BASE_URL='https://signin.example.com'\n")
    # The operating system changes the user; the test covers the rest.
    for name, script in (
        ("sudo", 'exec "$@"'),
        ("runuser", 'test "$1 $2 $3" = "-u taproof --" && shift 3 && exec "$@"'),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "taproof").write_text('#!/bin/sh\npwd; echo "$TAPROOF_BASE_URL"; printf "<%s>" "$@"\n')
    (tmp_path / "taproof").chmod(0o755)
    for place, own in (
        ("/var/lib/taproof", tmp_path),
        ("/etc/taproof/env", tmp_path / "env"),
        ("/opt/taproof/bin/taproof", tmp_path / "taproof"),
    ):
        assert place in function
        function = function.replace(place, str(own))
    done = subprocess.run(
        ["/bin/bash", "-c", f"{function}\ntaproof projects create 'My shop'"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{tmp_path}\nhttps://signin.example.com\n<projects><create><My shop>"
