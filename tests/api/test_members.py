"""The members of a project on every route of the developer API (docs/how-to/teams.md)."""

import re
from dataclasses import dataclass
from typing import Any

from tests.api.conftest import Api, acting, assert_error
from tests.api.test_developer_access import ENDPOINTS, NEW_CLIENT, VALID_BODIES, dump

from taproof.contract.member import Role
from taproof.core.accounts import Developer
from taproof.core.clock import DAY, iso8601
from taproof.core.roles import PERMITTED, ROLES, ProjectAction

ROUTES = [
    *((method, path) for method, path in ENDPOINTS if "{" in path and "{token}" not in path),
    ("GET", "/sessions?project_id={project}"),
    ("GET", "/analytics?project_id={project}"),
    ("GET", "/audit?project_id={project}"),
]
"""The routes of one project and of what belongs to it."""
CODES = {
    "project": "project_not_found",
    "delivery": "delivery_not_found",
    "session": "session_not_found",
}


def action_of(method: str, path: str) -> ProjectAction:
    """Return the action that a route needs."""
    if method == "DELETE" and path == "/projects/{project}":
        return "delete"
    if "webhook-secret" in path or path == "/projects/{project}/regenerate":
        return "secrets"
    if method == "GET" and "{messenger}" not in path:  # An export shows what the same right erases.
        return "read"
    return "members" if "/members" in path or "/invitations" in path else "write"


@dataclass
class Team:
    """A project with one object for each route parameter, its owner, and one more developer."""

    owner_token: str
    token: str
    names: dict[str, str]


class Teams:
    """Makes teams that all have the same developers."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.tokens: dict[str, tuple[Developer, str]] = {}

    async def developer(self, name: str) -> tuple[Developer, str]:
        if name not in self.tokens:
            self.tokens[name] = await self.api.sign_up(f"{name}@example.com", "business")
        return self.tokens[name]

    async def join(self, project_id: str, owner_token: str, name: str, role: Role) -> tuple[Developer, str]:
        developer, token = await self.developer(name)
        created = await self.api.post(f"/projects/{project_id}/invitations", owner_token, {"role": role})
        await self.api.post("/invitations/accept", token, {"code": created["link"].partition("#")[2]})
        return developer, token

    async def make(self, who: str) -> Team:
        """Return a team in which `who` has the role of that name, is a former member, or is a stranger."""
        api = self.api
        _, owner_token = await self.developer("ada")
        project = await api.post("/projects", owner_token, {"name": "Acme", "webhook_url": "https://example.com/"})
        project_id = project["id"]
        member, token = await self.developer(who)
        if who != "stranger":
            await self.join(project_id, owner_token, who, who if who in ROLES else "owner")
        if who == "former":
            await api.call("DELETE", f"/projects/{project_id}/members/{member.id}", owner_token)
        delivery = await api.post(f"/projects/{project_id}/webhook-test", owner_token, None)
        await api.signin.create_session(project_id, public=True)
        sessions = await api.call("GET", f"/sessions?project_id={project_id}", owner_token)
        client = await api.post(f"/projects/{project_id}/clients", owner_token, NEW_CLIENT)
        other, _ = await self.join(project_id, owner_token, "grace", "viewer")
        invitation = await api.post(f"/projects/{project_id}/invitations", owner_token, None)
        names = {
            "project": project_id,
            "delivery": delivery["id"],
            "session": sessions.json()["sessions"][0]["id"],
            "client": client["client_id"],
            "developer": other.id,
            "invitation": invitation["id"],
            "grant": "auth_1",
            "messenger": "9",
        }
        return Team(owner_token, token, names)


async def test_each_route_needs_its_role(api: Api) -> None:
    """A member may do what `core.roles` permits, and a refusal names the required role. Strangers get 404."""
    teams = Teams(api)
    failures: list[Any] = []
    for who in (*ROLES, "former", "stranger"):
        team = await teams.make(who)
        permitted = PERMITTED[who] if who in ROLES else frozenset()
        for method, path in ROUTES:
            project_id = team.names["project"]
            before = await dump(api, project_id, team.owner_token)
            body = VALID_BODIES.get((method, path))
            response = await api.call(method, path.format(**team.names), team.token, json=body)
            code = response.headers.get("x-error-code")
            if action_of(method, path) in permitted:
                is_right = response.status_code == 200 or code in {"no_rotation", "grant_not_found"}
                if method != "GET":
                    team = await teams.make(who)
            else:
                named = re.findall(r"\{(\w+)\}", path)[0]
                if who in ROLES:
                    expected: tuple[int, str | None] = (400, "insufficient_role")
                else:  # A user is nobody's, so a stranger is told only that there is nothing.
                    expected = (200, None) if named == "messenger" else (404, CODES[named])
                is_right = (response.status_code, code) == expected
                if await dump(api, project_id, team.owner_token) != before:
                    failures.append((who, method, path, "changed something"))
            if not is_right:
                failures.append((who, method, path, response.status_code, response.text))
        for path in ("/projects", "/sessions", "/analytics"):
            shows = team.names["project"] in (await api.call("GET", path, team.token)).text
            if shows != (who in ROLES):
                failures.append((who, path, shows))
    assert failures == []


async def test_what_a_role_hides_is_in_no_answer(api: Api) -> None:
    """In every answer of a project and of the lists, each value reaches exactly the roles that may see it."""
    teams = Teams(api)
    seen: dict[str, set[str]] = {}
    for who in ROLES:
        team = await teams.make(who)
        path = f"/projects/{team.names['project']}"
        await api.call(
            "PATCH", path, team.owner_token, json={"webhook_url": "https://hooks.example.com/T0/secret-path"}
        )
        secret = (await api.call("GET", f"{path}/webhook-secret", team.owner_token)).json()["webhook_secret"]
        invited = await api.post(f"{path}/invitations", team.owner_token, {})
        own_tokens = (await api.call("GET", "/tokens", team.owner_token)).json()["tokens"]
        assert own_tokens[0]["name"]
        hidden = {
            "path of the webhook URL": "secret-path",
            "webhook secret": secret,
            "code of an invitation": invited["link"].partition("#")[2],
            "access token of an owner": own_tokens[0]["id"],
            "preview of an access token": own_tokens[0]["preview"],
        }
        paths = [path.format(**team.names) for method, path in ROUTES if method == "GET"]
        answers = [
            await api.call("GET", path, team.token) for path in [*paths, "/projects", "/me", "/sessions", "/audit"]
        ]
        for name, value in hidden.items():
            seen.setdefault(name, set()).update(who for answer in answers if value in answer.text)
        entries = (await api.call("GET", f"/audit?project_id={team.names['project']}", team.token)).json()["entries"]
        others = [each for each in entries if each["actor"] != f"{who}@example.com"]
        assert len(others) > 5
        for field in ("address", "via_id"):
            seen.setdefault(field, set()).update(who for each in others if each[field])
        mine = [each for each in entries if each["actor"] == f"{who}@example.com"]
        assert all(each["address"] and each["via_id"] for each in mine)
        assert mine
    assert seen == {
        "path of the webhook URL": {"owner", "developer"},
        "webhook secret": {"owner", "developer"},
        "code of an invitation": set(),
        "access token of an owner": {"owner"},  # In the audit log.
        "preview of an access token": set(),
        "address": {"owner"},
        "via_id": {"owner"},
    }


async def test_projects_show_the_callers_role(api: Api) -> None:
    """Members see their own role everywhere, including the answers that add or change it."""
    teams = Teams(api)
    _, owner_token = await teams.developer("ada")
    project_id = (await api.post("/projects", owner_token, {"name": "Acme"}))["id"]
    shown = {}
    for role in ROLES:
        _, token = await teams.join(project_id, owner_token, role, role)
        (listed,) = (await api.call("GET", "/projects", token)).json()["projects"]
        shown[role] = (listed["role"], (await api.call("GET", f"/projects/{project_id}", token)).json()["role"])
    assert shown == {role: (role, role) for role in ROLES}
    _, token = await teams.developer("developer")
    assert (await api.call("PATCH", f"/projects/{project_id}", token, json={"name": "Shop"})).json()[
        "role"
    ] == "developer"


async def test_an_invitation_works_once(api: Api) -> None:
    """A link works until it is used, revoked or expired, and is shown in the first answer only."""
    teams = Teams(api)
    ada, ada_token = await teams.developer("ada")
    grace, grace_token = await teams.developer("grace")
    project_id = (await api.post("/projects", ada_token, {"name": "Acme"}))["id"]
    invitations = f"/projects/{project_id}/invitations"

    async def invite(**body: str) -> tuple[str, str]:
        created = await api.post(invitations, ada_token, body or None)
        link, code = created["link"].split("#")
        assert link == "https://taproof.test/console/join"
        assert code not in (await api.call("GET", invitations, ada_token)).text
        return created["id"], code

    async def accept(code: str, token: str = grace_token) -> Any:
        return await api.call("POST", "/invitations/accept", token, json={"code": code})

    revoked_id, revoked = await invite()
    assert (await api.call("DELETE", f"{invitations}/{revoked_id}", ada_token)).json() == {"deleted": True}
    _, expired = await invite()
    api.clock.now += 7 * DAY
    for code in (revoked, expired, "", "join_x", revoked[:-1] + "x"):
        assert_error(await accept(code), 404, "invitation_not_found")
    _, code = await invite(role="viewer")
    assert_error(await accept(code, ada_token), 400, "already_member")
    answer = await accept(code)
    assert (answer.status_code, answer.json()["id"]) == (200, project_id)
    assert_error(await accept(code), 404, "invitation_not_found")
    members = (await api.call("GET", f"/projects/{project_id}/members", grace_token)).json()["members"]
    assert [(each["email"], each["role"], each["invited_by"]) for each in members] == [
        (ada.email, "owner", ""),
        (grace.email, "viewer", ada.email),
    ]
    assert_error(await api.call("POST", invitations, ada_token, json={"role": "admin"}), 400, "invalid_request")


async def test_an_invitation_ends_with_its_token(api: Api) -> None:
    """When a token is revoked or expires, the invitations that it created stop working."""
    teams = Teams(api)
    ada, ada_token = await teams.developer("ada")
    _, eve_token = await teams.developer("eve")
    project_id = (await api.post("/projects", ada_token, {"name": "Acme"}))["id"]
    leaked = await api.developers.create_access_token(acting(ada), "leaked")
    created = await api.post(f"/projects/{project_id}/invitations", leaked.plaintext, None)
    assert (await api.call("DELETE", f"/tokens/{leaked.token.id}", ada_token)).status_code == 200
    code = created["link"].partition("#")[2]
    assert_error(
        await api.call("POST", "/invitations/accept", eve_token, json={"code": code}), 404, "invitation_not_found"
    )
    assert (await api.call("GET", f"/projects/{project_id}/invitations", ada_token)).json() == {"invitations": []}
    expires_at = api.clock.now + DAY
    short = await api.developers.create_access_token(acting(ada), "short", expires_at=expires_at)
    created = await api.post(f"/projects/{project_id}/invitations", short.plaintext, None)
    assert created["expires_at"] == iso8601(expires_at)


async def test_a_project_keeps_an_owner(api: Api) -> None:
    """The only owner can neither leave nor become a developer; anyone else can leave."""
    teams = Teams(api)
    ada, ada_token = await teams.developer("ada")
    project_id = (await api.post("/projects", ada_token, {"name": "Acme"}))["id"]
    api.clock.now += 1
    grace, grace_token = await teams.join(project_id, ada_token, "grace", "developer")
    api.clock.now += 1
    members = f"/projects/{project_id}/members"
    assert_error(await api.call("DELETE", f"{members}/{ada.id}", ada_token), 400, "last_owner")
    assert_error(
        await api.call("PATCH", f"{members}/{ada.id}", ada_token, json={"role": "developer"}), 400, "last_owner"
    )
    assert_error(await api.call("DELETE", f"{members}/dev_x", ada_token), 404, "member_not_found")
    changed = await api.call("PATCH", f"{members}/{grace.id}", ada_token, json={"role": "owner"})
    assert (changed.status_code, changed.json()["role"]) == (200, "owner")
    api.clock.now += 1
    assert (await api.call("DELETE", f"{members}/{ada.id}", ada_token)).json() == {"deleted": True}
    assert (await api.call("GET", "/projects", ada_token)).json() == {"projects": []}
    audit = (await api.call("GET", f"/audit?project_id={project_id}", grace_token)).json()["entries"]
    done = sorted((each["created_at"], each["action"], each["actor"]) for each in audit)
    assert [each[1:] for each in done] == [
        ("project.created", ada.email),
        ("member.invited", ada.email),
        ("member.joined", grace.email),
        ("member.role_changed", ada.email),
        ("member.removed", ada.email),
    ]
    # The project now counts on the plan of its remaining owner.
    usage = [(await api.call("GET", "/me", token)).json()["usage"]["projects"] for token in (ada_token, grace_token)]
    assert usage == [0, 1]
