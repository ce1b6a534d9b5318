"""Conformance: the audit log. An entry is written in the transaction of its change, and stays."""

import contextlib
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import apsw
import asyncpg
import pytest
from tests.databases import NOW
from tests.giving_bots import give_bot
from tests.storage.conformance.test_protocol import PARTS

from taproof.contract.account import Plan
from taproof.contract.member import Role
from taproof.core.accounts import AccessToken, AuditEntry, ConsoleSession, Developer, Invitation, MemberInvitation
from taproof.core.clock import DAY
from taproof.core.errors import InsufficientRole, InvalidAccessToken, LastOwner, ProjectsNeedOwner, SignedOut
from taproof.core.oidc.clients import ClientChanges, ClientSecret, OidcClient
from taproof.core.page_cursor import PageCursor
from taproof.core.project_bots import ProjectBot
from taproof.core.projects import ProjectChanges
from taproof.storage.export.format import TABLES
from taproof.storage.postgres.store import PostgresStorage
from taproof.storage.protocol import Storage
from taproof.storage.sqlite.store import SqliteStorage

if TYPE_CHECKING:
    from tests.storage.conftest import Seed

URL: Final = "https://example.com/"
REFUSED: Final = (apsw.ConstraintError, asyncpg.UniqueViolationError)
Call = Callable[[AuditEntry], Awaitable[object]]


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


# ---- the log


async def test_list_audit_entries_is_newest_first_and_the_developers_own(storage: Storage, seed: "Seed") -> None:
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


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_entries SET actor = 'nobody'",
        "UPDATE audit_entries SET created_at = created_at + 1 WHERE developer_id = 'dev_log'",
        "DELETE FROM audit_entries",
        "DELETE FROM audit_entries WHERE developer_id = 'dev_log'",
        {
            "sqlite": "INSERT OR REPLACE INTO audit_entries SELECT id, developer_id, created_at, action, 'nobody', via,"
            " via_id, address, subject, details, project_id FROM audit_entries",
            "postgres": "TRUNCATE audit_entries",
        },
    ],
)
async def test_an_entry_is_never_changed_nor_erased(
    storage: Storage, seed: "Seed", statement: str | dict[str, str]
) -> None:
    """The database refuses it for any statement."""
    entry = seed.entry("dev_log")
    assert await storage.developers.create_developer(Developer("dev_1", "ada@example.com", "free", NOW), entry=entry)
    if isinstance(statement, dict):
        statement = statement["postgres" if isinstance(storage, PostgresStorage) else "sqlite"]
    with pytest.raises(Exception, match="append-only"):
        await run(storage, statement)
    assert await storage.audit.list_audit_entries("dev_log", None, 9) == [entry]


async def test_add_audit_entry_keeps_every_field(storage: Storage, seed: "Seed") -> None:
    """An entry needs no change. Adding it again is refused."""
    entry = seed.entry("dev_log", "webhook_secret.revealed")
    await storage.audit.add_audit_entry(entry)
    assert await storage.audit.list_audit_entries("dev_log", None, 9) == [entry]
    with pytest.raises(REFUSED):
        await storage.audit.add_audit_entry(replace(entry, actor="nobody"))
    assert await storage.audit.list_audit_entries("dev_log", None, 9) == [entry]


# ---- entries and changes


class Scene(NamedTuple):
    """A method with something that it changes, and calls of it that change nothing."""

    change: Call
    idle: list[Call]


async def create_developer(storage: Storage, seed: "Seed") -> Scene:
    await seed.developer("ada@example.com")
    new = Developer("dev_new", "bob@example.com", "free", NOW)
    taken = replace(new, email="ADA@example.com")
    return Scene(
        lambda entry: storage.developers.create_developer(new, entry=entry),
        [lambda entry: storage.developers.create_developer(taken, entry=entry)],
    )


async def create_access_token(storage: Storage, seed: "Seed") -> Scene:
    token, token_hash = await seed.access_token(await seed.developer())
    new = AccessToken("tok_new", token.developer_id, "CI", "tap_b…y", NOW)
    return Scene(
        lambda entry: storage.credentials.create_access_token(new, b"n" * 32, entry=entry),
        [lambda entry: storage.credentials.create_access_token(new, token_hash, entry=entry)],
    )


async def delete_access_token(storage: Storage, seed: "Seed") -> Scene:
    bob = await seed.developer()
    token, _ = await seed.access_token(await seed.developer())
    return Scene(
        lambda entry: storage.credentials.delete_access_token(token.developer_id, token.id, describe=lambda _: [entry]),
        [
            lambda entry: storage.credentials.delete_access_token(bob.id, token.id, describe=lambda _: [entry]),
            lambda entry: storage.credentials.delete_access_token(
                token.developer_id, "tok_\0", describe=lambda _: [entry]
            ),
        ],
    )


async def create_invitation(storage: Storage, seed: "Seed") -> Scene:
    _, code_hash = await seed.invitation("ada@example.com")
    new = Invitation("inv_new", "bob@example.com", "free", False, None, "Ada", NOW, NOW + 1)  # noqa: FBT003
    return Scene(
        lambda entry: storage.developers.create_invitation(new, b"n" * 32, entry=entry),
        [lambda entry: storage.developers.create_invitation(new, code_hash, entry=entry)],
    )


async def delete_invitation(storage: Storage, seed: "Seed") -> Scene:
    invitation, _ = await seed.invitation("ada@example.com")
    return Scene(
        lambda entry: storage.developers.delete_invitation(invitation.id, entry=entry),
        [
            lambda entry: storage.developers.delete_invitation("inv_unknown", entry=entry),
            lambda entry: storage.developers.delete_invitation("inv_\0", entry=entry),
        ],
    )


async def accept_invitation(storage: Storage, seed: "Seed") -> Scene:
    assert await storage.developers.create_developer(
        Developer("dev_1", "ada@example.com", "free", NOW, messenger_id="1001", messenger_name="Ada")
    )
    bob = await seed.developer()
    first, to_bind, new = await seed.invitation(), await seed.invitation(developer=bob), await seed.invitation("c@x")
    await seed.console_session(bob)
    cleo = Developer("dev_new", "c@x", "free", NOW, messenger_id="1002")

    def accept(code_hash: bytes, developer: Developer, at: int = NOW) -> Call:
        return lambda entry: storage.developers.accept_invitation(code_hash, developer, at, entry=entry)

    return Scene(
        accept(new[1], cleo),
        [
            accept(b"?" * 32, cleo),
            accept(new[1], cleo, new[0].expires_at),
            accept(first[1], cleo),
            accept(new[1], replace(cleo, email="Ada@example.com")),
            accept(new[1], replace(cleo, messenger_id="1001")),
            accept(to_bind[1], replace(bob, messenger_id="1001")),
        ],
    )


async def bind(storage: Storage, seed: "Seed") -> Scene:
    ada = await seed.developer()
    await seed.console_session(ada)
    _, code_hash = await seed.invitation(developer=ada)
    bound = replace(ada, messenger_id="1001", messenger_name="Ada")
    return Scene(lambda entry: storage.developers.accept_invitation(code_hash, bound, NOW, entry=entry), [])


async def create_console_session(storage: Storage, seed: "Seed") -> Scene:
    session, cookie_hash = await seed.console_session(await seed.developer())
    new = ConsoleSession("cses_new", session.developer_id, NOW, NOW, None, "", "")
    return Scene(
        lambda entry: storage.credentials.create_console_session(new, b"n" * 32, entry=entry),
        [lambda entry: storage.credentials.create_console_session(new, cookie_hash, entry=entry)],
    )


async def delete_console_session(storage: Storage, seed: "Seed") -> Scene:
    bob = await seed.developer()
    session, _ = await seed.console_session(await seed.developer())
    return Scene(
        lambda entry: storage.credentials.delete_console_session(session.developer_id, session.id, entry=entry),
        [
            lambda entry: storage.credentials.delete_console_session(bob.id, session.id, entry=entry),
            lambda entry: storage.credentials.delete_console_session(session.developer_id, "cses_\0", entry=entry),
        ],
    )


async def delete_console_sessions(storage: Storage, seed: "Seed") -> Scene:
    ada, bob = await seed.developer(), await seed.developer()
    await seed.console_session(ada)
    await seed.console_session(ada)
    return Scene(
        lambda entry: storage.credentials.delete_console_sessions(ada.id, entry=entry),
        [lambda entry: storage.credentials.delete_console_sessions(bob.id, entry=entry)],
    )


async def create_project(storage: Storage, seed: "Seed") -> Scene:
    project = await seed.project()
    new = replace(project, id="proj_new")
    return Scene(
        lambda entry: storage.projects.create_project(new, b"n" * 32, entry=entry),
        [lambda entry: storage.projects.create_project(new, seed.key_hash(project), entry=entry)],
    )


async def update_project(storage: Storage, seed: "Seed") -> Scene:
    project = await seed.project(webhook_url=URL)
    await seed.due_event(project)
    bob = await seed.developer()

    def update(developer_id: str, project_id: str, changes: ProjectChanges) -> Call:
        return lambda entry: storage.projects.update_project(developer_id, project_id, changes, NOW, entry=entry)

    changes = ProjectChanges(webhook_url="", is_active=False)
    return Scene(
        update(project.developer_id, project.id, changes),
        [
            update(bob.id, project.id, changes),
            update(project.developer_id, "proj_\0", changes),
            update(project.developer_id, project.id, ProjectChanges()),
        ],
    )


async def regenerate_secrets(storage: Storage, seed: "Seed") -> Scene:
    project, bob = await seed.project(), await seed.developer()

    def regenerate(developer_id: str, project_id: str) -> Call:
        values = (b"n" * 32, "sk_n…n", b"encrypted")
        return lambda entry: storage.projects.regenerate_secrets(developer_id, project_id, *values, entry=entry)

    return Scene(
        regenerate(project.developer_id, project.id),
        [regenerate(bob.id, project.id), regenerate(project.developer_id, "proj_\0")],
    )


async def rotate_webhook_secret(storage: Storage, seed: "Seed") -> Scene:
    project, bob = await seed.project(), await seed.developer()
    rotating = await seed.project()
    assert await storage.projects.rotate_webhook_secret(rotating.developer_id, rotating.id, b"next", NOW, NOW + 9)

    def rotate(developer_id: str, project_id: str) -> Call:
        return lambda entry: storage.projects.rotate_webhook_secret(
            developer_id, project_id, b"n", NOW, NOW + 9, entry=entry
        )

    return Scene(
        rotate(project.developer_id, project.id),
        [rotate(bob.id, project.id), rotate(rotating.developer_id, rotating.id)],
    )


async def promote_webhook_secret(storage: Storage, seed: "Seed") -> Scene:
    project, bob = await seed.project(), await seed.developer()
    settled = await seed.project()
    assert await storage.projects.rotate_webhook_secret(project.developer_id, project.id, b"next", NOW, NOW + 9)

    def promote(developer_id: str, project_id: str) -> Call:
        return lambda entry: storage.projects.promote_webhook_secret(developer_id, project_id, NOW, entry=entry)

    return Scene(
        promote(project.developer_id, project.id),
        [promote(bob.id, project.id), promote(settled.developer_id, settled.id)],
    )


async def delete_project(storage: Storage, seed: "Seed") -> Scene:
    project, bob = await seed.project(), await seed.developer()
    return Scene(
        lambda entry: storage.projects.delete_project(project.developer_id, project.id, entry=entry),
        [
            lambda entry: storage.projects.delete_project(bob.id, project.id, entry=entry),
            lambda entry: storage.projects.delete_project(project.developer_id, "proj_\0", entry=entry),
        ],
    )


async def create_client(storage: Storage, seed: "Seed") -> Scene:
    project, bob = await seed.project(), await seed.developer()
    client = await seed.client(project)
    new = replace(client, id="oidc_new")

    def create(developer_id: str, client: OidcClient, limit: int = 2) -> Call:
        return lambda entry: storage.oidc_clients.create_client(developer_id, client, b"n", limit=limit, entry=entry)

    return Scene(
        create(project.developer_id, new),
        [create(bob.id, new), create(project.developer_id, new, 1), create(project.developer_id, client)],
    )


async def update_client(storage: Storage, seed: "Seed") -> Scene:
    project, bob = await seed.project(), await seed.developer()
    client = await seed.client(project)

    def update(developer_id: str, client_id: str) -> Call:
        changes = ClientChanges(auth_method="none")
        return lambda entry: storage.oidc_clients.update_client(
            developer_id, project.id, client_id, changes, seed.now, entry=entry
        )

    return Scene(
        update(project.developer_id, client.id), [update(bob.id, client.id), update(project.developer_id, "oidc_\0")]
    )


async def delete_client(storage: Storage, seed: "Seed") -> Scene:
    project, bob = await seed.project(), await seed.developer()
    client = await seed.client(project)

    def delete(developer_id: str, client_id: str) -> Call:
        return lambda entry: storage.oidc_clients.delete_client(developer_id, project.id, client_id, entry=entry)

    return Scene(
        delete(project.developer_id, client.id), [delete(bob.id, client.id), delete(project.developer_id, "oidc_\0")]
    )


async def regenerate_client_secret(storage: Storage, seed: "Seed") -> Scene:
    project, bob = await seed.project(), await seed.developer()
    client, public = await seed.client(project), await seed.client(project, auth_method="none")

    def regenerate(developer_id: str, client_id: str) -> Call:
        secret = ClientSecret(b"n" * 32, "ocs_n…n")
        return lambda entry: storage.oidc_clients.regenerate_client_secret(
            developer_id, project.id, client_id, secret, entry=entry
        )

    return Scene(
        regenerate(project.developer_id, client.id),
        [regenerate(bob.id, client.id), regenerate(project.developer_id, public.id)],
    )


async def turn_off_webhook(storage: Storage, seed: "Seed") -> Scene:
    project = await seed.project(webhook_url=URL)
    await seed.due_event(project)

    def turn_off(url: str, failing_before: int | None) -> Call:
        return lambda entry: storage.deliveries.turn_off_webhook(
            project.id, url, "gone", NOW, failing_before, entry=entry
        )

    return Scene(turn_off(URL, None), [turn_off(f"{URL}other", None), turn_off(URL, NOW)])


async def resend_delivery(storage: Storage, seed: "Seed") -> Scene:
    project, bob = await seed.project(webhook_url=URL), await seed.developer()
    done = await seed.claimed(project)
    assert await seed.attempted(done, "failed")
    held = await seed.claimed(project)

    def resend(developer_id: str, event_id: str, at: int = NOW + 1) -> Call:
        return lambda entry: storage.deliveries.resend_delivery(developer_id, event_id, at, entry=entry)

    return Scene(
        resend(project.developer_id, done.event.id),
        [
            resend(bob.id, done.event.id),
            resend(project.developer_id, "evt_\0"),
            resend(project.developer_id, held.event.id, held.leased_until - 1),
        ],
    )


async def set_bot(storage: Storage, seed: "Seed") -> Scene:
    project, other = await seed.project(), await seed.project()
    given, taken = (ProjectBot(each.id, 7_000, "Shop_Bot", b"encrypted") for each in (project, other))
    await give_bot(storage, other.developer_id, other.id, replace(taken, bot_id=8_000))

    def give(developer_id: str, bot: ProjectBot | None) -> Call:
        return lambda entry: give_bot(storage, developer_id, project.id, bot, entry=entry)

    return Scene(
        give(project.developer_id, given),
        [
            give(other.developer_id, given),
            give(project.developer_id, replace(given, bot_id=8_000)),
            give(project.developer_id, None),
        ],
    )


async def mark_bot_broken(storage: Storage, seed: "Seed") -> Scene:
    project = await seed.project()
    await give_bot(storage, project.developer_id, project.id, ProjectBot(project.id, 7_000, "Shop_Bot", b"encrypted"))

    def mark(project_id: str, encrypted: bytes) -> Call:
        return lambda entry: storage.bots.mark_bot_broken(project_id, encrypted, NOW, entry=entry)

    return Scene(mark(project.id, b"encrypted"), [mark(project.id, b"another"), mark("proj_\0", b"encrypted")])


async def update_plan(storage: Storage, seed: "Seed") -> Scene:
    ada = await seed.developer(plan="pro")

    def update(developer_id: str, plan: Plan) -> Call:
        return lambda entry: storage.plans.update_plan(developer_id, plan, entry=entry)

    return Scene(update(ada.id, "free"), [update(ada.id, "pro"), update("dev_\0", "free")])


async def member_invitation(storage: Storage, seed: "Seed") -> tuple[MemberInvitation, bytes]:
    project = await seed.project()
    invitation = MemberInvitation(
        seed.name("minv"), project.id, "developer", NOW, NOW + DAY, "ada@example.com", project.developer_id
    )
    return invitation, invitation.id.encode()


async def create_member_invitation(storage: Storage, seed: "Seed") -> Scene:
    invitation, code_hash = await member_invitation(storage, seed)

    def create(invitation: MemberInvitation) -> Call:
        return lambda entry: storage.members.create_member_invitation(invitation, code_hash, entry=entry)

    return Scene(create(invitation), [create(replace(invitation, inviter_id="dev_none"))])


async def delete_member_invitation(storage: Storage, seed: "Seed") -> Scene:
    invitation, code_hash = await member_invitation(storage, seed)
    await storage.members.create_member_invitation(invitation, code_hash)

    def delete(developer_id: str, invitation_id: str) -> Call:
        of = (developer_id, invitation.project_id, invitation_id)
        return lambda entry: storage.members.delete_member_invitation(*of, entry=entry)

    idle = [delete("dev_none", invitation.id), delete(invitation.inviter_id, "minv_none")]
    return Scene(delete(invitation.inviter_id, invitation.id), idle)


async def accept_member_invitation(storage: Storage, seed: "Seed") -> Scene:
    invitation, code_hash = await member_invitation(storage, seed)
    await storage.members.create_member_invitation(invitation, code_hash)
    bob = await seed.developer()

    def accept(code_hash: bytes, developer_id: str) -> Call:
        return lambda entry: storage.members.accept_member_invitation(code_hash, developer_id, NOW, entry=entry)

    idle = [accept(b"none", bob.id), accept(code_hash, invitation.inviter_id), accept(code_hash, "dev_none")]
    return Scene(accept(code_hash, bob.id), idle)


async def with_member(storage: Storage, seed: "Seed") -> tuple[MemberInvitation, str]:
    invitation, code_hash = await member_invitation(storage, seed)
    await storage.members.create_member_invitation(invitation, code_hash)
    bob = await seed.developer()
    assert await storage.members.accept_member_invitation(code_hash, bob.id, NOW) == "joined"
    return invitation, bob.id


async def update_role(storage: Storage, seed: "Seed") -> Scene:
    invitation, bob_id = await with_member(storage, seed)
    ada_id, project_id = invitation.inviter_id, invitation.project_id

    def update(developer_id: str, member_id: str, role: Role) -> Call:
        return lambda entry: storage.members.update_role(developer_id, project_id, member_id, role, entry=entry)

    idle = [update(bob_id, bob_id, "owner"), update(ada_id, ada_id, "viewer"), update(ada_id, bob_id, "developer")]
    return Scene(update(ada_id, bob_id, "viewer"), idle)


async def delete_member(storage: Storage, seed: "Seed") -> Scene:
    invitation, bob_id = await with_member(storage, seed)
    ada_id, project_id = invitation.inviter_id, invitation.project_id

    def delete(developer_id: str, member_id: str) -> Call:
        return lambda entry: storage.members.delete_member(developer_id, project_id, member_id, entry=entry)

    return Scene(delete(ada_id, bob_id), [delete(bob_id, ada_id), delete(ada_id, ada_id), delete("dev_none", bob_id)])


async def remove_developer(storage: Storage, seed: "Seed") -> Scene:
    project = await seed.project()

    def remove(developer_id: str, *, delete_projects: bool) -> Call:
        return lambda entry: storage.developers.remove_developer(
            developer_id, NOW, delete_projects=delete_projects, describe=lambda _: [entry]
        )

    idle = [remove(project.developer_id, delete_projects=False), remove("dev_none", delete_projects=True)]
    return Scene(remove(project.developer_id, delete_projects=True), idle)


async def erase_sessions(storage: Storage, seed: "Seed") -> Scene:
    project, bob = await seed.project(), await seed.developer()
    await seed.confirmed(project)

    def erase(messenger_id: str, developer_id: str) -> Call:
        return lambda entry: storage.erasure.erase_sessions(
            messenger_id, project.id, developer_id, 9, describe=lambda _: [entry]
        )

    return Scene(erase("1001", project.developer_id), [erase("2002", project.developer_id), erase("1001", bob.id)])


async def erase_person(storage: Storage, seed: "Seed") -> Scene:
    project, bob = await seed.project(), await seed.developer()
    await seed.confirmed(project)

    def erase(messenger_id: str, developer_id: str) -> Call:
        return lambda entry: storage.erasure.erase_person(
            messenger_id, developer_id, "gone", 9, describe=lambda _: [entry]
        )

    return Scene(erase("1001", project.developer_id), [erase("2002", project.developer_id), erase("1001", bob.id)])


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
async def test_an_entry_is_written_with_its_change(storage: Storage, seed: "Seed", name: str) -> None:
    """Once, and only if something changed: not for a wrong owner, a taken address or a missing row."""
    scene = await SCENES[name](storage, seed)
    before = await all_rows(storage)
    for idle in scene.idle:
        with contextlib.suppress(*REFUSED, InsufficientRole, LastOwner, ProjectsNeedOwner):
            await idle(seed.entry("dev_log"))
        assert await all_rows(storage) == before
    entry = seed.entry("dev_log")
    await scene.change(entry)
    assert await storage.audit.list_audit_entries("dev_log", None, 9) == [entry]
    after = await all_rows(storage)
    assert {table for table in after if after[table] != before[table]} > {"audit_entries"}


@pytest.mark.parametrize("name", SCENES)
async def test_a_change_whose_entry_cannot_be_written_is_undone(storage: Storage, seed: "Seed", name: str) -> None:
    """No change happens without its entry."""
    entry = seed.entry("dev_log")
    assert await storage.developers.create_developer(Developer("dev_before", "before@x", "free", NOW), entry=entry)
    scene = await SCENES[name](storage, seed)
    before = await all_rows(storage)
    with pytest.raises(REFUSED):
        await scene.change(entry)
    assert await all_rows(storage) == before
    await scene.change(replace(entry, id="aud_other"))
    assert await all_rows(storage) != before


@pytest.mark.parametrize("name", SCENES)
async def test_a_change_by_a_credential_that_has_ended_is_undone(storage: Storage, seed: "Seed", name: str) -> None:
    """No audited change is made by a credential that was revoked, has expired or belongs to another developer."""
    ada, bob = await seed.developer(), await seed.developer()
    token, _ = await seed.access_token(ada)
    expired = replace(token, id="tok_expired", expires_at=NOW)
    await storage.credentials.create_access_token(expired, b"e" * 32)
    bobs_token, _ = await seed.access_token(bob)
    bobs_session, _ = await seed.console_session(bob)
    scene = await SCENES[name](storage, seed)
    before = await all_rows(storage)
    entry = replace(seed.entry(ada.id), via="access_token")
    for gone in ("tok_gone", expired.id, bobs_token.id, ""):
        with pytest.raises(InvalidAccessToken):
            await scene.change(replace(entry, via_id=gone))
        assert await all_rows(storage) == before
    for gone in ("cses_gone", bobs_session.id, ""):
        with pytest.raises(SignedOut):
            await scene.change(replace(entry, via="console", via_id=gone))
        assert await all_rows(storage) == before
    await scene.change(replace(entry, via_id=token.id))
    assert await storage.audit.list_audit_entries(ada.id, None, 9) == [replace(entry, via_id=token.id)]
