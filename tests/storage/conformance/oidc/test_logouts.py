"""Conformance: the clients that must be notified of a user's sign-out."""

from tests.databases import NOW
from tests.storage.conformance.oidc.test_grants import LOGOUT_URI, granted
from tests.storage.seed import Seed, at_once, present

from taproof.core.clock import HOUR, MINUTE
from taproof.core.oidc.clients import ClientChanges
from taproof.core.oidc.grants import Logout, LogoutFailure, NewGrant
from taproof.storage.protocol import Storage

LEASE = NOW + MINUTE


async def due(storage: Storage, seed: Seed, at: int = NOW) -> NewGrant:
    """Return a grant of whose end its client must be told."""
    new = await granted(storage, seed)
    assert await storage.grants.end_grant(new.id, at, "ended")
    return new


async def claimed(storage: Storage, seed: Seed) -> Logout:
    await due(storage, seed)
    (logout,) = await storage.logouts.claim_logouts(NOW, LEASE, 1)
    return logout


async def test_claim_logouts_leases_the_oldest(storage: Storage, seed: Seed) -> None:
    """A claim has everything that the sender needs; an expired lease can be claimed again."""
    late, early = await due(storage, seed, NOW - 1), await due(storage, seed, NOW - 2)
    await due(storage, seed, NOW + 1)
    client = present(await storage.oidc_clients.read_client(early.client_id))
    values = (early.client_id, early.project_id, "1001", 1, LEASE, LOGOUT_URI, client.developer_id)
    assert await storage.logouts.claim_logouts(NOW, LEASE, 1) == [Logout(early.id, *values)]
    assert [each.sid for each in await storage.logouts.claim_logouts(NOW, LEASE, 9)] == [late.id]
    assert await storage.logouts.claim_logouts(NOW, LEASE, 9) == []
    assert len(await storage.logouts.claim_logouts(LEASE, LEASE + 1, 9)) == 3


async def test_claim_logouts_passes_over_clients(storage: Storage, seed: Seed) -> None:
    """Their logouts stay due."""
    some = [await due(storage, seed, NOW - age) for age in (4, 3, 2, 1)]
    passed_over = {some[0].client_id, some[2].client_id}
    for left in ([some[1], some[3]], []):
        found = await storage.logouts.claim_logouts(NOW, LEASE, 9, passed_over)
        assert [each.sid for each in found] == [each.id for each in left]
    assert [each.sid for each in await storage.logouts.claim_logouts(NOW, LEASE, 9)] == [some[0].id, some[2].id]


async def test_claim_logouts_of_a_client_without_a_uri(storage: Storage, seed: Seed) -> None:
    """The sender learns that the client has no URI any more. No logouts are recorded from then on."""
    new = await granted(storage, seed)
    again = await granted(storage, seed)
    assert await storage.grants.end_grant(new.id, NOW, "ended")
    for each in (new, again):
        client = await storage.oidc_clients.read_client(each.client_id)
        assert client is not None
        owned = (client.developer_id, each.project_id, each.client_id)
        assert await storage.oidc_clients.update_client(*owned, ClientChanges(backchannel_logout_uri=""), NOW)
    assert await storage.grants.end_grant(again.id, NOW, "ended")
    assert [(each.sid, each.uri) for each in await storage.logouts.claim_logouts(NOW, LEASE, 9)] == [(new.id, "")]


async def test_claim_logouts_gives_each_to_one_node(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Of concurrent claims, each logout goes to one node."""
    made = sorted([(await due(storage, seed)).id for _ in range(6)])
    found = await at_once(8, lambda node, _: node.logouts.claim_logouts(NOW, LEASE, 2), storage, other_node)
    rest = await storage.logouts.claim_logouts(NOW, LEASE, 9)
    assert sorted(each.sid for some in (*found, rest) for each in some) == made


async def test_finish_logout_forgets_it(storage: Storage, seed: Seed) -> None:
    """A logout can be finished once, and only during the lease."""
    logout = await claimed(storage, seed)
    (again,) = await storage.logouts.claim_logouts(LEASE, LEASE + MINUTE, 1)
    assert not await storage.logouts.finish_logout(logout)
    assert await storage.logouts.finish_logout(again)
    assert not await storage.logouts.finish_logout(again)
    assert await storage.logouts.claim_logouts(NOW + HOUR, NOW + 2 * HOUR, 9) == []


async def test_retry_logout_until_the_last_attempt(storage: Storage, seed: Seed) -> None:
    """The logout is due again at the given time, and never after the last attempt."""
    logout = await claimed(storage, seed)
    assert await storage.logouts.retry_logout(logout, NOW + HOUR, "500", NOW + 1)
    assert not await storage.logouts.retry_logout(logout, NOW + HOUR, "500", NOW + 1)
    assert await storage.logouts.claim_logouts(NOW + HOUR - 1, NOW + 2 * HOUR, 9) == []
    (second,) = await storage.logouts.claim_logouts(NOW + HOUR, NOW + 2 * HOUR, 9)
    assert second.attempt == 2
    assert await storage.logouts.retry_logout(second, None, "timeout", NOW + HOUR)
    assert await storage.logouts.claim_logouts(NOW + 9 * HOUR, NOW + 10 * HOUR, 9) == []


async def test_read_logout_failure_is_the_last_one(storage: Storage, seed: Seed) -> None:
    """The failure is shown until the client was notified; each client has its own."""
    logout, failure = await claimed(storage, seed), storage.logouts.read_logout_failure
    assert await failure(logout.project_id, logout.client_id) is None
    await storage.logouts.retry_logout(logout, NOW + HOUR, "500", NOW + 1)
    assert await failure(logout.project_id, logout.client_id) == LogoutFailure(NOW + 1, "500", is_retried=True)
    assert await failure(logout.project_id, "oidc_other") is None
    (second,) = await storage.logouts.claim_logouts(NOW + HOUR, NOW + 2 * HOUR, 9)
    await storage.logouts.retry_logout(second, None, "timeout", NOW + HOUR)
    assert await failure(logout.project_id, logout.client_id) == LogoutFailure(NOW + HOUR, "timeout", is_retried=False)


async def test_purge_logouts_by_age(storage: Storage, seed: Seed) -> None:
    """Logouts recorded up to a time are erased, a bounded number at once."""
    for at in (NOW - 2, NOW - 1, NOW):
        await due(storage, seed, at)
    assert await storage.logouts.purge_logouts(NOW - 1, 1) == 1
    assert await storage.logouts.purge_logouts(NOW - 1, 9) == 1
    assert len(await storage.logouts.claim_logouts(NOW, LEASE, 9)) == 1
