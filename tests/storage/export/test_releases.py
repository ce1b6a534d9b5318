"""What this release has added to an export: it is carried both ways, and an export without it is still read."""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import apsw
import pytest
from tests.databases import NOW
from tests.storage.export.places import content, export, fill, import_, postgres_place, some_rows, sqlite_place

from taproof.core.accounts import Developer
from taproof.storage.export.format import TABLES, ExportFileWrong
from taproof.storage.postgres.store import PostgresStorage
from taproof.storage.protocol import Storage
from taproof.storage.sqlite.store import SqliteStorage

if TYPE_CHECKING:
    from tests.storage.conftest import Seed

URL = "https://example.com/"
LATER_TABLES: Final = (
    "webhook_attempts",
    "webhook_endpoints",
    "ended_webhooks",
    "invitations",
    "audit_entries",
    "phone_requests",
    "blocks",
    "removed_usage",
)
LATER_COLUMNS: Final[Mapping[str, Mapping[str, object]]] = {
    "developers": {
        "is_owner": 1,
        "messenger_id": None,
        "messenger_name": "",
        "inviter_id": None,
        "sign_in": None,
        "bound_by": None,
    },
    "access_tokens": {"scopes": "read,write,tokens", "parent_id": None, "sign_in": None},
    "projects": {
        "encrypted_next_webhook_secret": None,
        "next_webhook_secret_at": None,
        "secrets_version": 0,
        "phone_required": 1,
        "show_context": 1,
        "match_code": 0,
        "allowed_origins": "",
        "bot_id": None,
        "bot_username": None,
        "encrypted_bot_token": None,
        "bot_broken_at": None,
    },
    "sessions": {
        "code_challenge": None,
        "secrets_version": None,
        "bot_id": 0,
        "context": None,
        "match_code": None,
        "match_choices": None,
        "encrypted_phone": None,
        "reported_at": None,
    },
    "daily_counts": {"reported": 0},
    "webhook_events": {"schedule_start": 0, "interrupted": 0, "session_id": None},
}
"""What an older release does not have, with what takes its place; its only developer becomes the owner."""


def with_footer(lines: list[Any]) -> bytes:
    """Return the file of a header and rows, with the footer that belongs to them."""
    counts = dict.fromkeys(lines[0]["tables"], 0)
    for row in lines[1:]:
        counts[row[0]] += 1
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    return body + json.dumps({"rows": counts, "sha256": hashlib.sha256(body).hexdigest()}).encode() + b"\n"


def as_of_older_release(file: bytes, without: Mapping[str, Collection[str]]) -> bytes:
    """Return an export as a release writes it that has neither the later tables nor these columns."""
    header, *rows, _ = [json.loads(line) for line in file.splitlines()]
    tables = {table: names for table, names in header["tables"].items() if table not in LATER_TABLES}
    lines: list[Any] = [header]
    for row in rows:
        if row[0] in tables:
            values = zip(["", *tables[row[0]]], row, strict=True)
            lines.append([value for name, value in values if name not in without.get(row[0], ())])
    for table, names in without.items():
        tables[table] = [name for name in tables[table] if name not in names]
    header["tables"] = tables
    return with_footer(lines)


async def test_the_export_of_an_older_release_is_imported(tmp_path: Path) -> None:
    """What it lacks is nothing or 0: nothing was rotated, and every schedule stands at its beginning."""
    source = sqlite_place(tmp_path / "source.db")
    await fill(source, some_rows())
    file = as_of_older_release(await export(source), LATER_COLUMNS)
    expected = await content(source)
    for table in LATER_TABLES:
        expected[table] = []
    for table, later in LATER_COLUMNS.items():
        expected[table] = [
            tuple(later.get(column.name, value) for column, value in zip(TABLES[table], row, strict=True))
            for row in expected[table]
        ]
    async with postgres_place() as (postgres, _):
        for place in (postgres, sqlite_place(tmp_path / "place.db")):
            await import_(place, file)
            assert await content(place) == expected
            # From here on it is an export like any other.
            again = sqlite_place(tmp_path / f"again {place is postgres}.db")
            await import_(again, await export(place))
            assert await content(again) == expected


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda lines: lines.append(["webhook_attempts", "evt", 1, 1, 1, 200, None, None]), "no table"),
        (lambda lines: lines[0]["tables"]["projects"].remove("name"), "the column projects.name is missing"),
        (lambda lines: lines[0]["tables"]["projects"].append("created_at"), "columns that this release does not know"),
        (lambda lines: lines[0]["tables"].pop("daily_users"), "the table daily_users is missing"),
    ],
)
async def test_what_an_older_release_had_must_be_there(
    tmp_path: Path, change: Callable[[list[Any]], object], why: str
) -> None:
    """Only what came later may be missing, and rows only of tables that the header names."""
    source, place = sqlite_place(tmp_path / "source.db"), sqlite_place(tmp_path / "place.db")
    await fill(source, some_rows())
    lines = [json.loads(line) for line in as_of_older_release(await export(source), {}).splitlines()[:-1]]
    change(lines)
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    with pytest.raises(ExportFileWrong, match=why):
        await import_(place, body)
    assert not any((await content(place)).values())


async def test_an_older_export_gets_an_owner(tmp_path: Path) -> None:
    """The oldest developer, as where the schema is brought up to date; in a later export it is who it was."""
    source = sqlite_place(tmp_path / "source.db")
    developers = [(f"dev_{number}", f"{number}@x", f"{number}@x", "pro", NOW + number // 3) for number in (3, 2, 1)]
    await fill(source, {"developers": [(*each, 0, None, "", None, None, None) for each in developers]})
    file = await export(source)
    async with postgres_place() as (postgres, _):
        for place in (postgres, sqlite_place(tmp_path / "place.db")):
            await import_(place, as_of_older_release(file, LATER_COLUMNS))
            assert [row[5] for row in (await content(place))["developers"]] == [1, 0, 0]
    place = sqlite_place(tmp_path / "no owner.db")
    await import_(place, file)
    assert [row[5] for row in (await content(place))["developers"]] == [0, 0, 0]


async def test_two_developers_with_one_messenger_account_are_refused(tmp_path: Path) -> None:
    """The line is told, by either store: an account signs in to one developer."""
    source = sqlite_place(tmp_path / "source.db")
    rows: list[Sequence[Any]] = [
        (f"dev_{each}", f"{each}@x", f"{each}@x", "pro", NOW, 0, each, "", None, None, None) for each in "12"
    ]
    await fill(source, {"developers": rows})
    lines = [json.loads(line) for line in (await export(source)).splitlines()[:-1]]
    lines[2][1 + lines[0]["tables"]["developers"].index("messenger_id")] = "1"
    async with postgres_place() as (postgres, _):
        for place in (postgres, sqlite_place(tmp_path / "place.db")):
            with pytest.raises(ExportFileWrong, match="Line 3 of the export: this row of developers cannot be added"):
                await import_(place, with_footer(lines))
            assert not any((await content(place)).values())


async def test_the_console_goes_on_in_the_other_store(tmp_path: Path, new_seed: "Callable[[Storage], Seed]") -> None:
    """Owners, messenger accounts, links that were sent and the audit log, there and back; browsers sign in again."""
    first, last = tmp_path / "first.db", tmp_path / "last.db"
    start, end = sqlite_place(first), sqlite_place(last)
    ada = Developer("dev_1", "Ada@Example.com", "pro", NOW, is_owner=True, messenger_id="1001", messenger_name="Ада")
    async with postgres_place() as (middle, dsn):
        store: Storage = SqliteStorage.open(first, NOW)
        seed = new_seed(store)
        await store.developers.create_developer(ada, entry=seed.entry(ada.id))
        _, cookie_hash = await seed.console_session(ada)
        links = [await seed.invitation("bob@example.com", is_owner=True), await seed.invitation(developer=ada)]
        _, first_hash = await seed.invitation()

        async def seen(store: Storage) -> list[object]:
            hashes = (first_hash, *(code_hash for _, code_hash in links))
            return [
                await store.developers.list_developers(),
                [await store.developers.read_invitation(each, NOW) for each in hashes],
                await store.audit.list_audit_entries(ada.id, None, 9),
            ]

        before = await seen(store)
        await store.close()
        await import_(middle, await export(start))
        store = await PostgresStorage.open(dsn, NOW)
        assert await seen(store) == before
        assert await store.credentials.read_console_session(cookie_hash, NOW, 0) is None
        await store.close()
        await import_(end, await export(middle))
    store = SqliteStorage.open(last, NOW)
    assert await seen(store) == before
    bob = Developer("dev_2", "bob@example.com", "free", NOW)
    assert await store.developers.accept_invitation(links[0][1], bob, NOW) == "accepted"
    with pytest.raises(apsw.ConstraintError, match="append-only"):
        await store.database.change("DELETE FROM audit_entries")
    await store.close()


async def test_webhooks_go_on_in_the_other_store(tmp_path: Path, new_seed: "Callable[[Storage], Seed]") -> None:
    """Rotation, every attempt, since when an endpoint fails and why it is off: as it was, there and back again."""
    first, last = tmp_path / "first.db", tmp_path / "last.db"
    start, end = sqlite_place(first), sqlite_place(last)
    async with postgres_place() as (middle, dsn):
        store: Storage = SqliteStorage.open(first, NOW)
        seed = new_seed(store)
        ada = await seed.developer()
        shop, gone = [await seed.project(ada, webhook_url=URL) for _ in range(2)]
        assert await store.projects.rotate_webhook_secret(ada.id, shop.id, b"\0next\xff", NOW, NOW + 9)
        assert await seed.attempted(await seed.claimed(gone), "failed")
        assert await store.deliveries.turn_off_webhook(gone.id, URL, "gone", NOW + 3, None)
        assert await seed.attempted(await seed.claimed(shop), "delivered")
        retried = await seed.claimed(shop)
        assert await store.deliveries.finish_attempt(retried, seed.attempt(1, None, NOW + 5), "due", NOW + 60)
        await store.deliveries.claim_deliveries(NOW + 60, NOW + 90, 10)

        async def seen(store: Storage) -> list[object]:
            return [
                await store.projects.list_projects(ada.id),
                await store.projects.read_webhook_secrets(shop.id),
                [await store.deliveries.list_deliveries(each.id, None, None, None, 10) for each in (shop, gone)],
            ]

        before = await seen(store)
        await store.close()
        await import_(middle, await export(start))
        store = await PostgresStorage.open(dsn, NOW)
        assert await seen(store) == before
        await store.close()
        await import_(end, await export(middle))
    store = SqliteStorage.open(last, NOW)
    assert await seen(store) == before
    assert await store.deliveries.claim_deliveries(NOW + 89, NOW + 99, 10) == []
    (again,) = await store.deliveries.claim_deliveries(NOW + 90, NOW + 99, 10)
    assert (again.event, again.attempt, again.stage) == (retried.event, 2, 1)
    assert await store.projects.promote_webhook_secret(ada.id, shop.id, NOW)
    await store.close()
