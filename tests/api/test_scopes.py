"""The scopes of an access token, on every route of the developer API (docs/explanation/rights.md)."""

import itertools
from typing import Any

from tests.api.conftest import Api, acting, assert_error
from tests.api.test_developer_access import ENDPOINTS, NEW_CLIENT, VALID_BODIES, dump

from taproof.core.rights import SCOPES

NEEDS_NO_SCOPE = {("GET", "/me")}
NEEDS = {
    ("GET", "/projects/{project}/webhook-secret"): "write",
    ("PATCH", "/projects/{project}/members/{developer}"): "tokens",
    ("DELETE", "/projects/{project}/members/{developer}"): "tokens",
    ("POST", "/projects/{project}/invitations"): "tokens",
    ("DELETE", "/projects/{project}/invitations/{invitation}"): "tokens",
    ("POST", "/invitations/accept"): "tokens",
    ("POST", "/tokens"): "tokens",
    ("DELETE", "/tokens/{token}"): "tokens",
}


async def test_each_route_needs_its_scope(api: Api) -> None:
    """Without the scope, the answer is 403 with the scope's name (RFC 6750, section 3.1), and nothing changes."""
    ada, token = await api.sign_up("ada@example.com", "pro")
    project = await api.post("/projects", token, {"name": "Acme", "webhook_url": "https://example.com/"})
    delivery = await api.post(f"/projects/{project['id']}/webhook-test", token, None)
    await api.signin.create_session(project["id"], public=True)
    [session] = (await api.call("GET", "/sessions", token)).json()["sessions"]
    other = await api.post("/tokens", token, {"name": "other"})
    client = await api.post(f"/projects/{project['id']}/clients", token, NEW_CLIENT)
    names = {
        "project": project["id"],
        "client": client["client_id"],
        "grant": "auth_1",
        "delivery": delivery["id"],
        "session": session["id"],
        "token": other["id"],
        "messenger": "9",
        "developer": ada.id,
        "invitation": (await api.post(f"/projects/{project['id']}/invitations", token, None))["id"],
    }
    sets = [chosen for size in (1, 2, 3) for chosen in itertools.combinations(SCOPES, size)]
    tokens: dict[tuple[str, ...], str] = {
        chosen: (await api.developers.create_access_token(acting(ada), "set", scopes=chosen)).plaintext
        for chosen in sets
    }
    failures: list[Any] = []
    for method, path in ENDPOINTS:
        needed = NEEDS.get((method, path), "read" if method == "GET" else "write")
        for chosen in sets:
            if needed in chosen:
                continue
            before = await dump(api, project["id"], token), await api.developers.list_access_tokens(ada.id)
            response = await api.call(
                method, path.format(**names), tokens[chosen], json=VALID_BODIES.get((method, path))
            )
            if (method, path) in NEEDS_NO_SCOPE:
                if response.status_code != 200:
                    failures.append((method, path, chosen, response.status_code))
                continue
            if response.status_code != 403:
                failures.append((method, path, chosen, response.status_code))
                continue
            assert_error(response, 403, "insufficient_scope")
            assert response.headers["www-authenticate"] == f'Bearer error="insufficient_scope", scope="{needed}"'
            after = await dump(api, project["id"], token), await api.developers.list_access_tokens(ada.id)
            if _without_use(after) != _without_use(before):
                failures.append((method, path, chosen, "changed something"))
    assert failures == []
    for method, path in ENDPOINTS:
        if method != "DELETE":
            needed = NEEDS.get((method, path), "read" if method == "GET" else "write")
            response = await api.call(
                method, path.format(**names), tokens[(needed,)], json=VALID_BODIES.get((method, path))
            )
            allowed = {404} if path == "/invitations/accept" else {200, 400}
            assert response.status_code in allowed, (method, path, response.text)


def _without_use(state: Any) -> str:
    """Return a state without when tokens were last used: to call with one is a use."""
    project, tokens = state
    return f"{project} {[(token.id, token.scopes, token.expires_at) for token in tokens]}"


async def test_a_token_creates_no_more_than_itself(api: Api, token: str) -> None:
    """The answers show the new token's scopes and its creator; a scope that the parent lacks is 400."""
    expires_at = "2027-01-31T00:00:00.000Z"
    body = {"name": "parent", "scopes": ["tokens", "read"], "expires_at": expires_at}
    parent = await api.post("/tokens", token, body)
    assert (parent["scopes"], parent["expires_at"]) == (["read", "tokens"], expires_at)
    child = await api.post("/tokens", parent["access_token"], {"name": "child"})
    assert (child["scopes"], child["expires_at"]) == (["read", "tokens"], expires_at)
    assert child["created_with"] == parent["id"]
    refused: list[dict[str, Any]] = [
        {"scopes": ["write"]},
        {"expires_at": "2027-01-31T00:00:00.001Z"},
        {"scopes": []},
        {"scopes": ["x"]},
    ]
    for more in refused:
        response = await api.call("POST", "/tokens", parent["access_token"], json={"name": "more", **more})
        assert assert_error(response, 400, "invalid_request").startswith(next(iter(more)))


async def test_revoking_takes_the_children_along(api: Api, token: str) -> None:
    """Tokens that a revoked token created are revoked too, unless they are kept; a token can always revoke itself."""
    parent = await api.post("/tokens", token, {"name": "parent"})
    child = await api.post("/tokens", parent["access_token"], {"name": "child"})
    kept = await api.post("/tokens", child["access_token"], {"name": "kept", "scopes": ["read"]})
    assert (await api.call("DELETE", f"/tokens/{child['id']}?created=keep", token)).json() == {"deleted": True}
    assert (await api.call("GET", "/me", child["access_token"])).status_code == 401
    assert (await api.call("GET", "/me", kept["access_token"])).status_code == 200
    assert (await api.call("DELETE", f"/tokens/{parent['id']}?created=x", token)).status_code == 400
    assert (await api.call("DELETE", f"/tokens/{parent['id']}", parent["access_token"])).json() == {"deleted": True}
    assert (await api.call("GET", "/me", kept["access_token"])).status_code == 401
    reader = await api.post("/tokens", token, {"name": "reader", "scopes": ["read"]})
    assert (await api.call("DELETE", f"/tokens/{reader['id']}", reader["access_token"])).json() == {"deleted": True}
