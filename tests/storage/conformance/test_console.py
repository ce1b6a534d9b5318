"""Conformance: the messenger accounts that sign in to the console, and its sessions."""

import asyncio
import itertools
from dataclasses import replace

import pytest
from tests.databases import NOW
from tests.storage.seed import Seed

from taproof.core.accounts import AccessToken, ConsoleSession, Developer
from taproof.core.clock import HOUR
from taproof.storage.protocol import Storage
from taproof.storage.queries.credentials import CONSOLE_SESSIONS_KEPT

IDLE = 12 * HOUR
IDLE_SINCE = NOW - IDLE
OWNER = Developer("dev_owner", "Ada@Example.com", "pro", NOW, is_owner=True, messenger_id="1001", messenger_name="Ада")


async def test_create_developer_keeps_every_field(storage: Storage, seed: Seed) -> None:
    """Every read of a developer has every field: by address, account, access token, console session and in the list."""
    assert await storage.developers.create_developer(OWNER)
    token, token_hash = await seed.access_token(OWNER)
    session, cookie_hash = await seed.console_session(OWNER)
    assert await storage.developers.read_developer("ada@example.com") == OWNER
    assert await storage.developers.list_developers() == [OWNER]
    assert await storage.credentials.read_access_token(token_hash) == (token, OWNER)
    assert await storage.credentials.read_console_session(cookie_hash, NOW, IDLE_SINCE) == (session, OWNER)


async def test_create_developer_refuses_a_taken_messenger_account(storage: Storage) -> None:
    """A messenger account belongs to at most one developer; any number of developers have none."""
    assert await storage.developers.create_developer(OWNER)
    with pytest.raises(Exception, match=r"(?i)unique|constraint"):
        await storage.developers.create_developer(replace(OWNER, id="dev_2", email="bob@example.com"))
    for number in range(2):
        assert await storage.developers.create_developer(
            Developer(f"dev_{number}", f"{number}@example.com", "free", NOW)
        )


async def test_read_developer_by_messenger_id_compares_exactly(storage: Storage, seed: Seed) -> None:
    """No messenger account finds a developer without one."""
    assert await storage.developers.create_developer(OWNER)
    await seed.developer()
    assert await storage.developers.read_developer_by_messenger_id("1001") == OWNER
    for unknown in ("100", "10011", "", "1001 ", "1001\0", "None"):
        assert await storage.developers.read_developer_by_messenger_id(unknown) is None


async def test_create_console_session_keeps_every_field(storage: Storage, seed: Seed) -> None:
    """Fields are kept with and without an access token. A cookie belongs to one session."""
    ada = await seed.developer()
    token, _ = await seed.access_token(ada)
    for given in (None, token):
        session, cookie_hash = await seed.console_session(ada, NOW + 2, NOW + 1, given)
        assert await storage.credentials.read_console_session(cookie_hash, NOW + 3, IDLE_SINCE) == (session, ada)
        with pytest.raises(Exception, match=r"(?i)unique|constraint"):
            await storage.credentials.create_console_session(replace(session, id="cses_other"), cookie_hash)


async def test_read_console_session_ends_when_it_was_not_seen(storage: Storage, seed: Seed) -> None:
    """The time counts to the millisecond. An unknown cookie finds nothing."""
    ada, bob = await seed.developer(), await seed.developer()
    of_ada, ada_hash = await seed.console_session(ada)
    of_bob, bob_hash = await seed.console_session(bob)
    assert await storage.credentials.read_console_session(ada_hash, NOW, NOW - 1) == (of_ada, ada)
    assert await storage.credentials.read_console_session(bob_hash, NOW, NOW - 1) == (of_bob, bob)
    assert await storage.credentials.read_console_session(ada_hash, NOW, NOW) is None
    assert await storage.credentials.read_console_session(b"?" * 32, NOW, 0) is None


async def with_token(storage: Storage, seed: Seed, expires_at: int | None) -> tuple[AccessToken, Developer, bytes]:
    """Return an access token, its developer, and the hash of a console session that was signed in to with it."""
    ada = await seed.developer()
    token, _ = await seed.access_token(ada, expires_at=expires_at)
    return token, ada, (await seed.console_session(ada, token=token))[1]


async def test_read_console_session_ends_with_its_access_token(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """It ends on every node once the token is revoked or has expired. Other tokens do not matter."""
    token, ada, revoked_hash = await with_token(storage, seed, None)
    _, _, expiring_hash = await with_token(storage, seed, NOW + 5)
    _, by_messenger = await seed.console_session(ada)
    await seed.access_token(ada)

    async def living(now: int) -> list[bool]:
        hashes = (revoked_hash, expiring_hash, by_messenger)
        return [await other_node.credentials.read_console_session(each, now, IDLE_SINCE) is not None for each in hashes]

    assert await living(NOW + 4) == [True, True, True]
    assert await living(NOW + 5) == [True, False, True]
    assert await storage.credentials.delete_access_token(ada.id, token.id)
    assert await living(NOW + 4) == [False, True, True]


async def test_read_console_session_needs_a_token_of_its_own_developer(storage: Storage, seed: Seed) -> None:
    """A session that names another developer's access token is invalid."""
    ada, bob = await seed.developer(), await seed.developer()
    token, _ = await seed.access_token(bob)
    _, cookie_hash = await seed.console_session(ada, token=token)
    assert await storage.credentials.read_console_session(cookie_hash, NOW, IDLE_SINCE) is None


async def test_touch_console_session_never_goes_back(storage: Storage, seed: Seed) -> None:
    """Two nodes may report out of order: the latest time is kept. An ended session does not come back."""
    ada = await seed.developer()
    session, cookie_hash = await seed.console_session(ada)
    other, other_hash = await seed.console_session(ada)
    for now, kept in ((NOW + 50, NOW + 50), (NOW + 40, NOW + 50), (NOW + 60, NOW + 60)):
        await storage.credentials.touch_console_session(session.id, now)
        expected = (replace(session, last_seen_at=kept), ada)
        assert await storage.credentials.read_console_session(cookie_hash, now, IDLE_SINCE) == expected
    assert await storage.credentials.read_console_session(other_hash, NOW, IDLE_SINCE) == (other, ada)
    assert await storage.credentials.delete_console_session(ada.id, session.id)
    await storage.credentials.touch_console_session(session.id, NOW + 70)
    assert await storage.credentials.read_console_session(cookie_hash, NOW + 70, IDLE_SINCE) is None


async def test_list_console_sessions_is_newest_first_and_the_developers_own(storage: Storage, seed: Seed) -> None:
    """Equal times are ordered by id. Exactly the sessions that can be read are listed."""
    token, ada, _ = await with_token(storage, seed, NOW + 5)
    by_token = await storage.credentials.list_console_sessions(ada.id, NOW, IDLE_SINCE)
    assert [each.access_token_id for each in by_token] == [token.id]
    first, _ = await seed.console_session(ada)
    second, _ = await seed.console_session(ada)
    late, _ = await seed.console_session(ada, created_at=NOW + 1)
    idle, _ = await seed.console_session(ada, seen_at=IDLE_SINCE, created_at=IDLE_SINCE)
    of_bob, _ = await seed.console_session(bob := await seed.developer())
    living = [late, second, first]
    assert await storage.credentials.list_console_sessions(ada.id, NOW + 5, IDLE_SINCE) == living
    assert await storage.credentials.list_console_sessions(ada.id, NOW + 4, IDLE_SINCE) == [*living, *by_token]
    assert await storage.credentials.list_console_sessions(ada.id, NOW + 5, IDLE_SINCE - 1) == [*living, idle]
    assert await storage.credentials.list_console_sessions(bob.id, NOW, IDLE_SINCE) == [of_bob]
    assert await storage.credentials.list_console_sessions("dev_unknown", NOW, IDLE_SINCE) == []


async def test_delete_console_session_is_for_its_developer(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """The session ends on every node immediately, and can be ended once.

    Other developers are in `test_audit.scenes`.
    """
    ada = await seed.developer()
    session, cookie_hash = await seed.console_session(ada)
    other, _ = await seed.console_session(ada)
    assert await storage.credentials.delete_console_session(ada.id, session.id)
    assert await other_node.credentials.read_console_session(cookie_hash, NOW, IDLE_SINCE) is None
    assert not await other_node.credentials.delete_console_session(ada.id, session.id)
    assert await storage.credentials.list_console_sessions(ada.id, NOW, IDLE_SINCE) == [other]


async def test_delete_console_sessions_signs_out_everywhere(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """All sessions of this developer end on every node at once, and no others."""
    ada, bob = await seed.developer(), await seed.developer()
    hashes = [(await seed.console_session(ada))[1] for _ in range(3)]
    of_bob, _ = await seed.console_session(bob)
    assert await storage.credentials.delete_console_sessions(ada.id) == 3
    assert [await other_node.credentials.read_console_session(each, NOW, IDLE_SINCE) for each in hashes] == [None] * 3
    assert await storage.credentials.delete_console_sessions(ada.id) == 0
    assert await storage.credentials.list_console_sessions(bob.id, NOW, IDLE_SINCE) == [of_bob]


async def test_create_console_session_ends_the_one_seen_longest_ago(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """The number of a developer's sessions is bounded. The new session and those of others stay."""
    ada, bob = await seed.developer(), await seed.developer()
    of_bob, _ = await seed.console_session(bob, seen_at=NOW - 1)
    made = [(await seed.console_session(ada, seen_at=NOW + number))[0] for number in range(CONSOLE_SESSIONS_KEPT)]
    assert len(await storage.credentials.list_console_sessions(ada.id, NOW, 0)) == CONSOLE_SESSIONS_KEPT
    await storage.credentials.touch_console_session(made[0].id, NOW + 99)
    # The clock of the node that made it may be behind.
    newest, _ = await seed.console_session(ada, seen_at=NOW - 5)
    left = {each.id for each in await other_node.credentials.list_console_sessions(ada.id, NOW, 0)}
    assert left == {newest.id, *(each.id for each in made)} - {made[1].id}
    assert await storage.credentials.list_console_sessions(bob.id, NOW, 0) == [of_bob]


async def test_create_console_session_on_two_nodes_keeps_the_limit(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """Concurrent sign-ins are counted one after the other."""
    ada = await seed.developer()
    for _ in range(CONSOLE_SESSIONS_KEPT - 2):
        await seed.console_session(ada)
    new = [ConsoleSession(seed.name("cses"), ada.id, NOW, NOW, None, "", "") for _ in range(8)]
    nodes = itertools.cycle((storage, other_node))
    await asyncio.gather(*(next(nodes).credentials.create_console_session(each, each.id.encode()) for each in new))
    assert len(await storage.credentials.list_console_sessions(ada.id, NOW, 0)) == CONSOLE_SESSIONS_KEPT


async def test_purge_console_access_erases_what_nobody_can_use(storage: Storage, seed: Seed) -> None:
    """Idle sessions and expired invitations of both kinds, to the millisecond, a few of each at a time."""
    ada = await seed.developer()
    kept_session, _ = await seed.console_session(ada, seen_at=IDLE_SINCE + 1)
    _, idle_hash = await seed.console_session(ada, seen_at=IDLE_SINCE)
    kept, kept_hash = await seed.invitation("a@example.com", expires_at=NOW + 1)
    _, outdated_hash = await seed.invitation("b@example.com", expires_at=NOW)
    _, first_hash = await seed.invitation(expires_at=NOW)
    assert [await storage.credentials.purge_console_access(NOW, IDLE_SINCE, 1) for _ in range(3)] == [2, 1, 0]
    assert await storage.credentials.read_console_session(idle_hash, NOW, 0) is None
    assert await storage.developers.read_invitation(outdated_hash, 0) is None
    assert await storage.developers.read_invitation(first_hash, 0) is None
    assert await storage.credentials.list_console_sessions(ada.id, NOW, 0) == [kept_session]
    assert await storage.developers.read_invitation(kept_hash, 0) == kept
