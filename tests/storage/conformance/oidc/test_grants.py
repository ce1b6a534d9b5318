"""Conformance: the grants that clients hold after a sign-in, and what ends them."""

import asyncio
from dataclasses import replace
from typing import Any, Final

import pytest
from tests.databases import NOW
from tests.storage.conformance.oidc.test_authorizations import begun
from tests.storage.seed import Seed, at_once, present

from taproof.core.clock import DAY, HOUR, MINUTE
from taproof.core.errors import InsufficientRole
from taproof.core.oidc.clients import ClientChanges, ClientSecret
from taproof.core.oidc.grants import (
    GRANT_LIFETIME,
    IDLE_LIFETIME,
    KEPT_AFTER_END,
    LOGOUTS_KEPT,
    EndReason,
    NewGrant,
    OidcGrant,
    RefreshHashes,
    RotatedTokens,
)
from taproof.core.oidc.model import NewCode, NewTokens
from taproof.core.page_cursor import PageCursor
from taproof.core.projects import Project
from taproof.storage.protocol import Storage

FIRST: Final = RefreshHashes(b"f" * 32, b"1" * 32)
ROTATION: Final = RotatedTokens(b"2" * 32, b"a" * 32, NOW + 2 * HOUR, "openid")
LOGOUT_URI: Final = "https://app.example/logout"


async def told(storage: Storage, at: int = NOW) -> list[tuple[str, str | None]]:
    """Return the grants of which clients must be told, with the users, and lease all of them for a minute."""
    return [(each.sid, each.messenger_id) for each in await storage.logouts.claim_logouts(at, at + MINUTE, 99)]


async def new_grant(
    storage: Storage, seed: Seed, project: Project | None = None, user: str = "1001", **fields: Any
) -> tuple[NewGrant, bytes]:
    """Return the grant that a new code gives, and the code's hash. The client is to be told of logouts."""
    project = project or await seed.project()
    session = await seed.confirmed(project, user)
    new = await begun(storage, seed, project, session)
    update = storage.oidc_clients.update_client
    changes = ClientChanges(backchannel_logout_uri=LOGOUT_URI)
    present(await update(project.developer_id, project.id, new.client_id, changes, NOW))
    code = NewCode(new.id.encode(), NOW + MINUTE)
    assert await storage.authorizations.finish_authorization(new.id, session.key, NOW, code)
    family = RefreshHashes(b"f" + new.id.encode(), FIRST.secret)
    values = (new.id, new.client_id, 0, project.id, session.key, seed.identity(user))
    grant = NewGrant(*values, "openid profile", NOW - 1, NOW, family)
    return replace(grant, **fields), code.code_hash


async def granted(
    storage: Storage, seed: Seed, project: Project | None = None, user: str = "1001", **fields: Any
) -> NewGrant:
    """Store a grant."""
    new, code_hash = await new_grant(storage, seed, project, user, **fields)
    tokens = NewTokens(b"access " + new.id.encode(), NOW + HOUR)
    assert await storage.authorizations.redeem_code(code_hash, tokens, NOW, new)
    return new


async def read(storage: Storage, new: NewGrant) -> OidcGrant:
    return present(await storage.grants.read_grant(new.id))


async def ended(storage: Storage, *grants: NewGrant) -> list[EndReason | None]:
    return [(await read(storage, each)).ended_reason for each in grants]


def family(new: NewGrant) -> RefreshHashes:
    return present(new.refresh)


async def test_read_grant_finds_every_field(storage: Storage, seed: Seed) -> None:
    """The grant is stored in the transaction of the tokens; without a refresh token, it does not end by idleness."""
    new = await granted(storage, seed, encrypted_phone=b"phone \0")
    identity = new.identity
    expected = OidcGrant(
        new.id,
        new.client_id,
        0,
        new.project_id,
        identity.messenger_id,
        identity.messenger_name,
        identity.messenger_username,
        b"phone \0",
        "openid profile",
        NOW - 1,
        *(None, None, NOW, None, NOW + IDLE_LIFETIME, None, None),
        refresh_hash=FIRST.secret,
    )
    assert await storage.grants.read_grant(new.id) == expected
    plain = await granted(storage, seed, refresh=None)
    found = await read(storage, plain)
    assert (found.refresh_hash, found.idle_expires_at) == (None, NOW + GRANT_LIFETIME)


async def test_redeem_code_gives_no_grant_without_the_users_consent(storage: Storage, seed: Seed) -> None:
    """If the user blocked the project, reported the sign-in or was erased, neither tokens nor a grant are stored."""
    project = await seed.project()
    for number, user in enumerate(("1001", "1002", "1003")):
        new, code_hash = await new_grant(storage, seed, project, user)
        if number == 0:
            await storage.users.block_project(user, project.id, NOW)
        elif number == 1:
            assert await seed.report(new.session, user, NOW) == "used"
        else:
            assert await storage.erasure.erase_sessions(user, project.id, None, 9, describe=lambda _: [])
        assert not await storage.authorizations.redeem_code(code_hash, NewTokens(b"t", NOW + HOUR), NOW, new)
        assert await storage.grants.read_grant(new.id) is None
        authorization = present(await storage.authorizations.read_authorization(new.id))
        assert authorization.redeemed_at is None
    assert await told(storage) == []


async def test_finish_authorization_of_a_device_with_a_grant(storage: Storage, seed: Seed) -> None:
    """The grant is stored with the tokens, as with a code, or nothing is stored."""
    project = await seed.project()
    for user in ("1001", "1002"):
        session = await seed.confirmed(project, user)
        device = {"user_code": seed.name("code"), "device_code_hash": user.encode()}
        new = await begun(storage, seed, project, session, **device)
        values = (new.id, new.client_id, 0, project.id, session.key, seed.identity(user))
        grant = NewGrant(*values, "openid", NOW, NOW, RefreshHashes(b"f" + user.encode(), b"s"))
        tokens = NewTokens(user.encode(), NOW + HOUR)
        if user == "1002":
            await storage.users.block_project(user, project.id, NOW)
        finish = storage.authorizations.finish_authorization
        assert await finish(new.id, session.key, NOW, tokens, grant) is (user == "1001")
        assert (await storage.grants.read_grant(new.id) is None) is (user == "1002")
        assert not await finish(new.id, session.key, NOW, tokens, grant)


async def test_read_grant_by_family_and_read_grant_by_access_token(storage: Storage, seed: Seed) -> None:
    """Each finds its grant; unknown values find nothing."""
    new = await granted(storage, seed)
    await granted(storage, seed)
    grants = storage.grants
    assert await grants.read_grant_by_family(family(new).family) == await read(storage, new)
    assert await grants.read_grant_by_access_token(ROTATION.access_token_hash) is None
    assert await grants.refresh_grant(new.client_id, family(new), ROTATION, NOW) == "refreshed"
    assert await grants.read_grant_by_access_token(ROTATION.access_token_hash) == await read(storage, new)
    assert await grants.read_grant_by_family(b"none") is None
    for unknown in ("auth_none", "\0"):
        assert await grants.read_grant(unknown) is None


async def test_read_grant_by_family_of_many(storage: Storage, seed: Seed) -> None:
    """Each family finds its own grant."""
    made = [await granted(storage, seed) for _ in range(3)]
    for new in made:
        assert present(await storage.grants.read_grant_by_family(family(new).family)).id == new.id


async def test_read_grant_by_access_token_of_the_last_refresh_only(storage: Storage, seed: Seed) -> None:
    """A second refresh replaces the access token of the first."""
    new, grants = await granted(storage, seed), storage.grants
    second = replace(ROTATION, secret=b"3" * 32, access_token_hash=b"b" * 32)
    assert await grants.refresh_grant(new.client_id, family(new), ROTATION, NOW) == "refreshed"
    hashes = family(new)._replace(secret=ROTATION.secret)
    assert await grants.refresh_grant(new.client_id, hashes, second, NOW) == "refreshed"
    assert await grants.read_grant_by_access_token(ROTATION.access_token_hash) is None
    assert await grants.read_grant_by_access_token(second.access_token_hash) is not None


async def test_refresh_grant_replaces_both_tokens(storage: Storage, seed: Seed) -> None:
    """The grant is valid for 30 more days, but not beyond 180 days in total."""
    new = await granted(storage, seed)
    assert await storage.grants.refresh_grant(new.client_id, family(new), ROTATION, NOW + DAY) == "refreshed"
    found = await read(storage, new)
    assert (found.refreshed_at, found.idle_expires_at) == (NOW + DAY, NOW + DAY + IDLE_LIFETIME)
    assert (found.access_expires_at, found.access_scopes) == (NOW + 2 * HOUR, "openid")
    hashes, at = family(new)._replace(secret=ROTATION.secret), NOW + DAY
    for number in range(6):
        at += IDLE_LIFETIME - 1
        rotation = replace(ROTATION, secret=b"%d" % number)
        outcome = await storage.grants.refresh_grant(new.client_id, hashes, rotation, at)
        assert outcome == ("refreshed" if at < NOW + GRANT_LIFETIME else "gone")
        hashes = hashes._replace(secret=rotation.secret)
    assert (await read(storage, new)).idle_expires_at == NOW + GRANT_LIFETIME


async def test_refresh_grant_with_a_used_token_ends_the_grant(storage: Storage, seed: Seed) -> None:
    """The reuse of a token shows that it was stolen (RFC 9700, 4.14.2).

    No logout is sent, because the user did nothing.
    """
    new = await granted(storage, seed)
    refresh = storage.grants.refresh_grant
    assert await refresh(new.client_id, family(new), ROTATION, NOW) == "refreshed"
    assert await refresh(new.client_id, family(new), replace(ROTATION, secret=b"3"), NOW) == "reused"
    assert await ended(storage, new) == ["reused"]
    now_current = family(new)._replace(secret=ROTATION.secret)
    assert await refresh(new.client_id, now_current, replace(ROTATION, secret=b"3"), NOW) == "gone"
    assert await told(storage) == []


async def test_refresh_grant_of_another_client_or_family_changes_nothing(storage: Storage, seed: Seed) -> None:
    """A grant without a refresh token or after its end does not change either."""
    new, other = await granted(storage, seed), await granted(storage, seed)
    refresh = storage.grants.refresh_grant
    wrong = family(new)._replace(secret=b"wrong")
    assert await refresh(other.client_id, family(new), ROTATION, NOW) == "gone"
    assert await refresh(other.client_id, wrong, ROTATION, NOW) == "gone"
    assert await refresh(new.client_id, FIRST, ROTATION, NOW) == "gone"
    assert await refresh(new.client_id, family(new), ROTATION, NOW + IDLE_LIFETIME) == "gone"
    assert await refresh(new.client_id, family(new), ROTATION, NOW + IDLE_LIFETIME - 1) == "refreshed"
    assert await ended(storage, new, other) == [None, None]


async def test_refresh_grant_succeeds_once(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Of 16 concurrent calls on two nodes, one succeeds; the others end the grant."""
    for _ in range(5):
        new = await granted(storage, seed)

        async def refresh(node: Storage, number: int, new: NewGrant = new) -> str:
            rotation = RotatedTokens(b"%d" % number, new.id.encode() + b"%d" % number, NOW + HOUR, "openid")
            return await node.grants.refresh_grant(new.client_id, family(new), rotation, NOW)

        outcomes = await at_once(16, refresh, storage, other_node)
        assert outcomes.count("refreshed") == 1
        assert outcomes.count("reused") == 1
        assert await ended(storage, new) == ["reused"]


@pytest.mark.parametrize("change", ["secret", "public", "grant", "deleted", "project"])
async def test_refresh_grant_ends_with_the_clients_rights(storage: Storage, seed: Seed, change: str) -> None:
    """A changed secret, a removed grant type, even if restored, and a deleted client or project prevent refreshing."""
    project = await seed.project()
    new, owned = await granted(storage, seed, project), (project.developer_id, project.id)
    clients = storage.oidc_clients
    assert present(await clients.read_client(new.client_id)).version == 0
    owned_client = (*owned, new.client_id)
    secret = ClientSecret(b"n" * 32, "ocs_n")
    if change == "secret":
        assert await clients.regenerate_client_secret(*owned_client, secret)
    elif change == "public":
        await clients.update_client(*owned_client, ClientChanges(auth_method="none"), NOW)
    elif change == "grant":
        for grants in (("authorization_code",), ("authorization_code", "refresh_token")):
            await clients.update_client(*owned_client, ClientChanges(grant_types=grants), NOW)
    elif change == "deleted":
        assert await clients.delete_client(*owned_client)
    else:
        await seed.delete(project)
    client = await clients.read_client(new.client_id)
    assert client is None or client.version == 1
    assert await storage.grants.refresh_grant(new.client_id, family(new), ROTATION, NOW) == "gone"
    assert await storage.grants.list_grants(project.id, new.client_id, None, NOW, 9) == []


async def test_update_client_without_a_new_secret_keeps_grants(storage: Storage, seed: Seed) -> None:
    """Other changes of a client do not end its users' grants."""
    project = await seed.project()
    new = await granted(storage, seed, project)
    changes = ClientChanges(name="New", auth_method="post", post_logout_redirect_uris=("https://app.example/",))
    for _ in range(2):
        client = present(
            await storage.oidc_clients.update_client(project.developer_id, project.id, new.client_id, changes, NOW)
        )
    assert (client.post_logout_redirect_uris, client.backchannel_logout_uri) == (("https://app.example/",), LOGOUT_URI)
    assert await storage.grants.refresh_grant(new.client_id, family(new), ROTATION, NOW) == "refreshed"


async def test_report_session_ends_its_grants(storage: Storage, seed: Seed) -> None:
    """Only the grants of this sign-in end, and the clients are notified."""
    project = await seed.project()
    new, other, of_other = [await granted(storage, seed, project, user) for user in ("1001", "1001", "1002")]
    assert await seed.report(new.session, "1001", NOW + 1) == "used"
    assert await ended(storage, new, other, of_other) == ["reported", None, None]
    found = await read(storage, new)
    assert (found.ended_at, found.idle_expires_at) == (NOW + 1, NOW + 1 + KEPT_AFTER_END)
    assert await told(storage, NOW + 1) == [(new.id, "1001")]
    assert await storage.grants.refresh_grant(new.client_id, family(new), ROTATION, NOW) == "gone"


async def test_report_session_and_a_code_at_once(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Whichever is first, no grant or token is valid afterwards."""
    for number in range(8):
        new, code_hash = await new_grant(storage, seed)
        tokens = NewTokens(b"%d" % number, NOW + HOUR)
        node, reporter = (storage, other_node) if number % 2 else (other_node, storage)
        redeemed, reported = await asyncio.gather(
            node.authorizations.redeem_code(code_hash, tokens, NOW, new),
            seed.report(new.session, "1001", NOW, reporter),
        )
        assert reported == "used"
        if redeemed:
            assert await ended(storage, new) == ["reported"]
        else:
            assert await storage.grants.read_grant(new.id) is None


async def test_report_session_and_a_refresh_at_once(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """A refresh may succeed before the report, but its tokens end too."""
    for number in range(8):
        new = await granted(storage, seed)
        rotation = replace(ROTATION, access_token_hash=b"%d" % number)
        node, reporter = (storage, other_node) if number % 2 else (other_node, storage)
        await asyncio.gather(
            node.grants.refresh_grant(new.client_id, family(new), rotation, NOW),
            seed.report(new.session, "1001", NOW, reporter),
        )
        assert await ended(storage, new) == ["reported"]


async def test_block_project_ends_the_users_grants(storage: Storage, seed: Seed) -> None:
    """The account's grants of all sign-ins to the project end, and no others. A second block finds nothing."""
    project = await seed.project()
    mine = [await granted(storage, seed, project) for _ in range(2)]
    others = [await granted(storage, seed, project, "1002"), await granted(storage, seed)]
    assert await storage.users.block_project("1001", project.id, NOW)
    assert not await storage.users.block_project("1001", project.id, NOW)
    assert await ended(storage, *mine, *others) == ["blocked", "blocked", None, None]
    assert sorted(await told(storage)) == sorted((each.id, "1001") for each in mine)


async def test_block_project_and_codes_at_once(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Whichever is first, no grant or token is valid afterwards."""
    for number in range(8):
        project = await seed.project()
        new, code_hash = await new_grant(storage, seed, project)
        node, blocker = (storage, other_node) if number % 2 else (other_node, storage)
        await asyncio.gather(
            node.authorizations.redeem_code(code_hash, NewTokens(b"%d" % number, NOW + HOUR), NOW, new),
            blocker.users.block_project("1001", project.id, NOW),
        )
        found = await storage.grants.read_grant(new.id)
        assert found is None or found.ended_reason == "blocked"


async def test_erase_person_erases_grants(storage: Storage, seed: Seed) -> None:
    """The clients are notified without the user's id, even for a pending logout. Other users' grants stay."""
    project = await seed.project()
    new, waits, other = [await granted(storage, seed, project, user) for user in ("1001", "1001", "1002")]
    elsewhere = await granted(storage, seed)
    assert await seed.report(waits.session, "1001", NOW) == "used"
    exported = await storage.erasure.export_grants("1001", project.developer_id, "", 9)
    assert [row["id"] for row in exported] == sorted([new.id, waits.id])
    erase = storage.erasure.erase_person
    assert await erase("1001", project.developer_id, "gone_1", 1, NOW, describe=lambda _: [])
    assert await erase("1001", project.developer_id, "gone_2", 1, NOW, describe=lambda _: []) == 1
    assert await erase("1001", project.developer_id, "gone_3", 1, NOW, describe=lambda _: []) == 0
    assert [await storage.grants.read_grant(each.id) is None for each in (new, waits, other, elsewhere)] == [
        *(True, True, False, False)
    ]
    assert sorted(await told(storage)) == sorted([(new.id, None), (waits.id, None)])
    while await erase("1001", None, seed.name("gone"), 9, NOW, describe=lambda _: []):
        pass
    assert await storage.grants.read_grant(elsewhere.id) is None


async def test_erase_person_finds_logouts_of_grants_that_were_nearly_over(storage: Storage, seed: Seed) -> None:
    """A grant outlives its logout, so no logout names a user whose data was erased."""
    new = await granted(storage, seed)
    end = NOW + IDLE_LIFETIME - 1
    assert await storage.grants.end_grant(new.id, end, "ended")
    assert await storage.grants.purge_grants(end + LOGOUTS_KEPT, 9) == 0
    assert await storage.erasure.erase_person("1001", None, "gone", 9, end + 1, describe=lambda _: [])
    assert await told(storage, end + 1) == [(new.id, None)]


async def test_export_grants_in_pages(storage: Storage, seed: Seed) -> None:
    """Grants are exported in the order of their ids, from the projects that the developer may change, or from all."""
    project = await seed.project()
    made = sorted([(await granted(storage, seed, project)).id for _ in range(3)])
    await granted(storage, seed, project, "1002")
    elsewhere = (await granted(storage, seed)).id
    export = storage.erasure.export_grants
    assert [row["id"] for row in await export("1001", project.developer_id, "", 2)] == made[:2]
    assert [row["id"] for row in await export("1001", project.developer_id, made[1], 2)] == made[2:]
    assert [row["id"] for row in await export("1001", None, "", 9)] == sorted([*made, elsewhere])
    assert await export("1001", "dev_none", "", 9) == []


async def test_revoke_tokens_ends_the_grant(storage: Storage, seed: Seed) -> None:
    """A second use of a code ends the grant of the first use (RFC 6749, section 4.1.2)."""
    new = await granted(storage, seed)
    assert await storage.authorizations.revoke_tokens(new.id, NOW)
    assert await ended(storage, new) == ["reused"]
    assert not await storage.authorizations.revoke_tokens(new.id, NOW)


async def test_revoke_access_token_of_its_client_only(storage: Storage, seed: Seed) -> None:
    """Both the first access token and the last refreshed one can be revoked. The grant stays."""
    new, grants = await granted(storage, seed), storage.grants
    first = b"access " + new.id.encode()
    assert await grants.refresh_grant(new.client_id, family(new), ROTATION, NOW) == "refreshed"
    for token_hash in (first, ROTATION.access_token_hash):
        assert not await grants.revoke_access_token(token_hash, "oidc_other")
        assert await grants.revoke_access_token(token_hash, new.client_id)
        assert not await grants.revoke_access_token(token_hash, new.client_id)
    assert await storage.authorizations.read_authorization_by_access_token(first) is None
    assert await grants.read_grant_by_access_token(ROTATION.access_token_hash) is None
    assert await ended(storage, new) == [None]


async def test_end_grant_for_each_reason(storage: Storage, seed: Seed) -> None:
    """The client is notified unless it was the cause.

    A grant of whose end it was not notified can still be reported; any other one stays ended.
    """
    reasons: tuple[EndReason, ...] = ("ended", "removed", "signed_out", "revoked")
    made = [await granted(storage, seed, encrypted_phone=b"phone") for _ in reasons]
    for new, reason in zip(made, reasons, strict=True):
        assert await storage.grants.end_grant(new.id, NOW, reason)
        assert not await storage.grants.end_grant(new.id, NOW, "revoked")
        assert (await read(storage, new)).encrypted_phone is None
    assert await ended(storage, *made) == list(reasons)
    assert sorted(await told(storage)) == sorted([(made[0].id, "1001"), (made[1].id, "1001")])
    for new in made[2:]:
        assert await storage.grants.end_grant(new.id, NOW + 1, "reported")
        assert (await read(storage, new)).ended_at == NOW
    for new in made:
        assert not await storage.grants.end_grant(new.id, NOW, "reported")
    assert sorted(await told(storage, NOW + 1)) == sorted([(made[2].id, "1001"), (made[3].id, "1001")])
    assert not await storage.grants.end_grant("auth_none", NOW, "ended")


async def test_end_grant_keeps_the_row_for_a_while(storage: Storage, seed: Seed) -> None:
    """The row is kept so that a report finds it, but is then erased before the grant would have expired."""
    new = await granted(storage, seed, refresh=None)
    assert await storage.grants.end_grant(new.id, NOW, "ended")
    assert (await read(storage, new)).idle_expires_at == NOW + KEPT_AFTER_END


async def test_end_client_grant_for_a_member(storage: Storage, seed: Seed) -> None:
    """A member ends a grant of this developer's client once, with an audit entry; a viewer may not."""
    project, other = await seed.project(), await seed.project()
    new, of_other = await granted(storage, seed, project), await granted(storage, seed, other)
    end, ada_id = storage.grants.end_client_grant, project.developer_id
    entry = seed.entry(ada_id, "client.grant_ended")
    for wrong in (
        (other.developer_id, project.id, new.client_id, new.id),
        (ada_id, project.id, of_other.client_id, new.id),
        (ada_id, project.id, new.client_id, of_other.id),
        (ada_id, project.id, new.client_id, "auth_none"),
    ):
        assert not await end(*wrong, NOW, entry=entry)
    viewer = await seed.member(project, "viewer")
    with pytest.raises(InsufficientRole):
        await end(viewer.id, project.id, new.client_id, new.id, NOW, entry=entry)
    assert await storage.audit.list_audit_entries(ada_id, None, 9) == []
    assert await end(ada_id, project.id, new.client_id, new.id, NOW, entry=entry)
    assert not await end(ada_id, project.id, new.client_id, new.id, NOW, entry=entry)
    assert await storage.audit.list_audit_entries(ada_id, None, 9) == [entry]
    assert await ended(storage, new, of_other) == ["ended", None]
    assert await told(storage) == [(new.id, "1001")]


async def test_end_grants_of_user_at_one_client(storage: Storage, seed: Seed) -> None:
    """The account's grants at this client end, and no others."""
    project = await seed.project()
    new, elsewhere, of_other = [await granted(storage, seed, project, user) for user in ("1001", "1001", "1002")]
    end = storage.grants.end_grants_of_user
    assert await end(project.id, new.client_id, "1001", NOW, "removed") == 1
    assert await end(project.id, new.client_id, "1001", NOW, "removed") == 0
    assert await end(project.id, of_other.client_id, "1001", NOW, "removed") == 0
    assert await ended(storage, new, elsewhere, of_other) == ["removed", None, None]


async def test_list_grants_is_newest_first_and_live_ones_only(storage: Storage, seed: Seed) -> None:
    """Grants are listed in pages, without ended and expired ones."""
    project = await seed.project()
    first = await granted(storage, seed, project)
    session = await seed.confirmed(project, "1002")
    made = [first]
    for number in range(2):
        new = await begun(storage, seed, project, session, client_id=first.client_id)
        grant = replace(first, id=new.id, created_at=NOW + number, refresh=None)
        code = NewCode(new.id.encode(), NOW + MINUTE)
        if number:
            session = await seed.confirmed(project, "1003")
            new = await begun(storage, seed, project, session, client_id=first.client_id)
            grant, code = replace(grant, id=new.id, session=session.key), NewCode(new.id.encode(), NOW + MINUTE)
        assert await storage.authorizations.finish_authorization(new.id, session.key, NOW, code)
        assert await storage.authorizations.redeem_code(code.code_hash, NewTokens(b"%d" % number, NOW), NOW, grant)
        made.append(grant)
    await granted(storage, seed, project)

    async def ids(before: PageCursor | None = None, now: int = NOW, limit: int = 9) -> list[str]:
        return [each.id for each in await storage.grants.list_grants(project.id, first.client_id, before, now, limit)]

    ordered = [each.id for each in sorted(made, key=lambda each: (each.created_at, each.id), reverse=True)]
    assert await ids() == ordered
    assert await ids(limit=2) == ordered[:2]
    assert await ids(PageCursor(NOW + 1, ordered[0])) == ordered[1:]
    assert first.id not in await ids(now=NOW + IDLE_LIFETIME)
    await storage.grants.end_grant(ordered[0], NOW, "ended")
    assert await ids() == ordered[1:]


async def test_purge_grants_after_their_end(storage: Storage, seed: Seed) -> None:
    """A bounded number of expired and ended grants is erased, and no others."""
    made = [await granted(storage, seed) for _ in range(3)]
    plain = await granted(storage, seed, refresh=None)
    assert await storage.grants.purge_grants(NOW + IDLE_LIFETIME - 1, 9) == 0
    assert await storage.grants.purge_grants(NOW + IDLE_LIFETIME, 2) == 2
    assert await storage.grants.purge_grants(NOW + IDLE_LIFETIME, 9) == 1
    assert [await storage.grants.read_grant(each.id) is None for each in (*made, plain)] == [True, True, True, False]


async def test_purge_deleted_projects_erases_grants(storage: Storage, seed: Seed) -> None:
    """The project's logouts are erased too; grants and logouts of other projects stay."""
    project = await seed.project()
    new, other = await granted(storage, seed, project), await granted(storage, seed)
    await storage.grants.end_grant(new.id, NOW, "ended")
    await seed.delete(project)
    await seed.purge_projects()
    assert await storage.grants.read_grant(new.id) is None
    assert await storage.grants.read_grant(other.id) is not None
    assert await told(storage) == []
