"""A session expires after ten minutes. The tests move `expires_at` in the database, as no clock moves over HTTP."""

import contextlib
import hashlib
import time
from collections.abc import Iterator

import apsw
import pytest
from tests.e2e.conftest import Developer, OwnProject, Phone, Service
from tests.waiting import wait_until


@pytest.fixture
def database(service: Service) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(service.database))
    connection.set_busy_timeout(10_000)
    yield connection
    connection.close()


def stored_status(database: apsw.Connection, session: dict[str, str]) -> str:
    token_hash = hashlib.sha256(session["session_token"].encode()).digest()
    [(status,)] = database.execute("SELECT status FROM sessions WHERE token_hash = ?", (token_hash,))
    return str(status)


def let_expire(database: apsw.Connection, session: dict[str, str]) -> None:
    """Make a session expire one second ago."""
    token_hash = hashlib.sha256(session["session_token"].encode()).digest()
    database.execute(
        "UPDATE sessions SET expires_at = ? WHERE token_hash = ?", (time.time_ns() // 1_000_000 - 1_000, token_hash)
    )
    assert database.changes() == 1


def let_token_expire(service: Service, token_id: str) -> None:
    """Make an access token expire now."""
    with contextlib.closing(apsw.Connection(str(service.database))) as database:
        database.set_busy_timeout(10_000)
        now = time.time_ns() // 1_000_000
        database.execute("UPDATE access_tokens SET expires_at = ? WHERE id = ?", (now, token_id))
        assert database.changes() == 1


def test_expired_before_it_is_written_down(project: OwnProject, database: apsw.Connection) -> None:
    """A session is expired from the instant its time is over, even before the expiry is recorded (contract)."""
    for _ in range(10):
        session = project.generate()
        let_expire(database, session)
        # While this transaction holds the only write lock, housekeeping cannot record the expiry.
        database.execute("BEGIN IMMEDIATE")
        try:
            written = stored_status(database, session) != "pending"
            assert project.verify(session["session_token"]) == {"status": "expired"}
        finally:
            database.execute("ROLLBACK")
        if not written:
            return
    pytest.fail("Housekeeping was quicker every time.")


def test_open_after_expiry(project: OwnProject, phone: Phone, database: apsw.Connection) -> None:
    """An expired deeplink does not work: opening it gives no buttons and no owner (spec, States)."""
    session = project.generate()
    let_expire(database, session)
    assert not any(message["buttons"] for message in phone.open(session["deeplink"]))
    assert project.verify(session["session_token"]) == {"status": "expired"}


@pytest.mark.parametrize("button", ["Confirm", "Cancel"])
def test_tap_after_expiry(project: OwnProject, phone: Phone, database: apsw.Connection, button: str) -> None:
    """A tap at or after the end of the ten minutes decides nothing (contract, Session endpoints)."""
    session = project.generate()
    phone.open(session["deeplink"])
    let_expire(database, session)
    phone.tap(button)
    assert project.verify(session["session_token"]) == {"status": "expired"}
    [listed] = project.developer.ask("GET", f"/sessions?project_id={project.id}")["sessions"]
    assert listed["status"] == "expired"
    assert (listed["messenger_id"], listed["messenger_name"], listed["messenger_username"]) == ("", "", None)
    assert listed["confirmed_at"] is None
    assert project.read()["confirmed_count"] == 0


def test_housekeeping_counts(
    developer: Developer, project: OwnProject, phone: Phone, database: apsw.Connection
) -> None:
    """Expiry is recorded and counted once; a confirmed session does not expire (spec, States; Analytics)."""
    sessions = [project.generate() for _ in range(3)]
    phone.sign_in(sessions[0])
    for session in sessions:
        let_expire(database, session)
    wait_until(lambda: all(stored_status(database, session) == "expired" for session in sessions[1:]))
    assert project.verify(sessions[0]["session_token"])["status"] == "confirmed"
    funnel = developer.ask("GET", f"/analytics?project_id={project.id}")["funnel"]
    taken = {"requested": 3, "opened": 1, "confirmed": 1, "used": 1}
    assert funnel == {**taken, "cancelled": 0, "expired": 2, "reported": 0}
    later = developer.create_project("Later").generate()
    let_expire(database, later)
    wait_until(lambda: stored_status(database, later) == "expired")  # By then, housekeeping has run once more.
    assert developer.ask("GET", f"/analytics?project_id={project.id}")["funnel"] == funnel
