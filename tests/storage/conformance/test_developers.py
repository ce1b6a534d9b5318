"""Conformance: the store itself, its marks, developers and access tokens."""

import asyncio
import hashlib
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import pytest
from tests.databases import OpenStore
from tests.storage.seed import Seed, at_once, present

from taproof.core.accounts import AccessToken, Developer
from taproof.core.deliveries import PassedOver
from taproof.core.errors import StoreUnavailable
from taproof.core.page_cursor import PageCursor
from taproof.storage.protocol import Storage
from taproof.storage.queries.credentials import EXPIRED_TOKENS_KEPT


async def test_ping_answers_while_the_store_is_open(open_store: OpenStore) -> None:
    """A readiness check can tell whether the store responds."""
    store = await open_store()
    await store.ping()
    await store.close()
    with pytest.raises(StoreUnavailable):
        await store.ping()


async def test_close_finishes_what_was_asked_before(open_store: OpenStore) -> None:
    """Writes in progress finish first; later calls get StoreUnavailable."""
    store = await open_store()
    writes = [asyncio.create_task(store.metadata.claim_mark(f"mark {number}", b"x")) for number in range(60)]
    await asyncio.sleep(0)
    await store.close()
    assert await asyncio.gather(*writes) == [b"x"] * 60
    with pytest.raises(StoreUnavailable):
        await store.metadata.claim_mark("late", b"x")
    with pytest.raises(StoreUnavailable):
        await store.metadata.read_mark("mark 0")
    again = await open_store()
    assert [await again.metadata.read_mark(f"mark {number}") for number in range(60)] == [b"x"] * 60
    await again.close()


async def test_read_mark_gives_none_for_an_unknown_name(storage: Storage) -> None:
    """Names are compared exactly, and an unknown one has no mark."""
    await storage.metadata.claim_mark("mode", b"real")
    assert await storage.metadata.read_mark("mode") == b"real"
    assert await storage.metadata.read_mark("Mode") is None


async def test_set_mark_replaces_the_expected_value(storage: Storage) -> None:
    """With `instead_of`, a value that another node has written in the meantime stays."""
    assert await storage.metadata.set_mark("bot", b"1")
    assert await storage.metadata.set_mark("bot", b"2")
    assert not await storage.metadata.set_mark("bot", b"3", instead_of=b"1")
    assert await storage.metadata.set_mark("bot", b"4", instead_of=b"2")
    assert await storage.metadata.read_mark("bot") == b"4"


async def test_claim_mark_keeps_the_first_value(storage: Storage, other_node: Storage) -> None:
    """If two nodes start at once, both use the value of the first."""
    kept = await at_once(16, lambda node, each: node.metadata.claim_mark("key", b"%d" % each), storage, other_node)
    assert len(set(kept)) == 1
    assert await other_node.metadata.read_mark("key") == kept[0]


async def test_text_with_a_nul_finds_nothing(storage: Storage, seed: Seed) -> None:
    """PostgreSQL refuses such text; callers see the same as on SQLite. For audited methods see `test_audit.scenes`."""
    project, nul = await seed.project(webhook_url="https://example.com/"), "x\0"
    found = [
        await storage.projects.read_project(nul),
        await storage.projects.read_webhook_secrets(nul),
        await storage.projects.rotate_webhook_secret(project.developer_id, nul, b"\0", seed.now, seed.now + 1),
        await storage.projects.promote_webhook_secret(project.developer_id, nul, seed.now),
        await storage.projects.regenerate_secrets(project.developer_id, nul, b"h", "p", b"s"),
        await storage.developers.read_developer("ada\0@example.com"),
        await storage.credentials.list_console_sessions(nul, seed.now, 0),
        await storage.credentials.delete_console_sessions(nul),
        await storage.audit.list_audit_entries(nul, None, 9),
        await storage.sessions.list_sessions([nul, project.id], None, PageCursor(seed.now, "\0"), 5, seed.now),
        await storage.counts.read_daily_counts([nul], 0),
    ]
    assert not any(found)
    await storage.credentials.touch_console_session(nul, seed.now)
    event = await seed.due_event(project)
    (delivery,) = await storage.deliveries.claim_deliveries(seed.now, seed.now + 1, 5, PassedOver([nul]))
    assert delivery.event == event


async def test_create_developer_refuses_a_taken_address(storage: Storage, seed: Seed) -> None:
    """Two spellings of one address are the same, even for concurrent calls."""
    emails = ("ada@example.com", "Ada@Example.com", "ADA@EXAMPLE.COM")
    new = [Developer(seed.name("dev"), email, "free", seed.now) for email in emails]
    results = await at_once(3, lambda node, each: node.developers.create_developer(new[each]), storage)
    assert sorted(results) == [False, False, True]
    assert len(await storage.developers.list_developers()) == 1


async def test_read_developer_compares_without_case(storage: Storage, seed: Seed) -> None:
    """The address is returned as it was first written."""
    ada = await seed.developer("Ada@Example.com", plan="pro")
    assert await storage.developers.read_developer("aDA@exaMPLE.com") == ada
    assert await storage.developers.read_developer("ada@example.org") is None


async def test_list_developers_is_oldest_first(storage: Storage, seed: Seed) -> None:
    """Equal times are ordered by id, so that the order never changes."""
    late = await seed.developer(created_at=seed.now + 1)
    first = await seed.developer(created_at=seed.now)
    second = await seed.developer(created_at=seed.now)
    assert await storage.developers.list_developers() == [first, second, late]


async def test_create_access_token_keeps_all_of_it(storage: Storage, seed: Seed) -> None:
    """The expiry is kept; two tokens cannot share a hash."""
    ada = await seed.developer()
    token = AccessToken("tok_1", ada.id, "CI 🤖", "tap_aaaa…zzzz", seed.now, expires_at=seed.now + 5)
    await storage.credentials.create_access_token(token, b"h" * 32)
    assert await storage.credentials.read_access_token(b"h" * 32) == (token, ada)
    with pytest.raises(Exception, match=r"(?i)unique|constraint"):
        await storage.credentials.create_access_token(replace(token, id="tok_2"), b"h" * 32)


async def test_create_access_token_stops_at_the_limit(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """The limit holds for concurrent calls on two nodes. Expired tokens and those of others do not count."""
    ada, bob = await seed.developer(), await seed.developer()
    await seed.access_token(bob)

    def token(at: int = seed.now, expires_at: int | None = None) -> AccessToken:
        return AccessToken(seed.name("tok"), ada.id, "CI", "tap_a…z", at, expires_at=expires_at)

    expired, expiring = token(expires_at=seed.now), token(expires_at=seed.now + 1)
    for each in (expired, expiring):
        assert await storage.credentials.create_access_token(each, each.id.encode())

    def create(node: Storage, number: int) -> Coroutine[Any, Any, bool]:
        return node.credentials.create_access_token(token(), b"%d" % number, limit=4)

    made = await at_once(8, create, storage, other_node)
    assert sorted(made) == [False] * 5 + [True] * 3
    assert len(await storage.credentials.list_access_tokens(ada.id)) == 5
    late, later = token(seed.now + 1), token(seed.now + 1)
    assert await storage.credentials.create_access_token(late, late.id.encode(), limit=4)
    assert not await other_node.credentials.create_access_token(later, later.id.encode(), limit=4)
    assert await storage.credentials.read_access_token(later.id.encode()) is None
    assert await storage.credentials.create_access_token(later, later.id.encode())


async def test_create_access_token_erases_what_has_long_expired(storage: Storage, seed: Seed) -> None:
    """The number of expired tokens is bounded; all valid ones stay."""
    ada, bob = await seed.developer(), await seed.developer()

    async def add(developer: Developer, expires_at: int | None) -> str:
        return (await seed.access_token(developer, expires_at=expires_at))[0].id

    of_bob = await add(bob, seed.now - EXPIRED_TOKENS_KEPT)
    valid = [await add(ada, None), await add(ada, seed.now + 1)]
    expired = [await add(ada, seed.now - number) for number in range(EXPIRED_TOKENS_KEPT + 2)]
    valid.append(await add(ada, None))
    assert {each.id for each in await storage.credentials.list_access_tokens(ada.id)} == {
        *valid,
        *expired[:EXPIRED_TOKENS_KEPT],
    }
    assert [each.id for each in await storage.credentials.list_access_tokens(bob.id)] == [of_bob]


async def test_read_access_token_finds_by_hash_only(storage: Storage, seed: Seed) -> None:
    """A token is returned with its developer, even if it has expired. Unknown hashes find nothing."""
    ada, bob = await seed.developer(), await seed.developer()
    of_ada, of_bob = await seed.access_token(ada), await seed.access_token(bob)
    assert await storage.credentials.read_access_token(of_ada[1]) == (of_ada[0], ada)
    assert await storage.credentials.read_access_token(of_bob[1]) == (of_bob[0], bob)
    assert await storage.credentials.read_access_token(hashlib.sha256(b"?").digest()) is None


async def test_touch_access_token_never_goes_back(storage: Storage, seed: Seed) -> None:
    """Two nodes may report out of order: the latest use is kept."""
    token, token_hash = await seed.access_token(await seed.developer())
    for now, kept in ((50, 50), (40, 50), (60, 60)):
        await storage.credentials.touch_access_token(token.id, now)
        found = present(await storage.credentials.read_access_token(token_hash))
        assert found[0].last_used_at == kept
    await storage.credentials.touch_access_token("tok_unknown", 70)


async def test_list_access_tokens_is_newest_first_and_the_developers_own(storage: Storage, seed: Seed) -> None:
    """The list has no tokens of other developers."""
    ada, bob = await seed.developer(), await seed.developer()
    old, _ = await seed.access_token(ada, seed.now)
    new, _ = await seed.access_token(ada, seed.now + 1)
    of_bob, _ = await seed.access_token(bob)
    assert await storage.credentials.list_access_tokens(ada.id) == [new, old]
    assert await storage.credentials.list_access_tokens(bob.id) == [of_bob]
    assert await storage.credentials.list_access_tokens("dev_unknown") == []


async def test_delete_access_token_ends_it(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """The token ends on every node, and can be revoked once. Other developers are in `test_audit.scenes`."""
    ada = await seed.developer()
    token, token_hash = await seed.access_token(ada)
    assert await storage.credentials.delete_access_token(ada.id, token.id)
    assert await other_node.credentials.read_access_token(token_hash) is None
    assert not await storage.credentials.delete_access_token(ada.id, token.id)


async def test_describe_names_the_database(storage: Storage) -> None:
    """The version begins with a number, the schema is current, and the size is that of the file or the database."""
    facts = await storage.describe()
    assert facts.program in type(storage).__module__.replace("postgres", "postgresql")
    assert int(facts.version.split(".")[0]) >= 3
    assert facts.schema_version == 1
    assert facts.size > 100_000
