"""The endpoints of OpenID Connect clients (contract.md, OpenID provider)."""

from typing import Any

import pytest
from tests.api.conftest import START, Api, assert_error
from tests.api.test_developer_access import NEW_CLIENT, NO_CLIENT
from tests.granting import grant

from taproof.core.clock import DAY, iso8601
from taproof.core.identifiers import is_client_id, is_key
from taproof.core.identity import MessengerIdentity
from taproof.core.oidc.clients import CLIENT_LIMIT


class Clients:
    """The clients of one project of the developer with this access token."""

    def __init__(self, api: Api, token: str, project_id: str) -> None:
        self.api = api
        self.token = token
        self.path = f"/projects/{project_id}/clients"

    async def ask(self, method: str, below: str = "", body: Any = None) -> Any:
        """Return the body of the successful answer."""
        response = await self.api.call(method, self.path + below, self.token, json=body)
        assert response.status_code == 200, response.text
        return response.json()

    async def refused(self, method: str, below: str, body: Any, code: str = "invalid_request") -> str:
        response = await self.api.call(method, self.path + below, self.token, json=body)
        return assert_error(response, 404 if code.endswith("_not_found") else 400, code)


@pytest.fixture
async def clients(api: Api) -> Clients:
    _, token = await api.sign_up("ada@example.com")
    return Clients(api, token, (await api.post("/projects", token, {"name": "Acme"}))["id"])


async def test_a_client_from_creation_to_deletion(clients: Clients) -> None:
    """Creation shows the secret once; later answers have the fields of a client and no secret."""
    created = await clients.ask("POST", "", NEW_CLIENT | {"name": "  Grafana "})
    secret = created.pop("client_secret")
    assert is_key(secret, "ocs")
    assert is_client_id(created["client_id"])
    assert created == {
        "client_id": created["client_id"],
        "name": "Grafana",
        "redirect_uris": NEW_CLIENT["redirect_uris"],
        "auth_method": "any",
        "signing_alg": "RS256",
        "email": "none",
        "id_token_lifetime": 3600,
        "grant_types": ["authorization_code"],
        "groups": {},
        "allowed_groups": [],
        "post_logout_redirect_uris": [],
        "backchannel_logout_uri": "",
        "client_secret_preview": f"{secret[:8]}…{secret[-4:]}",
        "created_at": iso8601(START),
    }
    one = f"/{created['client_id']}"
    assert await clients.ask("GET", one) == created
    settings = {"signing_alg": "ES256", "email": "synthetic", "id_token_lifetime": 86_400}
    settings |= {"grant_types": ["authorization_code", "device_code"]}
    settings |= {"groups": {"admins": ["1001"], "staff": ["1001", "1002"]}, "allowed_groups": ["staff"]}
    settings |= {"name": "New", "redirect_uris": ["com.example.app:/cb", "http://127.0.0.1/"], "auth_method": "post"}
    assert await clients.ask("PATCH", one, settings) == created | settings
    assert await clients.ask("PATCH", one, {}) == created | settings
    assert await clients.ask("GET") == {"clients": [created | settings]}
    assert await clients.ask("DELETE", one) == {"deleted": True}
    assert await clients.ask("GET") == {"clients": []}
    for method, below in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/regenerate")):
        await clients.refused(method, one + below, {} if method == "PATCH" else None, "client_not_found")


async def test_a_secret_is_shown_when_it_is_new(clients: Clients) -> None:
    """A public client has no secret, gets one with another auth_method, and loses it again; regenerate replaces it."""
    public = await clients.ask("POST", "", NEW_CLIENT | {"auth_method": "none"})
    assert (public["client_secret_preview"], "client_secret" in public) == (None, False)
    one = f"/{public['client_id']}"
    assert "no secret" in await clients.refused("POST", f"{one}/regenerate", None)
    changed = await clients.ask("PATCH", one, {"auth_method": "basic"})
    first = changed.pop("client_secret")
    assert changed["client_secret_preview"] == f"{first[:8]}…{first[-4:]}"
    assert await clients.ask("PATCH", one, {"auth_method": "post"}) == changed | {"auth_method": "post"}
    replaced = await clients.ask("POST", f"{one}/regenerate")
    assert list(replaced) == ["client_secret"]
    assert replaced["client_secret"] != first
    assert (await clients.ask("GET", one))["client_secret_preview"].endswith(replaced["client_secret"][-4:])
    assert await clients.ask("PATCH", one, {"auth_method": "none"}) == public


async def test_a_client_belongs_to_the_project_in_the_path(clients: Clients) -> None:
    """A client is not found through another project of the same developer, and is not changed."""
    created = await clients.ask("POST", "", NEW_CLIENT)
    other = await clients.api.post("/projects", clients.token, {"name": "Other"})
    through = Clients(clients.api, clients.token, other["id"])
    one = f"/{created['client_id']}"
    for method, below in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/regenerate")):
        body = {"name": "Taken"} if method == "PATCH" else None
        await through.refused(method, one + below, body, "client_not_found")
        await clients.refused(method, f"/{NO_CLIENT}{below}", body, "client_not_found")
    assert "client id" in await clients.refused("GET", "/oidc_x", None)
    created.pop("client_secret")
    assert await clients.ask("GET", one) == created


BAD_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "name must have"),
    ({"redirect_uris": "https://app.example/"}, "redirect_uris must be a list of strings."),
    ({"redirect_uris": [1]}, "redirect_uris must be a list of strings."),
    ({"redirect_uris": None}, "redirect_uris must be a list of strings."),
    ({"redirect_uris": []}, "redirect_uris must contain 1 to 20"),
    ({"redirect_uris": ["https://app.example/"] * 21}, "redirect_uris must contain 1 to 20"),
    ({"redirect_uris": ["javascript:alert(1)"]}, "redirect_uris: number 1 of the list must begin with https://"),
    ({"auth_method": "private_key_jwt"}, "auth_method must be any, basic, post or none."),
    ({"auth_method": None}, "auth_method must be any, basic, post or none."),
    ({"signing_alg": "none"}, "signing_alg must be RS256 or ES256."),
    ({"email": "ada@example.com"}, "email must be none or synthetic."),
    ({"id_token_lifetime": "3600"}, "id_token_lifetime must be a whole number."),
    ({"id_token_lifetime": True}, "id_token_lifetime must be a whole number."),
    ({"id_token_lifetime": 299}, "id_token_lifetime must be a whole number of seconds from 300 to 86400."),
    ({"grant_types": []}, "grant_types must contain one or more of: authorization_code, device_code"),
    ({"grant_types": ["device_code", "implicit"]}, "grant_types must contain one or more of"),
    ({"grant_types": ["refresh_token"]}, "grant_types must contain authorization_code or device_code beside"),
    ({"post_logout_redirect_uris": ["x"]}, "post_logout_redirect_uris: number 1 of the list must be absolute"),
    ({"post_logout_redirect_uris": ["https://app.example/"] * 21}, "must contain at most 20 addresses"),
    ({"backchannel_logout_uri": "http://app.example/"}, "backchannel_logout_uri must begin with https://"),
    ({"backchannel_logout_uri": "com.example.app:/cb"}, "backchannel_logout_uri must begin with https://"),
    ({"grant_types": "device_code"}, "grant_types must be a list of strings."),
    ({"client_secret": "mine"}, "client_secret is not a field of this request."),
]


async def test_a_bad_field_is_400_and_changes_nothing(clients: Clients, subtests: pytest.Subtests) -> None:
    """A bad field, in a new client or a change, is named in the sentence; a valid field beside it is not stored."""
    created = await clients.ask("POST", "", NEW_CLIENT)
    created.pop("client_secret")
    for fields, sentence in BAD_FIELDS:
        with subtests.test(sentence):
            assert sentence in await clients.refused("POST", "", NEW_CLIENT | fields)
            body = {"name": "New", "auth_method": "none"} | fields
            assert sentence in await clients.refused("PATCH", f"/{created['client_id']}", body)
    for missing in NEW_CLIENT:
        body = {name: value for name, value in NEW_CLIENT.items() if name != missing}
        assert await clients.refused("POST", "", body) == f"{missing} is required."
    assert await clients.ask("GET") == {"clients": [created]}


async def test_a_project_has_at_most_fifty_clients(clients: Clients) -> None:
    """The next one is refused, and the audit log does not mention it."""
    for _ in range(CLIENT_LIMIT):
        await clients.ask("POST", "", NEW_CLIENT)
    await clients.refused("POST", "", NEW_CLIENT, "too_many_clients")
    assert len((await clients.ask("GET"))["clients"]) == CLIENT_LIMIT
    audit = (await clients.api.call("GET", "/audit?limit=200", clients.token)).json()["entries"]
    assert [each["action"] for each in audit].count("client.created") == CLIENT_LIMIT


async def test_who_is_signed_in(clients: Clients) -> None:
    """The live grants come in pages, the latest first. Ending one is final, and another client's grant is not found."""
    storage = clients.api.storage
    client, other = [(await clients.ask("POST", "", NEW_CLIENT))["client_id"] for _ in range(2)]
    project_id = clients.path.split("/")[2]
    made = [
        await grant(storage, project_id, client, MessengerIdentity(user, "Ada", name), START + number, keeps=keeps)
        for number, (user, name, keeps) in enumerate((("1", "ada", True), ("2", "", False), ("3", "", True)))
    ]
    first = await clients.ask("GET", f"/{client}/grants?limit=2")
    rest = await clients.ask("GET", f"/{client}/grants?limit=2&cursor={first['next_cursor']}")
    assert [each["id"] for each in (*first["grants"], *rest["grants"])] == [each.id for each in made[::-1]]
    assert rest["next_cursor"] is None
    assert rest["grants"] == [
        {
            "id": made[0].id,
            "messenger_id": "1",
            "messenger_name": "Ada",
            "messenger_username": "ada",
            "scopes": ["openid", "offline_access"],
            "has_refresh_token": True,
            "created_at": iso8601(START),
            "refreshed_at": None,
            "expires_at": iso8601(START + 30 * DAY),
        }
    ]
    assert (first["grants"][1]["messenger_username"], first["grants"][1]["has_refresh_token"]) == (None, False)
    assert await clients.ask("GET", f"/{other}/grants") == {"grants": [], "next_cursor": None}
    for path in (f"/{other}/grants/{made[0].id}", f"/{client}/grants/auth_x"):
        await clients.refused("DELETE", path, None, "grant_not_found")
    assert await clients.ask("DELETE", f"/{client}/grants/{made[0].id}") == {"deleted": True}
    await clients.refused("DELETE", f"/{client}/grants/{made[0].id}", None, "grant_not_found")
    await clients.refused("GET", f"/{NO_CLIENT}/grants", None, "client_not_found")
    assert "cursor" in await clients.refused("GET", f"/{client}/grants?cursor=x", None)
    [entry] = [
        each
        for each in (await clients.api.call("GET", "/audit", clients.token)).json()["entries"]
        if each["action"] == "client.grant_ended"
    ]
    assert entry["details"] == {"project_id": project_id, "grant_id": made[0].id}
