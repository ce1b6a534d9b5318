"""A sign-in from a Mini App over real HTTP, with the data that the sandbox's messenger signs."""

import base64
import hmac
import time
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest
from tests.e2e.conftest import Developer, OwnProject, Phone, Service, make_bot

from taproof import verify_proof

PATH = "/api/v1/mini-app/public"


@pytest.fixture
def bot(client: httpx.Client) -> dict[str, Any]:
    return make_bot(client)


@pytest.fixture
def project(developer: Developer, bot: dict[str, Any]) -> OwnProject:
    return developer.create_project(bot_token=bot["token"])


def open_mini_app(phone: Phone, bot: dict[str, Any], **fields: Any) -> str:
    """Open the Mini App of a bot; return `Telegram.WebApp.initData`."""
    data: str = phone.post("mini-app", {"bot": bot["username"], **fields})["init_data"]
    return data


def test_a_sign_in_from_a_mini_app(
    service: Service,
    client: httpx.Client,
    developer: Developer,
    project: OwnProject,
    bot: dict[str, Any],
    phone: Phone,
) -> None:
    """The answer equals that of verify for a confirmed session, for any origin; the same data works only once."""
    data = open_mini_app(phone, bot, start_param="from_the_shop")
    origin = {"Origin": "https://shop.example"}
    response = client.post(PATH, json={"project_id": project.id, "init_data": data, "new": 1}, headers=origin)
    assert response.status_code == 200, response.text
    assert response.headers["access-control-allow-origin"] == "*"
    assert response.headers["cache-control"] == "no-store"
    answer = response.json()
    proof = answer.pop("proof")
    assert answer.pop("confirmed_at").endswith("Z")
    assert answer == {
        "status": "confirmed",
        "messenger_id": phone.messenger_id,
        "messenger_name": "Ada Lovelace",
        "messenger_username": phone.user["username"],
    }
    identity = verify_proof(proof, project.webhook_secret, project_id=project.id)
    assert (identity.messenger_id, identity.messenger_name) == (phone.messenger_id, "Ada Lovelace")
    again = client.post(PATH, json={"project_id": project.id, "init_data": data})
    assert (again.status_code, again.headers["x-error-code"]) == (400, "init_data_used")
    assert again.headers["access-control-allow-origin"] == "*"
    (listed,) = developer.ask("GET", f"/sessions?project_id={project.id}")["sessions"]
    assert (listed["status"], listed["messenger_id"]) == ("used", phone.messenger_id)
    assert project.read()["confirmed_count"] == 1
    signature = dict(parse_qsl(data))["signature"]
    assert signature not in response.text + again.text + service.log()


def test_refusals(
    client: httpx.Client, developer: Developer, project: OwnProject, bot: dict[str, Any], phone: Phone
) -> None:
    """Each refusal has its code, and leaves the data usable."""
    now = int(time.time())
    shared = developer.create_project("Shared").id
    unnamed = phone.post("mini-app", {})["init_data"]

    def code_of(body: Any, project_id: str = project.id) -> tuple[int, str]:
        body = {"project_id": project_id, "init_data": body} if isinstance(body, str) else body
        response = client.post(PATH, json=body)
        return response.status_code, response.headers["x-error-code"]

    data = open_mini_app(phone, bot)
    assert code_of(data, shared) == (400, "project_bot_needed")
    assert code_of(unnamed) == (400, "init_data_invalid")
    assert code_of(open_mini_app(phone, bot, auth_date=now - 301)) == (400, "init_data_expired")
    assert code_of({"project_id": project.id, "init_data": 5}) == (400, "invalid_request")
    assert client.get(PATH).headers["allow"] == "POST, OPTIONS"
    assert client.options(PATH).headers["access-control-allow-methods"] == "POST"
    developer.ask("PATCH", f"/projects/{project.id}", json={"public_access": False})
    assert code_of(data) == (401, "public_access_disabled")
    key = {"Authorization": f"Bearer {project.secret_key}"}
    assert client.post("/api/v1/mini-app", json={"init_data": data}).status_code == 401
    done = client.post("/api/v1/mini-app", json={"init_data": data}, headers=key)
    assert done.json()["messenger_id"] == phone.messenger_id
    assert "access-control-allow-origin" not in done.headers


def test_the_sandbox_signs_as_telegram_documents(client: httpx.Client, bot: dict[str, Any], phone: Phone) -> None:
    """The hash is keyed with the bot's token and covers the signature; names arrive as they were typed."""
    client.post("/sandbox/users", json={"id": phone.user["id"], "first_name": "A/B & Çà 🦊", "last_name": "<=%+>"})
    fields = dict(parse_qsl(open_mini_app(phone, bot), strict_parsing=True))
    assert list(fields) == ["user", "chat_instance", "chat_type", "auth_date", "signature", "hash"]
    assert '"first_name":"A\\/B & Çà 🦊","last_name":"<=%+>"' in fields["user"]
    assert len(base64.urlsafe_b64decode(fields["signature"] + "==")) == 64
    expected = fields.pop("hash")
    text = "\n".join(f"{name}={value}" for name, value in sorted(fields.items()))
    secret = hmac.digest(b"WebAppData", bot["token"].encode(), "sha256")
    assert hmac.new(secret, text.encode(), "sha256").hexdigest() == expected
    for wrong in ({"start_param": "a b"}, {"chat_type": "room"}, {"auth_date": "1"}, {"x": 1}, {"bot": "nobody_bot"}):
        assert client.post(f"/sandbox/users/{phone.messenger_id}/mini-app", json=wrong).status_code in {400, 404}
