"""Conformance: the messages that show sessions, and cancellation by the application, which ends them."""

import asyncio

import pytest
from tests.databases import NOW
from tests.storage.seed import Seed, present

from taproof.contract.session import SignInStatus
from taproof.core.clock import HOUR, MINUTE
from taproof.core.prompts import EndedPrompt, Renewal, ShownPrompt
from taproof.core.return_code import RETURN_LIFETIME
from taproof.core.sessions import Hint, NewSession, Refused, SessionKey
from taproof.storage.protocol import Storage

BOT = 7_000_000_001
LEASE = NOW + MINUTE


def prompt_of(session: NewSession, message_id: int | None = 5, user: str = "1001") -> ShownPrompt:
    return ShownPrompt(session.key, BOT, user, message_id, "uk")


async def hints(storage: Storage, *sessions: NewSession) -> list[Hint | None]:
    found = [await storage.sessions.poll_session(each.key) for each in sessions]
    return [None if each is None else each.hint for each in found]


async def status_of(storage: Storage, key: SessionKey) -> SignInStatus | None:
    found = await storage.sessions.poll_session(key)
    return None if found is None else found.status


@pytest.mark.parametrize("is_opened", [False, True])
async def test_withdraw_session_cancels_a_pending_one(storage: Storage, seed: Seed, *, is_opened: bool) -> None:
    """The session is cancelled once, with its time and count and without an event, whether it was opened or not."""
    project = await seed.project(webhook_url="https://example.com/")
    new = await (seed.opened(project) if is_opened else seed.session(project))
    assert await storage.sessions.withdraw_session(new.key, NOW + 1)
    assert not await storage.sessions.withdraw_session(new.key, NOW + 2)
    session = present(await storage.sessions.read_session(new.key))
    assert (session.status, session.cancelled_at, session.withdrawn) == ("cancelled", NOW + 1, True)
    assert (session.identity, session.confirmed_at) == (None, None)
    assert session.prompt is not None
    assert session.prompt.context is None
    (counts,) = await storage.counts.read_daily_counts([project.id], 0)
    assert (counts.cancelled, counts.expired) == (1, 0)
    assert await storage.deliveries.claim_deliveries(NOW + 5, NOW + 6, 10) == []
    assert not await storage.sessions.open_session(new.key, "1002", NOW)
    assert not await storage.sessions.confirm_session(new.key, seed.identity("1001"), NOW, seed.event(project))


async def test_withdraw_session_against_confirm_and_cancel(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """On two nodes, each session has one outcome, counted once, and an event only for the user's decision."""
    project = await seed.project(webhook_url="https://example.com/")
    sessions = [await seed.opened(project, f"{number}") for number in range(30)]

    async def race(number: int, session: NewSession) -> list[bool]:
        """Return which calls changed the session. A refusal of the user's call has the state that was first."""
        one, two = (storage, other_node) if number % 2 else (other_node, storage)
        user = f"{number}"
        outcomes = await asyncio.gather(
            one.sessions.withdraw_session(session.key, NOW),
            two.sessions.confirm_session(session.key, seed.identity(user), NOW, seed.event(project)),
            one.sessions.cancel_session(session.key, user, NOW, seed.event(project, "auth.cancelled")),
            two.sessions.withdraw_session(session.key, NOW),
            one.sessions.confirm_session(session.key, seed.identity(user), NOW, seed.event(project)),
        )
        status = await status_of(one, session.key)
        assert {each.found and each.found.status for each in outcomes if isinstance(each, Refused)} <= {status}
        return list(map(bool, outcomes))

    won = await asyncio.gather(*(race(number, session) for number, session in enumerate(sessions)))
    assert [sum(each) for each in won] == [1] * len(sessions)
    (counts,) = await storage.counts.read_daily_counts([project.id], 0)
    confirmed = sum(each[1] + each[4] for each in won)
    assert (counts.confirmed, counts.cancelled) == (confirmed, len(sessions) - confirmed)
    events = await storage.deliveries.claim_deliveries(NOW, LEASE, 100)
    assert len(events) == sum(each[1] + each[2] + each[4] for each in won)


async def test_record_prompt_keeps_the_latest_message(storage: Storage, seed: Seed) -> None:
    """Only the session's owner has a prompt; the result is the hint. Two nodes leave one row."""
    project = await seed.project()
    new = await seed.session(project)
    assert await storage.prompts.record_prompt(prompt_of(new)) is None
    assert await storage.sessions.open_session(new.key, "1001", NOW, "choosing")
    assert await storage.prompts.record_prompt(prompt_of(new, 4, user="1002")) is None
    assert (
        await asyncio.gather(*(storage.prompts.record_prompt(prompt_of(new, 7)) for _ in range(3))) == ["choosing"] * 3
    )
    assert await storage.prompts.record_prompt(prompt_of(new, 8)) == "choosing"
    assert await storage.sessions.withdraw_session(new.key, NOW)
    assert await storage.prompts.claim_ended_prompts(NOW, LEASE, 10) == [EndedPrompt(prompt_of(new, 8), LEASE)]


async def test_record_prompt_at_the_instant_of_a_withdrawal(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Whichever is first, the message must be edited: no prompt of a cancelled session keeps its buttons."""
    project = await seed.project()
    sessions = [await seed.opened(project) for _ in range(40)]
    await asyncio.gather(
        *(storage.prompts.record_prompt(prompt_of(each)) for each in sessions),
        *(other_node.sessions.withdraw_session(each.key, NOW) for each in sessions),
    )
    claimed = await storage.prompts.claim_ended_prompts(NOW, LEASE, 100)
    assert {each.prompt.key for each in claimed} == {each.key for each in sessions}


async def test_mark_unreachable_and_back(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """All pending sessions of this user and bot, and no others, get the hint; each gets its earlier one back."""
    project = await seed.project()
    opened, choosing, decided = [await seed.opened(project) for _ in range(3)]
    await storage.sessions.set_hint(choosing.key, "choosing")
    other = await seed.opened(project, "1002")
    for each in (opened, choosing, decided):
        await storage.prompts.record_prompt(prompt_of(each, None if each is opened else 5))
    await storage.prompts.record_prompt(prompt_of(other, user="1002"))
    await storage.sessions.cancel_session(decided.key, "1001", NOW, seed.event(project))
    assert await storage.prompts.mark_unreachable(BOT + 1, "1001", NOW) == []
    assert await storage.prompts.mark_unreachable(BOT, "1001", opened.expires_at) == []
    marked = await asyncio.gather(
        *(each.prompts.mark_unreachable(BOT, "1001", NOW) for each in (storage, other_node) * 2)
    )
    assert sorted(key for keys in marked for key in keys) == sorted([opened.key, choosing.key])
    assert await hints(storage, opened, choosing, other) == ["unreachable", "unreachable", "opened"]
    assert await storage.prompts.record_prompt(prompt_of(opened)) == "unreachable"


async def test_mark_reachable_restores_the_hints(storage: Storage, seed: Seed) -> None:
    """Each hint is restored once, as it was before the block.

    Decided sessions stay decided; an undelivered prompt waits.
    """
    project = await seed.project()
    opened, asked, decided, undelivered = [await seed.opened(project) for _ in range(4)]
    await storage.sessions.set_hint(asked.key, "phone_asked")
    for each in (opened, asked, decided, undelivered):
        await storage.prompts.record_prompt(prompt_of(each, None if each is undelivered else 5))
    assert await storage.prompts.mark_reachable(BOT, "1001", NOW) == []
    assert len(await storage.prompts.mark_unreachable(BOT, "1001", NOW)) == 4
    await storage.sessions.withdraw_session(decided.key, NOW)
    restored = await storage.prompts.mark_reachable(BOT, "1001", NOW)
    expected = [(opened.key, "opened"), (asked.key, "phone_asked"), (undelivered.key, "waiting")]
    assert sorted(restored) == sorted(expected)
    assert await storage.prompts.mark_reachable(BOT, "1001", NOW) == []
    assert await hints(storage, opened, asked) == ["opened", "phone_asked"]


async def withdrawn(storage: Storage, seed: Seed, count: int) -> list[NewSession]:
    project = await seed.project()
    sessions = [await seed.opened(project) for _ in range(count)]
    for each in sessions:
        await storage.prompts.record_prompt(prompt_of(each))
        assert await storage.sessions.withdraw_session(each.key, NOW)
    return sessions


async def test_claim_ended_prompts_gives_each_to_one(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Of many claims on two nodes, each prompt goes to one; an expired claim can be repeated.

    Other prompts are not claimed.
    """
    await storage.prompts.record_prompt(prompt_of(await seed.opened(await seed.project())))
    sessions = await withdrawn(storage, seed, 12)
    stores = (storage, other_node) * 3
    claimed = await asyncio.gather(*(each.prompts.claim_ended_prompts(NOW, LEASE, 3) for each in stores))
    for _ in range(4):  # PostgreSQL skips what another claim is just locking.
        claimed.append(await storage.prompts.claim_ended_prompts(NOW, LEASE, 3))
    keys = [each.prompt.key for found in claimed for each in found]
    assert sorted(keys) == sorted(each.key for each in sessions)
    assert await storage.prompts.claim_ended_prompts(LEASE - 1, LEASE + 1, 100) == []
    assert len(await other_node.prompts.claim_ended_prompts(LEASE, LEASE + 1, 100)) == 12


async def test_renew_prompt_begins_once(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Of taps on two nodes, one starts a renewal.

    It may repeat until the message is recorded, and renewals are limited.
    """
    new = await seed.opened(await seed.project())
    nodes = (storage, other_node)

    async def renew(tap: str, at: int, node: Storage = storage) -> Renewal:
        return await node.prompts.renew_prompt(prompt_of(new, None), tap, NOW + at, limit=3, pause=10)

    # Before the first message is recorded, and afterwards.
    for number, earlier in enumerate((None, 5)):
        at = 100 * number
        found = await asyncio.gather(*(renew(f"{number} {each}", at, nodes[each % 2]) for each in range(8)))
        begun = [each for each, renewal in enumerate(found) if renewal.state == "begun"]
        assert len(begun) == 1
        assert found[begun[0]].message_id == earlier
        assert {renewal.state for renewal in found} == {"begun", "sent"}
        tap = f"{number} {begun[0]}"
        assert await renew(tap, at + 50) == Renewal("begun")
        await storage.prompts.record_prompt(prompt_of(new, 5 + number))
        assert await renew(tap, at + 60, other_node) == Renewal("sent", 5 + number)
        assert await renew("another", at + 9) == Renewal("sent", 5 + number)
    assert (await renew("third", 1_000)).state == "begun"
    assert (await renew("fourth", 2_000)).state == "refused"
    other = await seed.opened(await seed.project())
    stranger = prompt_of(other, None, "1002")
    assert await storage.prompts.renew_prompt(stranger, "tap", NOW, 3, 10) == Renewal("refused")
    assert await storage.sessions.withdraw_session(other.key, NOW)
    assert await storage.prompts.renew_prompt(prompt_of(other, None), "tap", NOW, 3, 10) == Renewal("refused")


async def test_find_message_of_one_bot_and_account(storage: Storage, seed: Seed) -> None:
    """Message ids are separate for each bot; without a recorded message, nothing is found."""
    new = await seed.opened(await seed.project())
    assert await storage.prompts.find_message(new.key, BOT, "1001") is None
    await storage.prompts.record_prompt(prompt_of(new))
    asked = ((BOT, "1001"), (BOT + 1, "1001"), (BOT, "1002"))
    assert [await storage.prompts.find_message(new.key, *each) for each in asked] == [5, None, None]


async def test_finish_prompt_needs_the_claim(storage: Storage, seed: Seed) -> None:
    """A process that was suspended beyond its claim changes nothing."""
    await withdrawn(storage, seed, 1)
    (lost,) = await storage.prompts.claim_ended_prompts(NOW, NOW + 1, 1)
    (held,) = await storage.prompts.claim_ended_prompts(NOW + 1, LEASE, 1)
    assert not await storage.prompts.finish_prompt(lost)
    assert [await storage.prompts.finish_prompt(held) for _ in range(2)] == [True, False]
    assert await storage.prompts.claim_ended_prompts(LEASE, LEASE + 1, 1) == []


async def test_postpone_prompt_lets_it_be_claimed_later(storage: Storage, seed: Seed) -> None:
    """Any node can claim the prompt exactly from the given time on."""
    await withdrawn(storage, seed, 1)
    (held,) = await storage.prompts.claim_ended_prompts(NOW, LEASE, 1)
    assert await storage.prompts.postpone_prompt(held, NOW + 9)
    assert not await storage.prompts.postpone_prompt(held, NOW)
    assert await storage.prompts.claim_ended_prompts(NOW + 8, LEASE, 1) == []
    assert len(await storage.prompts.claim_ended_prompts(NOW + 9, LEASE, 1)) == 1


async def test_the_prompt_of_a_session_that_awaits_its_return_stays(storage: Storage, seed: Seed) -> None:
    """Confirm postpones the session's expiry. Its application may cancel it until then, and the message is edited."""
    project = await seed.project()
    await seed.update(project, same_device="require", allowed_origins=("https://a.example",))
    new = await seed.opened(project, code_challenge=b"c" * 32, return_url="https://a.example/")
    await storage.prompts.record_prompt(prompt_of(new))
    confirmed_at = new.expires_at - 1
    assert await storage.sessions.await_return(new.key, seed.identity("1001"), confirmed_at, b"c" * 32)
    late = confirmed_at + RETURN_LIFETIME - 1
    assert await storage.prompts.purge_prompts(late, 10) == 0
    assert await storage.sessions.withdraw_session(new.key, late)
    assert len(await storage.prompts.claim_ended_prompts(late, late + MINUTE, 10)) == 1


async def test_purge_prompts_in_bounded_steps(storage: Storage, seed: Seed) -> None:
    """A prompt goes when its session has expired; one that must still be edited goes an hour after its expiry."""
    await withdrawn(storage, seed, 3)
    opened = [await seed.opened(await seed.project()) for _ in range(5)]
    for each in opened:
        await storage.prompts.record_prompt(prompt_of(each))
    end = opened[0].expires_at
    late = end + RETURN_LIFETIME
    assert await storage.prompts.purge_prompts(late - 1, 10) == 0
    assert [await storage.prompts.purge_prompts(late, 3) for _ in range(3)] == [3, 2, 0]
    assert await storage.prompts.purge_prompts(end + HOUR - 1, 10) == 0
    assert await storage.prompts.purge_prompts(end + HOUR, 10) == 3
