"""Management row by row: projects and their secrets, the account, access tokens (contract, Developer endpoints)."""

import base64
import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import apsw
import httpx
import jwt
import pytest
from tests.e2e.conftest import Developer, OwnProject, Phone, Service
from tests.e2e.test_spec_tables import assert_error, instant, keyed

NO_ROTATION = {"next_webhook_secret": None, "promoted_at": None}
SECRET_KEY = re.compile(r"sk_[A-Za-z0-9]{49}")


def shown(project: OwnProject) -> dict[str, Any]:
    """Return the answer of the creation without the secrets."""
    return {field: value for field, value in project.created.items() if field not in {"secret_key", "webhook_secret"}}


def test_create(developer: Developer) -> None:
    """A new project has the contract's fields with their defaults, and shows both secrets once (spec, POST)."""
    project = developer.create_project("  Bücher 📚  ")
    assert re.fullmatch(r"proj_[A-Za-z0-9]{22}", project.id)
    assert abs(instant(project.created["created_at"]) - datetime.now(UTC)) < timedelta(minutes=1)
    expected = {
        "id": project.id,
        "name": "Bücher 📚",
        "role": "owner",
        "secret_key_preview": f"{project.secret_key[:7]}…{project.secret_key[-4:]}",
        "webhook_url": "",
        "is_active": True,
        "public_access": True,
        "collect_phone": False,
        "created_at": project.created["created_at"],
        "sessions_count": 0,
        "confirmed_count": 0,
        "webhook_failing_since": None,
        "webhook_turned_off": None,
        "phone_required": True,
        "show_context": True,
        "match_code": "off",
        "allowed_origins": [],
        "same_device": "off",
        "return_urls": [],
        "texts": {},
        "logo_url": "",
        "webhook_events": ["auth.confirmed", "auth.cancelled"],
        "bot_username": None,
        "bot_broken_at": None,
    }
    assert shown(project) == shown(project) | expected
    assert SECRET_KEY.fullmatch(project.secret_key)
    kind, _, encoded = project.webhook_secret.partition("_")
    assert kind == "whsec"
    assert len(base64.b64decode(encoded, validate=True)) == 32


def test_secrets_are_shown_once(developer: Developer, project: OwnProject) -> None:
    """No later answer has the secret key, and only webhook-secret has the webhook secret (spec, Resources)."""
    answers = [
        developer.ask("GET", "/projects"),
        project.read(),
        developer.ask("PATCH", f"/projects/{project.id}", json={"name": "Renamed"}),
        developer.ask("GET", f"/sessions?project_id={project.id}"),
        developer.ask("GET", f"/analytics?project_id={project.id}"),
    ]
    assert all(set(each) == set(answers[1]) for each in answers[0]["projects"])
    assert set(answers[1]) == set(answers[2]) == set(shown(project))
    for answer in answers:
        assert project.secret_key not in str(answer)
        assert project.webhook_secret not in str(answer)
    secret = developer.ask("GET", f"/projects/{project.id}/webhook-secret")
    assert secret == {"webhook_secret": project.webhook_secret} | NO_ROTATION


def test_regenerate(developer: Developer, project: OwnProject, phone: Phone) -> None:
    """Both secrets were replaced; the old key is 401 at once, and the old webhook secret signs nothing (contract)."""
    early, late = project.generate(), project.generate()
    phone.sign_in(early)
    phone.sign_in(late)
    old_proof = project.verify(early["session_token"])["proof"]
    new = developer.ask("POST", f"/projects/{project.id}/regenerate")
    assert set(new) == {"secret_key", "webhook_secret"}
    assert SECRET_KEY.fullmatch(new["secret_key"])
    assert new["secret_key"] != project.secret_key
    assert new["webhook_secret"] != project.webhook_secret
    assert_error(keyed(project, "generate"), 401, "invalid_secret_key")
    proof = project.verify(late["session_token"])["proof"]
    jwt.decode(proof, new["webhook_secret"], algorithms=["HS256"])
    for each, secret in ((proof, project.webhook_secret), (old_proof, new["webhook_secret"])):
        with pytest.raises(jwt.InvalidSignatureError):
            jwt.decode(each, secret, algorithms=["HS256"])
    project.secret_key = new["secret_key"]
    assert keyed(project, "generate").status_code == 200
    assert project.read()["secret_key_preview"] == f"{new['secret_key'][:7]}…{new['secret_key'][-4:]}"
    secret = developer.ask("GET", f"/projects/{project.id}/webhook-secret")
    assert secret == {"webhook_secret": new["webhook_secret"]} | NO_ROTATION


def test_delete(developer: Developer, project: OwnProject, phone: Phone, service: Service) -> None:
    """DELETE returns {deleted: true}; afterwards nothing of the project is answered or stored (spec)."""
    undecided, confirmed = project.generate(), project.generate()
    new = {"name": "Grafana", "redirect_uris": ["https://grafana.example/"]}
    oidc = developer.ask("POST", f"/projects/{project.id}/clients", json=new)
    phone.sign_in(confirmed)
    phone.open(undecided["deeplink"])
    before = developer.ask("GET", "/analytics")
    assert developer.ask("DELETE", f"/projects/{project.id}") == {"deleted": True}
    path = f"/projects/{project.id}"
    for method, below in (
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("POST", "/regenerate"),
        ("GET", "/clients"),
        ("GET", f"/clients/{oidc['client_id']}"),
        ("GET", "/webhook-secret"),
        ("POST", "/webhook-secret/rotate"),
        ("POST", "/webhook-secret/promote"),
        ("POST", "/webhook-test"),
        ("GET", "/deliveries"),
    ):
        body = {"json": {"name": "N"}} if method == "PATCH" else {}
        assert_error(developer.call(method, path + below, **body), 404, "project_not_found")
    for listing in (f"/sessions?project_id={project.id}", f"/analytics?project_id={project.id}"):
        assert_error(developer.call("GET", listing), 404, "project_not_found")
    assert_error(keyed(project, "generate"), 401, "invalid_secret_key")
    public = {"project_id": project.id, "session_token": confirmed["session_token"]}
    for endpoint in ("generate", "verify"):
        response = developer.client.post(f"/api/v1/{endpoint}/public", json=public)
        assert_error(response, 404, "project_not_found")
    phone.tap("Confirm")
    assert project.id not in str(developer.ask("GET", "/sessions?limit=200"))
    after = developer.ask("GET", "/analytics")
    assert project.id not in str(after)
    assert after["total_sessions"] == before["total_sessions"] - 2
    assert after["funnel"]["opened"] == before["funnel"]["opened"] - 2
    assert_purged(service, project.id)


def assert_purged(service: Service, project_id: str) -> None:
    """Wait for housekeeping, and assert that no row names the project except in the audit log."""
    connection = apsw.Connection(str(service.database), flags=apsw.SQLITE_OPEN_READONLY)
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    tables.remove("audit_entries")
    deadline = time.monotonic() + 60
    while True:
        rows = [(table, row) for table in tables for row in connection.execute(f"SELECT * FROM {table}")]  # noqa: S608
        left = [table for table, row in rows if project_id in row]
        if not left:
            connection.close()
            return
        assert time.monotonic() < deadline, f"left in {left}"
        time.sleep(0.2)


def test_access_tokens(developer: Developer, client: httpx.Client) -> None:
    """A token is shown once, listed without its plaintext, and 401 at once after revocation (contract)."""
    created = developer.ask("POST", "/tokens", json={"name": " deploy "})
    plaintext = created.pop("access_token")
    assert re.fullmatch(r"tap_[A-Za-z0-9]{49}", plaintext)
    told = {"id", "name", "preview", "created_at", "last_used_at", "expires_at", "scopes", "created_with"}
    assert set(created) == told
    assert created["scopes"] == ["read", "write", "tokens"]
    assert (created["name"], created["last_used_at"], created["expires_at"]) == ("deploy", None, None)
    assert created["preview"] == f"{plaintext[:8]}…{plaintext[-4:]}"
    own = Developer(client, plaintext)
    assert own.ask("GET", "/me") == developer.ask("GET", "/me")
    listed = own.ask("GET", "/tokens")["tokens"]
    assert plaintext not in str(listed)
    assert listed[0] == created | {"last_used_at": listed[0]["last_used_at"]}
    assert instant(listed[0]["last_used_at"]) >= instant(created["created_at"])
    assert own.ask("DELETE", f"/tokens/{created['id']}") == {"deleted": True}
    assert_error(own.call("GET", "/me"), 401, "invalid_access_token")
    assert created["id"] not in str(developer.ask("GET", "/tokens"))
    assert_error(developer.call("DELETE", f"/tokens/{created['id']}"), 404, "access_token_not_found")
