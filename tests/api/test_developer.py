"""The developer endpoints (service-spec.md, Developer endpoints; contract.md, Developer endpoints)."""

import asyncio
import re
from typing import Any

import pytest
from tests.api.conftest import START, Api, assert_error, client_of

from taproof.contract.fields import described
from taproof.contract.project import Project
from taproof.core.clock import DAY, HOUR, MINUTE, iso8601
from taproof.core.identifiers import is_key, is_project_id
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import Project as StoredProject
from taproof.http.download import PIECE

PROJECT_FIELDS = list(described(Project))
SESSION_FIELDS = [
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
]
# ---- account and projects


async def test_a_project_from_creation_to_deletion(api: Api) -> None:
    """Create shows both secrets once; later answers have the fields of a project and no secret."""
    _, token = await api.sign_up("ada@example.com", "pro")
    created = await api.post(
        "/projects", token, {"name": "  Acme  ", "webhook_url": "https://example.com/h", "public_access": False}
    )
    secret_key, webhook_secret = created.pop("secret_key"), created.pop("webhook_secret")
    assert is_key(secret_key, "sk")
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", webhook_secret)
    assert sorted(created) == sorted(PROJECT_FIELDS)
    assert is_project_id(created["id"])
    assert (created["name"], created["is_active"], created["public_access"]) == ("Acme", True, False)
    assert created["created_at"] == iso8601(START)
    path = f"/projects/{created['id']}"
    assert (await api.call("GET", path, token)).json() == created
    assert (await api.call("GET", "/projects", token)).json() == {"projects": [created]}
    assert (await api.call("GET", f"{path}/webhook-secret", token)).json() == {
        "webhook_secret": webhook_secret,
        "next_webhook_secret": None,
        "promoted_at": None,
    }
    changes = {"name": "Bolt", "webhook_url": "", "is_active": False, "public_access": True, "collect_phone": True}
    changed = (await api.call("PATCH", path, token, json=changes)).json()
    assert changed == created | changes
    regenerated = (await api.call("POST", f"{path}/regenerate", token)).json()
    assert sorted(regenerated) == ["secret_key", "webhook_secret"]
    assert regenerated["secret_key"] != secret_key
    assert regenerated["webhook_secret"] != webhook_secret
    assert (await api.call("GET", f"{path}/webhook-secret", token)).json()["webhook_secret"] == regenerated[
        "webhook_secret"
    ]
    assert (await api.call("DELETE", path, token)).json() == {"deleted": True}
    assert_error(await api.call("GET", path, token), 404, "project_not_found")
    assert_error(await api.call("DELETE", path, token), 404, "project_not_found")


async def test_a_long_list_of_projects_is_sent_in_pieces(api: Api) -> None:
    """No step of the event loop builds or sends the whole list of 2,000 projects, which has megabytes."""
    _, token = await api.sign_up("ada@example.com", "business")
    made = [
        (await api.post("/projects", token, {"name": f"{number}", "webhook_url": "https://a.example/" + "x" * 2_000}))[
            "id"
        ]
        for number in range(40)
    ]
    pieces: list[bytes] = []

    async def noting_app(scope: Any, receive: Any, send: Any) -> None:
        async def note(message: Any) -> None:
            pieces.append(message.get("body", b""))
            await send(message)

        await api.app(scope, receive, note)

    async with client_of(noting_app) as client:
        answer = await client.get("/api/v1/dev/projects", headers={"Authorization": f"Bearer {token}"})
    assert [each["id"] for each in answer.json()["projects"]] == sorted(made)
    assert max(map(len, pieces)) < PIECE + 4_000
    assert len(pieces) > 3


async def test_one_developers_lists_take_turns(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece of a list is read in its developer's turn, so many lists at once do not overload the store."""
    _, token = await api.sign_up("ada@example.com", "business")
    for number in range(60):
        await api.post("/projects", token, {"name": f"{number}", "webhook_url": "https://a.example/" + "x" * 2_000})
    read, reading, most = api.storage.projects.read_projects, 0, 0

    async def counted(*asked: Any) -> list[StoredProject]:
        nonlocal reading, most
        reading += 1
        most = max(most, reading)
        await asyncio.sleep(0)
        found = await read(*asked)
        reading -= 1
        return found

    monkeypatch.setattr(api.storage.projects, "read_projects", counted)
    answers = await asyncio.gather(*(api.call("GET", "/projects", token) for _ in range(4)))
    assert [len(answer.json()["projects"]) for answer in answers] == [60] * 4
    assert most == 1


CHANGES = {
    "name": "B",
    "webhook_url": "https://example.com/",
    "webhook_events": ["auth.expired", "auth.reported"],
    "is_active": False,
    "public_access": False,
    "collect_phone": True,
    "phone_required": False,
    "show_context": False,
    "match_code": "on",
    "allowed_origins": ["https://a.example"],
}


@pytest.mark.parametrize("field", CHANGES)
async def test_patch_changes_only_what_it_names(api: Api, field: str) -> None:
    """PATCH changes only the included fields; an empty body changes nothing."""
    _, token = await api.sign_up("ada@example.com", "business")
    created = await api.post("/projects", token, {"name": "A"})
    path = f"/projects/{created['id']}"
    before = (await api.call("GET", path, token)).json()
    assert (await api.call("PATCH", path, token, json={})).json() == before
    assert (await api.call("PATCH", path, token, json={field: CHANGES[field]})).json() == before | {
        field: CHANGES[field]
    }


MALFORMED = ["x", "proj_", "proj_a-b", "proj_%00aaaaaaaaaaaaaaaaaaaa", "proj_%ED%A0%80" + "a" * 16, "proj_" + "a" * 41]
BELOW_A_PROJECT = [
    *(("GET", ""), ("DELETE", ""), ("POST", "/regenerate"), ("GET", "/webhook-secret"), ("GET", "/deliveries")),
    *(("POST", "/webhook-test"), ("POST", "/webhook-secret/rotate"), ("POST", "/webhook-secret/promote")),
]
UNKNOWN = [
    *(
        ("DELETE", f"/tokens/{id_}", "access_token")
        for id_ in ("x", "tok_", "tok_none", "tok_%00", "tok_" + "a" * 5000)
    ),
    *(("GET", f"/deliveries/{id_}", "delivery") for id_ in ("x", "evt_", "evt_" + "0" * 22, "evt_%00" + "0" * 21)),
    *(("POST", f"/deliveries/{id_}/resend", "delivery") for id_ in ("%ED%A0%80", "evt_" + "0" * 22)),
    *(("GET", f"/sessions/{id_}", "session") for id_ in ("x", "sess_%00", "%ED%A0%80", "sess_" + "a" * 5000)),
]


async def test_an_id_that_was_not_given_out_is_refused(api: Api, subtests: pytest.Subtests, token: str) -> None:
    """An unknown id of any form is 404. Only a malformed project id is 400."""
    for project_id in MALFORMED:
        for method, below in BELOW_A_PROJECT:
            with subtests.test(method=method, project_id=project_id, below=below):
                response = await api.call(method, f"/projects/{project_id}{below}", token)
                assert_error(response, 400, "invalid_request")
    for method, path, named in UNKNOWN:
        with subtests.test(method=method, path=path[:100]):
            assert_error(await api.call(method, path, token), 404, f"{named}_not_found")


@pytest.mark.parametrize("content", [b"", b"{}", b"not json"])
async def test_endpoints_without_a_body_ignore_one(
    api: Api, content: bytes, token: str, project: dict[str, Any]
) -> None:
    """regenerate, GET and DELETE do not read the body of a request."""
    for method, path in (("POST", "/regenerate"), ("GET", ""), ("DELETE", "")):
        response = await api.call(method, f"/projects/{project['id']}{path}", token, content=content)
        assert response.status_code == 200


# ---- sessions


async def test_a_session_shows_nine_fields_at_every_stage(api: Api, token: str, project: dict[str, Any]) -> None:
    """The identity is empty until confirmation and then stays. The session token is never shown.

    Item and list have the same fields.
    """
    created = await api.signin.create_session(project["id"], public=True)

    async def shown() -> dict[str, Any]:
        response = await api.call("GET", "/sessions", token)
        assert created.session_token not in response.text
        [found] = response.json()["sessions"]
        assert list(found) == SESSION_FIELDS
        one = await api.call("GET", f"/sessions/{found['id']}", token)
        assert (one.json(), one.headers["cache-control"]) == (found, "no-store")
        return dict(found)

    pending = await shown()
    assert re.fullmatch(r"sess_[A-Za-z0-9]{27}", pending["id"])
    assert pending | {"id": ""} == {
        "id": "",
        "project_id": project["id"],
        "project_name": "Acme",
        "messenger_id": "",
        "messenger_name": "",
        "messenger_username": None,
        "status": "pending",
        "created_at": iso8601(START),
        "confirmed_at": None,
        "reported_at": None,
    }
    await api.signin.open_session(created.session_token, "42")
    api.clock.now += 1500
    await api.signin.confirm_session(created.session_token, MessengerIdentity("42", "Ada 🌍", ""))
    identity = {
        "messenger_id": "42",
        "messenger_name": "Ada 🌍",
        "messenger_username": "",
        "confirmed_at": iso8601(START + 1500),
    }
    assert await shown() == pending | identity | {"status": "confirmed"}
    await api.signin.verify_session(project["id"], created.session_token, public=True)
    assert await shown() == pending | identity | {"status": "used"}


async def test_the_list_is_filtered_by_project_time_and_account(api: Api, token: str) -> None:
    """`since` is inclusive and `until` exclusive, with any offset.

    Both combine with an account and apply to all pages.
    """
    project, other = [await api.post("/projects", token, {"name": name}) for name in ("Acme", "Other")]
    for number in range(6):
        api.clock.now += MINUTE
        await api.confirm(project["id"], str(number % 2))
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
            page = await api.get(f"/sessions?limit=2&{query}{cursor}", token)
            found += page["sessions"]
            if page["next_cursor"] is None:
                break
            cursor = f"&cursor={page['next_cursor']}"
        assert [each["created_at"] for each in found] == [iso8601(START + each * MINUTE) for each in expected]


BAD_QUERIES = [
    ("limit=0", "limit must be a whole number from 1 to 200."),
    ("limit=201", "limit must be"),
    ("limit=", "limit must be"),
    ("limit=-1", "limit must be"),
    ("limit=1.5", "limit must be"),
    ("limit=1_0", "limit must be"),
    ("limit=%D9%A1", "limit must be"),
    ("limit=" + "9" * 5000, "limit must be"),
    ("status=", "status must be pending, confirmed, cancelled, expired or used."),
    ("status=PENDING", "status must be"),
    ("status=%00", "status must be"),
    ("project_id=", "project_id must be a project's id: proj_ followed by 16 to 40 letters and digits."),
    ("project_id=null", "project_id must be"),
    ("project_id=proj_%00", "project_id must be"),
    ("since=", "since must be a time with a UTC offset, such as 2030-01-01T00:00:00Z."),
    ("since=2026-11-20T00:00:00+02:00", "since must be"),  # In a query + is a space.
    ("since=%00", "since must be"),
    ("until=" + "9" * 5000, "until must be a time with a UTC offset, such as 2030-01-01T00:00:00Z."),
    ("messenger_id=", "messenger_id must be a messenger account's id: digits only, at most 20."),
    ("cursor=", "cursor must be"),
    ("cursor=x", "cursor must be"),
    ("cursor=%F0%9F%8C%8D", "cursor must be"),
    ("cursor=OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTkuc2Vzc18w", "cursor must be"),
]


async def test_a_bad_query_of_sessions_is_400(api: Api, subtests: pytest.Subtests, token: str) -> None:
    """The sentence names the bad parameter."""
    for query, sentence in BAD_QUERIES:
        with subtests.test(query=query[:100]):
            assert sentence in assert_error(await api.call("GET", f"/sessions?{query}", token), 400, "invalid_request")


@pytest.mark.parametrize(
    "query",
    [
        *("limit=1", "limit=200", "limit=001", "colour=red", "limit=0&limit=2", "status=used"),
        *("since=0001-01-01T00:00:00Z", "since=9999-12-31T23:59:59.999999999Z", "since=2026-11-20t00:00:00z"),
        *("until=0001-01-01T00:00:00Z", "until=9999-12-31T23:59:59Z", "until=2026-11-20T00:00:00%2B02:00"),
        *("messenger_id=0", "messenger_id=" + "9" * 20, "since=2027-01-01T00:00:00Z&until=2026-01-01T00:00:00Z"),
    ],
)
async def test_a_good_query_of_sessions_is_answered(api: Api, query: str, token: str) -> None:
    """Unknown parameters are ignored; the last value of a repeated one counts."""
    assert (await api.call("GET", f"/sessions?{query}", token)).status_code == 200


# ---- analytics


@pytest.mark.parametrize("days", [7, 30, 90])
async def test_analytics_have_every_day_of_the_window(api: Api, days: int, token: str, project: dict[str, Any]) -> None:
    """Every UTC day is included, today last; totals, funnel and days agree (contract.md, Analytics)."""
    api.clock.now += 1
    other = await api.post("/projects", token, {"name": "Other"})
    api.clock.now = START - 6 * DAY
    for user in (1, 1, 2):
        await api.confirm(project["id"], str(user))
    await api.signin.create_session(project["id"], public=True)
    api.clock.now = START
    await api.signin.create_session(other["id"], public=True)
    query = f"/analytics?days={days}&project_id={project['id']}"
    found = (await api.call("GET", query, token)).json()
    assert found["daily"][-1]["date"] == iso8601(START)[:10]
    assert len({day["date"] for day in found["daily"]}) == len(found["daily"]) == days
    assert found["daily"][-7] == {
        "date": iso8601(START - 6 * DAY)[:10],
        "sessions": 4,
        "opened": 3,
        "confirmed": 3,
        "cancelled": 0,
        "expired": 0,
        "unique_users": 2,
        "reported": 0,
    }
    assert (
        sum(day["sessions"] for day in found["daily"]) == found["total_sessions"] == found["funnel"]["requested"] == 4
    )
    assert (found["confirmed_sessions"], found["unique_users"], found["conversion_rate"]) == (3, 2, 75.0)
    steps = ["cancelled", "confirmed", "expired", "opened", "reported", "requested", "used"]
    assert sorted(found["funnel"]) == steps
    assert [each["name"] for each in found["projects"]] == ["Acme", "Other"]
    everything = (await api.call("GET", f"/analytics?days={days}", token)).json()
    assert (everything["total_sessions"], everything["conversion_rate"]) == (5, 60.0)


@pytest.mark.parametrize("days", ["", "0", "8", "07", "7.0", "-7", "ninety", "%00", "9" * 5000])
async def test_a_bad_window_is_400(api: Api, days: str, token: str) -> None:
    """A window other than 7, 30 or 90 days is refused."""
    response = await api.call("GET", f"/analytics?days={days}", token)
    assert assert_error(response, 400, "invalid_request") == "days must be 7, 30 or 90."


# ---- access tokens


async def test_an_access_token_from_creation_to_revocation(api: Api, token: str) -> None:
    """The plaintext is shown once; the token works immediately and stops immediately when it is revoked."""
    api.clock.now += 5
    created = await api.post("/tokens", token, {"name": " ci ", "expires_at": "2026-12-01T02:00:00+02:00"})
    plaintext = created.pop("access_token")
    assert is_key(plaintext, "tap")
    assert created == {
        "id": created["id"],
        "name": "ci",
        "preview": f"tap_{plaintext[4:8]}…{plaintext[-4:]}",
        "created_at": iso8601(START + 5),
        "last_used_at": None,
        "expires_at": "2026-12-01T00:00:00.000Z",
        "scopes": ["read", "write", "tokens"],
        "created_with": created["created_with"],
    }
    listed = await api.call("GET", "/tokens", plaintext)
    assert plaintext not in listed.text
    newest, oldest = listed.json()["tokens"]
    assert (created["created_with"], oldest["created_with"]) == (oldest["id"], None)
    assert newest == created | {"last_used_at": iso8601(START + 5)}
    assert oldest["name"] == "test"
    assert (await api.call("DELETE", f"/tokens/{created['id']}", token)).json() == {"deleted": True}
    assert_error(await api.call("GET", "/me", plaintext), 401, "invalid_access_token")
    assert_error(await api.call("DELETE", f"/tokens/{created['id']}", token), 404, "access_token_not_found")


@pytest.mark.parametrize(
    "expires_at",
    [
        "",
        "soon",
        "2030-01-01",
        "2030-01-01T00:00:00",
        "2030-W01-1T00:00:00Z",
        "2030-13-01T00:00:00Z",
        "2030-01-01T00:00:60Z",
        "2030-01-01 00:00:00Z",
        "2020-01-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59-23:59",
        "2030-01-01T00:00:00Z\n",
        "2030-01-01T00:00:00\u0000Z",
        "٢٠٣٠-01-01T00:00:00Z",
        1_900_000_000,
        None,
        True,
    ],
)
async def test_a_bad_expiry_is_400(api: Api, expires_at: Any, token: str) -> None:
    """expires_at must be a future time with an offset that an answer can represent."""
    response = await api.call("POST", "/tokens", token, json={"name": "ci", "expires_at": expires_at})
    assert assert_error(response, 400, "invalid_request").startswith("expires_at must be ")
    assert len((await api.call("GET", "/tokens", token)).json()["tokens"]) == 1


@pytest.mark.parametrize(
    ("expires_at", "kept"),
    [
        ("9999-12-31T23:59:59.999999999z", "9999-12-31T23:59:59.999Z"),
        ("2030-06-01t12:00:00.5-05:30", "2030-06-01T17:30:00.500Z"),
    ],
)
async def test_an_expiry_keeps_its_instant(api: Api, expires_at: str, kept: str, token: str) -> None:
    """Any form of RFC 3339 is accepted, stored to the millisecond and shown in UTC."""
    assert (await api.post("/tokens", token, {"name": "ci", "expires_at": expires_at}))["expires_at"] == kept
