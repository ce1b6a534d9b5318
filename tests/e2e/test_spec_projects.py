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
from tests.e2e.test_bad_input import OF_PROJECT
from tests.e2e.test_expiry import let_token_expire
from tests.e2e.test_spec_tables import assert_error, instant, keyed

DEFAULTS: dict[str, Any] = {
    "role": "owner",
    "webhook_url": "",
    "is_active": True,
    "public_access": True,
    "collect_phone": False,
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
PROJECT_FIELDS = {"id", "name", "secret_key_preview", "created_at", *DEFAULTS}
NO_ROTATION = {"next_webhook_secret": None, "promoted_at": None}
SECRET_KEY = re.compile(r"sk_[A-Za-z0-9]{49}")


def shown(project: OwnProject) -> dict[str, Any]:
    """Return the answer of the creation without the secrets."""
    return {field: value for field, value in project.created.items() if field not in {"secret_key", "webhook_secret"}}


def test_create(developer: Developer) -> None:
    """A new project has the contract's fields with their defaults, and shows both secrets once (spec, POST)."""
    project = developer.create_project("  Bücher 📚  ")
    assert set(project.created) >= PROJECT_FIELDS | {"secret_key", "webhook_secret"}
    assert re.fullmatch(r"proj_[A-Za-z0-9]{22}", project.id)
    assert abs(instant(project.created["created_at"]) - datetime.now(UTC)) < timedelta(minutes=1)
    preview = f"{project.secret_key[:7]}…{project.secret_key[-4:]}"
    expected = DEFAULTS | {"id": project.id, "name": "Bücher 📚", "secret_key_preview": preview}
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
    assert set(answers[1]) == set(answers[2]) >= PROJECT_FIELDS
    for answer in answers:
        assert project.secret_key not in str(answer)
        assert project.webhook_secret not in str(answer)
    secret = developer.ask("GET", f"/projects/{project.id}/webhook-secret")
    assert secret == {"webhook_secret": project.webhook_secret} | NO_ROTATION


def test_list_and_read(developer: Developer, stranger: Developer) -> None:
    """The list has all of a developer's projects, oldest first, and nobody else's (spec, Developer endpoints)."""
    created = [developer.create_project(f"Shop {number}") for number in range(3)]
    listed = developer.ask("GET", "/projects")["projects"]
    assert listed[-3:] == [shown(project) for project in created]
    times = [instant(project["created_at"]) for project in listed]
    assert times == sorted(times)
    assert created[0].read() == shown(created[0])
    foreign = stranger.create_project()
    assert foreign.id not in str(developer.ask("GET", "/projects"))


def test_patch_one_field(developer: Developer, project: OwnProject) -> None:
    """PATCH changes only the included field and returns the whole project; POST takes the same fields (spec)."""
    changes: dict[str, Any] = {"name": "Other shop", "is_active": False, "public_access": False, "collect_phone": True}
    changes |= {"webhook_url": "https://shop.example.com/hooks?a=b"}
    expected = shown(project)
    for field, value in changes.items():
        expected |= {field: value}
        assert developer.ask("PATCH", f"/projects/{project.id}", json={field: value}) == expected
        assert project.read() == expected
    local = {"webhook_url": "http://127.0.0.1:9/hooks"}
    assert developer.ask("PATCH", f"/projects/{project.id}", json=local) == expected | local
    sent = {name: value for name, value in changes.items() if name not in {"name", "is_active"}}
    created = developer.create_project("Shop", **sent)
    assert {field: created.read()[field] for field in sent} == sent


def test_patch_nothing_all_and_back(developer: Developer, project: OwnProject) -> None:
    """Every field of PATCH is optional; "" removes the webhook; flags can be set back (spec, PATCH)."""
    path = f"/projects/{project.id}"
    before = shown(project)
    assert developer.ask("PATCH", path, json={}) == before
    changes = {
        "name": "N",
        "webhook_url": "https://a.example",
        "is_active": False,
        "public_access": False,
        "collect_phone": True,
    }
    assert developer.ask("PATCH", path, json=changes) == before | changes
    back = {field: before[field] for field in changes}
    assert back["webhook_url"] == ""
    assert developer.ask("PATCH", path, json=back) == before


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("name", ("", "   ", "x" * 101, "a\x00b", "a\nb", None)),
        ("webhook_url", ("http://shop.example.com/", "https://", "https://user:secret@shop.example.com/", None)),
        ("webhook_url", ("ftp://shop.example.com/", "javascript:alert(1)", " https://shop.example.com/")),
        ("webhook_url", ("https://shop.example.com/" + "x" * 2024,)),
        ("public_access", ("true", 1)),
        ("collect_phone", (None,)),
    ],
)
def test_rules_of_project_fields(
    developer: Developer, project: OwnProject, field: str, values: tuple[Any, ...]
) -> None:
    """POST and PATCH apply the same rules to a field; the sentence names it and nothing changes (contract)."""
    count = len(developer.ask("GET", "/projects")["projects"])
    for value in values:
        body = {"name": "Shop", field: value}
        for response in (
            developer.call("POST", "/projects", json=body),
            developer.call("PATCH", f"/projects/{project.id}", json=body),
        ):
            assert assert_error(response, 400, "invalid_request").startswith(f"{field} ")
    assert project.read() == shown(project)
    assert len(developer.ask("GET", "/projects")["projects"]) == count


def test_longest_values(developer: Developer, project: OwnProject) -> None:
    """A name may have 100 characters of any script, and a webhook URL 2,048 (contract)."""
    longest = {"name": "😀" * 100, "webhook_url": ("https://shop.example.com/" + "x" * 2048)[:2048]}
    assert developer.ask("PATCH", f"/projects/{project.id}", json=longest) == shown(project) | longest


def test_phone_collection_needs_a_plan(stranger: Developer) -> None:
    """Phone collection is only for the pro and business plans (spec, Limits)."""
    project = stranger.create_project()
    for response in (
        stranger.call("POST", "/projects", json={"name": "Shop", "collect_phone": True}),
        stranger.call("PATCH", f"/projects/{project.id}", json={"collect_phone": True}),
    ):
        assert "collect_phone" in assert_error(response, 400, "invalid_request")
    assert project.read()["collect_phone"] is False


def test_regenerate(developer: Developer, project: OwnProject, phone: Phone) -> None:
    """Both secrets are replaced.

    The old key is 401 immediately, and the old webhook secret signs nothing (contract).
    """
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


def test_counts(project: OwnProject, phone: Phone) -> None:
    """sessions_count counts all started sessions, confirmed_count all confirmed ones (spec, Project)."""
    sessions = [project.generate() for _ in range(3)]
    phone.sign_in(sessions[0])
    phone.sign_in(sessions[1], "Cancel")
    project.verify(sessions[0]["session_token"])
    read = project.read()
    assert (read["sessions_count"], read["confirmed_count"]) == (3, 1)


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
    for method, below in (*OF_PROJECT, ("GET", f"/clients/{oidc['client_id']}")):
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


def test_account(developer: Developer, stranger: Developer) -> None:
    """/dev/me returns id, email, created_at and the plan, and confirms that a token is valid (spec, contract)."""
    for each, email, plan in ((developer, "sandbox@localhost", "business"), (stranger, "stranger@example.com", "free")):
        account = each.ask("GET", "/me")
        assert set(account) == {"id", "email", "created_at", "plan", "usage"}
        assert re.fullmatch(r"dev_[A-Za-z0-9]{22}", account["id"])
        assert (account["email"], account["plan"]) == (email, plan)
        instant(account["created_at"])


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


def test_token_expiry(service: Service, developer: Developer, client: httpx.Client) -> None:
    """An optional expiry ends a token at that instant; it must be in the future (contract, Identifiers)."""
    moment = datetime.now(UTC) + timedelta(hours=1)
    body = {"name": "short", "expires_at": moment.isoformat(timespec="milliseconds")}
    created = developer.ask("POST", "/tokens", json=body)
    assert instant(created["expires_at"]) == moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    own = Developer(client, created["access_token"])
    assert own.call("GET", "/me").status_code == 200
    let_token_expire(service, created["id"])
    response = own.call("GET", "/me")
    assert "expired" in assert_error(response, 401, "invalid_access_token")
    for past in ("2020-01-01T00:00:00Z", "2099-01-01", "2099-01-01T00:00:00", "tomorrow", ""):
        response = developer.call("POST", "/tokens", json={"name": "past", "expires_at": past})
        assert "expires_at" in assert_error(response, 400, "invalid_request")
