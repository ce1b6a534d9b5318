"""Conformance: the audit log. An entry is written in the transaction of its change, and stays."""

import contextlib
import inspect
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

import apsw
import asyncpg
import pytest
from tests.databases import NOW
from tests.giving_bots import give_bot
from tests.storage.conformance.test_protocol import PARTS
from tests.storage.seed import Seed, present, run

from taproof.contract.member import Role
from taproof.core.accounts import AccessToken, AuditEntry, ConsoleSession, Developer, Invitation, MemberInvitation
from taproof.core.clock import DAY
from taproof.core.deliveries import Delivery
from taproof.core.errors import InsufficientRole, InvalidAccessToken, LastOwner, ProjectsNeedOwner, SignedOut
from taproof.core.oidc.clients import ClientChanges, ClientSecret, OidcClient
from taproof.core.oidc.grants import NewGrant
from taproof.core.page_cursor import PageCursor
from taproof.core.project_bots import ProjectBot
from taproof.core.projects import Project, ProjectChanges
from taproof.core.roles import PERMITTED, ROLES, ProjectAction
from taproof.core.sessions import SessionKey
from taproof.storage.export.format import TABLES
from taproof.storage.postgres.store import PostgresStorage
from taproof.storage.protocol import Storage
from taproof.storage.queries.oidc.grants import create_grant
from taproof.storage.queries.transaction import Transaction

URL: Final = "https://example.com/"
REFUSED: Final = (apsw.ConstraintError, asyncpg.UniqueViolationError)


async def all_rows(storage: Storage) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of the store."""
    tables = (*TABLES, "console_sessions")
    return {table: sorted(await run(storage, f"SELECT * FROM {table}"), key=repr) for table in tables}  # noqa: S608


async def test_list_audit_entries_is_newest_first_and_the_developers_own(storage: Storage, seed: Seed) -> None:
    """Entries have every field. Equal times are ordered by id, and pages have no gap or repetition."""
    entries = [replace(seed.entry("dev_1", at=NOW + number // 3), details="{}") for number in range(8)]
    entries.append(seed.entry("dev_1", "console.signed_out_everywhere", NOW + 9))
    of_bob = seed.entry("dev_2")
    for number, entry in enumerate([*entries[::2], of_bob, *entries[1::2]]):
        assert await storage.developers.create_developer(
            Developer(f"d{number}", f"{number}@x", "free", NOW), entry=entry
        )
    assert await storage.audit.list_audit_entries("dev_1", None, 99) == entries[::-1]
    assert await storage.audit.list_audit_entries("dev_2", None, 99) == [of_bob]
    assert await storage.audit.list_audit_entries("dev_3", None, 99) == []
    paged: list[AuditEntry] = []
    before = None
    while page := await storage.audit.list_audit_entries("dev_1", before, 2):
        assert len(page) <= 2
        paged += page
        before = PageCursor(page[-1].created_at, page[-1].id)
    assert paged == entries[::-1]
    assert await storage.audit.list_audit_entries("dev_1", PageCursor(NOW, "\0"), 9) == []


async def test_add_audit_entry_keeps_every_field(storage: Storage, seed: Seed) -> None:
    """An entry needs no change. Adding it again is refused, and the database refuses to change or erase it."""
    entry = seed.entry("dev_log", "webhook_secret.revealed")
    await storage.audit.add_audit_entry(entry)
    with pytest.raises(REFUSED):
        await storage.audit.add_audit_entry(replace(entry, actor="nobody"))
    replaced = (
        "INSERT OR REPLACE INTO audit_entries SELECT id, developer_id, created_at, action, 'nobody', via, via_id,"
        " address, subject, details, project_id FROM audit_entries"
    )
    for statement in (
        "UPDATE audit_entries SET actor = 'nobody'",
        "UPDATE audit_entries SET created_at = created_at + 1 WHERE developer_id = 'dev_log'",
        "DELETE FROM audit_entries",
        "DELETE FROM audit_entries WHERE developer_id = 'dev_log'",
        "TRUNCATE audit_entries" if isinstance(storage, PostgresStorage) else replaced,
    ):
        with pytest.raises(Exception, match="append-only"):
            await run(storage, statement)
        assert await storage.audit.list_audit_entries("dev_log", None, 9) == [entry], statement


Method = Callable[..., Awaitable[object]]


class Scene(NamedTuple):
    """A method, values with which it makes a change, and values with which it makes none."""

    method: Method
    changing: tuple[Any, ...]
    idle: list[tuple[Any, ...]]

    async def call(self, entry: AuditEntry, values: tuple[Any, ...]) -> object:
        """Call the method with an entry for the audit log."""
        if "entry" in inspect.signature(self.method).parameters:
            return await self.method(*values, entry=entry)
        return await self.method(*values, describe=lambda _: [entry])


class Stage(NamedTuple):
    """The objects that the scenes change. Ada, on the plan Pro, owns `project` and `rotating`; Bob owns `other`."""

    ada: Developer
    bob: Developer
    linked: Developer
    """A developer with a messenger account."""
    member: Developer
    """A member of `project` with the role developer."""
    token: tuple[AccessToken, bytes]
    session: tuple[ConsoleSession, bytes]
    invitation: tuple[Invitation, bytes]
    for_first: tuple[Invitation, bytes]
    for_bob: tuple[Invitation, bytes]
    for_member: tuple[MemberInvitation, bytes]
    project: Project
    """A project with a webhook, a failed delivery, a held one, and a sign-in of the account 1001 whose event is due."""
    rotating: Project
    other: Project
    """A project with a bot."""
    client: OidcClient
    public_client: OidcClient
    grant: NewGrant
    """A grant of the account 3003 at `client`."""
    failed: Delivery
    held: Delivery


async def set_stage(storage: Storage, seed: Seed) -> Stage:
    """Store the objects that the scenes change."""
    # Otherwise the stage would claim what an earlier one left due.
    await storage.deliveries.claim_deliveries(NOW + 2, NOW + DAY, 100)
    ada, bob = await seed.developer(plan="pro"), await seed.developer()
    linked = Developer(seed.name("dev"), f"{seed.name('a')}@x", "free", NOW, messenger_id=seed.name("account"))
    assert await storage.developers.create_developer(linked)
    await seed.console_session(bob)
    project, rotating, other = (
        await seed.project(ada, webhook_url=URL),
        await seed.project(ada),
        await seed.project(bob),
    )
    assert await storage.projects.rotate_webhook_secret(ada.id, rotating.id, b"next", NOW, NOW + 9)
    bot = ProjectBot(other.id, int(other.id[-6:]), "Shop_Bot", b"encrypted")
    assert await give_bot(storage, bob.id, other.id, bot) == "set"
    failed = await seed.claimed(project)
    assert await seed.attempted(failed, "failed")
    held = await seed.claimed(project)
    await seed.confirmed(project)
    client = await seed.client(project)
    held_by_client = (seed.name("auth"), client.id, 0, project.id, SessionKey(0, b"none"), seed.identity("3003"))
    grant = NewGrant(*held_by_client, "openid", NOW, NOW)

    async def create(transaction: Transaction) -> None:
        await create_grant(transaction, grant)

    await storage.grants._database.in_transaction(create)
    return Stage(
        ada=ada,
        bob=bob,
        linked=linked,
        member=await seed.member(project, "developer"),
        token=await seed.access_token(ada),
        session=await seed.console_session(ada),
        invitation=await seed.invitation(f"{seed.name('i')}@x"),
        for_first=await seed.invitation(),
        for_bob=await seed.invitation(developer=bob),
        for_member=await seed.invite(project),
        project=project,
        rotating=rotating,
        other=other,
        client=client,
        public_client=await seed.client(project, auth_method="none"),
        grant=grant,
        failed=failed,
        held=held,
    )


def scenes(seed: Seed, stage: Stage) -> dict[str, Scene]:
    """Return a scene for each method that takes an entry."""
    store, ada, bob, project, other = seed.storage, stage.ada.id, stage.bob.id, stage.project.id, stage.other.id
    developer = Developer("dev_new", "new@example.com", "free", NOW)
    token = AccessToken("tok_new", ada, "CI", "tap_b…y", NOW)
    session = ConsoleSession("cses_new", ada, NOW, NOW, None, "", "")
    invitation = Invitation("inv_new", "new@example.com", "free", False, None, "Ada", NOW, NOW + 1)  # noqa: FBT003
    (invited, code), for_member = stage.invitation, stage.for_member
    cleo = Developer("dev_cleo", invited.email, "free", NOW, messenger_id="1002")
    linked = stage.linked.messenger_id
    changes, client = ProjectChanges(webhook_url="", is_active=False), stage.client
    new_client, new_project = replace(client, id=seed.name("oidc")), replace(stage.project, id="proj_new")
    new_member = MemberInvitation(seed.name("minv"), project, "developer", NOW, NOW + DAY, "", ada)
    bot, name, failed = ProjectBot(project, 7_000, "Shop_Bot", b"encrypted"), seed.name("gone"), stage.failed.event.id
    taken = replace(bot, bot_id=int(other[-6:]))
    members, member = store.members, stage.member.id

    def of_project(method: Method, *values: object, idle: str = "proj_\0") -> Scene:
        return Scene(method, (ada, project, *values), [(bob, project, *values), (ada, idle, *values)])

    def of_client(method: Method, *values: object, idle: str = "oidc_\0") -> Scene:
        foreign = [
            (developer_id, each, client.id) for developer_id, each in ((bob, project), (bob, other), (ada, other))
        ]
        return Scene(
            method, (ada, project, client.id, *values), [(*each, *values) for each in (*foreign, (ada, project, idle))]
        )

    async def create_client(developer_id: str, client: OidcClient, limit: int, *, entry: AuditEntry) -> bool:
        return await store.oidc_clients.create_client(developer_id, client, b"n", limit=limit, entry=entry)

    async def remove(developer_id: str, delete: bool, *, describe: Any) -> object:  # noqa: FBT001 — a table's column.
        return await store.developers.remove_developer(developer_id, NOW, delete_projects=delete, describe=describe)

    return {
        "create_developer": Scene(
            store.developers.create_developer, (developer,), [(replace(developer, email=stage.ada.email.upper()),)]
        ),
        "create_access_token": Scene(
            store.credentials.create_access_token, (token, b"n" * 32), [(token, stage.token[1])]
        ),
        "delete_access_token": Scene(
            store.credentials.delete_access_token, (ada, stage.token[0].id), [(bob, stage.token[0].id), (ada, "tok_\0")]
        ),
        "create_invitation": Scene(store.developers.create_invitation, (invitation, b"n" * 32), [(invitation, code)]),
        "delete_invitation": Scene(store.developers.delete_invitation, (invited.id,), [("inv_unknown",), ("inv_\0",)]),
        "accept_invitation": Scene(
            store.developers.accept_invitation,
            (code, cleo, NOW),
            [
                (b"?" * 32, cleo, NOW),
                (code, cleo, invited.expires_at),
                (stage.for_first[1], cleo, NOW),
                (code, replace(cleo, email=stage.ada.email.upper()), NOW),
                (code, replace(cleo, messenger_id=linked), NOW),
                (stage.for_bob[1], replace(stage.bob, messenger_id=linked), NOW),
            ],
        ),
        "bind": Scene(
            store.developers.accept_invitation,
            (stage.for_bob[1], replace(stage.bob, messenger_id="1003", messenger_name="Bob"), NOW),
            [],
        ),
        "create_console_session": Scene(
            store.credentials.create_console_session, (session, b"n" * 32), [(session, stage.session[1])]
        ),
        "delete_console_session": Scene(
            store.credentials.delete_console_session,
            (ada, stage.session[0].id),
            [(bob, stage.session[0].id), (ada, "cses_\0")],
        ),
        "delete_console_sessions": Scene(store.credentials.delete_console_sessions, (ada,), [(member,)]),
        "create_project": Scene(
            store.projects.create_project, (new_project, b"n" * 32), [(new_project, seed.key_hash(stage.project))]
        ),
        "update_project": Scene(
            store.projects.update_project,
            (ada, project, changes, NOW),
            [(bob, project, changes, NOW), (ada, "proj_\0", changes, NOW), (ada, project, ProjectChanges(), NOW)],
        ),
        "regenerate_secrets": of_project(store.projects.regenerate_secrets, project.encode(), "sk_n…n", b"encrypted"),
        "rotate_webhook_secret": of_project(
            store.projects.rotate_webhook_secret, b"n", NOW, NOW + 9, idle=stage.rotating.id
        ),
        "promote_webhook_secret": Scene(
            store.projects.promote_webhook_secret,
            (ada, stage.rotating.id, NOW),
            [(bob, stage.rotating.id, NOW), (ada, project, NOW)],
        ),
        "delete_project": of_project(store.projects.delete_project),
        "create_client": Scene(
            create_client, (ada, new_client, 3), [(bob, new_client, 3), (ada, new_client, 2), (ada, client, 3)]
        ),
        "update_client": of_client(store.oidc_clients.update_client, ClientChanges(auth_method="none"), NOW),
        "end_client_grant": of_client(store.grants.end_client_grant, stage.grant.id, NOW),
        "edit_groups": of_client(store.oidc_clients.edit_groups, lambda groups: groups.with_group("staff"), NOW),
        "delete_client": of_client(store.oidc_clients.delete_client),
        "regenerate_client_secret": of_client(
            store.oidc_clients.regenerate_client_secret,
            ClientSecret(b"n" * 32, "ocs_n…n"),
            idle=stage.public_client.id,
        ),
        "turn_off_webhook": Scene(
            store.deliveries.turn_off_webhook,
            (project, URL, "gone", NOW, None),
            [(project, f"{URL}other", "gone", NOW, None), (project, URL, "gone", NOW, NOW - 1)],
        ),
        "resend_delivery": Scene(
            store.deliveries.resend_delivery,
            (ada, failed, NOW + 1),
            [(bob, failed, NOW + 1), (ada, "evt_\0", NOW + 1), (ada, stage.held.event.id, stage.held.leased_until - 1)],
        ),
        "set_bot": Scene(
            partial(give_bot, store),
            (ada, project, bot),
            [(bob, project, bot), (ada, project, taken), (ada, project, None)],
        ),
        "mark_bot_broken": Scene(
            store.bots.mark_bot_broken,
            (other, b"encrypted", NOW),
            [(other, b"another", NOW), ("proj_\0", b"encrypted", NOW)],
        ),
        "update_plan": Scene(store.plans.update_plan, (ada, "free"), [(ada, "pro"), ("dev_\0", "free")]),
        "create_member_invitation": Scene(
            members.create_member_invitation,
            (new_member, b"new"),
            [(replace(new_member, inviter_id="dev_none"), b"new")],
        ),
        "delete_member_invitation": Scene(
            members.delete_member_invitation,
            (ada, project, for_member[0].id),
            [("dev_none", project, for_member[0].id), (ada, project, "minv_none")],
        ),
        "accept_member_invitation": Scene(
            members.accept_member_invitation,
            (for_member[1], bob, NOW),
            [(b"none", bob, NOW), (for_member[1], ada, NOW), (for_member[1], "dev_none", NOW)],
        ),
        "update_role": Scene(
            members.update_role,
            (ada, project, member, "viewer"),
            [(member, project, member, "owner"), (ada, project, ada, "viewer"), (ada, project, member, "developer")],
        ),
        "delete_member": Scene(
            members.delete_member,
            (ada, project, member),
            [(member, project, ada), (ada, project, ada), ("dev_none", project, member)],
        ),
        "remove_developer": Scene(remove, (ada, True), [(ada, False), ("dev_none", True)]),
        "erase_sessions": Scene(
            store.erasure.erase_sessions,
            ("1001", project, ada, 9),
            [("2002", project, ada, 9), ("1001", project, bob, 9)],
        ),
        "erase_person": Scene(
            store.erasure.erase_person,
            ("1001", ada, name, 9, NOW),
            [("2002", ada, name, 9, NOW), ("1001", bob, name, 9, NOW)],
        ),
    }


AUDITED: Final = {
    name
    for part in PARTS.values()
    for name, each in inspect.getmembers(part, inspect.isfunction)
    if not name.startswith("_") and {"entry", "describe"} & inspect.signature(each).parameters.keys()
} - {"add_audit_entry", "end_sign_in"}
"""The methods that take an entry."""


@pytest.mark.parametrize("name", sorted({*AUDITED, "bind", "set_bot"}))
async def test_an_audited_change_has_its_entry_and_a_credential(storage: Storage, seed: Seed, name: str) -> None:
    """Write one entry for each change, only if something changed, and only with a credential that is still valid."""
    ada, bob = await seed.developer(), await seed.developer()
    token, _ = await seed.access_token(ada)
    expired = replace(token, id="tok_expired", expires_at=NOW)
    await storage.credentials.create_access_token(expired, b"e" * 32)
    bobs_token, _ = await seed.access_token(bob)
    bobs_session, _ = await seed.console_session(bob)
    written = seed.entry("dev_log")
    await storage.audit.add_audit_entry(written)
    scene = scenes(seed, await set_stage(storage, seed))[name]
    before = await all_rows(storage)
    entry = replace(seed.entry(ada.id), via="access_token", via_id=token.id)
    for values in scene.idle:
        with contextlib.suppress(*REFUSED, InsufficientRole, LastOwner, ProjectsNeedOwner):
            await scene.call(entry, values)
        assert await all_rows(storage) == before, values
    tokens, sessions = ("tok_gone", expired.id, bobs_token.id, ""), ("cses_gone", bobs_session.id, "")
    refused: list[tuple[AuditEntry, Any]] = [
        (written, REFUSED),
        *((replace(entry, via_id=gone), InvalidAccessToken) for gone in tokens),
        *((replace(entry, via="console", via_id=gone), SignedOut) for gone in sessions),
    ]
    for given, error in refused:
        with pytest.raises(error):
            await scene.call(given, scene.changing)
        assert await all_rows(storage) == before, given
    await scene.call(entry, scene.changing)
    assert await storage.audit.list_audit_entries(ada.id, None, 9) == [entry]
    after = await all_rows(storage)
    assert {table for table in after if after[table] != before[table]} > {"audit_entries"}


ACTIONS: Final[dict[str, ProjectAction]] = {
    "update_project": "write",
    "regenerate_secrets": "secrets",
    "rotate_webhook_secret": "secrets",
    "promote_webhook_secret": "secrets",
    "create_client": "write",
    "update_client": "write",
    "edit_groups": "write",
    "delete_client": "write",
    "end_client_grant": "write",
    "regenerate_client_secret": "write",
    "resend_delivery": "write",
    "erase_sessions": "write",
    "erase_person": "write",
    "create_member_invitation": "members",
    "delete_member_invitation": "members",
    "update_role": "members",
    "delete_member": "members",
    "delete_project": "delete",
}
"""The changes of a project by a member, and the action that each needs."""


async def test_each_change_needs_its_role(storage: Storage, seed: Seed) -> None:
    """Each role, a former member and a stranger can make exactly the changes that `core.roles` permits."""
    failures = []
    callers: list[tuple[str, Role | None]] = [*((role, role) for role in ROLES), ("former", None), ("stranger", None)]
    for (name, action), (who, role) in itertools.product(ACTIONS.items(), callers):
        stage = await set_stage(storage, seed)
        scene, owner_id = scenes(seed, stage)[name], stage.ada.id
        project_id = stage.rotating.id if name == "promote_webhook_secret" else stage.project.id
        project, developer = present(await storage.projects.read_project(project_id)), await seed.developer()
        if who != "stranger":
            developer = await seed.member(project, role or "owner")
        if who == "former":
            await storage.members.delete_member(owner_id, project_id, developer.id)
        changing = tuple(
            replace(value, inviter_id=developer.id)
            if isinstance(value, MemberInvitation)
            else (developer.id if value == owner_id else value)
            for value in scene.changing
        )
        may = role is not None and action in PERMITTED[role]
        try:
            result: object = bool(await scene.call(seed.entry(developer.id), changing))
        except InsufficientRole:
            result = "refused" if role else "told of the project"
        # An erasure is limited to the projects in which the role permits it.
        refused = "refused" if role and name != "erase_person" else False
        if result != (True if may else refused):
            failures.append((name, who, result))
    assert failures == []
