"""Users look back, report, block and unblock in the simulated messenger; the developer sees it in the API."""

from typing import Any

from tests.e2e.conftest import OwnProject, Phone

from taproof.messengers.texts.catalog import LANGUAGES

TEXTS = LANGUAGES["en"].control


def said(phone: Phone, text: str) -> dict[str, Any]:
    """Send a message and return the bot's answer."""
    answer = phone.client.post(f"/sandbox/users/{phone.messenger_id}/send", json={"text": text, "wait": 10}).json()
    assert answer["answered"], answer
    return newest(phone)


def newest(phone: Phone) -> dict[str, Any]:
    messages = phone.client.get(f"/sandbox/users/{phone.messenger_id}/messages").json()["messages"]
    return dict(messages[-1])


def labels(message: dict[str, Any]) -> list[str]:
    return [button["text"] for row in message["inline_keyboard"] for button in row]


def sessions_of(project: OwnProject) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = project.developer.ask("GET", f"/sessions?project_id={project.id}")["sessions"]
    return found


def test_report_on_a_prompt(project: OwnProject, phone: Phone) -> None:
    """After a report the client sees `cancelled`, the developer a report without identity, and links show no prompt."""
    session = project.generate()
    phone.open(session["deeplink"])
    phone.tap(TEXTS.not_me_button)
    assert project.verify(session["session_token"]) == {"status": "cancelled"}
    (listed,) = sessions_of(project)
    assert listed["reported_at"] is not None
    assert (listed["messenger_id"], listed["status"]) == ("", "cancelled")
    analytics = project.developer.ask("GET", f"/analytics?project_id={project.id}")
    assert (analytics["funnel"]["reported"], analytics["daily"][-1]["reported"]) == (1, 1)
    phone.open(project.generate()["deeplink"])
    assert labels(newest(phone)) == [TEXTS.unblock_button]
    phone.tap(TEXTS.unblock_button)
    phone.sign_in(again := project.generate())
    assert project.verify(again["session_token"])["status"] == "confirmed"
