"""A project bot over real HTTP: its token, a sign-in, its end, and its return."""

from typing import Any

import httpx
from tests.e2e.conftest import TRUST, Developer, NewPhone, OwnProject, Service, StartService, make_bot, make_phone
from tests.waiting import wait_until


def until_broken(project: OwnProject) -> dict[str, Any]:
    """Wait until the service has noticed that the project bot is broken."""
    wait_until(lambda: project.read()["bot_broken_at"])
    return project.read()


def test_a_sign_in_in_a_bot_of_the_projects_own(
    developer: Developer, client: httpx.Client, new_phone: NewPhone, service: Service
) -> None:
    """The project's links lead to its bot; a revoked token stops new sign-ins, and a new token allows them again.

    No answer and no log line contains the token.
    """
    bot = make_bot(client)
    project = developer.create_project(bot_token=bot["token"])
    assert project.created["bot_username"] == bot["username"]
    session = project.generate()
    assert session["deeplink"] == f"{bot['link_base']}?start={session['session_token']}"
    phone = new_phone()
    phone.open(session["deeplink"])
    answer = client.get(f"/sandbox/users/{phone.messenger_id}/messages").json()
    assert answer["messages"] == [], "the service's own bot has said nothing"
    tapped = client.post(
        f"/sandbox/users/{phone.messenger_id}/tap", json={"button": "Confirm", "bot": bot["username"]}
    ).json()
    assert tapped["answered"]
    assert project.verify(session["session_token"])["messenger_id"] == phone.messenger_id

    revoked = client.post(f"/sandbox/bots/{bot['username']}/revoke", json={}).json()
    assert until_broken(project)["bot_username"] == bot["username"]
    refused = client.post("/api/v1/generate/public", json={"project_id": project.id})
    assert (refused.status_code, refused.headers["x-error-code"]) == (400, "bot_broken")
    other = developer.create_project("Other").generate()
    assert "/sandbox/phone?start=" in other["deeplink"]

    changed = developer.ask("PATCH", f"/projects/{project.id}", json={"bot_token": revoked["token"]})
    assert (changed["bot_username"], changed["bot_broken_at"]) == (bot["username"], None)
    again = project.generate()
    phone.open(again["deeplink"])
    client.post(f"/sandbox/users/{phone.messenger_id}/tap", json={"button": "Cancel", "bot": bot["username"]})
    assert project.verify(again["session_token"])["status"] == "cancelled"
    for token in (bot["token"], revoked["token"]):
        assert token.partition(":")[2] not in service.log()


def test_a_link_opened_in_another_bot_opens_nothing(
    developer: Developer, client: httpx.Client, new_phone: NewPhone
) -> None:
    """A link changed to name the service's bot or another project's bot shows nothing."""
    bot, foreign = make_bot(client), make_bot(client)
    project = developer.create_project("Shop", bot_token=bot["token"])
    developer.create_project("Foreign", bot_token=foreign["token"])
    session, own = project.generate(), developer.create_project("Own").generate()
    phone = new_phone()
    base = bot["link_base"].rpartition("/")[0]
    for token, link_base in (
        (session["session_token"], base),
        (session["session_token"], foreign["link_base"]),
        (own["session_token"], bot["link_base"]),
    ):
        messages = phone.open(f"{link_base}?start={token}")
        assert "unknown or no longer valid" in messages[-1]["text"]
        assert not any("Shop" in message["text"] or "Own" in message["text"] for message in messages[1:])
    assert project.verify(session["session_token"])["status"] == "pending"
    phone.open(session["deeplink"])
    answer = client.get(f"/sandbox/users/{phone.messenger_id}/messages?bot={bot['username']}").json()
    assert "Shop" in answer["messages"][-1]["text"]


def test_updates_of_a_project_bot_by_webhook(start_service: StartService) -> None:
    """With webhooks, each bot's updates are posted to its own address, and a sign-in completes."""
    service = start_service("--bot-updates", "webhook")
    with httpx.Client(base_url=service.base_url, timeout=60, verify=TRUST) as client:
        bot = make_bot(client)
        project = Developer(client, service.access_token).create_project(bot_token=bot["token"])
        path = f"/sandbox/bot{bot['token']}/getWebhookInfo"
        url = wait_until(lambda: client.post(path).json()["result"]["url"])
        assert url == f"{service.base_url}/bot/webhook/{bot['id']}"
        session, phone = project.generate(), make_phone(client)
        phone.open(session["deeplink"])
        tap = {"button": "Confirm", "bot": bot["username"]}
        assert client.post(f"/sandbox/users/{phone.messenger_id}/tap", json=tap).json()["answered"]
        assert project.verify(session["session_token"])["messenger_id"] == phone.messenger_id
        assert client.post(f"/bot/webhook/{bot['id']}", json={"update_id": 1}).status_code == 401
