"""Lists and numbers: sessions with filters and pages, analytics field by field (contract, Developer endpoints)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from tests.e2e.conftest import Developer, NewPhone, OwnProject, Phone, Service
from tests.e2e.test_spec_tables import assert_error, instant

SESSION_FIELDS = {
    "id",
    "project_id",
    "project_name",
    "messenger_id",
    "messenger_name",
    "messenger_username",
    "status",
    "created_at",
    "confirmed_at",
    "reported_at",
}


@pytest.fixture
def accountant(service: Service, client: httpx.Client, request: pytest.FixtureRequest) -> Developer:
    """Return a developer whose every session the test knows."""
    return Developer(client, service.add_developer(f"{request.node.name}@example.com", "pro"))


def everything(developer: Developer, limit: int, query: str = "") -> list[dict[str, Any]]:
    """Read every page."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = developer.ask("GET", f"/sessions?limit={limit}{query}{cursor}")
        assert set(page) == {"sessions", "next_cursor"}
        assert len(page["sessions"]) == limit or page["next_cursor"] is None
        found += page["sessions"]
        if page["next_cursor"] is None:
            return found
        cursor = f"&cursor={page['next_cursor']}"


def test_session_fields(project: OwnProject, phone: Phone) -> None:
    """A session has the spec's nine fields; identity is "" / null until it is confirmed, and stays (contract)."""
    undecided, cancelled, confirmed, used = (project.generate() for _ in range(4))
    phone.sign_in(cancelled, "Cancel")
    phone.sign_in(confirmed)
    phone.sign_in(used)
    phone.open(undecided["deeplink"])
    project.verify(used["session_token"])
    sessions = everything(project.developer, 200, f"&project_id={project.id}")
    assert [session["status"] for session in sessions] == ["used", "confirmed", "cancelled", "pending"]
    identity = {
        "messenger_id": phone.messenger_id,
        "messenger_name": "Ada Lovelace",
        "messenger_username": phone.user["username"],
    }
    nobody = {"messenger_id": "", "messenger_name": "", "messenger_username": None}
    for session in sessions:
        assert set(session) == SESSION_FIELDS
        assert session["id"].startswith("sess_")
        assert (session["project_id"], session["project_name"]) == (project.id, "Shop")
        known = session["status"] in {"used", "confirmed"}
        assert {field: session[field] for field in identity} == (identity if known else nobody)
        if known:
            assert instant(session["confirmed_at"]) >= instant(session["created_at"])
        else:
            assert session["confirmed_at"] is None
    for token in (each["session_token"] for each in (undecided, cancelled, confirmed, used)):
        assert token not in str(sessions)


def test_pages_and_filters(accountant: Developer, phone: Phone) -> None:
    """Pages of any size list each session once, newest first; project and status filters combine (contract)."""
    first, second = accountant.create_project("First"), accountant.create_project("Second")
    for number in range(8):
        session = (first if number % 2 else second).generate()
        if number in {0, 1, 2}:
            phone.sign_in(session, "Cancel" if number == 2 else "Confirm")
    whole = everything(accountant, 200)
    assert len({session["id"] for session in whole}) == len(whole) == 8
    assert [session["project_name"] for session in whole] == ["First", "Second"] * 4
    times = [instant(session["created_at"]) for session in whole]
    assert times == sorted(times, reverse=True)
    for limit in (1, 2, 3, 7, 8, 9):
        assert everything(accountant, limit) == whole
    assert accountant.ask("GET", "/sessions") == {"sessions": whole, "next_cursor": None}
    for status in ("pending", "confirmed", "cancelled", "expired", "used"):
        in_status = [session for session in whole if session["status"] == status]
        assert everything(accountant, 2, f"&status={status}") == in_status
        for project in (first, second):
            expected = [session for session in in_status if session["project_id"] == project.id]
            query = f"&status={status}&project_id={project.id}"
            assert everything(accountant, 2, query) == expected


def test_default_page(accountant: Developer) -> None:
    """A page has 50 sessions by default and 200 at most (contract)."""
    project = accountant.create_project()
    for _ in range(51):
        project.generate()
    page = accountant.ask("GET", "/sessions")
    assert len(page["sessions"]) == 50
    rest = accountant.ask("GET", f"/sessions?cursor={page['next_cursor']}")
    assert len(rest["sessions"]) == 1
    assert rest["next_cursor"] is None


def test_new_sessions_do_not_shift_pages(project: OwnProject) -> None:
    """A cursor names a place, not an offset: a session created between two pages is on neither (contract)."""
    for _ in range(4):
        project.generate()
    page = project.developer.ask("GET", f"/sessions?project_id={project.id}&limit=2")
    project.generate()
    query = f"/sessions?project_id={project.id}&limit=2&cursor={page['next_cursor']}"
    rest = project.developer.ask("GET", query)
    assert len({session["id"] for session in page["sessions"] + rest["sessions"]}) == 4
    assert rest["next_cursor"] is None


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("limit", ("0", "201", "-1", "1.5", "", "%D9%A1", "9999999999999999999999")),
        ("status", ("done", "", "PENDING")),
        (
            "cursor",
            ("", "garbage", "%00", "%F0%9F%98%80", "AAAA%3D%3D", "OTk5OTk5OTk5OTk5OTk5OTk5OTkuc2Vzc18x", "A" * 3000),
        ),
        ("project_id", ("", "proj_%00", "1%27%20OR%201=1")),
    ],
)
def test_sessions_refuses(developer: Developer, field: str, values: tuple[str, ...]) -> None:
    """An invalid parameter is 400, and the sentence names it (contract, Everywhere)."""
    for value in values:
        response = developer.call("GET", f"/sessions?{field}={value}")
        assert field in assert_error(response, 400, "invalid_request"), value


@pytest.mark.parametrize("query", ["days=1", "days=0", "days=31", "days=", "days=thirty", "days=30.0", "project_id=x"])
def test_analytics_refuses(developer: Developer, query: str) -> None:
    """A window other than 7, 30 or 90 days is refused (contract)."""
    sentence = assert_error(developer.call("GET", f"/analytics?{query}"), 400, "invalid_request")
    assert query.partition("=")[0] in sentence


@pytest.mark.parametrize("path", ["/sessions", "/analytics"])
def test_unknown_project(developer: Developer, path: str) -> None:
    """An unknown project is 404 (contract, Everywhere)."""
    assert_error(developer.call("GET", f"{path}?project_id=proj_{'0' * 22}"), 404, "project_not_found")


def seven_sessions(accountant: Developer, new_phone: NewPhone) -> tuple[OwnProject, OwnProject]:
    first, second = accountant.create_project("First"), accountant.create_project("Second")
    ada, bob = new_phone("Ada"), new_phone("Bob")
    for project, person, button in (
        (first, ada, "Confirm"),
        (first, ada, "Confirm"),
        (first, bob, "Cancel"),
        (second, ada, "Confirm"),
        (second, bob, "Confirm"),
    ):
        session = project.generate()
        person.sign_in(session, button)
        if project is second:
            project.verify(session["session_token"])
    first.generate()
    bob.open(first.generate()["deeplink"])
    return first, second


def test_analytics(service: Service, client: httpx.Client, new_phone: NewPhone) -> None:
    """Every figure is the sum of the created sessions (contract, Analytics)."""
    for attempt in range(2):
        accountant = Developer(client, service.add_developer(f"analytics{attempt}@example.com", "pro"))
        today = datetime.now(UTC).date()
        first, second = seven_sessions(accountant, new_phone)
        answers = {days: accountant.ask("GET", f"/analytics?days={days}") for days in (7, 30, 90)}
        default = accountant.ask("GET", "/analytics")
        one = accountant.ask("GET", f"/analytics?days=7&project_id={first.id}")
        if datetime.now(UTC).date() == today:
            break  # Otherwise the sessions are of two days: once more.

    for days, found in answers.items():
        funnel = {"requested": 7, "opened": 6, "confirmed": 4, "used": 2, "cancelled": 1, "expired": 0, "reported": 0}
        assert found == {
            "total_sessions": 7,
            "confirmed_sessions": 4,
            "unique_users": 2,
            "conversion_rate": 57.1,
            "daily": found["daily"],
            "funnel": funnel,
            "projects": [{"id": first.id, "name": "First"}, {"id": second.id, "name": "Second"}],
        }
        assert [day["date"] for day in found["daily"]] == [
            (today - timedelta(days=ago)).isoformat() for ago in reversed(range(days))
        ]
        *before, last = found["daily"]
        counts = {"sessions": 7, "opened": 6, "confirmed": 4, "cancelled": 1, "expired": 0}
        counts |= {"unique_users": 2, "reported": 0}
        assert last == {"date": last["date"], **counts}
        assert all(day == {"date": day["date"], **dict.fromkeys(counts, 0)} for day in before)

    assert (one["total_sessions"], one["confirmed_sessions"], one["unique_users"]) == (5, 2, 1)
    assert one["conversion_rate"] == 40.0
    taken = {"requested": 5, "opened": 4, "confirmed": 2, "used": 0}
    assert one["funnel"] == {**taken, "cancelled": 1, "expired": 0, "reported": 0}
    assert one["daily"][-1]["unique_users"] == 1
    assert default["daily"] == answers[30]["daily"]


def test_analytics_of_nothing(accountant: Developer) -> None:
    """Without sessions, the conversion rate is 0 and every day is present (contract, Analytics)."""
    found = accountant.ask("GET", "/analytics?days=7")
    assert (found["total_sessions"], found["conversion_rate"], found["projects"]) == (0, 0, [])
    assert len(found["daily"]) == 7
