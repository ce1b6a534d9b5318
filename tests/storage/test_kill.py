"""A process that is killed (SIGKILL) at work: what it had acknowledged is there, no proof is given twice."""

import asyncio
import subprocess
import sys
from collections import Counter
from pathlib import Path

import apsw
from tests.storage.seed import Seed
from tests.whole_sign_in import WholeSignIn

from taproof.core.clock import system_clock
from taproof.core.encryption import Encryptor, associated_data_of, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.identifiers import session_key
from taproof.core.projects import ProjectChanges
from taproof.storage.sqlite.store import SqliteStorage

# Twelve sign-ins at once, without end; each step is printed only after it was acknowledged.
PROGRAM = """
import asyncio, os, sys
from pathlib import Path
from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.identity import MessengerIdentity
from taproof.core.encryption import Encryptor
from taproof.storage.sqlite.store import SqliteStorage
from tests.whole_sign_in import WholeSignIn

path, project_id, master_key = sys.argv[1:]

def say(step, token):
    os.write(1, f"{step} {token}\\n".encode())

async def sign_in_without_end(signin, user):
    while True:
        token = (await signin.create_session(project_id, public=True)).session_token
        say("created", token)
        await signin.open_session(token, user)
        assert (await signin.confirm_session(token, MessengerIdentity(user, "Name", ""))).changed
        say("confirmed", token)
        assert (await signin.verify_session(project_id, token, public=True)).proof
        say("proof", token)

async def main():
    store = SqliteStorage.open(Path(path), system_clock())
    made = (Encryptor(master_key), lambda: "https://t.me/b", system_clock, system_entropy)
    signin = WholeSignIn(store, *made)
    await asyncio.gather(*(sign_in_without_end(signin, f"{user}") for user in range(12)))

asyncio.run(main())
"""


def run_and_kill(arguments: list[str], after_lines: int) -> list[tuple[str, str]]:
    """Run the program, kill it once it has acknowledged so many steps; return all that it acknowledged."""
    command = [sys.executable, "-c", PROGRAM, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(after_lines)]
        process.kill()
        lines += process.stdout.readlines()
    return [(step, token) for step, token in (line.split() for line in lines if line.endswith("\n"))]


async def test_nothing_acknowledged_is_lost_to_a_kill(tmp_path: Path, new_seed: "type[Seed]") -> None:
    """Five kills at five places of one database: integrity, states, counters and single proofs hold after each."""
    path = tmp_path / "taproof.db"
    master_key = new_master_key(system_entropy)
    encryptor = Encryptor(master_key)
    store = SqliteStorage.open(path, system_clock())
    project = await new_seed(store).project(webhook_url="https://example.com/")
    encrypted = encryptor.encrypt(
        "whsec_" + "A" * 43 + "=", associated_data_of("webhook_secret", project.id), system_entropy
    )
    await store.projects.regenerate_secrets(project.developer_id, project.id, b"n" * 32, "sk_n", encrypted)
    await store.close()
    acknowledged: list[tuple[str, str]] = []
    for after_lines in (1, 40, 107, 250, 333):
        arguments = [str(path), project.id, master_key]
        acknowledged += await asyncio.to_thread(run_and_kill, arguments, after_lines)
        proofs = Counter(token for step, token in acknowledged if step == "proof")
        assert len(acknowledged) >= after_lines
        store = SqliteStorage.open(path, system_clock())
        signin = WholeSignIn(store, encryptor, lambda: "https://t.me/b", system_clock, system_entropy)
        connection = apsw.Connection(str(path))
        assert connection.pragma("integrity_check") == "ok"
        await _check(store, signin, project.id, acknowledged, proofs)
        _check_counters(connection)
        connection.close()
        await store.close()
    store = SqliteStorage.open(path, system_clock())
    assert (
        await store.projects.update_project(project.developer_id, project.id, ProjectChanges(name="alive"), 0)
        is not None
    )
    await store.close()


async def _check(
    store: SqliteStorage,
    signin: WholeSignIn,
    project_id: str,
    acknowledged: list[tuple[str, str]],
    proofs: Counter[str],
) -> None:
    last_steps = {token: step for step, token in acknowledged}
    for token, step in last_steps.items():
        key = session_key(token)
        assert key is not None
        session = await store.sessions.read_session(key)
        assert session is not None
        possible = {"created": {"pending", "confirmed", "used"}, "confirmed": {"confirmed", "used"}, "proof": {"used"}}
        assert session.status in possible[step]
        answer = await signin.verify_session(project_id, token, public=True)
        assert (answer.proof is not None) == (session.status == "confirmed")
        acknowledged += [("proof", token)] if answer.proof else []
        proofs[token] += answer.proof is not None
    assert max(proofs.values(), default=0) <= 1


def _check_counters(connection: apsw.Connection) -> None:
    """Compare the counters, the events and the people with a recount of the sessions."""
    recounted = connection.execute(
        "SELECT day, COUNT(*), SUM(opened_at IS NOT NULL), SUM(confirmed_at IS NOT NULL), SUM(used_at IS NOT NULL), "
        "COUNT(DISTINCT messenger_id) FROM sessions GROUP BY day ORDER BY day"
    ).fetchall()
    counted = connection.execute(
        "SELECT day, requested, opened, confirmed, used, unique_users FROM daily_counts ORDER BY day"
    ).fetchall()
    assert counted == recounted
    ((confirmed,),) = connection.execute("SELECT COUNT(*) FROM sessions WHERE confirmed_at IS NOT NULL").fetchall()
    assert connection.execute("SELECT COUNT(*) FROM webhook_events").fetchall() == [(confirmed,)]
