"""Each expired session has exactly one auth.expired event, even if the sweeping processes are killed (SIGKILL)."""

import asyncio
import json
import random
import signal
import sys
from pathlib import Path

from tests.conftest import Figure
from tests.faults.place import Place, assert_sound, rows

from taproof.core.clock import MINUTE, system_clock
from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.projects import ProjectChanges
from taproof.runtime.store import open_storage

SESSIONS = 6_000
SWEEPERS = 8
SEED = 20_261_124
PROGRAM = Path(__file__).with_name("sweeper_program.py")


async def prepare_sweeper(place: Place, now: int) -> asyncio.subprocess.Process:
    """Start a process that will sweep at `now`; return once it is ready."""
    pipe = asyncio.subprocess.PIPE
    arguments = (str(PROGRAM), place.url, place.master_key, str(now))
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdin=pipe, stdout=pipe)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    return process


def begin(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.write(b"\n")


async def kill(process: asyncio.subprocess.Process) -> None:
    process.kill()
    assert await process.wait() == -signal.SIGKILL


async def pending(place: Place) -> int:
    ((count,),) = await rows(place.url, "SELECT COUNT(*) FROM sessions WHERE status = 'pending'")
    return int(count)


async def test_each_session_expires_with_one_event_though_sweepers_are_killed(place: Place, figure: Figure) -> None:
    """Eight processes sweep concurrently; all but one are killed at random moments."""
    place = place.quick()
    storage = await open_storage(place.url)
    project = await storage.projects.read_project(place.project_id)
    assert project is not None
    changes = ProjectChanges(webhook_events=("auth.expired",))
    assert await storage.projects.update_project(project.developer_id, project.id, changes, system_clock())
    await storage.close()
    async with place.sign_in() as signin:
        for _ in range(0, SESSIONS, 200):
            await asyncio.gather(*(signin.create_session(project.id, public=True) for _ in range(200)))
    now = system_clock() + 10 * MINUTE
    draw = random.Random(SEED)  # noqa: S311 — the same moments in every run, as far as a machine can repeat them.
    sweepers = [await prepare_sweeper(place, now) for _ in range(SWEEPERS)]
    for each in sweepers:
        begin(each)
    async with asyncio.timeout(300):
        while await pending(place) == SESSIONS:  # noqa: ASYNC110 — the store tells only those who ask.
            await asyncio.sleep(0.01)
    left = []
    for each in sweepers[1:]:
        await asyncio.sleep(draw.random() * 0.1)
        await kill(each)
        left.append(await pending(place))
    async with asyncio.timeout(300):
        while await pending(place):  # noqa: ASYNC110 — the store tells only those who ask.
            await asyncio.sleep(0.05)
    await kill(sweepers[0])
    await assert_sound(place.url)
    found = await rows(place.url, "SELECT id, session_id, encrypted_body FROM webhook_events")
    expired = {session_id for (session_id,) in await rows(place.url, "SELECT id FROM sessions")}
    assert len(found) == len(expired) == SESSIONS
    assert {session_id for _, session_id, _ in found} == expired
    assert await rows(place.url, "SELECT SUM(expired) FROM daily_counts") == [(SESSIONS,)]
    encryptor = Encryptor(place.master_key)
    for event_id, session_id, encrypted in found:
        body = json.loads(encryptor.decrypt(bytes(encrypted), associated_data_of("event_body", event_id)))
        assert (body["id"], body["event"], body["session_id"]) == (event_id, "auth.expired", session_id)
    figure("sessions left after each kill", left)
    assert SESSIONS > left[0] > 0
