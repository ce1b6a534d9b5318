"""No secret appears where it must not with PostgreSQL either: the walk of tests/e2e/test_canaries.py on that store."""

import pytest
from tests.e2e import test_canaries as canaries

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
