"""Conformance: sign-ins through the OpenID provider."""

import asyncio
import hashlib
from dataclasses import replace

from tests.databases import NOW
from tests.storage.seed import Seed, at_once, present

from taproof.contract.client import GrantType
from taproof.core.clock import HOUR, MINUTE
from taproof.core.oidc.clients import ClientChanges
from taproof.core.oidc.model import Authorization, NewAuthorization, NewCode, NewTokens
from taproof.core.projects import Project
from taproof.core.sessions import NewSession, SessionKey
from taproof.storage.protocol import Storage

CODE = NewCode(b"c" * 32, NOW + MINUTE)
TOKENS = NewTokens(b"t" * 32, NOW + HOUR)


async def begun(
    storage: Storage, seed: Seed, project: Project, session: NewSession | None = None, **fields: object
) -> NewAuthorization:
    """Store a sign-in of a new client's user, with `session` if one is given."""
    new = NewAuthorization(
        seed.name("auth"),
        (await seed.client(project)).id,
        project.id,
        '{"state": "é"}',
        NOW,
        NOW + 30 * MINUTE,
        b"b" * 32,
        session=session.key if session else None,
        encrypted_session=b"encrypted" if session else None,
    )
    new = replace(new, **fields)  # type: ignore[arg-type]
    assert await storage.authorizations.create_authorization(new)
    return new


async def read(storage: Storage, new: NewAuthorization) -> Authorization:
    return present(await storage.authorizations.read_authorization(new.id))


async def confirmed(storage: Storage, seed: Seed) -> tuple[NewAuthorization, SessionKey, Project]:
    project = await seed.project()
    session = await seed.confirmed(project)
    return await begun(storage, seed, project, session), session.key, project


async def finished(storage: Storage, seed: Seed, code: NewCode = CODE) -> tuple[NewAuthorization, SessionKey]:
    """Return a sign-in that has given its code."""
    new, key, _ = await confirmed(storage, seed)
    assert await storage.authorizations.finish_authorization(new.id, key, NOW, code)
    return new, key


async def used_counts(storage: Storage, project: Project) -> int:
    return sum(row.used for row in await storage.counts.read_daily_counts([project.id], 0))


async def test_create_authorization_is_read_back(storage: Storage, seed: Seed) -> None:
    """Every field of a new sign-in is read back; an unknown id finds nothing."""
    project = await seed.project()
    session = await seed.session(project)
    new = await begun(storage, seed, project, session, user_code="WDJBMJHT", device_code_hash=b"d" * 32)
    expected = Authorization(
        new.id,
        new.client_id,
        new.project_id,
        new.request,
        NOW,
        NOW + 30 * MINUTE,
        b"b" * 32,
        session.key,
        b"encrypted",
        "WDJBMJHT",
        None,
        *[None] * 5,
    )
    assert await read(storage, new) == expected
    same = replace(new, id=seed.name("auth"), device_code_hash=b"2" * 32)
    assert not await storage.authorizations.create_authorization(same)
    assert await storage.authorizations.read_authorization(same.id) is None


async def test_read_authorization_of_an_unknown_id(storage: Storage, seed: Seed) -> None:
    """An unknown id finds nothing, whatever it contains."""
    await begun(storage, seed, await seed.project())
    for unknown in ("auth_none", "", "\0"):
        assert await storage.authorizations.read_authorization(unknown) is None


async def test_read_authorization_by_code_also_after_its_redemption(storage: Storage, seed: Seed) -> None:
    """The code finds the sign-in that gave it; other hashes find nothing."""
    find = storage.authorizations.read_authorization_by_code
    new, _ = await finished(storage, seed)
    assert await find(CODE.code_hash) == await read(storage, new)
    await storage.authorizations.redeem_code(CODE.code_hash, TOKENS, NOW)
    assert await find(CODE.code_hash) == await read(storage, new)
    assert await find(TOKENS.access_token_hash) is None


async def test_read_authorization_by_access_token_once_redeemed(storage: Storage, seed: Seed) -> None:
    """An access token finds its sign-in, and a code does not count as an access token."""
    find = storage.authorizations.read_authorization_by_access_token
    new, _ = await finished(storage, seed)
    assert await find(TOKENS.access_token_hash) is None
    await storage.authorizations.redeem_code(CODE.code_hash, TOKENS, NOW)
    assert await find(TOKENS.access_token_hash) == await read(storage, new)
    assert await find(CODE.code_hash) is None


async def test_finish_authorization_with_a_code(storage: Storage, seed: Seed) -> None:
    """The session is used and counted, and the code is stored; a second call finds nothing to finish."""
    new, key, project = await confirmed(storage, seed)
    assert await storage.authorizations.finish_authorization(new.id, key, NOW + 1, CODE)
    session = present(await storage.sessions.read_session(key))
    assert (session.status, session.used_at) == ("used", NOW + 1)
    assert await used_counts(storage, project) == 1
    found = present(await storage.authorizations.read_authorization_by_code(CODE.code_hash))
    assert (found.id, found.code_expires_at, found.redeemed_at) == (new.id, CODE.code_expires_at, None)
    assert not await storage.authorizations.finish_authorization(new.id, key, NOW + 1, CODE)
    assert await used_counts(storage, project) == 1


async def test_finish_authorization_with_tokens(storage: Storage, seed: Seed) -> None:
    """A device gets its tokens in the transaction that consumes the session."""
    new, key, _ = await confirmed(storage, seed)
    assert await storage.authorizations.finish_authorization(new.id, key, NOW + 1, TOKENS)
    found = present(await storage.authorizations.read_authorization_by_access_token(TOKENS.access_token_hash))
    assert (found.id, found.redeemed_at, found.access_expires_at) == (new.id, NOW + 1, TOKENS.access_expires_at)


async def test_finish_authorization_of_the_expected_account(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Another account gets neither a code nor tokens, even in concurrent calls, and its session is not used."""
    project = await seed.project()
    session = await seed.confirmed(project)
    found = present(await storage.sessions.read_session(session.key))
    account = present(found.identity).messenger_id
    gifts: tuple[NewCode | NewTokens, ...] = (CODE, TOKENS)
    for number, given in enumerate(gifts):
        new = await begun(storage, seed, project, session, expected_user=f"{account}{number}")
        assert (await read(storage, new)).expected_user == f"{account}{number}"
        calls = (
            node.authorizations.finish_authorization(new.id, session.key, NOW + 1, given)
            for node in (storage, other_node) * 4
        )
        finished = await asyncio.gather(*calls)
        assert finished == [False] * 8
    assert present(await storage.sessions.read_session(session.key)).status == "confirmed"
    new = await begun(storage, seed, project, session, expected_user=account)
    assert await storage.authorizations.finish_authorization(new.id, session.key, NOW + 1, CODE)
    assert (await read(storage, new)).expected_user is None
    assert await used_counts(storage, project) == 1


async def test_finish_authorization_is_refused(storage: Storage, seed: Seed) -> None:
    """Unless the current session is confirmed and the sign-in is open, nothing is consumed and no code is stored."""
    project = await seed.project()
    session = await seed.confirmed(project)
    other = await seed.confirmed(project)
    pending = await seed.opened(project)
    current = await begun(storage, seed, project, session)
    waits = await begun(storage, seed, project, pending)
    late = await begun(storage, seed, project, session, expires_at=NOW + 1)
    ended = await begun(storage, seed, project, session)
    assert await storage.authorizations.end_authorization(ended.id, NOW)
    refused = {
        "another session": (current.id, other.key),
        "not confirmed": (waits.id, pending.key),
        "expired": (late.id, session.key),
        "ended": (ended.id, session.key),
        "unknown": ("auth_none", session.key),
        "another day": (current.id, SessionKey(session.key.day + 1, session.key.token_hash)),
    }
    for case, (authorization_id, key) in refused.items():
        for given in (CODE, TOKENS):
            assert not await storage.authorizations.finish_authorization(authorization_id, key, NOW + 1, given), case
    for each in (session, other):
        found = present(await storage.sessions.read_session(each.key))
        assert found.status == "confirmed"
    assert await used_counts(storage, project) == 0
    assert await storage.authorizations.read_authorization_by_code(CODE.code_hash) is None


async def test_finish_authorization_after_the_report_or_the_end_of_the_project(storage: Storage, seed: Seed) -> None:
    """A reported session and a session of a deleted project give nothing.

    A paused project refuses only new sessions.
    """
    finish = storage.authorizations.finish_authorization
    new, key, project = await confirmed(storage, seed)
    await seed.report(key, "1001", NOW, storage)
    assert not await finish(new.id, key, NOW + 1, CODE)
    new, key, project = await confirmed(storage, seed)
    await seed.delete(project)
    assert not await finish(new.id, key, NOW + 1, CODE)
    assert (await read(storage, new)).code_expires_at is None
    new, key, project = await confirmed(storage, seed)
    await seed.update(project, is_active=False)
    assert await finish(new.id, key, NOW + 1, CODE)


async def change_grants(node: Storage, new: NewAuthorization, project: Project, now: int, *grants: GrantType) -> None:
    changes, owned = ClientChanges(grant_types=grants), (project.developer_id, project.id, new.client_id)
    assert await node.oidc_clients.update_client(*owned, changes, now) is not None


async def test_a_removed_grant_ends_its_sign_ins(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Removing a grant type ends only the sign-ins that use it, on every node.

    Devices must start again, even once it is restored.
    """
    project = await seed.project()
    sessions = [await seed.confirmed(project) for _ in range(2)]
    in_browser = await begun(storage, seed, project, sessions[0])
    on_device = await begun(storage, seed, project, sessions[1], user_code="BBBBBBBB", client_id=in_browser.client_id)
    finish = storage.authorizations.finish_authorization
    await change_grants(other_node, in_browser, project, NOW + 1, "device_code")
    assert not await finish(in_browser.id, sessions[0].key, NOW + 2, CODE)
    await change_grants(other_node, in_browser, project, NOW + 3, "authorization_code")
    assert not await finish(on_device.id, sessions[1].key, NOW + 4, TOKENS)
    await change_grants(other_node, in_browser, project, NOW + 5, "authorization_code", "device_code")
    assert not await finish(on_device.id, sessions[1].key, NOW + 6, TOKENS)
    assert await finish(in_browser.id, sessions[0].key, NOW + 6, CODE)
    await change_grants(other_node, in_browser, project, NOW + 7, "device_code")
    assert not await storage.authorizations.redeem_code(CODE.code_hash, TOKENS, NOW + 8)
    values = {"user_code": "CCCCCCCC", "client_id": in_browser.client_id, "created_at": NOW + 5}
    again = await begun(storage, seed, project, sessions[1], **values)
    assert await finish(again.id, sessions[1].key, NOW + 9, TOKENS)


async def test_a_grant_is_removed_while_devices_finish(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Of two nodes at the same time, either the device has its tokens or it never gets any."""
    for number in range(10):
        project = await seed.project()
        session = await seed.confirmed(project)
        new = await begun(storage, seed, project, session, user_code=f"BBBBBBB{number}")
        tokens = NewTokens(bytes([number]) * 32, NOW + HOUR)
        finished, _ = await asyncio.gather(
            storage.authorizations.finish_authorization(new.id, session.key, NOW, tokens),
            change_grants(other_node, new, project, NOW + 1, "authorization_code"),
        )
        assert not await storage.authorizations.finish_authorization(new.id, session.key, NOW + 2, tokens)
        assert ((await read(storage, new)).redeemed_at is not None) == finished


async def test_finish_authorization_once_among_many(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Of a code and a consuming verify on two nodes at once, exactly one gets the session."""
    for _ in range(10):
        new, key, project = await confirmed(storage, seed)
        code = NewCode(hashlib.sha256(new.id.encode()).digest(), NOW + MINUTE)
        results = await asyncio.gather(
            storage.authorizations.finish_authorization(new.id, key, NOW, code),
            other_node.authorizations.finish_authorization(new.id, key, NOW, code),
            other_node.sessions.consume_session(key, NOW),
            storage.authorizations.end_authorization(new.id, NOW),
        )
        *finished, consumed, ended = results
        assert sum(finished) + (consumed is not None) <= 1
        assert sum(finished) + ended <= 1
        assert sum(finished) + (consumed is not None) + ended >= 1
        assert await used_counts(storage, project) == sum(finished) + (consumed is not None)


async def test_redeem_code_once_among_many(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Of many calls on two nodes, one succeeds; then its tokens can be found until they are revoked."""
    new, _ = await finished(storage, seed)
    asked = [NewTokens(bytes([number]) * 32, NOW + HOUR) for number in range(16)]
    results = await at_once(
        *(16, lambda node, each: node.authorizations.redeem_code(CODE.code_hash, asked[each], NOW + 2)),
        *(storage, other_node),
    )
    assert results.count(True) == 1
    winner = asked[results.index(True)]
    found = present(await storage.authorizations.read_authorization_by_access_token(winner.access_token_hash))
    seen = (found.id, found.redeemed_at, found.access_expires_at, found.revoked_at)
    assert seen == (new.id, NOW + 2, NOW + HOUR, None)


async def test_revoke_tokens_once(storage: Storage, seed: Seed) -> None:
    """Tokens are revoked at the first call; a sign-in without tokens has none to revoke."""
    new, _ = await finished(storage, seed)
    assert not await storage.authorizations.revoke_tokens(new.id, NOW)
    await storage.authorizations.redeem_code(CODE.code_hash, TOKENS, NOW + 2)
    assert await storage.authorizations.revoke_tokens(new.id, NOW + 3)
    assert not await storage.authorizations.revoke_tokens(new.id, NOW + 4)
    assert (await read(storage, new)).revoked_at == NOW + 3


async def test_end_authorization_once(storage: Storage, seed: Seed) -> None:
    """A sign-in ends once, and a finished one does not end."""
    new = await begun(storage, seed, await seed.project())
    assert await storage.authorizations.end_authorization(new.id, NOW + 1)
    assert not await storage.authorizations.end_authorization(new.id, NOW + 2)
    assert (await read(storage, new)).ended_at == NOW + 1
    done, _ = await finished(storage, seed)
    assert not await storage.authorizations.end_authorization(done.id, NOW)


async def test_redeem_code_is_refused(storage: Storage, seed: Seed) -> None:
    """An expired or unknown code gives no tokens, nor does one whose user reports the sign-in or is erased before."""
    redeem = storage.authorizations.redeem_code
    await finished(storage, seed)
    assert not await redeem(CODE.code_hash, TOKENS, CODE.code_expires_at)
    assert not await redeem(b"x" * 32, TOKENS, NOW)
    reported, erased = [NewCode(bytes([number]) * 32, NOW + MINUTE) for number in range(2)]
    _, key = await finished(storage, seed, reported)
    await seed.report(key, "1001", NOW, storage)
    new, _ = await finished(storage, seed, erased)
    assert await storage.erasure.erase_sessions("1001", new.project_id, None, 9, describe=lambda _: [])
    for code in (reported, erased):
        assert not await redeem(code.code_hash, TOKENS, NOW + 1)
    assert await storage.authorizations.read_authorization_by_access_token(TOKENS.access_token_hash) is None


async def test_replace_session_on_one_of_two_nodes(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Only the current session is replaced, by one of two nodes, and only in an open sign-in."""
    project = await seed.project()
    first, second, third = [await seed.session(project) for _ in range(3)]
    new = await begun(storage, seed, project)
    replacing = storage.authorizations.replace_session
    assert await replacing(new.id, None, first.key, b"one", NOW)
    assert not await replacing(new.id, None, second.key, b"two", NOW)
    assert not await replacing(new.id, second.key, second.key, b"two", NOW)
    results = await asyncio.gather(
        replacing(new.id, first.key, second.key, b"two", NOW),
        other_node.authorizations.replace_session(new.id, first.key, third.key, b"two", NOW),
    )
    assert sorted(results) == [False, True]
    found = await read(storage, new)
    assert found.session == (second.key if results[0] else third.key)
    assert found.encrypted_session == b"two"
    assert not await replacing(new.id, found.session, first.key, b"three", new.expires_at)
    assert await storage.authorizations.end_authorization(new.id, NOW)
    assert not await replacing(new.id, found.session, first.key, b"three", NOW)


async def test_read_authorization_by_user_code_until_it_expires_or_ends(storage: Storage, seed: Seed) -> None:
    """A user code is found until it expires, its sign-in ends, or a browser is bound."""
    find = storage.authorizations.read_authorization_by_user_code
    new = await begun(storage, seed, await seed.project(), browser_hash=None, user_code="BBBBBBBB")
    assert await find("BBBBBBBB", NOW) == await read(storage, new)
    assert await find("BBBBBBBB", new.expires_at) is None
    await storage.authorizations.end_authorization(new.id, NOW)
    assert await find("BBBBBBBB", NOW) is None


async def test_bind_browser_once(storage: Storage, seed: Seed) -> None:
    """One browser is bound before the sign-in expires; then the user code is used up."""
    bind = storage.authorizations.bind_browser
    new = await begun(storage, seed, await seed.project(), browser_hash=None, user_code="BBBBBBBB")
    assert not await bind(new.id, b"w" * 32, new.expires_at)
    assert await bind(new.id, b"w" * 32, NOW)
    assert not await bind(new.id, b"v" * 32, NOW)
    assert (await read(storage, new)).browser_hash == b"w" * 32
    assert await storage.authorizations.read_authorization_by_user_code("BBBBBBBB", NOW) is None


async def test_poll_authorization_tells_of_the_last_poll(storage: Storage, seed: Seed) -> None:
    """A poll tells whether the device polled since a time, and is recorded itself."""
    project = await seed.project()
    new = await begun(storage, seed, project, device_code_hash=b"d" * 32)
    poll = storage.authorizations.poll_authorization
    assert await poll(b"e" * 32, NOW, NOW) is None
    answers = [await poll(b"d" * 32, NOW + each, NOW + each - 4) for each in (0, 3, 7, 11)]
    assert [answer and answer[1] for answer in answers] == [False, True, False, False]
    assert answers[0] is not None
    assert answers[0][0] == await read(storage, new)


async def test_take_pushed_request_once(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """A pushed request is taken once, by its client, before it expires."""
    store = storage.authorizations
    await store.create_pushed_request(b"1" * 32, "oidc_a", '{"scope": "openid"}', NOW + 5)
    assert await store.take_pushed_request(b"1" * 32, "oidc_b", NOW) is None
    assert await store.take_pushed_request(b"1" * 32, "oidc_a", NOW + 5) is None
    taken = await asyncio.gather(
        *(each.authorizations.take_pushed_request(b"1" * 32, "oidc_a", NOW) for each in (storage, other_node) * 4)
    )
    assert sorted(taken, key=str) == [*[None] * 7, '{"scope": "openid"}']


async def test_create_pushed_request_is_purged_in_bounded_steps(storage: Storage, seed: Seed) -> None:
    """Only expired requests are erased, at most as many as asked for. The others are returned as they were pushed."""
    store = storage.authorizations
    for number in range(3):
        await store.create_pushed_request(bytes([number]) * 32, "oidc_a", '{"state": "é"}', NOW + number)
    assert [await store.purge_pushed_requests(NOW + 1, limit) for limit in (1, 9, 9)] == [1, 1, 0]
    assert await store.take_pushed_request(b"\2" * 32, "oidc_a", NOW) == '{"state": "é"}'


async def test_purge_pushed_requests_leaves_valid_ones(storage: Storage) -> None:
    """Requests are kept to the exact millisecond of their expiry."""
    store = storage.authorizations
    await store.create_pushed_request(b"1" * 32, "oidc_a", "{}", NOW + 1)
    assert [await store.purge_pushed_requests(now, 9) for now in (NOW, NOW + 1)] == [0, 1]


async def test_purge_authorizations_keeps_what_is_valid(storage: Storage, seed: Seed) -> None:
    """A sign-in is kept until its access token expires, or, without one, until it can no longer be finished."""
    new, _ = await finished(storage, seed)
    await storage.authorizations.redeem_code(CODE.code_hash, TOKENS, NOW + 1)
    await begun(storage, seed, await seed.project())
    purge = storage.authorizations.purge_authorizations
    assert await purge(NOW + 30 * MINUTE - 1, 9) == 0
    assert await purge(NOW + 30 * MINUTE, 9) == 1
    assert await purge(NOW + HOUR - 1, 9) == 0
    assert await purge(NOW + HOUR, 9) == 1
    assert await storage.authorizations.read_authorization(new.id) is None


async def test_end_access_token_of_its_client(storage: Storage, seed: Seed) -> None:
    """The token with a hash in the range ends, and no other one; another client ends nothing."""
    half = bytes(range(16))
    lowest, highest = half + bytes(16), half + b"\xff" * 16
    hashes = (lowest, highest, half + b"x" * 16)
    for number, token_hash in enumerate((*hashes, b"z" * 32)):
        new, key, _ = await confirmed(storage, seed)
        assert await storage.authorizations.finish_authorization(new.id, key, NOW, NewTokens(token_hash, NOW + HOUR))
        if number < len(hashes):
            assert not await storage.authorizations.end_access_token("oidc_other", lowest, highest)
            assert await storage.authorizations.end_access_token(new.client_id, lowest, highest)
            assert not await storage.authorizations.end_access_token(new.client_id, lowest, highest)
            assert await storage.authorizations.read_authorization_by_access_token(token_hash) is None
        else:
            assert not await storage.authorizations.end_access_token(new.client_id, lowest, highest)
            assert await storage.authorizations.read_authorization_by_access_token(token_hash) is not None


async def test_allowed_groups_are_checked_with_each_change(storage: Storage, seed: Seed) -> None:
    """A user who was removed in the meantime gets no code, no tokens on a device, and none for a code."""
    groups = {"away": ("9",), "staff": ("1001",)}
    expected = {"nobody may": False, "another may": False, "the user may": True, "everybody may": True}
    for case, changes in (
        ("nobody may", ClientChanges(groups={"staff": ()}, allowed_groups=("staff",))),
        ("another may", ClientChanges(groups=groups, allowed_groups=("away",))),
        ("the user may", ClientChanges(groups=groups, allowed_groups=("away", "staff"))),
        ("everybody may", ClientChanges(groups=groups)),
    ):
        for given in (CODE, TOKENS):
            new, key, project = await confirmed(storage, seed)
            owned = (project.developer_id, project.id, new.client_id)
            await storage.oidc_clients.update_client(*owned, changes, NOW)
            found = await storage.authorizations.finish_authorization(new.id, key, NOW, _own(given, new))
            assert found == expected[case], case
        new, key, project = await confirmed(storage, seed)
        code = NewCode(hashlib.sha256(new.id.encode()).digest(), NOW + MINUTE)
        assert await storage.authorizations.finish_authorization(new.id, key, NOW, code)
        await storage.oidc_clients.update_client(project.developer_id, project.id, new.client_id, changes, NOW)
        tokens = NewTokens(code.code_hash, NOW + HOUR)
        assert await storage.authorizations.redeem_code(code.code_hash, tokens, NOW) == expected[case], case


def _own(given: NewCode | NewTokens, new: NewAuthorization) -> NewCode | NewTokens:
    """Return a code or tokens that no other sign-in has."""
    own = hashlib.sha256(type(given).__name__.encode() + new.id.encode()).digest()
    return NewCode(own, NOW + MINUTE) if isinstance(given, NewCode) else NewTokens(own, NOW + HOUR)
