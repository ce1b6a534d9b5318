"""The statements of plans and of erasure follow the rules of `test_queries.py`."""

import pytest
from tests.storage.queries.test_queries import placeholders, plan_of

from taproof.storage.queries import erasure as erasure_queries
from taproof.storage.queries import plans as plan_queries
from taproof.storage.sqlite.store import SqliteStorage

STATEMENTS = {
    name: text
    for module in (plan_queries, erasure_queries)
    for name, text in vars(module).items()
    if name.isupper() and isinstance(text, str)
}
OF_BOTH = sorted(name for name in STATEMENTS if not name.startswith("POSTGRES_") and name != "LOCK_PERSON")
SCANS = {
    "OLDEST_DAY": "SEARCH sessions",  # It takes the first entry of the primary key.
    "FIND_PERSON": "USING PRIMARY KEY (developer_id=? AND messenger_id=?)",  # It asks for each developer.
}


@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_placeholders_first_appear_in_ascending_order(name: str) -> None:
    """SQLite numbers `$n` by first appearance, PostgreSQL by n: only so do both bind the same value."""
    numbers = placeholders(STATEMENTS[name])
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("name", OF_BOTH)
async def test_each_statement_searches_by_an_index(name: str, sqlite: SqliteStorage) -> None:
    """None walks a whole table, however many sessions there are."""
    plan = plan_of(sqlite, STATEMENTS[name])
    walks = [line for line in plan if line.startswith("SCAN") and line != "SCAN CONSTANT ROW"]
    assert any(SCANS[name] in line for line in plan) if name in SCANS else not walks


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("FIND_SIGN_INS", "COVERING INDEX sessions_by_messenger (messenger_id=?)"),
        ("FIND_SIGN_INS_OF_DEVELOPER", "COVERING INDEX sessions_by_messenger (messenger_id=? AND project_id=?)"),
        (
            "LIST_OPENED",
            "INDEX sessions_by_project (project_id=? AND status=? AND created_at>? AND (created_at,id)<(?,?))",
        ),
        ("LIST_OPENED_DAYS", "PRIMARY KEY ((project_id,day)>(?,?))"),
        (
            "ERASE_EVENTS_OF_SESSION",
            "INDEX webhook_events_by_project (project_id=? AND state=? AND type=? AND created_at=?)",
        ),
        ("ERASE_SESSION", "PRIMARY KEY (day=? AND token_hash=?)"),
        ("PURGE_REMOVED_USAGE", "COVERING INDEX removed_usage_by_age (day<?)"),
    ],
)
async def test_each_search_uses_the_index_that_was_made_for_it(name: str, index: str, sqlite: SqliteStorage) -> None:
    """Of a user's sessions only these are looked at, and a page of a walk is read in order."""
    plan = plan_of(sqlite, STATEMENTS[name])
    assert [line for line in plan if index in line]
    assert not [line for line in plan if "TEMP B-TREE" in line]
