"""Lists and numbers: sessions with filters and pages, analytics field by field (contract, Developer endpoints)."""

from datetime import UTC, datetime, timedelta

import httpx
from tests.e2e.conftest import Developer, NewPhone, OwnProject, Phone, Service
from tests.e2e.test_spec_tables import instant

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


def test_session_fields(project: OwnProject, phone: Phone) -> None:
    """A session has the spec's nine fields; identity is "" / null until it is confirmed, and stays (contract)."""
    undecided, cancelled, confirmed, used = (project.generate() for _ in range(4))
    phone.sign_in(cancelled, "Cancel")
    phone.sign_in(confirmed)
    phone.sign_in(used)
    phone.open(undecided["deeplink"])
    project.verify(used["session_token"])
    page = project.developer.ask("GET", f"/sessions?project_id={project.id}")
    assert set(page) == {"sessions", "next_cursor"}
    sessions = page["sessions"]
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


def test_default_page(project: OwnProject) -> None:
    """A page has 50 sessions by default (contract)."""
    for _ in range(51):
        project.generate()
    page = project.developer.ask("GET", f"/sessions?project_id={project.id}")
    assert len(page["sessions"]) == 50
    query = f"/sessions?project_id={project.id}&cursor={page['next_cursor']}"
    rest = project.developer.ask("GET", query)
    assert len(rest["sessions"]) == 1
    assert rest["next_cursor"] is None


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
