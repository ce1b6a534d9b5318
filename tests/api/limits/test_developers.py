"""Rate limits of the developer API, per developer (docs: Limits)."""

import asyncio
from typing import Any

import httpx
from tests.api.conftest import Api

from taproof.core.clock import HOUR, MINUTE
from taproof.core.rate_limit import Rate
from taproof.http.limits.developers import WAY_OUT, DeveloperLimits

CALLS = 12
WRITES = 5

ADD_MEMBERS = """
INSERT INTO project_members (project_id, developer_id, role, created_at, invited_by)
SELECT id, developer_id, 'owner', created_at, '' FROM projects WHERE true ON CONFLICT DO NOTHING"""
"""Makes the developers of projects that were inserted by SQL their owners."""


def limit(api: Api, calls: Rate | None = None, writes: Rate | None = None) -> None:
    """Set low limits for the rest of the test."""
    api.limits.developers = DeveloperLimits(api.limits.refusal, api.clock, calls=calls, writes=writes)


async def second_token(api: Api, token: str) -> str:
    made = await api.post("/tokens", token, {"name": "second"})
    return str(made["access_token"])


def assert_refused(response: httpx.Response, seconds: int) -> None:
    assert response.status_code == 429, response.text
    assert response.headers["retry-after"] == str(seconds)
    assert response.headers["x-error-code"] == "rate_limited"
    assert list(response.json()) == ["error"]


def refused(api: Api, name: str) -> float | None:
    return api.metrics.registry.get_sample_value("taproof_rate_limited_total", {"limit": name})


async def test_the_tokens_of_a_developer_share_one_limit(api: Api) -> None:
    """Reads and writes with any of a developer's tokens count together; other developers are counted separately."""
    _, ada = await api.sign_up("ada@example.com")
    _, bob = await api.sign_up("bob@example.com")
    other = await second_token(api, ada)
    limit(api, calls=Rate(CALLS, MINUTE))
    paths = ["/me", "/projects", "/sessions", "/analytics", "/audit", "/sessions/sess_x"]
    for number in range(CALLS):
        response = await api.call("GET", paths[number % len(paths)], (ada, other)[number % 2])
        assert response.status_code != 429
        assert response.headers["ratelimit-policy"] == f'"developer";q={CALLS};w=60'
        assert response.headers["ratelimit"] == f'"developer";r={CALLS - number - 1};t=5'
    for token in (ada, other):
        for path in paths:
            response = await api.call("GET", path, token)
            assert_refused(response, 5)
            assert response.headers["ratelimit"] == '"developer";r=0;t=5'
    assert_refused(await api.call("POST", "/projects", ada, json={"name": "Shop"}), 5)
    assert (await api.call("GET", "/me", bob)).status_code == 200
    api.clock.now += 5_000
    assert (await api.call("GET", "/me", other)).status_code == 200
    assert_refused(await api.call("GET", "/me", ada), 5)
    assert refused(api, "developer") == 2 * len(paths) + 2


async def test_writes_have_a_limit_of_their_own(api: Api) -> None:
    """A refused write changes nothing and does not count against the limit of reads, which still work."""
    _, ada = await api.sign_up("ada@example.com")
    other = await second_token(api, ada)
    limit(api, calls=Rate(CALLS, MINUTE), writes=Rate(WRITES, HOUR))
    project = await api.post("/projects", ada, {"name": "Shop"})
    path = f"/projects/{project['id']}"
    assert (await api.call("PATCH", path, other, json={"name": "A"})).status_code == 200
    assert (await api.call("POST", f"{path}/regenerate", ada)).status_code == 200
    assert (await api.call("POST", f"{path}/webhook-test", ada)).status_code == 400
    response = await api.call("DELETE", "/users/1001", other)
    assert response.headers["ratelimit-policy"] == f'"developer";q={CALLS};w=60, "writes";q={WRITES};w=3600'
    assert response.headers["ratelimit"] == f'"developer";r={CALLS - WRITES};t=5, "writes";r=0;t=720'
    for method, each, body in (("PATCH", path, {"name": "B"}), ("DELETE", path, None), ("POST", "/tokens", {})):
        for token in (ada, other):
            assert_refused(await api.call(method, each, token, json=body), 720)
    assert refused(api, "developer_write") == 6
    seen = await api.call("GET", path, ada)
    assert seen.json()["name"] == "A"
    assert seen.headers["ratelimit"] == f'"developer";r={CALLS - WRITES - 1};t=5'


async def test_a_stolen_token_cannot_keep_itself_from_being_revoked(api: Api) -> None:
    """With all limits used up, the developer can still list and revoke tokens."""
    _, ada = await api.sign_up("ada@example.com")
    stolen = await second_token(api, ada)
    limit(api, calls=Rate(CALLS, MINUTE), writes=Rate(WRITES, HOUR))
    for path, number, wait in (("/tokens", WAY_OUT.number, 2), ("/me", CALLS, 5)):
        for _ in range(number):
            assert (await api.call("GET", path, stolen)).status_code == 200
        assert_refused(await api.call("GET", path, stolen), wait)
    for _ in range(WRITES):
        await api.call("POST", "/projects", stolen, json={"name": "Shop"})
    assert_refused(await api.call("GET", "/me", ada), 5)
    tokens: list[dict[str, Any]] = (await api.call("GET", "/tokens", ada)).json()["tokens"]
    (found,) = [each["id"] for each in tokens if each["name"] == "second"]
    assert (await api.call("DELETE", f"/tokens/{found}", ada)).status_code == 200
    assert (await api.call("GET", "/tokens", stolen)).status_code == 401


async def test_a_call_across_many_projects_counts_more(api: Api) -> None:
    """A call across many projects counts once more for each hundred projects; a call about one project counts once."""
    developer, ada = await api.sign_up("ada@example.com", "business")
    project = await api.post("/projects", ada, {"name": "Shop"})
    insert = """
        WITH RECURSIVE numbers (value) AS (SELECT 1001 UNION ALL SELECT value + 1 FROM numbers WHERE value < 1250)
        INSERT INTO projects (id, developer_id, creator_id, name, secret_key_hash, secret_key_preview,
          encrypted_webhook_secret, webhook_url, is_active, public_access, collect_phone, created_at)
        SELECT 'proj_000000000000000000' || value, $1, $1, 'Shop', CAST(value AS BLOB), 'sk_', x'00', '', 1, 1, 0, value
        FROM numbers"""
    await api.execute(insert, (developer.id,))
    await api.execute(ADD_MEMBERS)
    limit(api, calls=Rate(100, MINUTE))
    left = 100
    own = f"project_id={project['id']}"
    for path, cost in (
        ("/projects", 3),
        ("/sessions", 3),
        (f"/sessions?{own}", 1),
        ("/analytics", 3),
        ("/me", 3),
        (f"/projects/{project['id']}", 1),
        ("/audit", 1),
    ):
        assert (await api.call("GET", path, ada)).status_code == 200
        left -= cost
        assert api.limits.developers.calls is not None
        assert api.limits.developers.calls.standing(developer.id, api.clock.now).remaining == left, path


async def test_without_limits_nothing_is_refused_or_told(api: Api) -> None:
    _, ada = await api.sign_up("ada@example.com")
    limit(api)
    for _ in range(50):
        response = await api.call("GET", "/me", ada)
        assert response.status_code == 200
        assert "ratelimit" not in response.headers


async def test_others_have_their_turn_while_a_long_list_is_written(api: Api) -> None:
    """300 projects with 20 long origins each are read and written in steps, and the event loop is free between them."""
    _, ada = await api.sign_up("ada@example.com", "business")
    host = ".".join(["a" * 60] * 4)
    origins = [f"https://{host}.example:{port}" for port in range(8000, 8020)]
    for number in range(5):
        await api.post("/projects", ada, {"name": f"Shop {number}", "allowed_origins": origins})
    copy = """
        WITH RECURSIVE numbers (value) AS (SELECT 1001 UNION ALL SELECT value + 1 FROM numbers WHERE value < 1295)
        INSERT INTO projects (id, developer_id, creator_id, name, secret_key_hash, secret_key_preview,
          encrypted_webhook_secret, webhook_url, is_active, public_access, collect_phone, created_at, allowed_origins)
        SELECT 'proj_000000000000000000' || value, developer_id, developer_id, name, CAST(value AS BLOB), 'sk_', x'00',
          '', 1, 1, 0, value, allowed_origins
        FROM numbers, (SELECT * FROM projects LIMIT 1)"""
    await api.execute(copy)
    await api.execute(ADD_MEMBERS)
    read: list[int] = []

    def note(_cursor: object, statement: str, values: Any) -> bool:
        if "p.allowed_origins" in statement:
            read.append(len(values))
        return True

    for connection in (api.storage.database.reader, api.storage.database.lookup):
        connection.exec_trace = note
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += len(read) > 0
            await asyncio.sleep(0)

    other = asyncio.create_task(others())
    response = await api.call("GET", "/projects", ada)
    other.cancel()
    projects = response.json()["projects"]
    assert [each["created_at"] for each in projects] == sorted(each["created_at"] for each in projects)
    assert len(projects) == 300
    assert all(each["allowed_origins"] == origins for each in projects)
    assert len(read) >= 10, "They are read in pieces."
    assert turns >= len(read)
