"""The limits of plans in the API. Here pro allows 2 projects and 5 sign-ins: see conftest.py."""

import pytest
from tests.api.conftest import Api, assert_error
from tests.api.test_developer_users import sign_in

from taproof.core.clock import DAY, MINUTE, iso8601
from taproof.core.errors import PlanLimitReached


async def test_me_shows_what_is_used(api: Api) -> None:
    """`me` shows the projects and the distinct users of this month, including those of deleted projects.

    Null means no limit.
    """
    _, token = await api.sign_up("ada@example.com", "pro")
    first, second = [(await api.post("/projects", token, {"name": "A"}))["id"] for _ in range(2)]
    for project, user in ((first, "1"), (first, "1"), (second, "1"), (second, "2")):
        await sign_in(api, project, user)
    await api.signin.create_session(second, public=True)
    used = {"projects": 2, "projects_limit": 2, "sign_ins_this_month": 2, "sign_ins_limit": 5}
    me = (await api.call("GET", "/me", token)).json()
    assert (list(me), me["usage"]) == (["id", "email", "created_at", "plan", "usage"], used)
    await api.call("DELETE", f"/projects/{first}", token)
    assert (await api.call("GET", "/me", token)).json()["usage"] == used | {"projects": 1}
    _, free_token = await api.sign_up("eve@example.com")
    nothing = {"projects": 0, "projects_limit": None, "sign_ins_this_month": 0, "sign_ins_limit": None}
    assert (await api.call("GET", "/me", free_token)).json()["usage"] == nothing


async def test_one_project_too_many_is_400(api: Api) -> None:
    """The sentence names the limit and what to do; deleting a project makes room."""
    _, token = await api.sign_up("ada@example.com", "pro")
    made = [await api.post("/projects", token, {"name": "A"}) for _ in range(2)]
    response = await api.call("POST", "/projects", token, json={"name": "A"})
    assert assert_error(response, 400, "plan_limit_reached") == (
        "The pro plan allows 2 projects, and this account has reached that limit. Delete an unused project, "
        "or ask the operator of this service for another plan."
    )
    await api.call("DELETE", f"/projects/{made[0]['id']}", token)
    await api.post("/projects", token, {"name": "A"})


async def test_a_full_month_starts_no_sign_in_and_breaks_none(api: Api) -> None:
    """Sessions in progress are confirmed and read; new ones start next month, which the sentence names."""
    api.clock.now = 1_795_910_400_000 - MINUTE  # 2026-11-28T23:59Z.
    _, token = await api.sign_up("ada@example.com", "pro")
    project = (await api.post("/projects", token, {"name": "A"}))["id"]
    for user in range(5):
        api.clock.now += MINUTE
        await sign_in(api, project, str(user + 1))
        under_way = await api.signin.create_session(project, public=True)
    api.clock.now += MINUTE
    with pytest.raises(PlanLimitReached) as refused:
        await api.signin.create_session(project, public=True)
    assert "2026-12-01 (UTC)" in refused.value.sentence
    await api.signin.open_session(under_way.session_token, "7")
    assert (await api.signin.verify_session(project, under_way.session_token, public=True)).status == "pending"
    while iso8601(api.clock.now) < "2026-12-01":
        api.clock.now += DAY
    await api.signin.create_session(project, public=True)
    assert (await api.call("GET", "/me", token)).json()["usage"]["sign_ins_this_month"] == 0
