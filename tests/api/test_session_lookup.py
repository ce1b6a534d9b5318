"""One session by its id, and the filters of the list of sessions (contract.md, Developer endpoints)."""

from typing import Any

from tests.api.conftest import START, Api

from taproof.core.clock import HOUR, MINUTE, iso8601
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


async def test_the_list_is_filtered_by_project_time_and_account(api: Api, token: str) -> None:
    """`since` is in, `until` is not, whatever their offset; both go with an account and through all pages."""
    project, other = [await api.post("/projects", token, {"name": name}) for name in ("Acme", "Other")]
    for number in range(6):
        await sign_in(api, project, str(number % 2))
    for query, expected in (
        ("", [6, 5, 4, 3, 2, 1]),
        (f"since={iso8601(START + 3 * MINUTE)}", [6, 5, 4, 3]),
        (f"until={iso8601(START + 3 * MINUTE)}", [2, 1]),
        (f"since={iso8601(START + 2 * MINUTE)}&until={iso8601(START + 5 * MINUTE)}", [4, 3, 2]),
        (f"since={iso8601(START + 3 * MINUTE).replace('Z', '-00:00')}", [6, 5, 4, 3]),
        (f"since={iso8601(START + 3 * MINUTE + 2 * HOUR).replace('Z', '%2B02:00')}", [6, 5, 4, 3]),
        (f"project_id={project['id']}", [6, 5, 4, 3, 2, 1]),
        (f"project_id={other['id']}", []),
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
