"""The application cancels while the user confirms and the time ends: there is one outcome, on which everything agrees.

The short form races for a few hundred sessions of each store. `--hypothesis-profile=soak` races for 10,000.
"""

import asyncio
import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.conftest import Figure
from tests.faults.place import Place, rows
from tests.whole_sign_in import WholeSignIn

from taproof.core.clock import system_clock
from taproof.core.code_challenge import challenge_digest
from taproof.core.encryption import Encryptor
from taproof.core.entropy import system_entropy
from taproof.core.identifiers import new_session_id, new_session_token, session_key
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import ProjectChanges
from taproof.core.session_state import SESSION_LIFETIME
from taproof.core.sessions import NewSession
from taproof.messengers.telegram.prompts import outcome_notice
from taproof.messengers.texts.catalog import LANGUAGES
from taproof.runtime.store import open_storage
from taproof.sdk.code_challenge import code_challenge, new_code_verifier
from taproof.service.sessions.events import SessionEvents

ROOT = Path(__file__).parents[3]
PROCESSES = 3
AT_ONCE = 100
LEAD = 400
"""The time (ms) between sending a batch to the processes and the moment at which they act."""
EVENTS = {"confirmed": ["auth.confirmed"], "expired": ["auth.expired"], "cancelled": []}
NOTICES = {"confirmed": "confirmed_notice", "expired": "expired_notice", "cancelled": "withdrawn_notice"}

Raced = tuple[str, str, str, int]
"""A session's token, verifier and user, and the time (ms) at which all processes act on it."""


async def choose_events(place: Place) -> None:
    storage = await open_storage(place.url)
    project = await storage.projects.read_project(place.project_id)
    assert project is not None
    changes = ProjectChanges(webhook_events=("auth.confirmed", "auth.cancelled", "auth.expired"))
    assert await storage.projects.update_project(project.developer_id, project.id, changes, system_clock())
    await storage.close()


async def opened_session(signin: WholeSignIn, project_id: str, user: str, expires_at: int, act_at: int) -> Raced:
    """Store a session that its user has opened; its prompt is message 5 of the chat."""
    storage = signin.storage
    created_at = expires_at - SESSION_LIFETIME
    token, verifier = new_session_token(created_at, system_entropy), new_code_verifier()
    key = session_key(token)
    assert key is not None
    digest = challenge_digest(code_challenge(verifier))
    session_id = new_session_id(created_at, system_entropy)
    new = NewSession(key, session_id, project_id, created_at, expires_at, digest)
    assert await storage.sessions.create_session(new, public=True)
    assert await storage.sessions.open_session(key, user, created_at + 1)
    await signin.prompts.record_prompt(token, 0, user, 5, "en")
    return token, verifier, user, act_at


async def batch_of(signin: WholeSignIn, project_id: str, first: int) -> list[Raced]:
    """Return sessions of which every second one expires at about the moment at which all processes act on it."""
    now = system_clock()
    return list(
        await asyncio.gather(
            *(
                opened_session(
                    signin,
                    project_id,
                    f"{user}",
                    # Most processes act a little late, so most of these moments are a little later too.
                    now + 2 * LEAD + (user % 15 * 6 - 12 if user % 2 else SESSION_LIFETIME // 2),
                    now + 2 * LEAD,
                )
                for user in range(first, first + AT_ONCE)
            )
        )
    )


@contextmanager
def racing_processes(place: Place) -> Iterator[list["subprocess.Popen[str]"]]:
    with ExitStack() as stack:
        command = [sys.executable, "-m", "tests.slow.faults.cancel_program", *place.arguments]
        processes = [
            stack.enter_context(
                subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(PROCESSES)
        ]
        assert [answer(process) for process in processes] == ["ready\n"] * PROCESSES
        yield processes
    assert [process.returncode for process in processes] == [0] * PROCESSES


def answer(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def race(processes: list["subprocess.Popen[str]"], batch: list[Raced]) -> list[tuple[str, str, bool]]:
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(json.dumps(batch) + "\n")
        process.stdin.flush()
    return [tuple(each) for process in processes for each in json.loads(answer(process))]


async def test_cancel_against_confirm_and_expiry(place: Place, figure: Figure, *, soak: bool) -> None:
    """Each session is decided once, and every answer, page, prompt, webhook and counter shows the same outcome."""
    sessions = 10_000 if soak else 300
    place = place.quick()
    await choose_events(place)
    raced: list[Raced] = []
    told: dict[str, set[str]] = defaultdict(set)
    decided: Counter[str] = Counter()
    async with place.sign_in() as signin:
        with racing_processes(place) as processes:
            for first in range(0, sessions, AT_ONCE):
                batch = await batch_of(signin, place.project_id, first)
                raced += batch
                for token, status, has_changed in await asyncio.to_thread(race, processes, batch):
                    told[token].add(status)
                    decided[token] += has_changed
        storage = signin.storage
        events = SessionEvents(Encryptor(place.master_key), system_entropy)
        while await storage.sessions.expire_sessions(system_clock(), 100, events.expired):
            pass
        outcomes: dict[str, str] = {}
        for token, verifier, user, _ in raced:
            page = await signin.verify_session(place.project_id, token, public=True, code_verifier=verifier)
            outcome: str = page.status
            # All processes were told the same.
            assert told[token] == {outcome}
            assert decided[token] == (outcome != "expired")
            tap = await signin.confirm_session(token, MessengerIdentity(user, "Ada", ""))
            notice = outcome_notice(LANGUAGES["en"], tap)
            assert notice.startswith(getattr(LANGUAGES["en"], NOTICES[outcome]).partition(":")[0])
            outcomes[token] = outcome
        counts = Counter(outcomes.values())
        # On a busy machine, one kind of call can always be the last.
        assert counts.keys() <= {"cancelled", "confirmed", "expired"}
        assert len(counts) == 3 if soak else len(counts) > 1
        await assert_all_tell(place, signin, outcomes)
    for each, number in counts.items():
        figure(each, number)


async def assert_all_tell(place: Place, signin: WholeSignIn, outcomes: dict[str, str]) -> None:
    """Compare the prompts to edit, the events, the stored states and the counters with the outcomes."""
    counts = Counter(outcomes.values())
    edited: set[str] = set()
    by_key = {session_key(token): token for token in outcomes}
    while claimed := await signin.prompts.claim_ended_prompts(100):
        edited |= {by_key[each.ended.prompt.key] for each in claimed}
    assert edited == {token for token, outcome in outcomes.items() if outcome == "cancelled"}
    sent: dict[str, list[str]] = defaultdict(list)
    for session_id, kind in await rows(place.url, "SELECT session_id, type FROM webhook_events"):
        sent[session_id].append(kind)
    storage = signin.storage
    for token, outcome in outcomes.items():
        key = session_key(token)
        assert key is not None
        session = await storage.sessions.read_session(key)
        assert session is not None
        assert sent[session.id] == EVENTS[outcome]
        assert session.status == ("used" if outcome == "confirmed" else outcome)
        assert session.withdrawn == (outcome == "cancelled")
        assert (session.identity is None) == (outcome != "confirmed")
    counted = await rows(
        place.url, "SELECT SUM(requested), SUM(confirmed), SUM(cancelled), SUM(expired) FROM daily_counts"
    )
    assert counted == [(len(outcomes), counts["confirmed"], counts["cancelled"], counts["expired"])]
