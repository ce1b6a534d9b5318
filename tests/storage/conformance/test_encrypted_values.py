"""Conformance: encrypted values are listed in bounded pages and replaced only if unchanged."""

import asyncio
import dataclasses
import itertools
from typing import get_args

from tests.storage.seed import Seed, present, run

from taproof.core.clock import DAY, MINUTE
from taproof.core.oidc.clients import SIGNING_ALGS
from taproof.core.oidc.model import NewAuthorization, SigningKey
from taproof.core.projects import EncryptedWebhookSecrets, Project
from taproof.core.sessions import NewPhone, NewSession
from taproof.storage.postgres.store import PostgresStorage
from taproof.storage.protocol import Storage
from taproof.storage.queries.encrypted_values import ENCRYPTED_COLUMNS, EncryptedKind, EncryptedRow, Replacement, RowKey

KINDS: tuple[EncryptedKind, ...] = get_args(EncryptedKind)
URL = "https://example.com/"
_GRANT = """
INSERT INTO oidc_grants (id, encrypted_phone, session_hash, client_id, project_id, messenger_id, messenger_name,
  messenger_username, scopes, auth_time, session_day, client_version, created_at, idle_expires_at, expires_at)
VALUES ($1, $2, $3, '', '', '', '', '', '', 0, 0, 0, 0, 0, 0) RETURNING id"""


async def walk(storage: Storage, kind: EncryptedKind, limit: int = 2) -> list[EncryptedRow]:
    """Return all values of a kind, read in pages of at most `limit`."""
    found: list[EncryptedRow] = []
    after: RowKey | None = None
    for pages in itertools.count(1):
        page = await storage.encrypted_values.list_encrypted_values(kind, after, limit)
        assert len(page.rows) <= limit
        assert pages < 100
        found += page.rows
        if page.after is None:
            return found
        after = page.after
    raise AssertionError


async def phone_of(storage: Storage, seed: Seed, project: Project, at: int) -> NewSession:
    """Return a session whose user gave a phone number, and was asked for it before."""
    session = await seed.opened(project, at=at)
    await seed.asked_for_phone(session, encrypted_token=b"token of " + session.id.encode(), expires_at=at + MINUTE)
    event = seed.event(project)
    phone = NewPhone(b"phone of " + session.id.encode(), event.encrypted_body)
    assert await storage.sessions.confirm_session(session.key, seed.identity("1001"), at, event, phone)
    return session


async def filled(storage: Storage, seed: Seed) -> dict[EncryptedKind, dict[str, bytes]]:
    """Store several values of each kind, with rows without a value between them; return the values by name."""
    projects = sorted(
        [await seed.project(webhook_url=URL, collect_phone=True) for _ in range(5)], key=lambda each: each.id
    )
    for each in projects[1::2]:
        assert await storage.projects.rotate_webhook_secret(
            each.developer_id, each.id, b"next " + each.id.encode(), 1, 2
        )
        await run(
            storage,
            "UPDATE projects SET encrypted_bot_token = $1 WHERE id = $2 RETURNING id",
            b"bot " + each.id.encode(),
            each.id,
        )
    for _ in range(3):
        delivery = await seed.claimed(projects[0])
        assert await seed.attempted(delivery, "due", due_at=seed.now)
        (again,) = await storage.deliveries.claim_deliveries(seed.now, seed.now + MINUTE, 1)
        assert await seed.attempted(again, "failed")
    days = [seed.now - 2 * DAY, seed.now - 2 * DAY, seed.now, seed.now, seed.now + DAY]
    quiet = await seed.project(collect_phone=True)  # Without a webhook, so that its sessions add no event.
    with_phone = [await phone_of(storage, seed, quiet, at) for at in days]
    for at in days:
        await seed.session(projects[0], at)
    signs_in = [
        NewAuthorization(
            seed.name("auth"),
            "oidc_1",
            quiet.id,
            "{}",
            seed.now,
            seed.now,
            encrypted_session=None if number % 2 else b"link %d" % number,
        )
        for number in range(5)
    ]
    for new in signs_in:
        assert await storage.authorizations.create_authorization(new)
    keys = [
        SigningKey(alg, generation, f"{alg} {generation}", b"key %d" % generation, "{}", 1, 1)
        for alg in SIGNING_ALGS
        for generation in (1, 2)
    ]
    for key in keys:
        assert await storage.signing_keys.create_signing_key(key)
    granted = {f"auth_{number:03d}": None if number % 2 else b"phone %d" % number for number in range(5)}
    for grant_id, phone in granted.items():
        await run(storage, _GRANT, grant_id, phone, b"hash")
    marks = {f"mark {number}": b"value %d" % number for number in range(3)}
    for name, value in marks.items():
        await storage.metadata.claim_mark(name, value)
    events = await run(storage, "UPDATE webhook_events SET attempts = attempts RETURNING id, encrypted_body")
    assert len(events) == 3
    return {
        "webhook_secret": {each.id: each.encrypted_webhook_secret for each in (*projects, quiet)},
        "next_webhook_secret": {each.id: b"next " + each.id.encode() for each in projects[1::2]},
        "bot_token": {each.id: b"bot " + each.id.encode() for each in projects[1::2]},
        "event_body": dict(events),
        "webhook_answer": {f"{row[0]} {number}": b"encrypted \0 answer" for row in events for number in (1, 2)},
        "phone": {each.id: b"phone of " + each.id.encode() for each in with_phone},
        "phone_request": {each.id: b"token of " + each.id.encode() for each in with_phone},
        "oidc_session": {each.id: each.encrypted_session for each in signs_in if each.encrypted_session is not None},
        "grant_phone": {grant_id: phone for grant_id, phone in granted.items() if phone is not None},
        "signing_key": {each.kid: each.encrypted_private_key for each in keys},
        "mark": marks,
    }


def by_name(kind: EncryptedKind, rows: list[EncryptedRow]) -> dict[str, bytes]:
    """Return values by the row that they belong to; an event's answers also by number."""
    named = {f"{row.name} {row.key[1]!r}" if kind == "webhook_answer" else row.name: row.encrypted for row in rows}
    assert len(named) == len(rows)
    return named


async def test_list_encrypted_values_walks_through_every_value_once(storage: Storage, seed: Seed) -> None:
    """All values of each kind are listed with their bound names, in pages of any size.

    Rows without a value do not end a walk.
    """
    for kind in KINDS:
        assert await storage.encrypted_values.list_encrypted_values(kind, None, 10) == ([], None)
    expected = await filled(storage, seed)
    for kind, limit in itertools.product(KINDS, (1, 2, 3, 500)):
        assert by_name(kind, await walk(storage, kind, limit)) == expected[kind], kind


async def test_list_encrypted_values_knows_every_encrypted_column(storage: Storage) -> None:
    """A column that is missing from the list would become unreadable when its key is removed."""
    if isinstance(storage, PostgresStorage):
        found = await run(
            storage,
            r"""
            SELECT table_name, column_name FROM information_schema.columns
            WHERE column_name LIKE 'encrypted\_%' AND table_name !~ '^sessions_[0-9]'
            """,
        )
    else:
        found = await run(
            storage,
            """
            SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c
            WHERE m.type = 'table' AND c.name LIKE 'encrypted\\_%' ESCAPE '\\'
            """,
        )
    assert len(found) == 10
    # The check of the key itself is among the marks, whose column has another name.
    assert {(each.table, each.column) for each in ENCRYPTED_COLUMNS.values()} == {*found, ("metadata", "value")}


async def test_replace_encrypted_values_replaces_each_value_in_its_place(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """A batch of each kind is replaced completely, each value in its own row, on every node, and only once."""
    await filled(storage, seed)
    for kind in KINDS:
        rows = await walk(storage, kind)
        batch = [Replacement(row.key, row.encrypted, b"new " + row.encrypted) for row in rows]
        assert await storage.encrypted_values.replace_encrypted_values(kind, batch) == len(rows)
        assert await walk(other_node, kind) == [row._replace(encrypted=b"new " + row.encrypted) for row in rows]
        assert await other_node.encrypted_values.replace_encrypted_values(kind, batch) == 0
        assert await storage.encrypted_values.replace_encrypted_values(kind, []) == 0


async def test_replace_encrypted_values_changes_nothing_else(storage: Storage, seed: Seed) -> None:
    """Nothing else of the project changes, so its proofs can still be repeated (`secrets_version`)."""
    project = await seed.project(webhook_url=URL)
    challenged = await seed.confirmed(project, code_challenge=b"c" * 32)
    consumed = present(await storage.sessions.consume_session(challenged.key, seed.now))
    before = await storage.projects.read_project(project.id)
    replacement = Replacement((project.id,), project.encrypted_webhook_secret, b"new")
    assert await storage.encrypted_values.replace_encrypted_values("webhook_secret", [replacement]) == 1
    after = await storage.projects.read_project(project.id)
    assert before is not None
    assert after == dataclasses.replace(before, encrypted_webhook_secret=b"new")
    reread = await storage.sessions.reread_session(challenged.key, seed.now - 1)
    assert reread == dataclasses.replace(consumed, webhook_secrets=EncryptedWebhookSecrets(b"new"))


async def test_replace_encrypted_values_gives_way_to_every_other_change(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """A value that was rotated, promoted, regenerated or deleted since the read stays; its neighbours are replaced."""
    rotated, promoted, regenerated, deleted, same = projects = [await seed.project() for _ in range(5)]
    for each in (promoted, regenerated, deleted):
        assert await storage.projects.rotate_webhook_secret(
            each.developer_id, each.id, b"next", seed.now, seed.now + DAY
        )
    current = [Replacement((each.id,), each.encrypted_webhook_secret, b"resealed") for each in projects]
    following = [Replacement((each.id,), b"next", b"resealed") for each in projects]
    owner = (rotated.developer_id, rotated.id)
    assert await other_node.projects.rotate_webhook_secret(*owner, b"fresh", seed.now, seed.now + DAY)
    assert await other_node.projects.promote_webhook_secret(promoted.developer_id, promoted.id, seed.now)
    owner = (regenerated.developer_id, regenerated.id)
    assert await other_node.projects.regenerate_secrets(*owner, b"k" * 32, "sk_n", b"regenerated")
    assert await other_node.projects.delete_project(deleted.developer_id, deleted.id)
    # The current secret of the first and the last is still the one that was read; the next one is of none of them.
    assert await storage.encrypted_values.replace_encrypted_values("webhook_secret", current) == 2
    assert await storage.encrypted_values.replace_encrypted_values("next_webhook_secret", following) == 0
    found = [await other_node.projects.read_webhook_secrets(each.id) for each in projects]
    assert found == [
        EncryptedWebhookSecrets(b"resealed", b"fresh", seed.now + DAY),
        EncryptedWebhookSecrets(b"next"),
        EncryptedWebhookSecrets(b"regenerated"),
        None,
        EncryptedWebhookSecrets(b"resealed"),
    ]
    assert same.encrypted_webhook_secret != b"resealed"


async def test_replace_encrypted_values_against_a_promotion_and_itself(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """Of two concurrent replacements on two nodes, one wins, and a promoted secret is never overwritten."""
    for _ in range(12):
        project = await seed.project()
        owner = (project.developer_id, project.id)
        assert await storage.projects.rotate_webhook_secret(*owner, b"next", seed.now, seed.now + DAY)
        old = project.encrypted_webhook_secret
        first, second, _ = await asyncio.gather(
            storage.encrypted_values.replace_encrypted_values(
                "webhook_secret", [Replacement((project.id,), old, b"first")]
            ),
            other_node.encrypted_values.replace_encrypted_values(
                "webhook_secret", [Replacement((project.id,), old, b"second")]
            ),
            other_node.projects.promote_webhook_secret(*owner, seed.now),
        )
        assert first + second <= 1
        assert await storage.projects.read_webhook_secrets(project.id) == EncryptedWebhookSecrets(b"next")
