"""Conformance: the audit log. An entry is written in the transaction of its change, and stays."""

import contextlib
import inspect
import itertools
import re
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
from tests.storage.seed import Seed, present

from taproof.contract.client import AuthMethod
from taproof.contract.member import Role
from taproof.core.accounts import AccessToken, AuditEntry, ConsoleSession, Developer, Invitation, MemberInvitation
from taproof.core.clock import DAY
from taproof.core.errors import InsufficientRole, InvalidAccessToken, LastOwner, ProjectsNeedOwner, SignedOut
from taproof.core.oidc.clients import ClientChanges, ClientSecret, OidcClient
from taproof.core.page_cursor import PageCursor
from taproof.core.project_bots import ProjectBot
from taproof.core.projects import Project, ProjectChanges
from taproof.core.roles import PERMITTED, ROLES, ProjectAction
from taproof.storage.export.format import TABLES
from taproof.storage.postgres.store import PostgresStorage
from taproof.storage.protocol import Storage
from taproof.storage.sqlite.store import SqliteStorage

URL: Final = "https://example.com/"
REFUSED: Final = (apsw.ConstraintError, asyncpg.UniqueViolationError)


async def run(storage: Storage, statement: str) -> list[tuple[Any, ...]]:
    """Run a statement that no method offers, on the connection of the store."""
    if isinstance(storage, PostgresStorage):
        return [tuple(row) for row in await storage.database.fetch(statement)]
    assert isinstance(storage, SqliteStorage)
    return await storage.database.change(statement)


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


class Scene(NamedTuple):
    """A method, the values with which it changes something, and those with which it changes nothing."""

    method: Callable[..., Awaitable[object]]
    changing: tuple[Any, ...]
    idle: list[tuple[Any, ...]]

    async def call(self, entry: AuditEntry, values: tuple[Any, ...]) -> object:
        """Call the method with an entry for the audit log."""
        if "entry" in inspect.signature(self.method).parameters:
            return await self.method(*values, entry=entry)
        return await self.method(*values, describe=lambda _: [entry])


async def create_developer(storage: Storage, seed: Seed) -> Scene:
    await seed.developer("ada@example.com")
    new = Developer("dev_new", "bob@example.com", "free", NOW)
    return Scene(storage.developers.create_developer, (new,), [(replace(new, email="ADA@example.com"),)])


async def create_access_token(storage: Storage, seed: Seed) -> Scene:
    token, token_hash = await seed.access_token(await seed.developer())
    new = AccessToken("tok_new", token.developer_id, "CI", "tap_b…y", NOW)
    return Scene(storage.credentials.create_access_token, (new, b"n" * 32), [(new, token_hash)])


async def delete_access_token(storage: Storage, seed: Seed) -> Scene:
    bob = await seed.developer()
    token, _ = await seed.access_token(await seed.developer())
    own, idle = (token.developer_id, token.id), [(bob.id, token.id), (token.developer_id, "tok_\0")]
    return Scene(storage.credentials.delete_access_token, own, idle)


async def create_invitation(storage: Storage, seed: Seed) -> Scene:
    _, code_hash = await seed.invitation("ada@example.com")
    new = Invitation("inv_new", "bob@example.com", "free", False, None, "Ada", NOW, NOW + 1)  # noqa: FBT003
    return Scene(storage.developers.create_invitation, (new, b"n" * 32), [(new, code_hash)])


async def delete_invitation(storage: Storage, seed: Seed) -> Scene:
    invitation, _ = await seed.invitation("ada@example.com")
    return Scene(storage.developers.delete_invitation, (invitation.id,), [("inv_unknown",), ("inv_\0",)])


async def accept_invitation(storage: Storage, seed: Seed) -> Scene:
    first_developer = Developer("dev_1", "ada@example.com", "free", NOW, messenger_id="1001", messenger_name="Ada")
    assert await storage.developers.create_developer(first_developer)
    bob = await seed.developer()
    first, to_bind, new = await seed.invitation(), await seed.invitation(developer=bob), await seed.invitation("c@x")
    await seed.console_session(bob)
    cleo = Developer("dev_new", "c@x", "free", NOW, messenger_id="1002")
    idle = [
        (b"?" * 32, cleo, NOW),
        (new[1], cleo, new[0].expires_at),
        (first[1], cleo, NOW),
        (new[1], replace(cleo, email="Ada@example.com"), NOW),
        (new[1], replace(cleo, messenger_id="1001"), NOW),
        (to_bind[1], replace(bob, messenger_id="1001"), NOW),
    ]
    return Scene(storage.developers.accept_invitation, (new[1], cleo, NOW), idle)


async def bind(storage: Storage, seed: Seed) -> Scene:
    ada = await seed.developer()
    await seed.console_session(ada)
    _, code_hash = await seed.invitation(developer=ada)
    bound = replace(ada, messenger_id="1001", messenger_name="Ada")
    return Scene(storage.developers.accept_invitation, (code_hash, bound, NOW), [])


async def create_console_session(storage: Storage, seed: Seed) -> Scene:
    session, cookie_hash = await seed.console_session(await seed.developer())
    new = ConsoleSession("cses_new", session.developer_id, NOW, NOW, None, "", "")
    return Scene(storage.credentials.create_console_session, (new, b"n" * 32), [(new, cookie_hash)])


async def delete_console_session(storage: Storage, seed: Seed) -> Scene:
    bob = await seed.developer()
    session, _ = await seed.console_session(await seed.developer())
    own, idle = (session.developer_id, session.id), [(bob.id, session.id), (session.developer_id, "cses_\0")]
    return Scene(storage.credentials.delete_console_session, own, idle)


async def delete_console_sessions(storage: Storage, seed: Seed) -> Scene:
    ada, bob = await seed.developer(), await seed.developer()
    await seed.console_session(ada)
    await seed.console_session(ada)
    return Scene(storage.credentials.delete_console_sessions, (ada.id,), [(bob.id,)])


async def create_project(storage: Storage, seed: Seed) -> Scene:
    project = await seed.project()
    new = replace(project, id="proj_new")
    return Scene(storage.projects.create_project, (new, b"n" * 32), [(new, seed.key_hash(project))])


async def update_project(storage: Storage, seed: Seed) -> Scene:
    project, bob = await seed.project(webhook_url=URL), await seed.developer()
    await seed.due_event(project)
    ada_id, changes = project.developer_id, ProjectChanges(webhook_url="", is_active=False)
    idle = [
        (bob.id, project.id, changes, NOW),
        (ada_id, "proj_\0", changes, NOW),
        (ada_id, project.id, ProjectChanges(), NOW),
    ]
    return Scene(storage.projects.update_project, (ada_id, project.id, changes, NOW), idle)


def of_project(
    method: Callable[..., Awaitable[object]], project: Project, bob: Developer, *values: object, other: str = "proj_\0"
) -> Scene:
    """Return the scene of a method that begins with developer and project: another of either changes nothing."""
    ada_id = project.developer_id
    return Scene(method, (ada_id, project.id, *values), [(bob.id, project.id, *values), (ada_id, other, *values)])


async def regenerate_secrets(storage: Storage, seed: Seed) -> Scene:
    project, bob = await seed.project(), await seed.developer()
    return of_project(storage.projects.regenerate_secrets, project, bob, project.id.encode(), "sk_n…n", b"encrypted")


async def rotate_webhook_secret(storage: Storage, seed: Seed) -> Scene:
    bob = await seed.developer()
    project, rotating = await seed.project(bob), await seed.project(bob)
    rotate = storage.projects.rotate_webhook_secret
    assert await rotate(rotating.developer_id, rotating.id, b"next", NOW, NOW + 9)
    return of_project(rotate, project, await seed.developer(), b"n", NOW, NOW + 9, other=rotating.id)


async def promote_webhook_secret(storage: Storage, seed: Seed) -> Scene:
    ada = await seed.developer()
    project, settled = await seed.project(ada), await seed.project(ada)
    assert await storage.projects.rotate_webhook_secret(ada.id, project.id, b"next", NOW, NOW + 9)
    promote = storage.projects.promote_webhook_secret
    return of_project(promote, project, await seed.developer(), NOW, other=settled.id)


async def delete_project(storage: Storage, seed: Seed) -> Scene:
    return of_project(storage.projects.delete_project, await seed.project(), await seed.developer())


async def create_client(storage: Storage, seed: Seed) -> Scene:
    project, bob = await seed.project(), await seed.developer()
    client = await seed.client(project)
    new, ada_id = replace(client, id=seed.name("oidc")), project.developer_id

    async def create(developer_id: str, client: OidcClient, limit: int, *, entry: AuditEntry) -> bool:
        return await storage.oidc_clients.create_client(developer_id, client, b"n", limit=limit, entry=entry)

    return Scene(create, (ada_id, new, 2), [(bob.id, new, 2), (ada_id, new, 1), (ada_id, client, 2)])


async def of_client(
    storage: Storage, seed: Seed, method: str, *values: object, auth_method: AuthMethod | None = None
) -> Scene:
    """Return the scene of a method of one client: another developer, project or client changes nothing."""
    project, bob = await seed.project(), await seed.developer()
    client, ada_id = await seed.client(project), project.developer_id
    other = "oidc_\0" if auth_method is None else (await seed.client(project, auth_method=auth_method)).id
    elsewhere = await seed.project(bob)
    idle = [
        *(
            (developer, project_id, client.id, *values)
            for developer, project_id in ((bob.id, project.id), (bob.id, elsewhere.id), (ada_id, elsewhere.id))
        ),
        (ada_id, project.id, other, *values),
    ]
    return Scene(getattr(storage.oidc_clients, method), (ada_id, project.id, client.id, *values), idle)


async def update_client(storage: Storage, seed: Seed) -> Scene:
    return await of_client(storage, seed, "update_client", ClientChanges(auth_method="none"), NOW)


async def delete_client(storage: Storage, seed: Seed) -> Scene:
    return await of_client(storage, seed, "delete_client")


async def regenerate_client_secret(storage: Storage, seed: Seed) -> Scene:
    secret = ClientSecret(b"n" * 32, "ocs_n…n")
    return await of_client(storage, seed, "regenerate_client_secret", secret, auth_method="none")


async def turn_off_webhook(storage: Storage, seed: Seed) -> Scene:
    project = await seed.project(webhook_url=URL)
    await seed.due_event(project)
    idle = [(project.id, f"{URL}other", "gone", NOW, None), (project.id, URL, "gone", NOW, NOW)]
    return Scene(storage.deliveries.turn_off_webhook, (project.id, URL, "gone", NOW, None), idle)


async def resend_delivery(storage: Storage, seed: Seed) -> Scene:
    project, bob = await seed.project(webhook_url=URL), await seed.developer()
    done = await seed.claimed(project)
    assert await seed.attempted(done, "failed")
    held, ada_id = await seed.claimed(project), project.developer_id
    idle = [
        (bob.id, done.event.id, NOW + 1),
        (ada_id, "evt_\0", NOW + 1),
        (ada_id, held.event.id, held.leased_until - 1),
    ]
    return Scene(storage.deliveries.resend_delivery, (ada_id, done.event.id, NOW + 1), idle)


async def set_bot(storage: Storage, seed: Seed) -> Scene:
    project, other = await seed.project(), await seed.project()
    given, taken = (ProjectBot(each.id, 7_000, "Shop_Bot", b"encrypted") for each in (project, other))
    await give_bot(storage, other.developer_id, other.id, replace(taken, bot_id=8_000))
    ada_id = project.developer_id
    idle = [
        (other.developer_id, project.id, given),
        (ada_id, project.id, replace(given, bot_id=8_000)),
        (ada_id, project.id, None),
    ]
    return Scene(partial(give_bot, storage), (ada_id, project.id, given), idle)


async def mark_bot_broken(storage: Storage, seed: Seed) -> Scene:
    project = await seed.project()
    await give_bot(storage, project.developer_id, project.id, ProjectBot(project.id, 7_000, "Shop_Bot", b"encrypted"))
    idle = [(project.id, b"another", NOW), ("proj_\0", b"encrypted", NOW)]
    return Scene(storage.bots.mark_bot_broken, (project.id, b"encrypted", NOW), idle)


async def update_plan(storage: Storage, seed: Seed) -> Scene:
    ada = await seed.developer(plan="pro")
    return Scene(storage.plans.update_plan, (ada.id, "free"), [(ada.id, "pro"), ("dev_\0", "free")])


async def member_invitation(storage: Storage, seed: Seed, *, is_stored: bool = True) -> tuple[MemberInvitation, bytes]:
    project = await seed.project()
    values = (NOW, NOW + DAY, "ada@example.com", project.developer_id)
    invitation = MemberInvitation(seed.name("minv"), project.id, "developer", *values)
    code_hash = invitation.id.encode()
    if is_stored:
        assert await storage.members.create_member_invitation(invitation, code_hash)
    return invitation, code_hash


async def create_member_invitation(storage: Storage, seed: Seed) -> Scene:
    new = await member_invitation(storage, seed, is_stored=False)
    idle = [(replace(new[0], inviter_id="dev_none"), new[1])]
    return Scene(storage.members.create_member_invitation, new, idle)


async def delete_member_invitation(storage: Storage, seed: Seed) -> Scene:
    invitation, _ = await member_invitation(storage, seed)
    ada_id, project_id = invitation.inviter_id, invitation.project_id
    idle = [("dev_none", project_id, invitation.id), (ada_id, project_id, "minv_none")]
    return Scene(storage.members.delete_member_invitation, (ada_id, project_id, invitation.id), idle)


async def accept_member_invitation(storage: Storage, seed: Seed) -> Scene:
    invitation, code = await member_invitation(storage, seed)
    bob = await seed.developer()
    idle = [(b"none", bob.id, NOW), (code, invitation.inviter_id, NOW), (code, "dev_none", NOW)]
    return Scene(storage.members.accept_member_invitation, (code, bob.id, NOW), idle)


async def with_member(storage: Storage, seed: Seed) -> tuple[str, str, str]:
    """Return the owner of a project, the project, and a member who is a developer."""
    invitation, code_hash = await member_invitation(storage, seed)
    bob = await seed.developer()
    assert await storage.members.accept_member_invitation(code_hash, bob.id, NOW) == "joined"
    return invitation.inviter_id, invitation.project_id, bob.id


async def update_role(storage: Storage, seed: Seed) -> Scene:
    ada, project, bob = await with_member(storage, seed)
    idle = [(bob, project, bob, "owner"), (ada, project, ada, "viewer"), (ada, project, bob, "developer")]
    return Scene(storage.members.update_role, (ada, project, bob, "viewer"), idle)


async def delete_member(storage: Storage, seed: Seed) -> Scene:
    ada, project, bob = await with_member(storage, seed)
    idle = [(bob, project, ada), (ada, project, ada), ("dev_none", project, bob)]
    return Scene(storage.members.delete_member, (ada, project, bob), idle)


async def remove_developer(storage: Storage, seed: Seed) -> Scene:
    ada_id = (await seed.project()).developer_id

    async def remove(developer_id: str, delete: bool, *, describe: Any) -> None:  # noqa: FBT001 — a table's column.
        await storage.developers.remove_developer(developer_id, NOW, delete_projects=delete, describe=describe)

    return Scene(remove, (ada_id, True), [(ada_id, False), ("dev_none", True)])


async def erase_sessions(storage: Storage, seed: Seed) -> Scene:
    project, bob = await seed.project(), await seed.developer()
    await seed.confirmed(project)
    own, idle = ("1001", project.id, project.developer_id, 9), ("2002", project.id, project.developer_id, 9)
    return Scene(storage.erasure.erase_sessions, own, [idle, ("1001", project.id, bob.id, 9)])


async def erase_person(storage: Storage, seed: Seed) -> Scene:
    project, bob = await seed.project(), await seed.developer()
    await seed.confirmed(project)
    ada_id, name = project.developer_id, seed.name("gone")
    idle = [("2002", ada_id, name, 9), ("1001", bob.id, name, 9)]
    return Scene(storage.erasure.erase_person, ("1001", ada_id, name, 9), idle)


SCENES: Final = {
    scene.__name__: scene
    for scene in (
        create_developer,
        create_access_token,
        delete_access_token,
        create_invitation,
        delete_invitation,
        accept_invitation,
        bind,
        create_console_session,
        delete_console_session,
        delete_console_sessions,
        create_project,
        update_project,
        regenerate_secrets,
        rotate_webhook_secret,
        promote_webhook_secret,
        delete_project,
        create_client,
        update_client,
        delete_client,
        regenerate_client_secret,
        turn_off_webhook,
        resend_delivery,
        set_bot,
        mark_bot_broken,
        update_plan,
        create_member_invitation,
        delete_member_invitation,
        accept_member_invitation,
        update_role,
        delete_member,
        remove_developer,
        erase_sessions,
        erase_person,
    )
}


def test_each_method_that_takes_an_entry_has_a_scene() -> None:
    """A method that is added later must follow the same rules."""
    methods = [each for part in PARTS.values() for each in inspect.getmembers(part, inspect.isfunction)]
    taking = {name for name, each in methods if {"entry", "describe"} & inspect.signature(each).parameters.keys()}
    assert taking - {"add_audit_entry", "end_sign_in"} == SCENES.keys() - {"bind", "set_bot"}


@pytest.mark.parametrize("name", SCENES)
async def test_an_audited_change_has_its_entry_and_a_credential(storage: Storage, seed: Seed, name: str) -> None:
    """Once, and only if something changed: not for a wrong owner, a taken address or a missing row.

    No change is made if its entry cannot be written, or by a credential that was revoked, has expired or belongs to
    another developer.
    """
    ada, bob = await seed.developer(), await seed.developer()
    token, _ = await seed.access_token(ada)
    expired = replace(token, id="tok_expired", expires_at=NOW)
    await storage.credentials.create_access_token(expired, b"e" * 32)
    bobs_token, _ = await seed.access_token(bob)
    bobs_session, _ = await seed.console_session(bob)
    written = seed.entry("dev_log")
    await storage.audit.add_audit_entry(written)
    scene = await SCENES[name](storage, seed)
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
    "delete_client": "write",
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
    """Of each role, of a former member and of a stranger: what `core.roles` permits is made, nothing else."""
    failures = []
    callers: list[tuple[str, Role | None]] = [*((role, role) for role in ROLES), ("former", None), ("stranger", None)]
    for (name, action), (who, role) in itertools.product(ACTIONS.items(), callers):
        # Otherwise this scene would claim what earlier ones left due.
        await storage.deliveries.claim_deliveries(NOW + 2, NOW + DAY, 100)
        scene = await SCENES[name](storage, seed)
        values = repr(scene.changing)
        owner_id = re.findall(r"dev_\d+", values)[0]
        (project_id,) = re.findall(r"proj_\d+", values)[:1] or [
            each.project_id for each in await storage.projects.name_projects(owner_id)
        ]
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
