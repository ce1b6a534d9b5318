"""Deliveries, webhook tests, and the project fields about its webhook (contract.md, Webhooks)."""

import json
from typing import Any

import pytest
from tests.api.conftest import START, Api, assert_error

from taproof.contract.delivery import SENTENCES, ShownError
from taproof.core.clock import DAY, SECOND, iso8601
from taproof.service.webhooks import WebhookResponse

URL = "https://example.com/hook"


async def own_project(api: Api, webhook_url: str = URL) -> tuple[str, str, Any]:
    """Return a new developer's access token, the path of a project of theirs, and that project."""
    _, token = await api.sign_up("ada@example.com")
    project = await api.post("/projects", token, {"name": "Acme", "webhook_url": webhook_url})
    return token, f"/projects/{project['id']}", project


async def attempt(api: Api, answer: WebhookResponse) -> None:
    """Let a worker make the next attempt at each due delivery."""
    [delivery] = await api.webhooks.claim_deliveries(10)
    await api.webhooks.finish_attempt(delivery, answer)


# ---- deliveries


async def test_a_delivery_shows_every_attempt(api: Api) -> None:
    """At every stage, a delivery has exactly the documented fields, and nothing of the sent body."""
    token, path, project = await own_project(api)
    session_token = await api.confirm(project["id"])

    async def shown() -> Any:
        response = await api.call("GET", f"{path}/deliveries", token)
        assert session_token not in response.text
        assert response.json()["next_cursor"] is None
        [found] = response.json()["deliveries"]
        return found

    due = await shown()
    [session] = (await api.get("/sessions", token))["sessions"]
    assert due == {
        "id": due["id"],
        "event": "auth.confirmed",
        "project_id": project["id"],
        "session_id": session["id"],
        "status": "due",
        "created_at": iso8601(START),
        "next_attempt_at": iso8601(START),
        "sending": False,
        "finished_at": None,
        "interrupted_attempts": 0,
        "attempts": [],
    }
    [claimed] = await api.webhooks.claim_deliveries(10)
    assert await shown() == due | {"sending": True, "next_attempt_at": None}
    api.clock.now += 10
    await api.webhooks.finish_attempt(claimed, WebhookResponse(10, 503, body=b"Service \xff Unavailable"))
    first = {
        "number": 1,
        "started_at": iso8601(START),
        "duration_ms": 10,
        "status": 503,
        "error": SENTENCES["not_accepted"],
        "error_code": "not_accepted",
        "answer": "Service \ufffd Unavailable",
    }
    found = await shown()
    assert found["next_attempt_at"] >= iso8601(START + 5 * SECOND)
    assert found == due | {"attempts": [first], "next_attempt_at": found["next_attempt_at"]}
    api.clock.now += 10 * SECOND
    await attempt(api, WebhookResponse(0, error="timeout"))
    second = {
        "number": 2,
        "started_at": iso8601(api.clock.now),
        "duration_ms": 0,
        "status": None,
        "error": SENTENCES["timeout"],
        "error_code": "timeout",
        "answer": None,
    }
    found = await shown()
    assert found["attempts"] == [first, second]
    api.clock.now += 600 * SECOND
    await attempt(api, WebhookResponse(0, 200))
    found = await shown()
    assert (found["status"], found["finished_at"]) == ("delivered", iso8601(api.clock.now))
    assert (found["next_attempt_at"], found["sending"], len(found["attempts"])) == (None, False, 3)
    assert (found["attempts"][2]["error"], found["attempts"][2]["error_code"]) == (None, None)
    assert await api.get(f"/deliveries/{found['id']}", token) == found


async def test_a_code_of_a_newer_release_is_no_code(api: Api) -> None:
    """An unknown error code of a newer release, written to the shared store, does not break the documented answers."""
    token, path, project = await own_project(api)
    await api.confirm(project["id"])
    await attempt(api, WebhookResponse(5, error="of_tomorrow"))  # type: ignore[arg-type]
    [found] = (await api.get(f"{path}/deliveries", token))["deliveries"]
    assert found["attempts"][0]["error_code"] is None
    assert "newer release" in found["attempts"][0]["error"]


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("limit=0", "limit must be a whole number from 1 to 200."),
        ("limit=201", "limit must be"),
        ("status=", "status must be due, delivered, failed or ended."),
        ("status=pending", "status must be"),
        ("event=", "event must be auth.confirmed, auth.cancelled, auth.expired, auth.reported or webhook.test."),
        ("event=%00", "event must be"),
        ("event=auth", "event must be"),
        ("cursor=", "cursor must be"),
        ("cursor=x", "cursor must be"),
        ("cursor=MS5zZXNzXzE", "cursor must be"),
        ("cursor=MS5ldnRfAA", "cursor must be"),
    ],
)
async def test_a_bad_query_of_deliveries_is_400(api: Api, query: str, sentence: str) -> None:
    """The sentence names the bad parameter; a cursor of sessions or one with a NUL is invalid."""
    token, path, _ = await own_project(api)
    response = await api.call("GET", f"{path}/deliveries?{query}", token)
    assert sentence in assert_error(response, 400, "invalid_request")


async def test_a_delivery_is_sent_again(api: Api) -> None:
    """A resent delivery is due immediately and the sender is notified.

    Without a webhook URL, the sentence names what is missing.
    """
    token, path, project = await own_project(api)
    await api.confirm(project["id"])
    await attempt(api, WebhookResponse(5, 200, body=b"ok"))
    [before] = (await api.get(f"{path}/deliveries", token))["deliveries"]
    for query, count in (("status=delivered&event=auth.confirmed", 1), ("status=due", 0), ("event=auth.cancelled", 0)):
        assert len((await api.get(f"{path}/deliveries?{query}", token))["deliveries"]) == count
    api.clock.now += SECOND
    resent = await api.post(f"/deliveries/{before['id']}/resend", token, None)
    due = {"status": "due", "next_attempt_at": iso8601(api.clock.now), "finished_at": None}
    assert resent == before | due
    assert api.receiver.times_recorded == 1
    await api.call("PATCH", path, token, json={"webhook_url": ""})
    for call in (f"/deliveries/{before['id']}/resend", f"{path}/webhook-test"):
        assert "webhook_url" in assert_error(await api.call("POST", call, token), 400, "webhook_not_set")
    [ended] = (await api.get(f"{path}/deliveries", token))["deliveries"]
    assert (ended["status"], ended["next_attempt_at"]) == ("ended", None)


# ---- tests


async def test_a_test_answers_what_came_of_it(api: Api) -> None:
    """A test is answered with 200 and its delivery, as the list shows it, whatever the receiver answered."""
    token, path, project = await own_project(api)
    tests: list[Any] = []
    cases: list[tuple[WebhookResponse, str, ShownError | None]] = [
        (WebhookResponse(5, 200, body=b"ok"), "delivered", None),
        (WebhookResponse(5, 500, body=b"broken"), "failed", "not_accepted"),
        (WebhookResponse(5, 308), "failed", "redirected"),
        (WebhookResponse(5, 410), "failed", "gone"),
        (WebhookResponse(10_000, error="timeout"), "failed", "timeout"),
        (WebhookResponse(1, error="connection_refused"), "failed", "connection_refused"),
    ]
    for answer, status, code in cases:
        api.receiver.answer = answer
        api.clock.now += 1
        found = await api.post(f"{path}/webhook-test", token, None)
        assert (found["event"], found["status"], found["next_attempt_at"]) == ("webhook.test", status, None)
        [made] = found["attempts"]
        assert (made["status"], made["error_code"]) == (answer.status, code)
        assert made["error"] == (SENTENCES[code] if code else None)
        assert made["answer"] == (answer.body.decode() or None)
        tests.insert(0, found)
    assert (await api.get(f"{path}/deliveries", token))["deliveries"] == tests
    assert [request.url for request in api.receiver.sent] == [URL] * len(cases)
    body = json.loads(api.receiver.sent[0].body)
    assert list(body) == ["id", "event", "project_id", "created_at"]
    assert (body["id"], body["project_id"]) == (tests[-1]["id"], project["id"])


# ---- what a project tells of its webhook


async def test_a_project_tells_since_when_its_webhook_fails(api: Api) -> None:
    """The project shows the first failure until a delivery or a test succeeds; a failed test does not count."""
    token, path, project = await own_project(api)
    assert project["webhook_failing_since"] is None
    await api.confirm(project["id"])
    api.clock.now += 5
    await attempt(api, WebhookResponse(5, 500))
    api.receiver.answer = WebhookResponse(5, 500)
    await api.post(f"{path}/webhook-test", token, None)
    api.clock.now += 10 * SECOND
    assert (await api.get(path, token))["webhook_failing_since"] == iso8601(START)
    await attempt(api, WebhookResponse(5, 500))
    assert (await api.get(path, token))["webhook_failing_since"] == iso8601(START)
    api.clock.now += 600 * SECOND
    await attempt(api, WebhookResponse(5, 200))
    assert (await api.get(path, token))["webhook_failing_since"] is None
    await api.confirm(project["id"])
    await attempt(api, WebhookResponse(5, 500))
    assert (await api.get(path, token))["webhook_failing_since"] is not None
    api.receiver.answer = WebhookResponse(5, 200)
    await api.post(f"{path}/webhook-test", token, None)
    assert (await api.get(path, token))["webhook_failing_since"] is None


async def test_a_project_tells_why_its_webhook_was_turned_off(api: Api) -> None:
    """The project shows URL, reason, time and advice until a webhook URL is set again, even the same one."""
    token, path, project = await own_project(api)
    await api.confirm(project["id"])
    await attempt(api, WebhookResponse(0, 410))
    found = await api.get(path, token)
    assert found["webhook_url"] == ""
    explanation = found["webhook_turned_off"].pop("explanation")
    assert found["webhook_turned_off"] == {"url": URL, "reason": "gone", "at": iso8601(START)}
    assert "410" in explanation
    assert "webhook_url" in explanation
    assert (await api.get("/projects", token))["projects"][0]["webhook_turned_off"]["reason"] == "gone"
    changed = (await api.call("PATCH", path, token, json={"webhook_url": URL})).json()
    assert (changed["webhook_url"], changed["webhook_turned_off"]) == (URL, None)


async def test_five_days_of_failures_turn_a_webhook_off(api: Api) -> None:
    """Five days of failures have their own sentence, different from the one for 410."""
    token, path, project = await own_project(api)
    await api.confirm(project["id"])
    [first] = (await api.get(f"{path}/deliveries", token))["deliveries"]
    await attempt(api, WebhookResponse(0, 500))
    api.clock.now += 6 * DAY
    await api.post(f"/deliveries/{first['id']}/resend", token, None)
    for _ in range(9):
        await attempt(api, WebhookResponse(0, 500))
        api.clock.now += DAY
    found = await api.get(path, token)
    assert found["webhook_url"] == ""
    assert found["webhook_turned_off"]["reason"] == "failing"
    assert "five days" in found["webhook_turned_off"]["explanation"]
    assert "webhook_url" in found["webhook_turned_off"]["explanation"]
    [last] = (await api.get(f"{path}/deliveries", token))["deliveries"]
    assert (last["status"], len(last["attempts"])) == ("failed", 10)
