"""One session by its id, and the filters of the list of sessions (contract.md, Developer endpoints)."""

from typing import Any

import pytest
from tests.api.conftest import START, Api, assert_error

from taproof.core.clock import MINUTE, SECOND, iso8601
from taproof.core.identity import MessengerIdentity


async def get(api: Api, path: str, token: str) -> Any:
    response = await api.call("GET", path, token)
    assert response.status_code == 200, response.text
    return response.json()


async def sign_in(api: Api, project: Any, user: str) -> None:
    """Let a user confirm a sign-in, a minute after the one before."""
    api.clock.now += MINUTE
    session_token = (await api.signin.create_session(project["id"], public=True)).session_token
    await api.signin.open_session(session_token, user)
    await api.signin.confirm_session(session_token, MessengerIdentity(user, "Ada", "ada"))


async def test_one_session_shows_what_the_list_shows(api: Api) -> None:
    """The nine fields, at every stage, and never the session token."""
    _, token = await api.sign_up("ada@example.com")
    project = await api.post("/projects", token, {"name": "Acme"})
    created = await api.signin.create_session(project["id"], public=True)
    [listed] = (await get(api, "/sessions", token))["sessions"]
    for status in ("pending", "confirmed", "used"):
        if status == "confirmed":
            await api.signin.open_session(created.session_token, "42")
            await api.signin.confirm_session(created.session_token, MessengerIdentity("42", "Ada", ""))
        if status == "used":
            await api.signin.verify_session(project["id"], created.session_token, public=True)
        response = await api.call("GET", f"/sessions/{listed['id']}", token)
        assert response.json() == (await get(api, "/sessions", token))["sessions"][0]
        assert (response.json()["status"], response.headers["cache-control"]) == (status, "no-store")
        assert created.session_token not in response.text


@pytest.mark.parametrize(
    "session_id", ["x", "sess_", "sess_%00", "%ED%A0%80", "sess_" + "a" * 22, "sess_" + "a" * 5000]
)
async def test_an_unknown_session_is_404(api: Api, session_id: str) -> None:
    """No form of id that was not given out reaches the store, or is told apart from one that is gone."""
    _, token = await api.sign_up("ada@example.com")
    sentence = assert_error(await api.call("GET", f"/sessions/{session_id}", token), 404, "session_not_found")
    assert sentence == "There is no such session. List yours with GET /api/v1/dev/sessions."


async def test_a_foreign_session_is_404(api: Api) -> None:
    """With the very answer that an unknown one gets; a stranger without a token learns less."""
    _, owner = await api.sign_up("ada@example.com")
    _, stranger = await api.sign_up("eve@example.com")
    project = await api.post("/projects", owner, {"name": "Acme"})
    await api.signin.create_session(project["id"], public=True)
    [session] = (await get(api, "/sessions", owner))["sessions"]
    foreign = await api.call("GET", f"/sessions/{session['id']}", stranger)
    unknown = await api.call("GET", "/sessions/sess_0Bv7TqLm29XcYdKpRfWzHs01234", stranger)
    assert foreign.content == unknown.content
    assert_error(foreign, 404, "session_not_found")
    assert_error(await api.call("GET", f"/sessions/{session['id']}"), 401, "invalid_access_token")


async def test_the_list_is_filtered_by_time_and_account(api: Api) -> None:
    """`since` is in, `until` is not, whatever their offset; both go with an account and through all pages."""
    _, token = await api.sign_up("ada@example.com")
    project = await api.post("/projects", token, {"name": "Acme"})
    for number in range(6):
        await sign_in(api, project, str(number % 2))
    for query, expected in (
        ("", [6, 5, 4, 3, 2, 1]),
        (f"since={iso8601(START + 3 * MINUTE)}", [6, 5, 4, 3]),
        (f"until={iso8601(START + 3 * MINUTE)}", [2, 1]),
        (f"since={iso8601(START + 2 * MINUTE)}&until={iso8601(START + 5 * MINUTE)}", [4, 3, 2]),
        (f"since={iso8601(START + 3 * MINUTE).replace('Z', '-00:00')}", [6, 5, 4, 3]),
        ("messenger_id=1", [6, 4, 2]),
        (f"messenger_id=1&until={iso8601(START + 6 * MINUTE)}&status=confirmed", [4, 2]),
        ("messenger_id=1&status=used", []),
        ("messenger_id=2", []),
    ):
        found: list[Any] = []
        cursor = ""
        while True:
            page = await get(api, f"/sessions?limit=2&{query}{cursor}", token)
            found += page["sessions"]
            if page["next_cursor"] is None:
                break
            cursor = f"&cursor={page['next_cursor']}"
        assert [each["created_at"] for each in found] == [iso8601(START + each * MINUTE) for each in expected]


async def test_an_offset_moves_the_instant(api: Api) -> None:
    """02:00 at two hours east of Greenwich is midnight there."""
    _, token = await api.sign_up("ada@example.com")
    project = await api.post("/projects", token, {"name": "Acme"})
    api.clock.now = 1_795_219_200_000 - SECOND  # 2026-11-20T23:59:59Z
    await api.signin.create_session(project["id"], public=True)
    for since, count in (("2026-11-21T01:59:59%2B02:00", 1), ("2026-11-21T02:00:00%2B02:00", 0)):
        assert len((await get(api, f"/sessions?since={since}", token))["sessions"]) == count
