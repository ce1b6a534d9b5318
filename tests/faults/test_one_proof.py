"""However many processes read a confirmed session at the same time, exactly one reader gets the proof."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack

import jwt
from tests.conftest import Figure
from tests.faults.place import Place, assert_counters_fit, rows
from tests.whole_sign_in import WholeSignIn

from taproof.core.identity import MessengerIdentity

PROCESSES = 3
AT_ONCE = 50


async def confirmed(signin: WholeSignIn, project_id: str, user: str) -> str:
    token = (await signin.create_session(project_id, public=True)).session_token
    await signin.open_session(token, user)
    assert (await signin.confirm_session(token, MessengerIdentity(user, f"User {user}", ""))).changed
    return token


def race(place: Place, tokens: list[str], readers: int) -> tuple[list[str], Counter[str]]:
    """Let all readers of all processes read each session at once; return the proofs, and the answers by status."""
    proofs: list[str] = []
    answers: Counter[str] = Counter()
    with ExitStack() as stack:
        command = [sys.executable, "-m", "tests.faults.reader_program", *place.arguments, f"{readers}"]
        processes = [
            stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            for _ in range(PROCESSES)
        ]
        assert [answer(process) for process in processes] == ["ready\n"] * PROCESSES
        for start in range(0, len(tokens), AT_ONCE):
            # All processes wait for their line, which starts them together.
            for process in processes:
                assert process.stdin is not None
                process.stdin.write(json.dumps(tokens[start : start + AT_ONCE]) + "\n")
                process.stdin.flush()
            for process in processes:
                given, statuses = json.loads(answer(process))
                proofs += given
                answers.update(statuses)
    assert [process.returncode for process in processes] == [0] * PROCESSES
    return proofs, answers


def answer(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


async def test_the_readers_of_three_processes_get_one_proof_of_each_session(
    place: Place, figure: Figure, *, soak: bool
) -> None:
    """There are as many distinct proofs as sessions: one for each session, and all other readers get `used`."""
    sessions, readers = (10_000, 32) if soak else (500, 12)
    users: dict[str, str] = {}
    async with place.sign_in() as signin:
        for start in range(0, sessions, AT_ONCE):
            names = [f"{number}" for number in range(start, start + AT_ONCE)]
            tokens = await asyncio.gather(*(confirmed(signin, place.project_id, name) for name in names))
            users.update(zip(tokens, names, strict=True))
    proofs, answers = await asyncio.to_thread(race, place, list(users), readers)
    assert answers == {"confirmed": sessions, "used": sessions * (PROCESSES * readers - 1)}
    options = {"verify_exp": False, "verify_iat": False}
    claims = [jwt.decode(proof, place.webhook_secret, algorithms=["HS256"], options=options) for proof in proofs]  # type: ignore[arg-type]
    assert {claim["session_token"]: claim["messenger_id"] for claim in claims} == users
    assert len(set(proofs)) == len(proofs) == sessions
    assert await rows(place.url, "SELECT SUM(used) FROM daily_counts") == [(sessions,)]
    await assert_counters_fit(place.url)
    figure("reads", answers.total())
    figure("distinct proofs", len(set(proofs)))
