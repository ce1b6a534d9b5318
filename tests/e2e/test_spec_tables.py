"""Sign-in row by row: the answers of generate and verify in every state, the proof, and the callers."""

import base64
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import jwt
import pytest
from tests.e2e.conftest import Developer, NewPhone, OwnProject, Phone, Service

from taproof import verify_proof

TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z")
CONFIRMED_FIELDS = {"status", "messenger_id", "messenger_name", "messenger_username", "confirmed_at", "proof"}


def instant(text: str) -> datetime:
    """Parse a timestamp and assert its form."""
    assert TIMESTAMP.fullmatch(text), text
    return datetime.fromisoformat(text)


def assert_error(response: httpx.Response, status: int, code: str) -> str:
    """Assert that an answer has the error shape, and return its sentence."""
    assert (response.status_code, response.headers.get("x-error-code")) == (status, code), response.text
    body = response.json()
    assert list(body) == ["error"]
    sentence: str = body["error"]
    assert sentence
    return sentence


def keyed(project: OwnProject, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
    """Call a server-side session endpoint with the project's secret key."""
    headers = {"Authorization": f"Bearer {project.secret_key}"}
    return project.developer.client.post(f"/api/v1/{path}", headers=headers, json=body or {})


def test_generate_public(project: OwnProject, service: Service) -> None:
    """generate/public returns session_token, deeplink and expires_at (spec, generate/public; contract, Identifiers)."""
    before = datetime.now(UTC)
    session = project.generate()
    assert set(session) == {"session_token", "deeplink", "expires_at"}
    token = session["session_token"]
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", token)
    day = int.from_bytes(base64.urlsafe_b64decode(token + "=")[:2])
    assert abs(day - before.timestamp() // 86400) <= 1
    assert session["deeplink"] == f"{service.base_url}/sandbox/phone?start={token}"
    lifetime = instant(session["expires_at"]) - before
    assert timedelta(minutes=9, seconds=50) < lifetime < timedelta(minutes=10, seconds=20)


def test_pending(project: OwnProject, phone: Phone) -> None:
    """A pending answer has no additional field, before or after the link was opened (spec, verify/public)."""
    session = project.generate()
    assert project.verify(session["session_token"]) == {"status": "pending"}
    phone.open(session["deeplink"])
    assert project.verify(session["session_token"]) == {"status": "pending"}


def test_confirmed_then_used(project: OwnProject, phone: Phone) -> None:
    """Pending → confirmed → used: only the first confirmed read has identity and proof; later ones say used."""
    session = project.generate()
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    phone.sign_in(session)
    answer = project.verify(session["session_token"])
    assert set(answer) == CONFIRMED_FIELDS
    assert answer["status"] == "confirmed"
    assert answer["messenger_id"] == phone.messenger_id
    assert answer["messenger_name"] == "Ada Lovelace"
    assert answer["messenger_username"] == phone.user["username"]
    assert before <= instant(answer["confirmed_at"]) <= datetime.now(UTC)
    for _ in range(2):
        assert project.verify(session["session_token"]) == {"status": "used"}
    assert keyed(project, "verify", {"session_token": session["session_token"]}).json() == {"status": "used"}


def test_cancelled(project: OwnProject, phone: Phone) -> None:
    """Pending → cancelled on a tap on Cancel; it is terminal and has no identity (spec, States)."""
    session = project.generate()
    phone.sign_in(session, "Cancel")
    for _ in range(2):
        assert project.verify(session["session_token"]) == {"status": "cancelled"}


@pytest.mark.parametrize("button", ["Confirm", "Cancel"])
def test_decision_stands(project: OwnProject, phone: Phone, new_phone: NewPhone, button: str) -> None:
    """A decided session is single-use: opening its link again changes nothing and shows no button (spec, rule 2)."""
    session = project.generate()
    phone.sign_in(session, button)
    assert not any(message["buttons"] for message in phone.open(session["deeplink"]))
    assert not any(message["buttons"] for message in new_phone().open(session["deeplink"]))
    expected = {"Confirm": "confirmed", "Cancel": "cancelled"}[button]
    assert project.verify(session["session_token"])["status"] == expected


def test_first_opener_decides(project: OwnProject, phone: Phone, new_phone: NewPhone) -> None:
    """The first account that opens the link owns the decision; another gets no buttons (contract, Messenger)."""
    session = project.generate()
    phone.open(session["deeplink"])
    assert not any(message["buttons"] for message in new_phone("Mallory").open(session["deeplink"]))
    assert project.verify(session["session_token"]) == {"status": "pending"}
    phone.tap("Confirm")
    assert project.verify(session["session_token"])["messenger_id"] == phone.messenger_id


def test_no_username(project: OwnProject, new_phone: NewPhone) -> None:
    """Without a handle, messenger_username is null in verify and "" in the proof and the session object (contract)."""
    session = project.generate()
    new_phone("Грета", last_name="Ø").sign_in(session)
    answer = project.verify(session["session_token"])
    assert answer["messenger_name"] == "Грета Ø"
    assert answer["messenger_username"] is None
    claims = jwt.decode(answer["proof"], project.webhook_secret, algorithms=["HS256"])
    assert claims["messenger_username"] == ""
    [listed] = project.developer.ask("GET", f"/sessions?project_id={project.id}")["sessions"]
    assert listed["messenger_username"] == ""


def test_proof(project: OwnProject, phone: Phone) -> None:
    """The proof has exactly the spec's eight claims, is valid for 300 s, and is signed with whsec_ (spec, Proof)."""
    session = project.generate()
    phone.sign_in(session)
    answer = project.verify(session["session_token"])
    proof = answer["proof"]
    assert jwt.get_unverified_header(proof)["alg"] == "HS256"
    claims = jwt.decode(proof, project.webhook_secret, algorithms=["HS256"])
    issued_at = claims.pop("iat")
    assert abs(issued_at - datetime.now(UTC).timestamp()) < 60
    assert claims == {
        "messenger_id": phone.messenger_id,
        "messenger_name": "Ada Lovelace",
        "messenger_username": phone.user["username"],
        "project_id": project.id,
        "session_token": session["session_token"],
        "iss": "taproof",
        "exp": issued_at + 300,
    }
    for wrong in (project.secret_key, project.developer.create_project().webhook_secret):
        with pytest.raises(jwt.InvalidSignatureError):
            jwt.decode(proof, wrong, algorithms=["HS256"])
    identity = verify_proof(proof, project.webhook_secret, project_id=project.id)
    assert identity.messenger_id == phone.messenger_id


def test_server_side_mirrors_public(project: OwnProject, phone: Phone) -> None:
    """With the secret key, generate and verify answer like the public ones; project_id is optional (contract)."""
    for body in ({}, {"project_id": project.id}):
        session = keyed(project, "generate", body).json()
        assert set(session) == {"session_token", "deeplink", "expires_at"}
        query = {"session_token": session["session_token"], **body}
        assert keyed(project, "verify", query).json() == {"status": "pending"}
        phone.sign_in(session)
        answer = keyed(project, "verify", query).json()
        assert set(answer) == CONFIRMED_FIELDS
        jwt.decode(answer["proof"], project.webhook_secret, algorithms=["HS256"])
        assert project.verify(session["session_token"]) == {"status": "used"}


def test_server_side_refuses(project: OwnProject, developer: Developer) -> None:
    """The key names the project: another project_id is 400, another project's session 404, a wrong key 401."""
    other = developer.create_project()
    session = project.generate()
    sentence = assert_error(keyed(project, "generate", {"project_id": other.id}), 400, "invalid_request")
    assert "project_id" in sentence
    query = {"session_token": session["session_token"]}
    assert_error(keyed(project, "verify", query | {"project_id": other.id}), 400, "invalid_request")
    assert_error(keyed(other, "verify", query), 404, "session_not_found")
    for path in ("generate", "verify"):
        for credential in (None, "", "Bearer", "Bearer sk_", f"Bearer {developer.access_token}", project.secret_key):
            headers = {} if credential is None else {"Authorization": credential}
            response = developer.client.post(f"/api/v1/{path}", headers=headers, json=query)
            assert_error(response, 401, "invalid_secret_key")
            assert response.headers["www-authenticate"] == "Bearer"
    assert project.verify(session["session_token"]) == {"status": "pending"}


def test_public_access_flag(project: OwnProject, phone: Phone, client: httpx.Client) -> None:
    """Without public access, both public endpoints answer 401 and the server-side ones work (contract, Everywhere)."""
    session = project.generate()
    phone.sign_in(session)
    project.developer.ask("PATCH", f"/projects/{project.id}", json={"public_access": False})
    query = {"project_id": project.id, "session_token": session["session_token"]}
    for path in ("generate", "verify"):
        assert_error(client.post(f"/api/v1/{path}/public", json=query), 401, "public_access_disabled")
    assert project.read()["sessions_count"] == 1
    assert keyed(project, "generate").status_code == 200
    assert keyed(project, "verify", query).json()["status"] == "confirmed"
    project.developer.ask("PATCH", f"/projects/{project.id}", json={"public_access": True})
    assert project.verify(session["session_token"]) == {"status": "used"}


def test_paused_project(project: OwnProject, phone: Phone, client: httpx.Client) -> None:
    """A paused project refuses new sessions with 400; existing ones can still be read (spec, Project states)."""
    session = project.generate()
    project.developer.ask("PATCH", f"/projects/{project.id}", json={"is_active": False})
    public = client.post("/api/v1/generate/public", json={"project_id": project.id})
    assert_error(public, 400, "project_paused")
    assert_error(keyed(project, "generate"), 400, "project_paused")
    assert project.read()["sessions_count"] == 1
    assert project.verify(session["session_token"]) == {"status": "pending"}
    phone.sign_in(session)
    assert project.verify(session["session_token"])["status"] == "confirmed"
    project.developer.ask("PATCH", f"/projects/{project.id}", json={"is_active": True})
    assert project.generate()


def test_unknown_and_foreign(project: OwnProject, developer: Developer, client: httpx.Client) -> None:
    """Unknown projects and sessions, and another project's session, are 404 (contract, Everywhere)."""
    session_token = project.generate()["session_token"]
    other = developer.create_project()
    unknown_project, unknown_session = "proj_" + "0" * 22, session_token[:10] + "A" * 33
    assert_error(client.post("/api/v1/generate/public", json={"project_id": unknown_project}), 404, "project_not_found")
    for project_id, token, code in (
        (unknown_project, session_token, "project_not_found"),
        (other.id, session_token, "session_not_found"),
        (project.id, unknown_session, "session_not_found"),
    ):
        body = {"project_id": project_id, "session_token": token}
        assert_error(client.post("/api/v1/verify/public", json=body), 404, code)


@pytest.mark.parametrize("path", ["generate/public", "verify/public", "generate", "verify"])
def test_unknown_fields_are_ignored(project: OwnProject, path: str) -> None:
    """Session endpoints ignore unknown fields, so that newer clients work with older servers (contract)."""
    body = {"project_id": project.id, "session_token": project.generate()["session_token"], "not_known": [1, {}]}
    assert keyed(project, path, body).status_code == 200


def test_session_answers_are_not_cached(project: OwnProject, client: httpx.Client) -> None:
    """Every answer of a session endpoint, even an error, has Cache-Control: no-store (contract, Session endpoints)."""
    session_token = project.generate()["session_token"]
    for path in ("generate/public", "verify/public", "generate", "verify"):
        body = {"project_id": project.id, "session_token": session_token}
        for response in (
            keyed(project, path, body),
            client.post(f"/api/v1/{path}", json={"project_id": 1}),
            client.get(f"/api/v1/{path}"),
        ):
            assert response.headers["cache-control"] == "no-store"
            assert response.headers["content-type"] == "application/json"
