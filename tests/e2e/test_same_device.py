"""A sign-in that must end in the browser in which it began, with the real service and the sandbox's messenger."""

import secrets
from typing import TYPE_CHECKING, Any

import httpx

from taproof.sdk.code_challenge import code_challenge

if TYPE_CHECKING:
    from tests.e2e.conftest import NewPhone, OwnProject, Service

PAGE = "https://shop.example/sign-in?next=%2Fcart"
VERIFIER = secrets.token_urlsafe(32)


def call(client: httpx.Client, path: str, project: "OwnProject", **body: Any) -> httpx.Response:
    return client.post(f"/api/v1/{path}/public", json={"project_id": project.id, **body})


def require(project: "OwnProject", policy: str = "require") -> None:
    settings = {"same_device": policy, "allowed_origins": ["https://shop.example"]}
    changed = project.developer.ask("PATCH", f"/projects/{project.id}", json=settings)
    assert (changed["same_device"], changed["return_urls"]) == (policy, [])


def start(client: httpx.Client, project: "OwnProject") -> dict[str, Any]:
    answer = call(client, "generate", project, code_challenge=code_challenge(VERIFIER), return_url=PAGE)
    assert answer.status_code == 200, answer.text
    session: dict[str, Any] = answer.json()
    return session


def verify(client: httpx.Client, project: "OwnProject", session: dict[str, Any], **body: Any) -> httpx.Response:
    token = session["session_token"]
    return call(client, "verify", project, session_token=token, code_verifier=VERIFIER, **body)


def test_back_button_ends_the_sign_in(
    client: httpx.Client, project: "OwnProject", new_phone: "NewPhone", service: "Service"
) -> None:
    """The button opens the page with a code in the fragment. Another tap replaces it, and no log has it."""
    require(project)
    session, phone = start(client, project), new_phone()
    assert session["return_required"] is True
    phone.open(session["deeplink"])
    phone.tap("Confirm")
    codes = []
    for message in (
        client.get(f"/sandbox/users/{phone.messenger_id}/messages").json()["messages"][-1],
        phone.open(session["deeplink"])[-1],
    ):
        [[button], *_] = message["inline_keyboard"]
        assert button["text"].startswith("Back to ")
        page, _, code = button["url"].partition("#taproof_return=")
        assert page == PAGE
        codes.append(code)
    assert codes[0] != codes[1]
    assert verify(client, project, session).json() == {"status": "pending"}
    assert verify(client, project, session, return_code=codes[0]).json() == {"status": "pending"}
    listed = project.developer.ask("GET", "/sessions", params={"project_id": project.id})["sessions"]
    assert [(each["status"], each["messenger_id"], each["confirmed_at"]) for each in listed] == [("pending", "", None)]
    confirmed = verify(client, project, session, return_code=codes[1], wait=30).json()
    assert (confirmed["status"], confirmed["messenger_id"]) == ("confirmed", phone.messenger_id)
    assert verify(client, project, session).json() == {"status": "used"}
    assert not any(code in service.log() for code in codes)


def test_offer_has_the_button_and_needs_no_code(
    client: httpx.Client, project: "OwnProject", new_phone: "NewPhone"
) -> None:
    """The answers equal those of a sign-in without a policy, and generate announces the button."""
    plain = ["deeplink", "expires_at", "session_token"]
    assert sorted(start(client, project)) == plain
    require(project, "offer")
    assert sorted(call(client, "generate", project).json()) == plain
    session, phone = start(client, project), new_phone()
    assert sorted(session) == [*plain[:2], "return_offered", plain[2]]
    assert session["return_offered"] is True
    phone.open(session["deeplink"])
    phone.tap("Confirm")
    messages = client.get(f"/sandbox/users/{phone.messenger_id}/messages").json()["messages"]
    assert messages[-1]["inline_keyboard"][0][0]["url"].startswith(f"{PAGE}#taproof_return=")
    assert verify(client, project, session).json()["status"] == "confirmed"


def test_a_code_is_a_string(client: httpx.Client, project: "OwnProject") -> None:
    """A code of another type is refused, also without a policy."""
    session = start(client, project)
    for code in (7, None, ["a"], {"a": 1}, ""):
        answer = verify(client, project, session, return_code=code)
        assert (answer.status_code, answer.headers["X-Error-Code"]) == (400, "invalid_request")
