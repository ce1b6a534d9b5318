"""The contents of prompts and their questions, with the real service and the sandbox's messenger."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from tests.mmdb import place, write_mmdb
from tests.waiting import wait_until

from taproof.sdk.code_challenge import code_challenge, new_code_verifier

if TYPE_CHECKING:
    from tests.e2e.conftest import NewPhone, OwnProject, StartService

SHARE = "Share my phone number"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0"


def change(project: "OwnProject", **settings: Any) -> None:
    project.developer.ask("PATCH", f"/projects/{project.id}", json=settings)


def generate(client: httpx.Client, project: "OwnProject", **headers: str) -> dict[str, str]:
    answer = client.post("/api/v1/generate/public", json={"project_id": project.id}, headers=headers)
    assert answer.status_code == 200, answer.text
    session: dict[str, str] = answer.json()
    return session


def act(client: httpx.Client, user: str, name: str, **body: Any) -> dict[str, Any]:
    answer = client.post(f"/sandbox/users/{user}/{name}", json=body)
    assert answer.status_code == 200, answer.text
    done: dict[str, Any] = answer.json()
    return done


def chat(client: httpx.Client, user: str) -> dict[str, Any]:
    seen: dict[str, Any] = client.get(f"/sandbox/users/{user}/messages").json()
    return seen


def test_prompt_tells_page_and_browser_unless_the_project_does_not_want_that(
    client: httpx.Client, project: "OwnProject", new_phone: "NewPhone"
) -> None:
    """The prompt shows the page and browser of the request, unless the project turns that off."""
    headers = {"Origin": "https://shop.example.com", "User-Agent": FIREFOX}
    told = new_phone().open(generate(client, project, **headers)["deeplink"])[-1]["text"]
    assert "shop.example.com" in told
    assert "Firefox on Linux" in told
    assert "place" not in told
    change(project, show_context=False)
    silent = new_phone().open(generate(client, project, **headers)["deeplink"])[-1]["text"]
    assert "shop.example.com" not in silent
    assert "Firefox" not in silent


def test_a_browser_that_hides_its_page_is_told_of(
    client: httpx.Client, project: "OwnProject", new_phone: "NewPhone"
) -> None:
    """A sandboxed frame sends `Origin: null`, and its prompt says so.

    Servers and apps send no origin, so their prompts have no such line.
    """
    shown = {}
    hidden = ("null", "", "file://", "chrome-extension://abcdefghijklmnop", "https://a b", "https://" + "a" * 4_000)
    for origin in hidden:
        text = new_phone().open(generate(client, project, Origin=origin)["deeplink"])[-1]["text"]
        shown[origin[:20]] = [line for line in text.splitlines() if line.startswith("Page:")]
    twice = [("Origin", "https://shop.example"), ("Origin", "https://bank.example")]
    answer = client.post("/api/v1/generate/public", json={"project_id": project.id}, headers=twice)
    text = new_phone().open(answer.json()["deeplink"])[-1]["text"]
    shown["two"] = [line for line in text.splitlines() if line.startswith("Page:")]
    assert shown == {key: ["Page: \u2068not provided\u2069"] for key in shown}
    assert "Page:" not in new_phone().open(generate(client, project)["deeplink"])[-1]["text"]
    change(project, allowed_origins=["https://shop.example"])
    for origin in hidden:
        refused = client.post("/api/v1/generate/public", json={"project_id": project.id}, headers={"Origin": origin})
        assert (refused.status_code, refused.headers["X-Error-Code"]) == (400, "origin_not_allowed"), origin


def test_prompt_tells_the_place_behind_a_trusted_proxy(start_service: "StartService", tmp_path: Path) -> None:
    """The prompt shows the place that the operator's GeoIP file has for the address."""
    file = write_mmdb(tmp_path / "city.mmdb", {"8.8.8.0/24": place("Germany", "Berlin")})
    service = start_service("--geoip-file", str(file), "--trusted-proxy", "127.0.0.1/32")
    with httpx.Client(base_url=service.base_url, timeout=60) as client:
        answer = client.post(
            "/api/v1/generate/public",
            json={"project_id": service.project_id},
            headers={"X-Forwarded-For": "8.8.8.8", "X-Forwarded-Proto": "https"},
        )
        opened = act(client, "1001", "open", deeplink=answer.json()["deeplink"])
    assert "Berlin, Germany" in opened["messages"][-1]["text"]


def test_match_code(client: httpx.Client, project: "OwnProject", new_phone: "NewPhone") -> None:
    """The number that generate returned confirms. Another one cancels, and the right one then no longer works."""
    change(project, match_code="on")
    session, phone = generate(client, project), new_phone()
    phone.open(session["deeplink"])
    phone.tap(session["match_code"])
    assert project.verify(session["session_token"])["status"] == "confirmed"
    session, phone = generate(client, project), new_phone()
    codes = phone.open(session["deeplink"])[-1]["inline_keyboard"][0]
    assert [button["text"] for button in codes].count(session["match_code"]) == 1
    right, wrong, _ = sorted(codes, key=lambda button: button["text"] != session["match_code"])
    assert "Wrong number" in (phone.tap(wrong["text"]) or "")
    act(client, phone.messenger_id, "tap", data=right["callback_data"])
    act(client, phone.messenger_id, "tap", data=f"c:{session['session_token']}")
    assert project.verify(session["session_token"])["status"] == "cancelled"


def test_phone_number(client: httpx.Client, project: "OwnProject", new_phone: "NewPhone") -> None:
    """The number is requested after Confirm. Only the user's own contact confirms, and then the button disappears."""
    change(project, collect_phone=True)
    number = "+4915123456789"
    session, phone = generate(client, project), new_phone("Ada", phone=number)
    other = new_phone("Bob")
    saved = {"phone_number": "+4915199999999", "first_name": "Darling", "user_id": int(phone.messenger_id)}
    phone.open(session["deeplink"])
    phone.tap("Confirm")
    keyboard = chat(client, phone.messenger_id)["reply_keyboard"]
    assert keyboard["buttons"] == [[{"text": SHARE, "request_contact": True}]]
    assert keyboard["one_time_keyboard"]
    for name, body in (
        ("send", {"text": number}),
        ("share", {"contact": int(other.messenger_id)}),
        ("share", {"contact": "own", "forwarded_from": int(other.messenger_id)}),
        ("share", {"contact": saved | {"phone_number": number}}),
        ("share", {"contact": saved, "forwarded_from": int(other.messenger_id), "hide_sender": True}),
        ("share", {"contact": {"phone_number": "+33612345678", "first_name": "Ada"}}),
    ):
        assert act(client, phone.messenger_id, name, wait=20, **body)["answered"]
        assert project.verify(session["session_token"]) == {"status": "pending"}
    act(client, phone.messenger_id, "press", button=SHARE, wait=20)
    confirmed = project.verify(session["session_token"])
    assert (confirmed["status"], confirmed["messenger_phone"]) == ("confirmed", "+4915123456789")
    assert chat(client, phone.messenger_id)["reply_keyboard"] is None


def test_a_cancelled_request_and_a_blocked_bot_are_told(
    client: httpx.Client, project: "OwnProject", new_phone: "NewPhone"
) -> None:
    """The bot edits the prompt of a session that its page cancelled, and a page shows that its user blocked the bot."""
    verifier = new_code_verifier()
    body = {"project_id": project.id, "code_challenge": code_challenge(verifier)}
    session = client.post("/api/v1/generate/public", json=body).json()
    mine = {"project_id": project.id, "session_token": session["session_token"], "code_verifier": verifier}
    phone = new_phone()

    def hint(seen_hint: str) -> str:
        """Return the hint after `seen_hint`."""
        more = {"hints": True, "seen_hint": seen_hint, "wait": 20}
        told: str = client.post("/api/v1/verify/public", json=mine | more).json()["hint"]
        return told

    prompt = phone.open(session["deeplink"])[-1]
    assert hint("waiting") == "opened"
    act(client, phone.messenger_id, "block")
    assert hint("opened") == "unreachable"
    act(client, phone.messenger_id, "unblock")
    assert hint("unreachable") == "opened"
    assert client.post("/api/v1/cancel/public", json=mine).json() == {"status": "cancelled"}
    wait_until(lambda: "cancelled this request" in message(client, phone.messenger_id, prompt["message_id"])["text"])
    assert message(client, phone.messenger_id, prompt["message_id"])["buttons"] == [["This wasn’t me"]]
    assert client.post("/api/v1/verify/public", json=mine).json() == {"status": "cancelled"}


def message(client: httpx.Client, user: str, message_id: int) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in chat(client, user)["messages"] if each["message_id"] == message_id)
    return found
