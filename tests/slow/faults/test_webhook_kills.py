"""No event is lost when senders are killed (SIGKILL) again and again and a receiver fails three times in ten."""

import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import Figure
from tests.faults.place import Place, add_project, assert_sound, rows
from tests.slow.faults.webhook_load import (
    HASTY,
    PATIENCE,
    PRODUCTION,
    Receiver,
    Senders,
    decide,
    open_session,
    running_receiver,
    running_senders,
)
from tests.whole_sign_in import WholeSignIn

from taproof.core.encryption import Encryptor
from taproof.service.webhooks import answer_associated_data

EVENTS = 10_000
FAILING = 0.3
SEED = 20_261_120
PROJECTS = 20
"""Many, because a failing endpoint gets only a few events at the same time."""
SENDERS = 2
OPENED_AT_ONCE = 200
DECIDED_AT_ONCE = 10


async def open_all(signin: WholeSignIn, projects: list[str]) -> dict[str, str]:
    """Open a session for each future event; return the users by session token."""
    opened: dict[str, str] = {}
    for start in range(0, EVENTS, OPENED_AT_ONCE):
        users = [f"{number}" for number in range(start, start + OPENED_AT_ONCE)]
        tokens = await asyncio.gather(*(open_session(signin, projects[int(user) % PROJECTS], user) for user in users))
        opened.update(zip(tokens, users, strict=True))
    return opened


async def decide_all(signin: WholeSignIn, opened: dict[str, str], rate: float) -> None:
    """Make this many decisions a second, each of which causes an event."""
    began = time.monotonic()
    tokens = list(opened)
    for start in range(0, EVENTS, DECIDED_AT_ONCE):
        await asyncio.sleep(began + start / rate - time.monotonic())
        group = tokens[start : start + DECIDED_AT_ONCE]
        await asyncio.gather(*(decide(signin, token, opened[token]) for token in group))


async def kill_again_and_again(senders: Senders, receiver: Receiver, kills: int, every: float) -> list[int]:
    """Kill the oldest sender at about this interval; return how many posts each victim had in flight."""
    # Not after a number of arrivals, because that would mostly hit busy moments.
    draw = random.Random(SEED)  # noqa: S311 — the same moments in every run, as far as a machine can repeat them.
    under_way = []
    began = time.monotonic()
    for number in range(kills):
        await asyncio.sleep(began + (number + draw.random()) * every - time.monotonic())
        progress = await receiver.ask("/progress")
        under_way.append(progress["open"].get(f"Taproof/{senders.kill_oldest()}", 0))
        await senders.start()
    return under_way


async def until_settled(place: Place) -> None:
    """Wait until nothing is left to send."""
    async with asyncio.timeout(PATIENCE):
        due = "SELECT 1 FROM webhook_events WHERE state = 'due' LIMIT 1"
        while await rows(place.url, due):  # noqa: ASYNC110 — the store tells only those who ask.
            await asyncio.sleep(0.2)


@dataclass
class Stored:
    """The stored state of one event."""

    state: str
    count: int
    interrupted: int
    attempts: list[tuple[int, int | None, str | None, str | None]]
    """Number, status, error and answer of each attempt."""


async def read_stored(place: Place) -> dict[str, Stored]:
    events = await rows(place.url, "SELECT id, state, attempts, interrupted FROM webhook_events")
    stored = {event_id: Stored(state, count, interrupted, []) for event_id, state, count, interrupted in events}
    encryptor = Encryptor(place.master_key)
    statement = (
        "SELECT event_id, number, status, error, encrypted_answer FROM webhook_attempts ORDER BY event_id, number"
    )
    for event_id, number, status, error, encrypted in await rows(place.url, statement):
        answer = (
            None if encrypted is None else encryptor.decrypt(bytes(encrypted), answer_associated_data(event_id, number))
        )
        stored[event_id].attempts.append((number, status, error, answer))
    return stored


def check(stored: dict[str, Stored], arrived: dict[str, Any]) -> None:
    """Compare the records of each event with the receiver's own."""
    for event_id, event in stored.items():
        seen, accepted, _ = arrived[event_id]
        assert event.state == "delivered"
        assert accepted >= 1
        numbers, statuses, errors, answers = zip(*event.attempts, strict=True)
        assert numbers == tuple(range(1, event.count + 1))
        assert set(answers) <= {None, event_id}
        taken = [status is not None and 200 <= status < 300 for status in statuses]
        assert taken == [False] * (event.count - 1) + [True]
        # A killed sender may or may not have posted the event that it held. An attempt posts twice if the receiver
        # closes a kept connection instead of answering.
        posted = event.count - errors.count("circuit_open")
        assert posted <= seen <= 2 * (posted + event.interrupted)
        # Received twice: a sender died, or stopped waiting, before it knew the result.
        assert accepted - 1 <= event.interrupted + errors.count("timeout")


async def test_no_event_is_lost_when_senders_are_killed(
    place: Place, tmp_path: Path, figure: Figure, *, soak: bool
) -> None:
    """Each of 10,000 events is accepted, under one in a hundred of them twice, and the records are right.

    In the short form an attempt has one second. A busy machine may exceed it, so duplicates after such a timeout are
    compared with the records only.
    """
    kills, rate, pace = (100, 25, PRODUCTION) if soak else (12, 190, HASTY)
    # An event is received twice as often as others are accepted while one outcome is committed: rate times commit time.
    # So a commit must not wait for a disk that other tests use too.
    place = place if soak else place.quick()
    async with running_receiver(FAILING, SEED) as receiver:
        named = [(f"Shop {number}", f"{receiver.url}/{number}") for number in range(PROJECTS)]
        secrets = dict([await add_project(place, *each) for each in named])
        await receiver.learn(secrets)
        async with (
            place.sign_in() as signin,
            running_senders(place, SENDERS, pace, tmp_path / "senders.log") as senders,
        ):
            opened = await open_all(signin, list(secrets))
            began = time.monotonic()
            _, under_way = await asyncio.gather(
                decide_all(signin, opened, rate),
                kill_again_and_again(senders, receiver, kills, EVENTS / rate / kills),
            )
            figure("seconds until the last kill", f"{time.monotonic() - began:.1f}")
            await until_settled(place)
        report = await receiver.ask("/report")
    await assert_sound(place.url)
    stored, arrived = await read_stored(place), report["arrived"]
    assert report["wrong"] == []
    assert len(opened) == len(stored) == EVENTS
    assert {event_id: stored[event_id] for event_id in stored.keys() - arrived.keys()} == {}
    assert {token for _, _, token in arrived.values()} == set(opened)
    check(stored, arrived)
    twice = [event_id for event_id, (_, accepted, _) in arrived.items() if accepted > 1]
    interrupted = sum(event.interrupted for event in stored.values())
    figure("seconds", f"{time.monotonic() - began:.1f}")
    figure("events", len(stored))
    figure("attempts written down", sum(event.count for event in stored.values()))
    figure("attempts interrupted", interrupted)
    figure("attempts that arrived", sum(seen for seen, _, _ in arrived.values()))
    figure("their answers", report["answers"])
    errors = Counter(error for event in stored.values() for _, _, error, _ in event.attempts if error is not None)
    figure("errors", dict(errors))
    figure("most attempts of an event", max(event.count for event in stored.values()))
    figure("kills", kills)
    figure("posts under way at a kill", f"{min(under_way)} to {max(under_way)}")
    figure("accepted more than once", len(twice))
    figure("of them by a kill", sum(stored[event_id].interrupted > 0 for event_id in twice))
    given_up = {event_id for event_id, event in stored.items() if any(each[2] == "timeout" for each in event.attempts)}
    assert len(twice if soak else set(twice) - given_up) < EVENTS // 100
    # The kills hit senders that were sending.
    assert sum(posts > 0 for posts in under_way) > 0.9 * kills
    assert interrupted > kills
