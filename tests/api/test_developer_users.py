"""GET and DELETE /users/:messenger_id, and phone numbers in the session object."""

import json
from typing import Any

import pytest
from tests.api.conftest import Api, assert_error

from taproof.core.clock import iso8601
from taproof.core.identity import MessengerIdentity
from taproof.sdk.code_challenge import code_challenge, new_code_verifier

PHONE = "+4915123456789"


async def sign_in(api: Api, project_id: str, user: str = "1001", phone: str | None = None) -> None:
    """Confirm a new session as a user does, with a contact if the project asks for one."""
    created = await api.signin.create_session(project_id, public=True)
    identity = MessengerIdentity(user, "Ada 🌍", "ada")
    await api.signin.open_session(created.session_token, user)
    await api.signin.confirm_session(created.session_token, identity)
    if phone is not None:
        seen = await api.signin.give_phone(identity, user, phone, answers=lambda _: True)
        assert seen.outcome == "confirmed"


async def sessions(api: Api, token: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await api.call("GET", "/sessions", token)).json()["sessions"]
    return found


async def test_erase_takes_what_ones_own_projects_keep(api: Api, token: str) -> None:
    """An erasure covers the user's sessions in one's own projects, and no other user's or developer's sessions."""
    _, eve_token = await api.sign_up("eve@example.com")
    own = [(await api.post("/projects", token, {"name": "One"}))["id"] for _ in range(2)]
    foreign = (await api.post("/projects", eve_token, {"name": "Other"}))["id"]
    for project in (*own, foreign):
        await sign_in(api, project)
        await sign_in(api, project, "2002")
    assert (await api.call("DELETE", "/users/1001", token)).json() == {"erased": True}
    assert [each["messenger_id"] for each in await sessions(api, token)] == ["2002", "2002"]
    assert {each["messenger_id"] for each in await sessions(api, eve_token)} == {"1001", "2002"}
    assert (await api.call("DELETE", "/users/1001", token)).json() == {"erased": False}
    analytics = (await api.call("GET", "/analytics", token)).json()
    assert (analytics["confirmed_sessions"], analytics["unique_users"]) == (4, 2)


async def test_the_audit_log_tells_of_it_once_and_not_of_whom(api: Api, token: str) -> None:
    """The log is kept for long, so the entry holds neither the erased data nor anything that identifies the user."""
    project = (await api.post("/projects", token, {"name": "One"}))["id"]
    for _ in range(3):
        await sign_in(api, project, "12345678901")
    before = (await api.call("GET", "/audit", token)).json()["entries"]
    api.clock.now += 1
    await api.call("DELETE", "/users/404", token)
    await api.call("DELETE", "/users/12345678901", token)
    entries = (await api.call("GET", "/audit", token)).json()["entries"]
    assert [each["action"] for each in entries[: -len(before)]] == ["user.erased"]
    assert entries[0]["details"] == {}
    assert "12345678901" not in json.dumps(entries)


async def test_members_see_that_a_user_was_erased_in_their_project(api: Api, token: str) -> None:
    """Each project with data of the user has one entry; a project without any has none."""
    projects = [(await api.post("/projects", token, {"name": name}))["id"] for name in ("One", "Two", "Three")]
    for project in (projects[0], projects[0], projects[1]):
        await sign_in(api, project, "1001")
    await sign_in(api, projects[2], "2002")
    await api.call("DELETE", "/users/1001", token)
    found = []
    for project in projects:
        entries = (await api.call("GET", "/audit", token, params={"project_id": project})).json()["entries"]
        found.append([(each["actor"], each["subject"]) for each in entries if each["action"] == "user.erased"])
    assert found == [[("ada@example.com", projects[0])], [("ada@example.com", projects[1])], []]


async def test_users_are_listed_by_their_last_sign_in(api: Api, token: str) -> None:
    """The list has pages, the first and last time, and the number of sign-ins, of one's own project only."""
    _, eve_token = await api.sign_up("eve@example.com")
    project = (await api.post("/projects", token, {"name": "One"}))["id"]
    path = f"/projects/{project}/users"
    started = iso8601(api.clock.now)
    for user in ("1001", "2002", "3003", "1001"):
        await sign_in(api, project, user)
        api.clock.now += 1000
    assert (await api.call("GET", path, token, params={"limit": 3})).json()["next_cursor"] is None
    listed, cursor = [], None
    for _ in range(3):
        page = (await api.call("GET", path, token, params={"limit": 1} | ({"cursor": cursor} if cursor else {}))).json()
        listed += page["users"]
        cursor = page["next_cursor"]
    assert cursor is None
    assert [(each["messenger_id"], each["sign_ins"]) for each in listed] == [("1001", 2), ("3003", 1), ("2002", 1)]
    assert listed[0] == {
        "messenger_id": "1001",
        "messenger_name": "Ada 🌍",
        "messenger_username": "ada",
        "first_sign_in_at": started,
        "last_sign_in_at": iso8601(api.clock.now - 1000),
        "sign_ins": 2,
        "reports": 0,
    }
    for query in ({"limit": 0}, {"limit": 201}, {"cursor": "x"}):
        assert_error(await api.call("GET", path, token, params=query), 400, "invalid_request")
    assert_error(await api.call("GET", path, eve_token), 404, "project_not_found")
    assert (await api.call("DELETE", "/users/1001", token)).json() == {"erased": True}
    left = (await api.call("GET", path, token)).json()["users"]
    assert [each["messenger_id"] for each in left] == ["3003", "2002"]


async def test_an_export_shows_one_user_of_ones_own_projects(api: Api) -> None:
    """An export is decrypted and contains no secrets and no other user's or developer's data.

    After an erasure, it is empty.
    """
    _, token = await api.sign_up("ada@example.com", "pro")
    _, eve_token = await api.sign_up("eve@example.com")
    body = {"name": "One", "collect_phone": True, "webhook_url": "https://example.com/hook"}
    project = (await api.post("/projects", token, body))["id"]
    other = (await api.post("/projects", eve_token, {"name": "Other"}))["id"]
    await sign_in(api, project, phone=PHONE)
    await sign_in(api, project, "2002", phone="+4915100000000")
    await sign_in(api, other)
    opened = await api.signin.create_session(project, public=True)
    await api.signin.open_session(opened.session_token, "1001")
    response = await api.call("GET", "/users/1001", token)
    exported = response.json()
    assert exported["messenger_id"] == "1001"
    assert {(each["status"], each["messenger_phone"]) for each in exported["sessions"]} == {
        ("confirmed", PHONE),
        ("pending", None),
    }
    assert {each["project_id"] for each in exported["sessions"]} == {project}
    (delivery,) = [each for session in exported["sessions"] for each in session["deliveries"]]
    assert (delivery["body"]["event"], delivery["body"]["messenger_id"]) == ("auth.confirmed", "1001")
    (day,) = exported["days"]
    assert (day["day"], day["sign_ins"], day["messenger_name"]) == (iso8601(api.clock.now)[:10], 1, "Ada 🌍")
    for hidden in (opened.session_token, "2002", "+4915100000000", other, "hash", "encrypted"):
        assert hidden not in response.text
    await api.call("DELETE", "/users/1001", token)
    empty = (await api.call("GET", "/users/1001", token)).json()
    assert [name for name, rows in empty.items() if isinstance(rows, list) and rows] == []
    assert_error(await api.call("GET", "/users/x", token), 400, "invalid_request")


@pytest.mark.parametrize("user", ["x", "-1", "1.0", "1" * 21, "%D9%A1", "%00", "1%0A", "+1"])
async def test_what_is_no_messenger_id_is_400(api: Api, user: str, token: str) -> None:
    """The sentence says what a messenger id looks like."""
    sentence = assert_error(await api.call("DELETE", f"/users/{user}", token), 400, "invalid_request")
    assert sentence == "messenger_id must be a messenger account's id: digits only, at most 20."


async def test_a_phone_number_shows_only_where_there_is_one(api: Api) -> None:
    """The key is absent before the decision and in projects that do not collect phone numbers."""
    _, token = await api.sign_up("ada@example.com", "pro")
    collecting = (await api.post("/projects", token, {"name": "One", "collect_phone": True}))["id"]
    other = (await api.post("/projects", token, {"name": "Two"}))["id"]
    await sign_in(api, collecting, phone=PHONE)
    api.clock.now += 1
    await sign_in(api, other)
    api.clock.now += 1
    await api.signin.create_session(collecting, public=True)
    found = await sessions(api, token)
    assert [each.get("messenger_phone", "absent") for each in found] == ["absent", "absent", PHONE]
    one = (await api.call("GET", f"/sessions/{found[2]['id']}", token)).json()
    assert one == found[2]
    assert list(one)[:7] == [*list(found[0])[:6], "messenger_phone"]
    assert (await api.call("DELETE", "/users/1001", token)).json() == {"erased": True}
    assert PHONE not in (await api.call("GET", "/sessions", token)).text


async def test_a_phone_number_that_was_moved_is_refused(api: Api, capfd: pytest.CaptureFixture[str]) -> None:
    """An encrypted number that was moved to another session does not decrypt.

    It is left out, and logged without its content.
    """
    _, token = await api.sign_up("ada@example.com", "pro")
    project = (await api.post("/projects", token, {"name": "One", "collect_phone": True}))["id"]
    await sign_in(api, project, phone=PHONE)
    await sign_in(api, project, "2002", phone="+4915123456700")
    rows = api.storage.database.rows("SELECT id, encrypted_phone FROM sessions", ())
    for (session_id, _), (_, encrypted) in zip(rows, rows[::-1], strict=True):
        await api.execute("UPDATE sessions SET encrypted_phone = ? WHERE id = ?", (encrypted, session_id))
    found = await sessions(api, token)
    assert [each.get("messenger_phone") for each in found] == [None, None]
    printed = "".join(capfd.readouterr())
    assert printed.count("phone_unreadable") == 2
    assert "49151" not in printed


async def test_a_free_plan_collects_no_phone_numbers(api: Api, token: str) -> None:
    """Turning collection on is 400, with the reason and what to do, at creation and in a change; false is accepted."""
    expected = "collect_phone is available on the pro and business plans"
    for path, method, body in (("/projects", "POST", {"name": "A"}), ("/projects/{}", "PATCH", {})):
        made = await api.post("/projects", token, {"name": "A", "collect_phone": False})
        response = await api.call(method, path.format(made["id"]), token, json=body | {"collect_phone": True})
        sentence = assert_error(response, 400, "invalid_request")
        assert sentence.startswith(expected)
        assert "ask the operator of this service for another plan" in sentence
        assert (await api.call("GET", f"/projects/{made['id']}", token)).json()["collect_phone"] is False


async def test_a_downgrade_ends_collecting_at_once(api: Api) -> None:
    """A user who confirmed and is being asked for the number signs in without it."""
    developer, token = await api.sign_up("ada@example.com", "business")
    project = (await api.post("/projects", token, {"name": "One", "collect_phone": True}))["id"]
    created = await api.signin.create_session(project, public=True)
    identity = MessengerIdentity("1001", "Ada", "")
    await api.signin.open_session(created.session_token, "1001")
    assert (await api.signin.confirm_session(created.session_token, identity)).outcome == "phone"
    assert await api.storage.plans.update_plan(developer.id, "free")
    assert (await api.signin.give_phone(identity, "1001", PHONE, answers=lambda _: True)).outcome == "confirmed"
    [session] = await sessions(api, token)
    assert (session["status"], session.get("messenger_phone")) == ("confirmed", None)


async def test_an_export_does_not_tell_who_has_yet_to_return(api: Api, token: str) -> None:
    """Until the user returns to the browser, nobody has signed in, so an export shows no more than the session does."""
    settings = {"name": "One", "same_device": "require", "allowed_origins": ["https://shop.example.com"]}
    project = (await api.post("/projects", token, settings))["id"]
    challenge = code_challenge(new_code_verifier())
    url = "https://shop.example.com/"
    created = await api.signin.create_session(project, public=False, code_challenge=challenge, return_url=url)
    await api.signin.open_session(created.session_token, "1001")
    seen = await api.signin.confirm_session(created.session_token, MessengerIdentity("1001", "Ada", "ada"))
    assert seen.outcome == "returning"
    (exported,) = (await api.call("GET", "/users/1001", token)).json()["sessions"]
    told = ("confirmed_at", "messenger_id", "messenger_name", "messenger_username", "messenger_phone")
    assert [exported[field] for field in told] == [None] * 5
    assert (exported["status"], exported["opener_id"], "encrypted_phone" in exported) == ("pending", "1001", False)


async def test_a_member_who_is_removed_during_an_export_gets_nothing(
    api: Api, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    """Once the removal is answered, no call of the former member reads the project."""
    eve, eve_token = await api.sign_up("eve@example.com")
    project = (await api.post("/projects", token, {"name": "One"}))["id"]
    code = (await api.post(f"/projects/{project}/invitations", token, {}))["link"].partition("#")[2]
    await api.post("/invitations/accept", eve_token, {"code": code})
    await sign_in(api, project)
    assert (await api.call("GET", "/users/1001", eve_token)).json()["sessions"] != []
    find = api.storage.erasure.find_project

    async def find_then_remove(messenger_id: str, developer_id: str | None, after: str) -> str | None:
        found = await find(messenger_id, developer_id, after)
        await api.call("DELETE", f"/projects/{project}/members/{eve.id}", token)
        return found

    monkeypatch.setattr(api.storage.erasure, "find_project", find_then_remove)
    refused = await api.call("GET", "/users/1001", eve_token)
    assert (refused.status_code, refused.headers["x-error-code"]) == (404, "project_not_found")
