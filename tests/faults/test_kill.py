"""Killing one of two processes on one database (SIGKILL), again and again, loses and duplicates nothing."""

import itertools

from tests.conftest import Figure
from tests.faults.load import loaded
from tests.faults.place import Place, assert_sound

# The victim's work before it dies varies, so that it dies at many steps.
STEPS = itertools.cycle((1, 40, 107, 17, 3, 61, 7, 29, 250, 90))


async def test_a_killed_process_loses_and_doubles_nothing(place: Place, figure: Figure, *, soak: bool) -> None:
    """Acknowledged creates, decisions and proofs are kept, no proof is given twice, and counters equal a recount."""
    kills = 100 if soak else 3
    async with loaded(place) as load:
        for steps in itertools.islice(STEPS, kills):
            victim = load.workers[0]
            await victim.until_acknowledged(steps)
            await load.kill(victim)
            survivor = load.workers[0]
            await survivor.until_acknowledged(10)
            if place.url.startswith("sqlite"):
                await assert_sound(place.url)
            await load.start(victim.name)
        # A killed process is no reason for a healthy store to be unavailable to the others.
        assert load.ledger.unavailable == []
    for step in ("created", "confirmed", "cancelled", "proof"):
        assert load.ledger.count(step) > kills
    figure("kills", kills)
    figure("sessions", len(load.ledger.steps))
