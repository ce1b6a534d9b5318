"""A developer creates a project's bot with one tap in the console; users then sign in with it."""

import re
from html import unescape

from tests.e2e.conftest import Developer, NewPhone, OwnProject, Service
from tests.e2e.test_reported_developer import CONFIRM, Browser, invitation
from tests.waiting import wait_until

LINK = re.compile(r'<a class="button" href="([^"]*/newbot/[^"]+)"')


def test_one_tap_makes_the_projects_bot(service: Service, new_phone: NewPhone) -> None:
    """The console links to the messenger; the bot made there is the project's, and users confirm in it."""
    phone = new_phone("Ada", language_code="en")
    browser = Browser(service)
    browser.invited(invitation(service, "managing@example.com"), phone)
    assert browser.submit(CONFIRM).status_code == 303
    token = service.command("tokens", "create", "--sandbox", "--developer", "managing@example.com")
    access_token = re.findall(r"\btap_[A-Za-z0-9]+", token.stdout)[0]
    project = Developer(browser.client, access_token).create_project("Ada's shop")
    settings = f"/console/projects/{project.id}/settings"
    found = LINK.search(browser.client.get(settings).text)
    assert found is not None
    link = unescape(found[1])
    assert link.startswith(f"{service.base_url}/sandbox/newbot/taproof_sandbox_bot/adasshop_")
    made = phone.post("newbot", {"link": link})
    until_set(project, made["username"])
    assert LINK.search(browser.client.get(settings).text) is None
    [entry] = [each for each in project.developer.ask("GET", "/audit")["entries"] if each["action"] == "bot.set"]
    assert entry["subject"] == project.id
    session = project.generate()
    assert f"/phone/{made['username']}?start=" in session["deeplink"]
    user = new_phone("Grace")
    user.open(session["deeplink"])
    user.post("tap", {"button": "Confirm", "bot": made["username"]})
    assert project.verify(session["session_token"])["messenger_id"] == user.messenger_id
    token_of_bot = browser.client.post(f"/sandbox/bots/{made['username']}/revoke", json={}).json()["token"]
    again = phone.post("newbot", {"link": link, "username": "another_shop_bot"})
    assert project.read()["bot_username"] == made["username"] != again["username"]
    for secret in (token_of_bot, link):
        assert secret.partition(":")[2] not in service.log()
    browser.client.close()


def until_set(project: OwnProject, username: str) -> None:
    wait_until(lambda: project.read()["bot_username"] == username, f"@{username} as the project's bot")
