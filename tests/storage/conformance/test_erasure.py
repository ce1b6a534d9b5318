"""Conformance: the erasure of one user affects no other user."""

import asyncio
import itertools
from collections.abc import Collection, Sequence

from tests.databases import NOW, expired_event
from tests.storage.seed import Seed, present, run

from taproof.core.accounts import AuditEntry
from taproof.core.clock import DAY, MINUTE, day_number
from taproof.core.counts import DailyUsers
from taproof.core.prompts import ShownPrompt
from taproof.core.return_code import RETURN_LIFETIME
from taproof.core.sessions import NewSession
from taproof.storage.protocol import Storage
from taproof.storage.queries.rights import ADD_MEMBER

URL = "https://example.com/hook"
TODAY = day_number(NOW)
_NUMBERS = itertools.count()


async def erase_all(storage: Storage, user: str, developer_id: str | None = None, limit: int = 3) -> int:
    """Erase as the service does; return the number of rows. Each call has its own replacement name."""
    erased, project = 0, ""
    while found := await storage.erasure.find_project(user, developer_id, project):
        project = found
        while count := await storage.erasure.erase_sessions(user, project, developer_id, limit, describe=lambda _: []):
            erased += count
    while count := await storage.erasure.erase_person(
        user, developer_id, f"gone_{next(_NUMBERS)}", limit, NOW, describe=lambda _: []
    ):
        erased += count
    return erased


async def kept(storage: Storage, sessions: Sequence[NewSession]) -> list[bool]:
    return [await storage.sessions.read_session(session.key) is not None for session in sessions]


async def test_erase_user_takes_sign_ins_with_all_that_hangs_on_them(storage: Storage, seed: Seed) -> None:
    """The user's sessions in this developer's projects are erased with their events, due or not, and attempts.

    The counts stay.
    """
    ada, bob = await seed.developer(), await seed.developer()
    shop, game, others = await seed.project(ada, webhook_url=URL), await seed.project(ada), await seed.project(bob)
    mine = [await seed.confirmed(project) for project in (shop, shop, game)]
    stranger, elsewhere = await seed.confirmed(shop, "2002"), await seed.confirmed(others)
    (delivery,) = await storage.deliveries.claim_deliveries(NOW, NOW + MINUTE, 1)
    await seed.attempted(delivery, "delivered")
    before = await storage.counts.read_daily_counts([shop.id, game.id], 0)
    erased = await erase_all(storage, "1001", ada.id)
    assert erased == 3 + 2  # Three sessions, and the person in two projects.
    assert await kept(storage, mine) == [False] * 3
    assert await kept(storage, [stranger, elsewhere]) == [True, True]
    due = await storage.deliveries.list_deliveries(shop.id, None, None, None, 9)
    assert [record.session_id for record in due] == [stranger.id]
    assert await storage.deliveries.read_delivery(ada.id, delivery.event.id) is None
    assert await storage.counts.read_daily_counts([shop.id, game.id], 0) == before
    assert await erase_all(storage, "1001", ada.id) == 0
    assert await erase_all(storage, "1001") == 2
    assert await kept(storage, [stranger, elsewhere]) == [True, False]


async def test_no_request_for_a_phone_number_outlives_its_erased_session(storage: Storage, seed: Seed) -> None:
    """The user may tap Confirm during the erasure: the request is erased with the session, or never recorded."""
    shop = await seed.project()
    opened = [await seed.opened(shop) for _ in range(10)]
    asked = (seed.asked_for_phone(session, "1001") for session in opened)
    await asyncio.gather(erase_all(storage, "1001", shop.developer_id), *asked)
    assert await kept(storage, opened) == [False] * len(opened)
    await seed.asked_for_phone(opened[0], "1001")
    assert await storage.users.find_phone_request("1001", 0) is None


async def test_erase_user_keeps_distinct_users_exact(storage: Storage, seed: Seed) -> None:
    """The user still counts as one person on every day and in every project, even after a project is deleted."""
    ada = await seed.developer()
    shop, game = await seed.project(ada), await seed.project(ada)
    for day, project in itertools.product(range(4), (shop, game)):
        await seed.confirmed(project, at=NOW - day * DAY)
    await seed.confirmed(shop, "2002", at=NOW - DAY)
    before = await storage.counts.read_daily_users(ada.id, 0)
    assert await erase_all(storage, "1001") == 8 + 8
    assert await storage.counts.read_daily_users(ada.id, 0) == before
    assert await storage.projects.delete_project(ada.id, shop.id)
    await seed.purge_projects(2)
    counts = {
        day: (unique, latest) for day, unique, latest in map(_figures, await storage.counts.read_daily_users(ada.id, 0))
    }
    assert counts == {TODAY: (1, 1), TODAY - 1: (1, 0), TODAY - 2: (1, 0), TODAY - 3: (1, 0)}


def _figures(users: DailyUsers) -> tuple[int, int, int]:
    return users.day, users.unique_users, users.latest_users


async def test_erase_user_counts_somebody_who_comes_again_as_new(storage: Storage, seed: Seed) -> None:
    """No data of the user remains, so a user who signs in again counts as new."""
    shop = await seed.project()
    await seed.confirmed(shop)
    await erase_all(storage, "1001")
    await seed.confirmed(shop)
    (users,) = await storage.counts.read_daily_users(shop.developer_id, 0)
    assert (users.unique_users, users.latest_users) == (2, 2)


async def test_erase_user_of_all_projects_ends_blocks_and_requests(storage: Storage, seed: Seed) -> None:
    """Erasing for one developer keeps the blocks, which belong to the user. Blocks of others stay in any case."""
    shop, game = await seed.project(), await seed.project()
    for user, project in itertools.product(("1001", "2002"), (shop, game)):
        assert await storage.users.block_project(user, project.id, NOW)
    opened, others = await seed.opened(shop), await seed.opened(shop, "2002")
    await seed.asked_for_phone(opened, "1001")
    await seed.asked_for_phone(others, "2002")
    for session, user in ((opened, "1001"), (others, "2002")):
        await storage.prompts.record_prompt(ShownPrompt(session.key, 0, user, 5, "en"))
    await erase_all(storage, "1001", shop.developer_id)
    assert len(await storage.users.list_blocks("1001", 9)) == 2
    assert await storage.users.read_phone_request(opened.key) is None
    await erase_all(storage, "1001", limit=1)
    assert (await storage.users.list_blocks("1001", 9), len(await storage.users.list_blocks("2002", 9))) == ([], 2)
    assert await storage.users.find_phone_request("2002", 0) is not None
    assert await storage.prompts.mark_unreachable(0, "2002", NOW) == [others.key]
    assert await storage.prompts.purge_prompts(opened.expires_at + RETURN_LIFETIME, 9) == 1


async def test_erase_person_adds_an_entry_when_something_went(storage: Storage, seed: Seed) -> None:
    """The entry is added in the transaction of the erasure. A call that finds nothing adds none."""
    shop = await seed.project()
    developer_id = shop.developer_id
    await seed.confirmed(shop)
    entries = [seed.entry(developer_id, "user.erased", NOW + number) for number in range(2)]
    described: list[list[str]] = []

    def describe(project_ids: Collection[str]) -> list[AuditEntry]:
        described.append(list(project_ids))
        return [entries[len(described) - 1]]

    erasure = storage.erasure
    for user, of in (("9", developer_id), ("\0", "\0"), ("1001", "dev_none")):
        assert not await erasure.erase_sessions(user, shop.id, of, 9, describe=describe)
        assert not await erasure.erase_person(user, of, "gone_1", 9, NOW, describe=describe)
    assert await erasure.erase_sessions("1001", shop.id, developer_id, 9, describe=describe) == 1
    assert await erasure.erase_person("1001", developer_id, "gone_1", 9, NOW, describe=describe) == 1
    assert described == [[shop.id], [shop.id]]
    assert await storage.audit.list_audit_entries(developer_id, None, 9) == entries[::-1]


async def test_erase_sessions_takes_what_was_never_confirmed(storage: Storage, seed: Seed) -> None:
    """Pending, cancelled and expired sessions that the account opened, on any page, with their events."""
    ada = await seed.developer()
    shop = await seed.project(ada, webhook_url=URL)
    mine: list[NewSession] = []
    others: list[NewSession] = []
    for user, found in (("1001", mine), ("2002", others)):
        cancelled = await seed.opened(shop, user)
        assert await storage.sessions.cancel_session(cancelled.key, user, NOW, seed.event(shop, "auth.cancelled"))
        found += [cancelled, await seed.opened(shop, user, NOW - DAY), await seed.opened(shop, user, NOW - 40 * MINUTE)]
    await storage.sessions.expire_sessions(NOW, 9, expired_event)
    for user, found in (("1001", mine), ("2002", others)):
        found.append(await seed.opened(shop, user))
    others.append(await seed.session(shop))
    before = await storage.counts.read_daily_counts([shop.id], 0)
    assert await storage.erasure.erase_sessions("1001", shop.id, ada.id, 1, describe=lambda _: []) == 1
    assert await erase_all(storage, "1001", ada.id, limit=2) == 3
    assert await kept(storage, mine) == [False] * 4
    assert await kept(storage, others) == [True] * 5
    assert [each.session_id for each in await storage.deliveries.list_deliveries(shop.id, None, None, None, 9)] == [
        others[0].id
    ]
    assert await storage.counts.read_daily_counts([shop.id], 0) == before


async def test_find_writable_leaves_out_viewers(storage: Storage, seed: Seed) -> None:
    """The result has the projects that the developer owns or may change as a member."""
    own, shared, seen = [await seed.project() for _ in range(3)]
    for project, role in ((shared, "developer"), (seen, "viewer")):
        await run(storage, ADD_MEMBER, project.id, own.developer_id, role, NOW, "")
    assert await storage.erasure.find_writable(own.developer_id) == {own.id, shared.id}
    assert await storage.erasure.find_writable("dev_none") == set()


async def test_find_project_in_the_order_of_ids(storage: Storage, seed: Seed) -> None:
    """Each project with sessions of the account comes once: of all developers, or those that one may change."""
    ada, bob = await seed.developer(), await seed.developer()
    shop, game, seen, others, empty = [await seed.project(each) for each in (ada, ada, bob, bob, ada)]
    await run(storage, ADD_MEMBER, seen.id, ada.id, "viewer", NOW, "")
    for project, day in ((shop, 0), (shop, 3), (game, 1), (seen, 0), (others, 1)):
        await seed.opened(project, at=NOW - day * DAY)
    await seed.opened(empty, "2002")

    async def found(user: str, developer_id: str | None) -> list[str]:
        ids = [""]
        while project_id := await storage.erasure.find_project(user, developer_id, ids[-1]):
            ids.append(project_id)
        return ids[1:]

    assert await found("1001", None) == sorted(each.id for each in (shop, game, seen, others))
    assert await found("1001", ada.id) == sorted([shop.id, game.id])
    for user, developer_id in (("3003", None), ("3003", ada.id), ("\0", None), ("1001", "dev_\0")):
        assert await found(user, developer_id) == []


async def test_erase_user_and_a_confirmation_at_the_same_instant(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """Each session is erased, or complete with its event and its user."""
    shop = await seed.project(webhook_url=URL)
    for turn in range(10):
        opened = [await seed.opened(shop, at=NOW + turn) for _ in range(6)]

        async def confirm(session: NewSession, turn: int = turn) -> object:
            await asyncio.sleep(0)
            now = NOW + turn
            event = seed.event(shop, at=now)
            return await other_node.sessions.confirm_session(session.key, seed.identity("1001"), now, event)

        results = await asyncio.gather(erase_all(storage, "1001"), *map(confirm, opened))
        left = [session for session in opened if await storage.sessions.read_session(session.key) is not None]
        found = [await storage.deliveries.find_deliveries(shop.id, NOW + turn, session.id) for session in opened]
        assert [len(each) for each in found] == [int(session in left) for session in opened]
        assert not [each for each, was in zip(opened, results[1:], strict=True) if each in left and not was]
        # Who is left is known as a person still: erasing finds each session, and the person once.
        assert await erase_all(storage, "1001") == len(left) + bool(left)
    counts = present(await storage.projects.read_project(shop.id))
    assert counts.sessions_count == 60


async def test_erase_sessions_by_two_nodes_at_once(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Each session is erased once, without a deadlock."""
    shop = await seed.project(webhook_url=URL)
    sessions = [await seed.opened(shop, at=NOW + number) for number in range(20)]
    sessions += [await seed.confirmed(shop, at=NOW + number) for number in range(20)]
    erased = await asyncio.gather(erase_all(storage, "1001", limit=4), erase_all(other_node, "1001", limit=4))
    assert sum(erased) == 41
    assert not any(await kept(storage, sessions))
