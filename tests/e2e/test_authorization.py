"""No route answers or acts on a wrong credential: every route of /openapi.json × every kind of wrong credential."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from tests.e2e.conftest import Developer, OwnProject, Service, make_phone
from tests.e2e.receiver import receiving
from tests.e2e.test_expiry import let_token_expire
from tests.e2e.test_spec_tables import assert_error

MARK = "Wyvern"
"""Part of every name that the owner chose."""
BODIES: dict[str, dict[str, Any]] = {
    "create_project": {"name": "Taken over"},
    "update_project": {"name": "Taken over", "webhook_url": "https://evil.example.com/", "is_active": False},
    "create_client": {"name": "Taken over", "redirect_uris": ["https://evil.example.com/"]},
    "update_client": {"name": "Taken over", "redirect_uris": ["https://evil.example.com/"], "auth_method": "none"},
    "update_member": {"role": "viewer"},
    "create_member_invitation": {"role": "owner"},
    "accept_member_invitation": {"code": "join_x"},
    "create_access_token": {"name": "Taken over"},
}
OF_EVERYBODY = {"read_account", "list_projects", "create_project", "list_sessions", "read_analytics"}
OF_EVERYBODY |= {"list_access_tokens", "create_access_token", "list_audit_entries"}
OF_EVERYBODY |= {"erase_user"}
"""Operations that refer to nothing of the owner, so another developer may call them."""

ABOUT_A_PROJECT = {"list_sessions", "read_analytics", "list_audit_entries"}
"""Operations that also take a project in the query."""
NOT_FOUND = {
    "accept_member_invitation": "invitation_not_found",
    "delete_access_token": "access_token_not_found",
    "read_session": "session_not_found",
    "read_delivery": "delivery_not_found",
    "resend_delivery": "delivery_not_found",
}


@dataclass
class Property:
    """The owner's resources, and the strings that nobody else may read."""

    owner: Developer
    project: OwnProject
    ids: dict[str, str]
    """The id of each resource, by the name of the parameter in paths."""
    secrets: set[str]

    def dump(self) -> Any:
        """Return everything of the owner's that a call could change."""
        tokens = self.owner.ask("GET", "/tokens")["tokens"]
        return (
            self.owner.ask("GET", "/projects"),
            [{name: value for name, value in token.items() if name != "last_used_at"} for token in tokens],
            self.owner.ask("GET", f"/sessions?limit=200&project_id={self.project.id}"),
            self.owner.ask("GET", f"/projects/{self.project.id}/webhook-secret"),
            self.owner.ask("GET", f"/projects/{self.project.id}/clients"),
            self.owner.ask("GET", f"/projects/{self.project.id}/deliveries"),
            self.owner.ask("GET", "/audit?limit=200"),
        )


@pytest.fixture(scope="module")
def owned(developer: Developer) -> Iterator[Property]:
    with receiving() as received:
        project = developer.create_project(f"{MARK} shop", webhook_url=f"{received.url}/{MARK}")
        user = make_phone(developer.client, MARK)
        user.sign_in(project.generate())
        delivery_id = developer.ask("POST", f"/projects/{project.id}/webhook-test")["id"]
        # Until they are delivered, deliveries change by themselves.
        while {each["status"] for each in developer.ask("GET", f"/projects/{project.id}/deliveries")["deliveries"]} != {
            "delivered"
        }:
            time.sleep(0.05)
        session_id = developer.ask("GET", f"/sessions?project_id={project.id}")["sessions"][0]["id"]
        token = developer.ask("POST", "/tokens", json={"name": f"{MARK} token"})
        new = {"name": f"{MARK} app", "redirect_uris": [f"https://{MARK}.example/"]}
        oidc = developer.ask("POST", f"/projects/{project.id}/clients", json=new)
        account = developer.ask("GET", "/me")
        invitation = developer.ask("POST", f"/projects/{project.id}/invitations")
        secrets = {MARK.lower(), project.id, session_id, delivery_id, token["id"], token["access_token"]}
        secrets |= {project.secret_key, project.webhook_secret, project.created["secret_key_preview"], token["preview"]}
        secrets |= {user.messenger_id, account["id"], account["email"], developer.access_token}
        secrets |= {oidc["client_id"], oidc["client_secret"], oidc["client_secret_preview"]}
        secrets |= {invitation["id"], invitation["link"].partition("#")[2]}
        ids = {"project_id": project.id, "client_id": oidc["client_id"], "token_id": token["id"]}
        ids |= {"session_id": session_id, "messenger_id": user.messenger_id, "delivery_id": delivery_id}
        ids |= {"developer_id": account["id"], "invitation_id": invitation["id"], "grant_id": "auth_1"}
        yield Property(developer, project, ids, secrets)


@pytest.fixture(scope="module")
def operations(client: httpx.Client) -> list[tuple[str, str, str]]:
    """Return every operation that needs an access token: its id, method and path."""
    found = [
        (operation["operationId"], method.upper(), path)
        for path, methods in client.get("/openapi.json").json()["paths"].items()
        for method, operation in methods.items()
        if path.startswith("/api/v1/dev/")
    ]
    assert len(found) == 39
    return found


def calls(
    operations: list[tuple[str, str, str]], owned: Property, headers: dict[str, str], query: str = ""
) -> Iterator[tuple[str, httpx.Response]]:
    """Make every call on the owner's resources with these credentials."""
    for name, method, path in operations:
        address = path.format_map(owned.ids)
        about = f"project_id={owned.project.id}" if name in ABOUT_A_PROJECT else ""
        body = BODIES.get(name)
        for each in {"", about}:
            response = owned.owner.client.request(method, f"{address}?{each}&{query}", headers=headers, json=body)
            yield f"{name} {each}", response


def assert_silent(response: httpx.Response, owned: Property) -> None:
    """Assert that an answer and its headers reveal nothing of the owner's."""
    told = (response.text + str(response.headers.raw)).lower()
    assert not [secret for secret in owned.secrets if secret.lower() in told]


def wrong_credentials(service: Service, owned: Property) -> dict[str, str | None]:
    """Return Authorization headers that must not be accepted."""
    token = owned.owner.access_token
    revoked = owned.owner.ask("POST", "/tokens", json={"name": "revoked"})
    owned.owner.ask("DELETE", f"/tokens/{revoked['id']}")
    later = datetime.now(UTC) + timedelta(hours=1)
    expired = owned.owner.ask("POST", "/tokens", json={"name": "expired", "expires_at": later.isoformat()})
    let_token_expire(service, expired["id"])
    last = "A" if token[-1] != "A" else "B"
    return {
        "none": None,
        "empty": "",
        "no scheme": token,
        "another scheme": f"Token {token}",
        "scheme only": "Bearer",
        "no token": "Bearer tap_",
        "wrong checksum": f"Bearer {token[:-1]}{last}",
        "unknown": "Bearer tap_000000000000000000000000000000000000000000" + "0" * 7,
        "cut": f"Bearer {token[:-1]}",
        "too long": f"Bearer {token}{token}",
        "very long": "Bearer " + "x" * 6_000,
        "two": f"Bearer {token}, Bearer {token}",
        "not ASCII": "Bearer tap_\xe9\xff",
        "other case": f"Bearer {token.upper()}",
        "SQL": "Bearer ' OR 1=1 --",
        "revoked": f"Bearer {revoked['access_token']}",
        "expired": f"Bearer {expired['access_token']}",
        "client id": f"Bearer {owned.ids['client_id']}",
        "secret key": f"Bearer {owned.project.secret_key}",
        "webhook secret": f"Bearer {owned.project.webhook_secret}",
        "project id": f"Bearer {owned.project.id}",
        "token id": f"Bearer {owned.ids['token_id']}",
    }


def test_wrong_credentials(service: Service, operations: list[tuple[str, str, str]], owned: Property) -> None:
    """Without a valid access token, every route answers 401 and reveals nothing (spec, Authentication; issue)."""
    before = None
    for kind, value in wrong_credentials(service, owned).items():
        before = before or owned.dump()
        headers: Any = {} if value is None else {"Authorization": value.encode("latin-1")}
        for call, response in calls(operations, owned, headers):
            assert response.status_code == 401, f"{call} with {kind}"
            assert_error(response, 401, "invalid_access_token")
            assert response.headers["www-authenticate"] == "Bearer"
            assert_silent(response, owned)
    assert owned.dump() == before


def test_token_in_the_query(operations: list[tuple[str, str, str]], owned: Property) -> None:
    """A token in the query, in a cookie or in another header is not accepted (spec: Header Authorization)."""
    before = owned.dump()
    token = owned.owner.access_token
    query = f"access_token={token}&token={token}&authorization=Bearer%20{token}"
    headers = {"Cookie": f"access_token={token}", "X-Access-Token": token, "Proxy-Authorization": f"Bearer {token}"}
    for _, response in calls(operations, owned, headers, query):
        assert_error(response, 401, "invalid_access_token")
        assert_silent(response, owned)
    assert owned.dump() == before


def test_other_developer(operations: list[tuple[str, str, str]], owned: Property, stranger: Developer) -> None:
    """Another developer's resources answer 404, never 403, and lists hold only the caller's (contract, Everywhere)."""
    before = owned.dump()
    refused = set()
    for call, response in calls(operations, owned, stranger.headers):
        name, _, about = call.partition(" ")
        if name == "export_user":  # It repeats the id that the caller sent, and has no rows.
            assert response.status_code == 200
            assert [rows for rows in response.json().values() if isinstance(rows, list) and rows] == []
            continue
        assert_silent(response, owned)
        if name in OF_EVERYBODY and not about:
            assert response.status_code == 200
        else:
            assert_error(response, 404, NOT_FOUND.get(name, "project_not_found"))
            refused.add(name)
    assert refused == {name for name, _, _ in operations} - OF_EVERYBODY - {"export_user"} | ABOUT_A_PROJECT
    assert owned.dump() == before
    assert owned.owner.ask("GET", "/me")["email"] == "sandbox@localhost"
