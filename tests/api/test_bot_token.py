"""A project's own bot in the developer API: `bot_token` is accepted and never returned."""

from typing import Any

import pytest
from tests.api.conftest import Api, assert_error

from taproof.service.bots import CHECKS

PATH = "/projects"


async def create(api: Api, token: str, **fields: Any) -> dict[str, Any]:
    created: dict[str, Any] = await api.post(PATH, token, {"name": "Shop", **fields})
    return created


async def test_a_bot_comes_with_creation_or_later(api: Api, token: str) -> None:
    """A bot can be set at creation or later: answers name the bot, "" removes it, and a missing field keeps it."""
    first, second = api.bot_father.make_bot("First_Bot"), api.bot_father.make_bot("Second_Bot", 7_000_000_002)
    created = await create(api, token, bot_token=first)
    assert created["bot_username"] == "First_Bot"
    path = f"{PATH}/{created['id']}"

    async def change(**fields: Any) -> dict[str, Any]:
        response = await api.call("PATCH", path, token, json=fields)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    assert (await change(name="Store"))["bot_username"] == "First_Bot"
    assert (await change(bot_token=second))["bot_username"] == "Second_Bot"
    (listed,) = (await api.call("GET", PATH, token)).json()["projects"]
    assert listed["bot_username"] == "Second_Bot"
    assert (await change(bot_token=""))["bot_username"] is None
    without = await create(api, token, bot_token="")
    assert (without["bot_username"], without["bot_broken_at"]) == (None, None)


async def test_the_token_never_comes_back(api: Api, token: str) -> None:
    """The token is in no answer, good or bad, in no log entry and in no metric."""
    given = api.bot_father.make_bot("First_Bot")
    secret = given.partition(":")[2]
    created = await api.call("POST", PATH, token, json={"name": "Shop", "bot_token": given})
    path = f"{PATH}/{created.json()['id']}"
    answers = [
        created,
        await api.call("GET", path, token),
        await api.call("GET", PATH, token),
        await api.call("PATCH", path, token, json={"bot_token": given}),
        await api.call("PATCH", path, token, json={"bot_token": given + "x"}),
        await api.call("PATCH", path, token, json={"bot_token": f"x{given}"}),
        await api.call("POST", PATH, token, json={"name": "Other", "bot_token": given}),
        await api.call("GET", "/audit", token),
    ]
    assert [each.status_code for each in answers] == [200, 200, 200, 200, 400, 400, 400, 200]
    assert not [each.text for each in answers if secret in each.text]
    entries = answers[-1].json()["entries"]
    assert {"bot.set"} <= {entry["action"] for entry in entries}


@pytest.mark.parametrize(
    ("problem", "status", "code"),
    [
        ("malformed", 400, "invalid_request"),
        ("null", 400, "invalid_request"),
        ("refused", 400, "bot_token_refused"),
        ("taken", 400, "bot_taken"),
        ("away", 503, "messenger_unavailable"),
    ],
)
@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_each_problem_has_its_code(
    api: Api, method: str, problem: str, status: int, code: str, token: str
) -> None:
    """Each problem has its code and a sentence that says what to do; nothing else of the request is applied."""
    project = await create(api, token)
    made: str | None = api.bot_father.make_bot("First_Bot")
    given = {"malformed": "First_Bot", "null": None, "refused": f"7000000009:{'A' * 35}"}.get(problem, made)
    if problem == "taken":
        await create(api, token, bot_token=given)
    if problem == "away":
        api.bot_father.is_away = True
    before = (await api.call("GET", PATH, token)).json()
    path = PATH if method == "POST" else f"{PATH}/{project['id']}"
    response = await api.call(method, path, token, json={"name": "Other", "bot_token": given})
    assert_error(response, status, code)
    assert (await api.call("GET", PATH, token)).json() == before


async def test_too_many_tokens_of_one_developer(api: Api, token: str) -> None:
    """One limit covers all of a developer's token checks; requests without a token still work.

    `Retry-After` says when the next one is let in.
    """
    path = f"{PATH}/{(await create(api, token))['id']}"
    wrong = f"7000000009:{'A' * 35}"
    for number in range(CHECKS.number):
        call = ("PATCH", path) if number % 2 else ("POST", PATH)
        response = await api.call(*call, token, json={"name": "Other", "bot_token": wrong})
        assert_error(response, 400, "bot_token_refused")
    for call in (("PATCH", path), ("POST", PATH)):
        response = await api.call(*call, token, json={"name": "Other", "bot_token": wrong})
        assert_error(response, 429, "rate_limited")
        assert response.headers["retry-after"] == "3"
    assert len(api.bot_father.asked) == CHECKS.number
    assert (await api.call("PATCH", path, token, json={"name": "Other"})).status_code == 200
    api.clock.now += 3_000
    assert_error(await api.call("PATCH", path, token, json={"bot_token": wrong}), 400, "bot_token_refused")


async def test_a_bot_is_left_alone_when_the_rest_is_wrong(api: Api, token: str) -> None:
    """The bot changes only if the rest of the request is valid."""
    project = await create(api, token)
    given = api.bot_father.make_bot("First_Bot")
    for fields in ({"name": ""}, {"webhook_url": "ftp://x"}, {"collect_phone": True}, {"unknown": 1}):
        response = await api.call("PATCH", f"{PATH}/{project['id']}", token, json={**fields, "bot_token": given})
        assert_error(response, 400, "invalid_request")
    assert api.bot_father.asked == []
    assert (await api.call("GET", f"{PATH}/{project['id']}", token)).json()["bot_username"] is None


async def test_a_strangers_project_gets_no_bot(api: Api, token: str) -> None:
    """Another developer's project is not found, and the messenger is not asked."""
    _, stranger = await api.sign_up("eve@example.com")
    project = await create(api, token)
    given = api.bot_father.make_bot("First_Bot")
    response = await api.call("PATCH", f"{PATH}/{project['id']}", stranger, json={"bot_token": given})
    assert_error(response, 404, "project_not_found")
    assert api.bot_father.asked == []


async def test_a_broken_bot_is_told_in_the_project(api: Api, token: str) -> None:
    """A broken bot shows in the project, with its time, until a new token is set."""
    project = await create(api, token, bot_token=api.bot_father.make_bot("First_Bot"))
    (bot,) = await api.storage.bots.list_project_bots()
    api.clock.now += 1
    assert await api.storage.bots.mark_bot_broken(project["id"], bot.encrypted_token, api.clock.now)
    shown = (await api.call("GET", f"{PATH}/{project['id']}", token)).json()
    assert (shown["bot_username"], shown["bot_broken_at"]) == ("First_Bot", "2026-11-18T11:06:40.001Z")
    renewed = api.bot_father.make_bot("First_Bot")
    response = await api.call("PATCH", f"{PATH}/{project['id']}", token, json={"bot_token": renewed})
    assert response.json()["bot_broken_at"] is None
