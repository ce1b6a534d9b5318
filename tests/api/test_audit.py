"""`GET /api/v1/dev/audit`: the log that developers read of their own account."""

from ipaddress import ip_network
from typing import Any, cast, get_args

import httpx
import pytest
from tests.api.conftest import START, Api

from taproof.contract.audit import AuditAction, Via
from taproof.core.accounts import AccessToken, AuditEntry
from taproof.core.clock import iso8601
from taproof.http.https_only import HttpsOnly


async def entries(api: Api, token: str, query: str = "?limit=200") -> list[Any]:
    response = await api.call("GET", f"/audit{query}", token)
    assert response.status_code == 200, response.text
    found: list[Any] = response.json()["entries"]
    return found


async def test_each_call_that_changes_something_is_told(api: Api) -> None:
    """Every writing call of the API leaves an entry with its actor, token, time and address.

    A reading call leaves none.
    """
    developer, token = await api.sign_up("ada@example.com")
    [own] = await api.developers.list_access_tokens(developer.id)
    project = await api.post("/projects", token, {"name": "Acme", "webhook_url": "https://example.com/canary"})
    path = f"/projects/{project['id']}"
    delivery = await api.post(f"{path}/webhook-test", token, None)
    made = await api.post("/tokens", token, {"name": "CI"})
    steps: list[tuple[str, str, Any, str, str, Any]] = [
        ("PATCH", path, {"is_active": False}, "project.updated", project["id"], {"is_active": False}),
        (
            "POST",
            f"{path}/webhook-secret/rotate",
            {},
            "webhook_secret.rotated",
            project["id"],
            {"overlap_hours": 24},
        ),
        ("POST", f"{path}/webhook-secret/promote", None, "webhook_secret.promoted", project["id"], {}),
        ("POST", f"{path}/regenerate", None, "project.secrets_regenerated", project["id"], {}),
        ("POST", f"/deliveries/{delivery['id']}/resend", None, "delivery.resent", delivery["id"], {}),
        (
            "DELETE",
            f"/tokens/{made['id']}",
            None,
            "access_token.revoked",
            made["id"],
            {"name": "CI", "preview": made["preview"]},
        ),
        ("DELETE", path, None, "project.deleted", project["id"], {"name": "Acme"}),
    ]
    for method, address, body, action, subject, details in steps:
        before = await entries(api, token)
        api.clock.now += 1000
        for read in ("/me", "/projects", path, f"{path}/webhook-secret", "/tokens", "/sessions", "/analytics"):
            assert (await api.call("GET", read, token)).status_code == 200
        assert (await api.call(method, address, token, json=body)).status_code == 200
        [new, *older] = await entries(api, token)
        assert older == before
        assert new == {
            "id": new["id"],
            "created_at": iso8601(api.clock.now),
            "action": action,
            "actor": "ada@example.com",
            "via": "access_token",
            "via_id": own.id,
            "address": "127.0.0.1",
            "subject": subject,
            "details": details,
        }
    kinds = {entry["action"] for entry in await entries(api, token)}
    assert kinds == {
        *(action for _, _, _, action, _, _ in steps),
        "developer.created",
        "access_token.created",
        "project.created",
    }


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [("10.0.0.1", "203.0.113.7", "203.0.113.7"), ("198.51.100.9", "203.0.113.7", "198.51.100.9")],
)
async def test_the_address_is_the_clients(api: Api, peer: str, forwarded: str, address: str, token: str) -> None:
    """Behind a trusted proxy, the logged address is the one that the proxy saw.

    Other forwarding headers are ignored.
    """
    api.clock.now += 1
    app = HttpsOnly(api.app, [ip_network("10.0.0.0/8")])
    transport = httpx.ASGITransport(app, client=(peer, 50_000))
    headers = {"Authorization": f"Bearer {token}", "X-Forwarded-For": forwarded, "X-Forwarded-Proto": "https"}
    async with httpx.AsyncClient(transport=transport, base_url="https://taproof.test", headers=headers) as client:
        assert (await client.post("/api/v1/dev/projects", json={"name": "Acme"})).status_code == 200
    [newest, *_] = await entries(api, token)
    assert newest["address"] == address


async def test_nobody_reads_anothers_log(api: Api) -> None:
    """Neither one's own token nor another developer's cursor reads another developer's log."""
    ada, ada_token = await api.sign_up("ada@example.com")
    await api.post("/projects", ada_token, {"name": "Canary"})
    cursor = (await api.call("GET", "/audit?limit=1", ada_token)).json()["next_cursor"]
    _, eve_token = await api.sign_up("eve@example.com")
    for query in ("", f"?cursor={cursor}", f"?cursor={cursor}&limit=200"):
        response = await api.call("GET", f"/audit{query}", eve_token)
        assert response.status_code == 200
        for canary in ("Canary", "ada@example.com", ada.id):
            assert canary not in response.text
    assert len(await entries(api, eve_token)) == 2


async def test_an_entry_of_a_newer_release_is_shown(api: Api) -> None:
    """During a rollout, an older node shows unknown actions of a newer release unchanged."""
    developer, token = await api.sign_up("ada@example.com")
    action, via, details = cast("AuditAction", "moon.landed"), cast("Via", "rocket"), '{"crew": [1, null, {"a": "b"}]}'
    entry = AuditEntry("aud_0", developer.id, START + 1, action, "Zoë", via, "", "2001:db8::7", "moon_1", details)
    await api.storage.credentials.create_access_token(
        AccessToken("tok_0", developer.id, "CI", "…", START), b"0" * 32, entry=entry
    )
    [newest, *_] = await entries(api, token)
    assert (newest["action"], newest["via"], newest["actor"]) == ("moon.landed", "rocket", "Zoë")
    assert newest["details"] == {"crew": [1, None, {"a": "b"}]}


def test_the_reference_names_every_action(api: Api) -> None:
    """The reference lists every action that the log can contain."""
    schema = api.documented.document["components"]["schemas"]["AuditEntryAnswer"]["properties"]
    assert all(action in schema["action"]["description"] for action in get_args(AuditAction))
    assert all(via in schema["via"]["description"] for via in get_args(Via))
