"""Rules for the statements that both stores share: placeholders that both understand, plans that use indexes."""

import pkgutil
import re
from importlib import import_module

import apsw

from taproof.storage import queries
from taproof.storage.queries.database import PointRead, Purge
from taproof.storage.sqlite.store import SqliteStorage

VERBS = ("SELECT ", "INSERT ", "UPDATE ", "DELETE ", "WITH ")
CONSTANTS = [
    (name, value)
    for module in pkgutil.iter_modules(queries.__path__, f"{queries.__name__}.")
    for name, value in vars(import_module(module.name)).items()
    if name.isupper() and not name.startswith("_")
]
STATEMENTS = {
    **{name: text for name, text in CONSTANTS if isinstance(text, str) and text.lstrip().startswith(VERBS)},
    **{name: read.one for name, read in CONSTANTS if isinstance(read, PointRead)},
    **{name: purge.sqlite for name, purge in CONSTANTS if isinstance(purge, Purge)},
    **{f"ANY_{name}": purge.find_any for name, purge in CONSTANTS if isinstance(purge, Purge)},
}
PLACEHOLDER = re.compile(r"\$(\d+)")

# Every statement must search by an index, but for these, by their reasons.
SCANS = {
    "It lists them all, for the command line.": "LIST_DEVELOPERS",
    "There are as many as people were invited in a week.": "REPLACE_INVITATIONS SETTLE_INVITATIONS",
    "It walks over what it has found.": "FIND_ACCESS_TOKENS_CREATED FIND_INVITED_DEVELOPERS FIND_MEMBERS_OF_SIGN_IN",
    "It asks whether there is any developer, and looks at the first.": "JUDGE_INVITATION",
    "It takes the first row in the order of the primary key.": "NEXT_DELETED_PROJECT NEXT_ENDED_WEBHOOK",
    "It walks over the list of projects that it is given; the test below has its index.": (
        "FIND_DUE FIND_SESSION FIND_NEWEST FIND_NEWEST_BY_EXPIRY FIND_NEWEST_OF_USER READ_PROJECTS TELL_EXPIRED"
    ),
    "It walks over the developers of all projects, for an operator who erases a user.": "FIND_PERSON FIND_PERSONS",
    "It walks over the developers that it has found by an index.": "FIND_CREATORS",
    "It groups the days that it has found by two indexes.": "READ_DAILY_USERS",
    "There are a handful, for an operator.": "LIST_LEASES",
    "It counts the index of due events, for an operator.": "COUNT_WAITING",
    "It walks over all projects and searches each one's failed events, for an operator.": "COUNT_DEAD_LETTERS",
    "It walks over what it has found; the test below has its index.": "LIST_PROJECTS_OF_USER",
}


def placeholders(statement: str) -> list[int]:
    """Return the numbers of a statement's placeholders in the order of their first appearance."""
    return list(dict.fromkeys(int(number) for number in PLACEHOLDER.findall(statement)))


def plan_of(sqlite: SqliteStorage, statement: str) -> list[str]:
    """Return the lines of SQLite's plan."""
    values = (1,) * len(placeholders(statement))
    return [row[3] for row in sqlite.database.reader.execute(f"EXPLAIN QUERY PLAN {statement}", values)]


def test_there_are_statements() -> None:
    """The list is not empty and has no duplicate names, so that the tests below check every statement."""
    found = {(name, text) for name, text in CONSTANTS if isinstance(text, str) and text.lstrip().startswith(VERBS)}
    assert len(found) > 120
    assert len(found) == len({name for name, _ in found})


def test_placeholders_first_appear_in_ascending_order() -> None:
    """SQLite numbers `$n` by first appearance and PostgreSQL by n, so only this order binds the same values."""
    wrong = [
        name
        for name, statement in STATEMENTS.items()
        if (numbers := placeholders(statement)) != list(range(1, len(numbers) + 1))
        or "?" in statement
        or "{" in statement
    ]
    assert not wrong, f"not $1, $2, … in this order, or with ? or {{: {wrong}"


async def test_each_statement_fits_the_schema_and_searches_by_an_index(sqlite: SqliteStorage) -> None:
    """Each statement is prepared on the real tables.

    None scans a whole table, so its cost does not grow with the sessions.
    """
    wrong: dict[str, object] = {}
    for name, statement in STATEMENTS.items():
        try:
            plan = plan_of(sqlite, statement)
        except apsw.Error as error:
            wrong[name] = error
            continue
        # A constant row is no table: it stands for the values of an INSERT with a condition.
        walks = [line for line in plan if line.startswith("SCAN") and line != "SCAN CONSTANT ROW"]
        if walks and name not in " ".join(SCANS.values()).split():
            wrong[name] = walks
    assert not wrong, f"does not fit the schema, or walks a whole table: {wrong}"


HOT = {
    "PRIMARY KEY (day=? AND token_hash=?)": (
        "POLL_SESSION READ_SESSION OPEN_SESSION CONFIRM_SESSION CANCEL_SESSION AWAIT_RETURN RENEW_RETURN "
        "READ_RETURNING_USER RETURN_SESSION CONSUME_SESSION REPORT_SESSION IS_KEPT ERASE_SESSION "
        "SIGN_IN_IS_OF_DEVELOPER"
    ),
    "COVERING INDEX sessions_pending (expires_at<?)": "EXPIRE_SESSIONS ANY_OVERDUE_SESSION",
    "INDEX sessions_by_project (project_id=? AND status=? AND created_at>? AND (created_at,id)<(?,?))": "LIST_SESSIONS",
    "sessions_by_messenger (messenger_id=? AND project_id=? AND status=? AND created_at>? AND (created_at,id)<": (
        "LIST_SESSIONS_OF_USER"
    ),
    "INDEX sessions_by_project (project_id=? AND status=? AND created_at=? AND id=?)": "FIND_SESSION",
    "COVERING INDEX sessions_by_messenger (messenger_id=? AND project_id>?)": "LIST_PROJECTS_OF_USER",
    "webhook_events_by_project (project_id=? AND state=? AND type=? AND created_at=?)": "END_CONFIRMED_EVENT",
    "COVERING INDEX sessions_by_opener (opener_id=? AND project_id>?)": "FIND_PROJECT",
    "COVERING INDEX sessions_by_opener (opener_id=? AND project_id=?)": "FIND_PROJECT_OF_DEVELOPER FIND_SESSIONS",
    "INDEX sessions_by_opener (opener_id=? AND project_id=? AND (day,token_hash)>(?,?))": "EXPORT_SESSIONS",
    "INDEX webhook_events_by_project (project_id=? AND state=? AND type=? AND created_at=?)": (
        "ERASE_EVENTS_OF_SESSION EXPORT_EVENTS_OF_SESSION FIND_DELIVERIES"
    ),
    "PRIMARY KEY (developer_id=? AND messenger_id=? AND (day,project_id)>(?,?))": (
        "EXPORT_PERSON EXPORT_PERSON_IN_PROJECTS"
    ),
    "PRIMARY KEY (messenger_id=? AND project_id>?)": "EXPORT_BLOCKS_OF_USER",
    "INDEX user_days_by_last (project_id=? AND last_at>? AND (last_at,messenger_id)<(?,?))": "LIST_USERS",
    "INDEX sessions_reported (messenger_id=? AND project_id=?)": "LIST_USERS",
    "INDEX user_days_by_project (project_id=? AND developer_id=? AND messenger_id=?)": "READ_USER ADD_NEWEST_USER_DAY",
    "PRIMARY KEY (developer_id=? AND messenger_id=? AND day=? AND project_id=?)": "SIGN_IN_AGAIN",
    "COVERING INDEX removed_usage_by_age (day<?)": "PURGE_REMOVED_USAGE",
    "PRIMARY KEY (messenger_id=? AND project_id=?)": "IS_BLOCKED",
    "COVERING INDEX sessions_by_project (project_id=?)": "ERASE_SESSIONS",
    "COVERING INDEX webhook_events_due (due_at<?)": "FIND_DUE READ_OLDEST_DUE",
    "INDEX webhook_events_by_project (project_id=? AND state=? AND type=? AND (created_at,id)<(?,?))": (
        "LIST_DELIVERIES"
    ),
    "INDEX webhook_events_by_project (project_id=? AND state=?)": "END_DELIVERIES",
    "PRIMARY KEY (id=?)": "READ_EVENT_BODY",
    "PRIMARY KEY (event_id=?)": "READ_ATTEMPTS",
    "PRIMARY KEY (event_id=? AND number<?)": "ERASE_ATTEMPTS",
    "COVERING INDEX bot_updates_by_age (claimed_at<?)": "PURGE_UPDATES",
    "(token_hash=?)": "READ_ACCESS_TOKEN READ_CONSOLE_SESSION",
    "(secret_key_hash=?)": "READ_PROJECT_BY_SECRET_KEY",
    "INDEX access_tokens_by_developer (developer_id=?)": "CREATE_ACCESS_TOKEN",
    "COVERING INDEX projects_by_developer (developer_id=?)": "CREATE_PROJECT",
    "INDEX console_sessions_by_developer (developer_id=?)": "LIST_CONSOLE_SESSIONS",
    "INDEX console_sessions_by_age (last_seen_at<?)": "PURGE_CONSOLE_SESSIONS",
    "(code_hash=?)": "READ_INVITATION READ_MEMBER_INVITATION",
    "(messenger_id=?)": "READ_DEVELOPER_BY_MESSENGER_ID",
    "INDEX member_invitations_by_project (project_id=?)": "LIST_MEMBER_INVITATIONS",
    "PRIMARY KEY (project_id=? AND developer_id=?)": "READ_MEMBER_PROJECT FIND_ROLE",
    "INDEX audit_entries_by_project (project_id=? AND (created_at,id)<(?,?))": "LIST_AUDIT_ENTRIES_OF_PROJECT",
    "PRIMARY KEY (developer_id=? AND created_at>? AND (created_at,id)<(?,?))": "LIST_AUDIT_ENTRIES",
}
"""Indexes, and the statements that must use them without a sort."""
SORTED = {
    "COVERING INDEX sessions_by_project (project_id=? AND status=? AND created_at>? AND": "FIND_NEWEST",
    "INDEX sessions_by_project (project_id=? AND status=? AND created_at>? AND": "FIND_NEWEST_BY_EXPIRY",
    "sessions_by_messenger (messenger_id=? AND project_id=? AND status=? AND created_at>?": "FIND_NEWEST_OF_USER",
    "PRIMARY KEY (developer_id=? AND messenger_id=?)": "FIND_PERSON",
    "PRIMARY KEY (project_id=? AND day>?)": "READ_DAILY_TOTALS",
    "SEARCH p USING PRIMARY KEY (id=?)": "READ_PROJECTS",
    "SEARCH projects USING PRIMARY KEY (id=?)": "TELL_EXPIRED",
    "INDEX audit_entries_by_age (created_at<?)": "FIND_OLD_ENTRIES",
    "COVERING INDEX project_members_by_developer (developer_id=?)": "NAME_PROJECTS COUNT_PROJECTS",
}
"""The same of statements across projects. What they sort at the end is a page, or a day each."""


async def test_statements_use_the_index_that_was_made_for_them(sqlite: SqliteStorage) -> None:
    """Each statement searches by day and hash, or by project."""
    wrong = []
    for index, names in (*HOT.items(), *SORTED.items()):
        for name in names.split():
            plan = "\n".join(plan_of(sqlite, STATEMENTS[name]))
            if index not in plan or (index in HOT and "TEMP B-TREE" in plan):
                wrong.append((name, index, plan))
    assert not wrong, f"without this index, or sorted: {wrong}"
