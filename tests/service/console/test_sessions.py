"""Browsers that are signed in to the console."""

import json
from typing import TYPE_CHECKING

import pytest
from tests.sign_ins import stored_sign_in

from taproof.core.accounts import AccessToken, Actor, AuditEntry, Developer
from taproof.core.clock import DAY, HOUR, MINUTE, SECOND
from taproof.core.entropy import system_entropy
from taproof.core.errors import ConsoleSessionNotFound, StoreUnavailable
from taproof.core.identifiers import is_key, key_hash
from taproof.service.console.sessions import IDLE_LIFETIME, LIFETIME, AuthenticatedSession, ConsoleSessions

if TYPE_CHECKING:
    from tests.service.conftest import Node


@pytest.fixture
def sessions(node: "Node") -> ConsoleSessions:
    return ConsoleSessions(node.storage, node.clock, system_entropy)


async def opened(
    sessions: ConsoleSessions,
    developer: Developer,
    *,
    token: AccessToken | None = None,
    user_agent: str = "Firefox",
) -> tuple[str, AuthenticatedSession]:
    """Open a session; return its cookie and the session that the cookie opens."""
    opened_with = token or await stored_sign_in(sessions._storage, sessions._clock())
    cookie = await sessions.create_console_session(
        developer, opened_with=opened_with, address="203.0.113.7", user_agent=user_agent
    )
    signed_in = await sessions.authenticate(cookie)
    assert signed_in is not None
    return cookie, signed_in


def acting(signed_in: AuthenticatedSession) -> Actor:
    return Actor(signed_in.developer, "console", signed_in.session.id, "203.0.113.9")


async def log_of(node: "Node", developer: Developer) -> list[AuditEntry]:
    """Return the console's entries in a developer's log. The clock does not move, so their order is arbitrary."""
    page = await node.audit.list_audit_entries(developer, limit=50, cursor=None)
    return [entry for entry in page.entries if entry.action.startswith("console.")]


async def test_a_cookie_opens_the_account_and_is_stored_nowhere(node: "Node", sessions: ConsoleSessions) -> None:
    """The cookie is returned once; the store has its hash, and the log the developer, time, address and browser."""
    ada = await node.developer()
    cookie, signed_in = await opened(sessions, ada)
    assert is_key(cookie, "con")
    assert signed_in.developer == ada
    assert signed_in.session == (await sessions.list_console_sessions(ada))[0]
    assert (signed_in.session.address, signed_in.session.user_agent) == ("203.0.113.7", "Firefox")
    (entry,) = await log_of(node, ada)
    assert (entry.action, entry.via, entry.address) == ("console.signed_in", "console", "203.0.113.7")
    assert entry.via_id == entry.subject == signed_in.session.id
    assert cookie not in repr([signed_in, entry])
    assert await node.storage.credentials.read_console_session(key_hash(cookie), node.clock.now, 0) is not None
    assert await node.storage.credentials.read_console_session(cookie.encode(), node.clock.now, 0) is None


async def test_what_is_no_cookie_signs_nobody_in(node: "Node", sessions: ConsoleSessions) -> None:
    """An invalid cookie is not an error. An access token is not a cookie: it signs in only on the sign-in page."""
    ada = await node.developer()
    await opened(sessions, ada)
    token = await node.developers.create_access_token(Actor(ada, "command_line"), "laptop")
    for cookie in (None, "", "con_", "con_" + "0" * 49, "\ud800", "x" * 100_000, token.plaintext):
        assert await sessions.authenticate(cookie) is None


async def test_twelve_idle_hours_end_it(node: "Node", sessions: ConsoleSessions) -> None:
    """A session ends exactly twelve hours after it was last seen, and is then in no list."""
    ada = await node.developer()
    cookie, _ = await opened(sessions, ada)
    for passed, living in ((11 * HOUR, True), (IDLE_LIFETIME - 1, True), (IDLE_LIFETIME, False)):
        node.clock.now += passed
        assert len(await sessions.list_console_sessions(ada)) == living
        assert (await sessions.authenticate(cookie) is not None) == living


async def test_thirty_days_end_it_in_any_case(node: "Node", sessions: ConsoleSessions) -> None:
    """A session ends exactly thirty days after the sign-in, however often it was used since, and is then in no list."""
    assert LIFETIME == 30 * DAY
    ada = await node.developer()
    cookie, _ = await opened(sessions, ada)
    start = node.clock.now
    for passed in range(10 * HOUR, 30 * DAY, 10 * HOUR):
        node.clock.now = start + passed
        assert await sessions.authenticate(cookie) is not None
    for left, living in ((1, True), (0, False)):
        node.clock.now = start + LIFETIME - left
        assert len(await sessions.list_console_sessions(ada)) == living
        for by_itself in (True, False):
            assert (await sessions.authenticate(cookie, by_itself=by_itself) is not None) == living


async def test_what_a_page_asks_by_itself_is_no_use(node: "Node", sessions: ConsoleSessions) -> None:
    """Requests that an open page sends by itself do not prolong a session."""
    cookie, _ = await opened(sessions, await node.developer())
    for _ in range(12):
        assert await sessions.authenticate(cookie, by_itself=True) is not None
        node.clock.now += IDLE_LIFETIME // 12
    assert await sessions.authenticate(cookie, by_itself=True) is None


async def test_a_session_that_is_too_old_is_not_seen_any_more(node: "Node", sessions: ConsoleSessions) -> None:
    """Requests of an ended session do not update its time, so that the purge erases it twelve hours later."""
    cookie, signed_in = await opened(sessions, await node.developer())
    seen = node.clock.now + LIFETIME - MINUTE
    await node.storage.credentials.touch_console_session(signed_in.session.id, seen)
    node.clock.now += LIFETIME + HOUR
    assert await sessions.authenticate(cookie) is None
    kept = await node.storage.credentials.read_console_session(key_hash(cookie), node.clock.now, 0)
    assert kept is not None
    assert kept[0].last_seen_at == seen


async def test_the_last_sight_is_written_once_a_minute_at_most(node: "Node", sessions: ConsoleSessions) -> None:
    """The last-seen time is written at most once a minute, for any number of pages."""
    ada = await node.developer()
    cookie, _ = await opened(sessions, ada)
    start = node.clock.now
    for passed, kept in ((59 * SECOND, 0), (MINUTE, MINUTE), (MINUTE + 59 * SECOND, MINUTE), (3 * MINUTE, 3 * MINUTE)):
        node.clock.now = start + passed
        await sessions.authenticate(cookie)
        assert (await sessions.list_console_sessions(ada))[0].last_seen_at == start + kept


async def test_a_store_that_cannot_be_written_still_shows_pages(
    node: "Node", sessions: ConsoleSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed write of the last-seen time does not fail the page."""

    async def touch_console_session(session_id: str, now: int) -> None:
        raise StoreUnavailable

    cookie, _ = await opened(sessions, await node.developer())
    monkeypatch.setattr(node.storage.credentials, "touch_console_session", touch_console_session)
    node.clock.now += MINUTE
    assert await sessions.authenticate(cookie) is not None


async def test_one_browser_ends_another(node: "Node", sessions: ConsoleSessions) -> None:
    """The session ends immediately; the log names the revoking session and its address."""
    ada = await node.developer()
    cookie, lost = await opened(sessions, ada)
    _, mine = await opened(sessions, ada)
    await sessions.delete_console_session(acting(mine), lost.session.id)
    assert await sessions.authenticate(cookie) is None
    assert [session.id for session in await sessions.list_console_sessions(ada)] == [mine.session.id]
    (entry,) = [entry for entry in await log_of(node, ada) if entry.action != "console.signed_in"]
    assert (entry.action, entry.subject) == ("console.session_revoked", lost.session.id)
    assert (entry.via_id, entry.address) == (mine.session.id, "203.0.113.9")


async def test_signing_out_is_told_apart(node: "Node", sessions: ConsoleSessions) -> None:
    """The log distinguishes signing out oneself from a revocation."""
    ada = await node.developer()
    _, mine = await opened(sessions, ada)
    await sessions.delete_console_session(acting(mine), mine.session.id, signed_out=True)
    assert sorted(entry.action for entry in await log_of(node, ada)) == ["console.signed_in", "console.signed_out"]
    with pytest.raises(ConsoleSessionNotFound):
        await sessions.delete_console_session(acting(mine), mine.session.id, signed_out=True)
    assert len(await log_of(node, ada)) == 2


async def test_what_a_browser_calls_itself_is_kept_in_part(node: "Node", sessions: ConsoleSessions) -> None:
    """A user agent is stored up to two hundred characters, without characters that a store refuses."""
    ada = await node.developer()
    _, signed_in = await opened(sessions, ada, user_agent="a\0b\ud800" + "x" * 1_000)
    assert signed_in.session.user_agent == "ab" + "x" * 198
    assert json.loads((await log_of(node, ada))[0].details)["user_agent"] == signed_in.session.user_agent
