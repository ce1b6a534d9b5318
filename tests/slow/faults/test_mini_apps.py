"""However many processes receive the data of a Mini App at once, it signs in once; hostile data never does."""

import asyncio
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.conftest import Figure
from tests.faults.place import Place, assert_counters_fit, rows
from tests.giving_bots import give_bot
from tests.mini_apps import BOT_ID, fields_at, init_data, signed

from taproof.core.clock import MINUTE, system_clock
from taproof.core.project_bots import ProjectBot
from taproof.runtime.store import open_storage

ROOT = Path(__file__).parents[3]
PROCESSES = 3
SIGN_INS = 1_000
CALLERS = 4
"""Calls of each process for one sign-in, so that 11,000 calls are replays."""
HOSTILE = 3_400
"""Each process gets all of them: 10,200 calls."""
AT_ONCE = 50
STRANGER = Ed25519PrivateKey.from_private_bytes(bytes(32))


async def give_the_project_a_bot(place: Place) -> None:
    storage = await open_storage(place.url)
    project = await storage.projects.read_project(place.project_id)
    assert project is not None
    bot = ProjectBot(project.id, BOT_ID, "shop_bot", b"token")
    assert await give_bot(storage, project.developer_id, project.id, bot) == "set"
    await storage.close()


def race(place: Place, batches: Iterator[list[str]], callers: int) -> tuple[list[str], Counter[str]]:
    """Send each batch to all processes at once; return the proofs, and the answers of each kind."""
    proofs: list[str] = []
    answers: Counter[str] = Counter()
    with ExitStack() as stack:
        command = [sys.executable, "-m", "tests.slow.faults.mini_app_program", *place.arguments, f"{callers}"]
        processes = [
            stack.enter_context(
                subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(PROCESSES)
        ]
        assert [answer(process) for process in processes] == ["ready\n"] * PROCESSES
        for batch in batches:
            # All processes wait for their line, which starts them together.
            for process in processes:
                assert process.stdin is not None
                process.stdin.write(json.dumps(batch) + "\n")
                process.stdin.flush()
            for process in processes:
                given, codes = json.loads(answer(process))
                proofs += given
                answers.update(codes)
    assert [process.returncode for process in processes] == [0] * PROCESSES
    return proofs, answers


def answer(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def hostile(number: int, chance: random.Random) -> str:
    """Return data that must not sign in: foreign, stale, early, or altered after it was signed."""
    now = system_clock()
    genuine = init_data(now, number, start_param=f"{number}")
    match number % 5:
        case 0:
            return init_data(now, number, bot_id=BOT_ID + 1)
        case 1:
            return init_data(now - 5 * MINUTE, number)
        case 2:
            return init_data(now + 5 * MINUTE, number)
        case 3:
            return signed(fields_at(now // 1_000), key=STRANGER)
        case _:
            # A digit of the user's id, or of the time: what an attacker would want to change.
            place = genuine.index("%22id%22%3A%20") + 14 if chance.random() < 0.5 else genuine.index("auth_date=") + 19
            return f"{genuine[:place]}{(int(genuine[place]) + 1) % 10}{genuine[place + 1 :]}"


async def test_data_of_mini_apps_signs_in_once(place: Place, figure: Figure) -> None:
    """Of the calls of three processes with the same data, one gets a proof, and the counters count one sign-in."""
    await give_the_project_a_bot(place)

    def batches() -> Iterator[list[str]]:
        for start in range(0, SIGN_INS, AT_ONCE):
            # Signed just before it is used, because it is valid for five minutes.
            yield [init_data(system_clock(), user + 1) for user in range(start, start + AT_ONCE)]

    proofs, answers = await asyncio.to_thread(race, place, batches(), CALLERS)
    replays = SIGN_INS * (PROCESSES * CALLERS - 1)
    assert answers == {"confirmed": SIGN_INS, "init_data_used": replays}
    options = {"verify_exp": False, "verify_iat": False}
    claims = [jwt.decode(proof, place.webhook_secret, algorithms=["HS256"], options=options) for proof in proofs]  # type: ignore[arg-type]
    assert {claim["messenger_id"] for claim in claims} == {f"{user + 1}" for user in range(SIGN_INS)}
    assert len({claim["session_token"] for claim in claims}) == SIGN_INS
    assert await rows(place.url, "SELECT SUM(used) FROM daily_counts") == [(SIGN_INS,)]
    await assert_counters_fit(place.url)
    figure("sign-ins", SIGN_INS)
    figure("replays refused", replays)


async def test_hostile_data_of_mini_apps_signs_nobody_in(place: Place, figure: Figure) -> None:
    """No foreign, stale, early or altered data signs in or leaves a trace in the store."""
    chance = random.Random(20)  # noqa: S311 — no secret.
    await give_the_project_a_bot(place)
    tried = [hostile(each + 1, chance) for each in range(HOSTILE)]
    batches = (tried[start : start + AT_ONCE] for start in range(0, HOSTILE, AT_ONCE))
    proofs, answers = await asyncio.to_thread(race, place, batches, 1)
    assert proofs == []
    assert answers.keys() == {"init_data_invalid", "init_data_expired"}
    assert answers.total() == HOSTILE * PROCESSES
    assert await rows(place.url, "SELECT COUNT(*) FROM sessions") == [(0,)]
    figure("refused", answers.total())
