"""docs/how-to/backup.md: a backup made with its commands can be restored with its commands."""

import re
import sqlite3
import subprocess
import sys
from contextlib import closing

from tests.docs.blocks import block_of
from tests.e2e.conftest import StartService
from tests.slow.docs.walk import environment_of, run

PAGE = "how-to/backup.md"


def test_what_was_backed_up_is_there_again(start_service: StartService) -> None:
    """The restored database has the state of the copy, and its secrets can be decrypted."""
    service = start_service()
    variables = environment_of(service)
    assert service.command("developers", "add", "before@example.com").returncode == 0
    variables["TAPROOF_SANDBOX"] = "1"
    copied = run([block_of(PAGE, "console", "taproof backup")], service, variables)
    assert copied.returncode == 0, copied.stderr
    assert {(service.directory / name).stat().st_mode & 0o077 for name in ("copy.db", "copy.db.key")} == {0}

    assert service.command("developers", "add", "after@example.com").returncode == 0
    service.stop()
    (service.directory / "taproof.db.key").unlink()
    restored = run([block_of(PAGE, "console", "taproof restore copy.db")], service, variables)
    assert restored.returncode == 0, restored.stderr

    service = start_service(directory=service.directory)
    listed = service.command("developers", "list").stdout
    assert "before@example.com" in listed
    assert "after@example.com" not in listed
    # The sandbox's developer still has the project, whose webhook secret is under the restored key.
    assert environment_of(service)["PROOF"]


def test_the_nightly_copy_is_a_database(start_service: StartService) -> None:
    """The unit's command, as systemd passes it to the shell, copies a running service's database, even over a copy."""
    service = start_service()
    variables = environment_of(service)
    unit = block_of(PAGE, "ini", "ExecStart").text
    (command,) = re.findall(r"^ExecStart=/bin/sh -c '(.*)'$", unit, re.MULTILINE)
    command = command.replace("$$", "$").replace("%%", "%")  # The substitutions of systemd.service(5).
    place = service.directory / "copies"
    place.mkdir()
    command = command.replace("/var/lib/taproof-backup/", f"{place}/").replace(
        "/opt/taproof/bin/taproof", f"{sys.executable} -m taproof"
    )
    for _ in range(2):
        subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=service.directory,
            env=service.environment | {"TAPROOF_DATABASE_URL": variables["TAPROOF_DATABASE_URL"]},
            check=True,
            timeout=60,
        )
    (copy,) = place.iterdir()
    assert re.fullmatch(r"day-[1-7]\.db", copy.name)
    with closing(sqlite3.connect(copy)) as database:
        projects = {row[0] for row in database.execute("SELECT id FROM projects")}
    assert variables["TAPROOF_PROJECT_ID"] in projects
