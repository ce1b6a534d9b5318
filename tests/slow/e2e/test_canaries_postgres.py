"""No secret appears where it must not with PostgreSQL either: the walk of tests/e2e/test_canaries.py on that store."""

import pytest
from tests.e2e import test_canaries as canaries
from tests.e2e.canary_search import hits, postgres_cells
from tests.postgres_server import execute, fresh_database

ran, erased = canaries.ran, canaries.erased


@pytest.fixture(scope="module")
def kind() -> str:
    return "postgres"


# They run in this order, because the last one stops the service.
test_the_walk_had_everything = canaries.test_the_walk_had_everything
test_database = canaries.test_database
test_database_files = canaries.test_database_files
test_log = canaries.test_log
test_metrics = canaries.test_metrics
test_errors = canaries.test_errors
test_what_is_never_answered = canaries.test_what_is_never_answered
test_erased_users = canaries.test_erased_users
test_after_the_end = canaries.test_after_the_end


def test_the_search_finds_every_writing_in_postgres() -> None:
    """The search finds every encoding in a text column and in a column of bytes."""
    with fresh_database() as dsn:
        execute(dsn, "CREATE TABLE notes (note BYTEA, words TEXT)")
        for canary, writing in canaries.WRITINGS:
            planted = f"'\\x{canary.literals[writing].hex()}'"
            execute(dsn, "TRUNCATE notes", f"INSERT INTO notes VALUES ({planted}, NULL)")  # noqa: S608 — hex digits.
            assert hits([canary], postgres_cells(dsn)), writing
        execute(dsn, "TRUNCATE notes", "INSERT INTO notes VALUES (NULL, 'call +49 151 1730-4921')")
        assert hits(canaries.PLANTED, postgres_cells(dsn)) == ["phone in notes (grouped)"]
