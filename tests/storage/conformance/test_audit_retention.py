"""Conformance: old entries of the audit log are erased, and one row per developer records that."""

from typing import TYPE_CHECKING

import pytest
from tests.databases import NOW
from tests.storage.conformance.test_audit import run

from taproof.core.accounts import AuditPurge
from taproof.core.clock import DAY
from taproof.storage.protocol import Storage

if TYPE_CHECKING:
    from tests.storage.seed import Seed

EDGE = NOW // DAY * DAY


async def test_purge_audit_entries_erases_what_is_older(storage: Storage, seed: "Seed") -> None:
    """In bounded steps, oldest first. Entries at or after the limit stay, and so do the logs of others."""
    old = [seed.entry("dev_1", at=EDGE - 9 + number) for number in range(9)]
    kept = [seed.entry("dev_1", at=EDGE), seed.entry("dev_1", at=EDGE + 5)]
    of_bob = [seed.entry("dev_2", at=EDGE - 1), seed.entry("dev_2", at=EDGE + 1)]
    of_cleo = seed.entry("dev_3", at=EDGE + 2)
    for entry in (*old, *kept, *of_bob, of_cleo):
        await storage.audit.add_audit_entry(entry)
    assert await storage.audit.read_audit_purge("dev_1") is None
    assert await storage.audit.purge_audit_entries(EDGE, NOW, 4) == 4
    assert await storage.audit.read_audit_purge("dev_1") == AuditPurge(EDGE, 4, NOW)
    # The others are about to be erased: a log does not end in the middle of a day.
    assert await storage.audit.list_audit_entries("dev_1", None, 99) == kept[::-1]
    assert await storage.audit.purge_audit_entries(EDGE, NOW + 1, 4) == 4
    assert await storage.audit.purge_audit_entries(EDGE, NOW + 2, 4) == 2
    assert await storage.audit.purge_audit_entries(EDGE, NOW + 3, 4) == 0
    assert await storage.audit.read_audit_purge("dev_1") == AuditPurge(EDGE, 9, NOW + 2)
    assert await storage.audit.read_audit_purge("dev_2") == AuditPurge(EDGE, 1, NOW + 2)
    assert await storage.audit.read_audit_purge("dev_3") is None
    assert await storage.audit.list_audit_entries("dev_1", None, 99) == kept[::-1]
    assert await storage.audit.list_audit_entries("dev_2", None, 99) == of_bob[1:]
    assert await storage.audit.list_audit_entries("dev_3", None, 99) == [of_cleo]
    assert sorted(await run(storage, "SELECT id FROM audit_entries")) == sorted(
        (entry.id,) for entry in (*kept, of_bob[1], of_cleo)
    )


async def test_read_audit_purge_tells_what_is_gone(storage: Storage, seed: "Seed") -> None:
    """None if nothing was erased; otherwise the limit, the total number, and the time of the last step."""
    for entry in (seed.entry("dev_1", at=EDGE - 2), seed.entry("dev_1", at=EDGE - 1), seed.entry("dev_2", at=EDGE)):
        await storage.audit.add_audit_entry(entry)
    assert await storage.audit.read_audit_purge("dev_1") is None
    assert await storage.audit.purge_audit_entries(EDGE, NOW, 10) == 2
    assert await storage.audit.read_audit_purge("dev_1") == AuditPurge(EDGE, 2, NOW)
    assert [await storage.audit.read_audit_purge(each) for each in ("dev_2", "dev_nobody")] == [None, None]


async def test_the_note_of_an_erasure_does_not_grow(storage: Storage, seed: "Seed") -> None:
    """A hundred days of erasing leave one row with the total; its limit only increases."""
    for day in range(100):
        await storage.audit.add_audit_entry(seed.entry("dev_1", at=EDGE + day * DAY))
        assert await storage.audit.purge_audit_entries(EDGE + (day + 1) * DAY, NOW + day, 10) == 1
    assert await storage.audit.purge_audit_entries(EDGE, NOW, 10) == 0
    assert await run(storage, "SELECT * FROM audit_purges") == [("dev_1", EDGE + 100 * DAY, 100, NOW + 99)]
    assert await run(storage, "SELECT id FROM audit_entries") == []


@pytest.mark.parametrize("before", [EDGE, EDGE + 1])
async def test_nothing_is_erased_that_is_not_written_down(storage: Storage, seed: "Seed", before: int) -> None:
    """The database refuses to erase entries that no such row covers."""
    covered, later, of_bob = (seed.entry("dev_1", at=EDGE - 1), seed.entry("dev_1", at=EDGE + 1), seed.entry("dev_2"))
    for entry in (covered, later, of_bob):
        await storage.audit.add_audit_entry(entry)
    assert await storage.audit.purge_audit_entries(before, NOW, 10) == 1
    for entry in (later, of_bob):
        with pytest.raises(Exception, match="append-only"):
            await run(storage, f"DELETE FROM audit_entries WHERE id = '{entry.id}'")  # noqa: S608
    assert await storage.audit.list_audit_entries("dev_1", None, 9) == [later]
    assert await storage.audit.list_audit_entries("dev_2", None, 9) == [of_bob]
