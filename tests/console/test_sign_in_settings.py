"""The settings of a project's sign-ins, and the pages that show their effect."""

import json

import pytest
from tests.console.conftest import ADA, GRACE, Installation, Visitor
from tests.console.test_try_it import link_in, page_of, start

from taproof.core.identity import MessengerIdentity
from taproof.core.projects import Project

LIST = "/console/projects"
PHONE = "+4915123456789"


async def test_each_can_be_changed_and_changed_back(visitor: Visitor, console: Installation, project: Project) -> None:
    """A box that is not sent is off; no origins means any. The audit log records the changes."""
    path = f"{LIST}/{project.id}/settings"
    fields = (await visitor.get(path)).fields(path)
    sent = {name: value for name, value in fields.items() if name not in {"phone_required", "show_context"}}
    await visitor.post(path, sent | {"match_code": "on", "allowed_origins": "https://shop.example"})
    changed = await visitor.only_project()
    assert (changed.phone_required, changed.show_context, changed.match_code) == (False, False, True)
    assert changed.allowed_origins == ("https://shop.example",)
    [entry] = [each for each in await visitor.log() if each.action == "project.updated"]
    assert json.loads(entry.details) == {
        "phone_required": False,
        "show_context": False,
        "match_code": True,
        "allowed_origins": {"count": 1, "added": ["https://shop.example"], "removed": []},
    }
    shown = await visitor.get(path)
    assert "https://shop.example" in str(shown.one(".//textarea[@id='allowed_origins']").text)
    fields = shown.fields(path)
    fields.pop("match_code")
    await visitor.post(path, fields | {"phone_required": "on", "show_context": "on", "allowed_origins": ""})
    assert await visitor.only_project() == project


async def test_the_policy_is_chosen_in_the_form(visitor: Visitor, console: Installation, project: Project) -> None:
    """A policy needs a page to return to. Without one, the form says what is missing and keeps the input."""
    path = f"{LIST}/{project.id}/settings"
    fields = (await visitor.get(path)).fields(path)
    refused = await visitor.post(path, fields | {"same_device": "require"})
    assert refused.status == 400
    sentence = refused.alert
    assert sentence.startswith("Same device cannot be offer or require")
    unknown = await visitor.post(path, fields | {"same_device": "Require", "allowed_origins": "https://shop.example"})
    assert unknown.alert == "Same device must be off, offer or require."
    assert await visitor.only_project() == project
    await visitor.post(path, fields | {"same_device": "require", "return_urls": "https://app.example/back\r\n"})
    changed = await visitor.only_project()
    assert (changed.same_device, changed.return_urls) == ("require", ("https://app.example/back",))
    shown = await visitor.get(path)
    assert shown.one(".//select[@id='same_device']/option[@selected]").get("value") == "require"
    tried = await visitor.submit(page_of(project), page_of(project))
    assert "set Same device to Off or Offer in the project's settings" in tried.alert
    await visitor.post(path, fields | {"was_same_device": "require", "was_return_urls": "https://app.example/back"})
    assert await visitor.only_project() == project


async def test_a_plan_without_room_says_so(console: Installation) -> None:
    """The account page shows the limits of the plan and the usage. Try it reports a used-up plan."""
    pro = await console.sign_in(await console.add_developer("pro@example.com", "pro"))
    facts = (await pro.get("/console/account")).texts(".//dl/div")
    assert {"PlanPro", "Projects0 of 2", "Sign-ins this month0 of 5"} <= set(facts)
    for _ in range(2):
        project, _ = await pro.create_project("Shop")
    for user in ("1", "2", "3", "4", "5"):
        await pro.confirm(project.id, MessengerIdentity(user, "User", ""))
    facts = (await pro.get("/console/account")).texts(".//dl/div")
    assert "Projects2 of 2 Limit reached" in facts
    assert any(fact.startswith("Sign-ins this month5 of 5 Limit reached") for fact in facts)
    console.clock.now += 60_000
    tried = await pro.submit(page_of(project), page_of(project))
    assert (tried.status, "limit of confirmed sign-ins for this month" in tried.alert) == (400, True)


async def test_try_it_shows_the_match_code(visitor: Visitor, console: Installation, project: Project) -> None:
    """The waiting page shows the number to choose, also after a reload; without match codes, it shows none."""
    assert not (await start(visitor, project)).all(".//strong[@class='match-code']")
    await visitor.get(f"{page_of(project)}/again")
    await visitor.change(project, match_code=True)
    waiting = await start(visitor, project)
    code = waiting.texts(".//strong[@class='match-code']")
    assert (await visitor.get(page_of(project))).texts(".//strong[@class='match-code']") == code
    assert code[0] not in link_in(waiting).partition("?start=")[0]
    token = link_in(waiting).partition("?start=")[2]
    seen = await console.messenger.open(link_in(waiting), ADA.messenger_id)
    choice = seen.choices.index(code[0])
    confirmed = await console.messenger.signin.confirm_session(token, ADA, choice=choice)
    assert confirmed.outcome == "confirmed"
    assert (await visitor.get(page_of(project))).texts(".//h2")[0] == f"Signed in: {ADA.messenger_name}"


async def sign_in_with_phone(console: Installation, deeplink: str) -> None:
    token = deeplink.partition("?start=")[2]
    await console.messenger.open(deeplink, ADA.messenger_id)
    assert (await console.messenger.signin.confirm_session(token, ADA)).outcome == "phone"
    assert (
        await console.messenger.signin.give_phone(ADA, ADA.messenger_id, PHONE, answers=lambda _: True)
    ).outcome == "confirmed"


async def test_a_phone_number_is_shown_where_the_session_is(
    visitor: Visitor, console: Installation, project: Project
) -> None:
    """The list, the session's page and Try it show the phone number; without one, there is no row for it."""
    await visitor.confirm(project.id, GRACE)
    await visitor.change(project, collect_phone=True)
    console.clock.now += 1
    waiting = await start(visitor, project)
    await sign_in_with_phone(console, link_in(waiting))
    tried = await visitor.get(page_of(project))
    assert f"Phone number{PHONE}" in tried.texts(".//dl/div")
    listed = await visitor.get("/console/sessions")
    assert [PHONE in row[3] for row in listed.rows()] == [True, False]
    pages = [await visitor.get(str(link.get("href"))) for link in listed.all(".//tbody//th/a")]
    shown = [f"messenger_phone{PHONE}" in page.texts(".//dl/div") for page in pages]
    assert shown == [True, False]
    assert "messenger_phone" not in pages[1].text


async def test_a_user_is_erased_after_a_question(visitor: Visitor, console: Installation, stranger: Visitor) -> None:
    """The list of a user's sessions links to the erasure, which asks first and affects only one's own projects."""
    mine, _ = await visitor.create_project("Shop")
    other, _ = await stranger.create_project("Other")
    for browser, project, who in ((visitor, mine, ADA), (visitor, mine, GRACE), (stranger, other, ADA)):
        await browser.confirm(project.id, who)
    assert not (await visitor.get("/console/sessions")).all(".//a[@href][.='Erase this user…']")
    listed = await visitor.get("/console/sessions", messenger_id=ADA.messenger_id)
    page = f"/console/users/{ADA.messenger_id}/erase"
    assert listed.one(f".//a[@href='{page}']") is not None
    asked = await visitor.get(page)
    assert asked.heading == f"Erase the user {ADA.messenger_id}?"
    assert asked.texts(".//p[@class='lead']") == [
        "At the latest sign-in that you can see, this user was Ada Lovelace @ada."
    ]
    assert len((await visitor.get("/console/sessions")).rows()) == 2
    done = await visitor.follow(await visitor.submit(page, page))
    assert f"The projects that you can change keep no data about the user {ADA.messenger_id}." in done.text
    assert [GRACE.messenger_name in row[3] for row in done.rows()] == [True]
    assert len((await stranger.get("/console/sessions")).rows()) == 1
    again = await visitor.follow(await visitor.submit(page, page))
    assert "There was none." in again.text
    assert ADA.messenger_name not in (await visitor.get(page)).text
    log = await visitor.get("/console/audit")
    assert log.text.count("Erased a user's data") == 1
    assert ADA.messenger_id not in log.text


async def test_users_of_a_project_are_shown_and_exported(
    visitor: Visitor, console: Installation, stranger: Visitor
) -> None:
    """A list, and a page for each user with their sessions, an export of one's own projects, and the erasure."""
    mine, _ = await visitor.create_project("Shop")
    other, _ = await stranger.create_project("Other")
    page = f"/console/projects/{mine.id}/users"
    assert "Nobody has signed in yet" in (await visitor.get(page)).text
    for browser, project, who in ((visitor, mine, ADA), (visitor, mine, GRACE), (stranger, other, ADA)):
        await browser.confirm(project.id, who)
        console.clock.now += 1
    listed = await visitor.get(page)
    assert [row[1] for row in listed.rows()] == [GRACE.messenger_id, ADA.messenger_id]
    shown = await visitor.get(f"{page}/{ADA.messenger_id}")
    assert shown.heading == ADA.messenger_name
    assert len(shown.rows()) == 1
    export = f"/console/users/{ADA.messenger_id}/export"
    assert shown.one(f".//a[@href='{export}']") is not None
    assert shown.one(f".//a[@href='/console/users/{ADA.messenger_id}/erase']") is not None
    answer = (await visitor.get(export)).response
    assert answer.headers["content-disposition"] == f'attachment; filename="taproof-user-{ADA.messenger_id}.json"'
    assert [each["project_id"] for each in answer.json()["sessions"]] == [mine.id]
    for path in (f"{page}/9", f"{page}/ada", f"/console/projects/{other.id}/users"):
        assert (await visitor.get(path)).status in {400, 404}


@pytest.mark.parametrize("user", ["ada", "1" * 21, "%D9%A1", "1'--"])
async def test_a_wrong_messenger_id_has_no_page(visitor: Visitor, user: str) -> None:
    """A malformed id is answered as an unknown page, for the user's page and for the erasure."""
    page = f"/console/users/{user}/erase"
    for shown in (await visitor.get(page), await visitor.post(page, {})):
        assert shown.status == 400
        assert "digits only, at most 20" in shown.text


async def test_webhook_events_are_chosen_by_boxes(visitor: Visitor, console: Installation) -> None:
    """The boxes show the choice. With none, the sentence says what to do instead, and nothing is changed."""
    events = ("auth.confirmed", "auth.cancelled", "auth.expired", "auth.reported")
    await visitor.submit(f"{LIST}/new", LIST, name="Shop")
    project = await visitor.only_project()
    assert project.webhook_events == events[:2]
    path = f"{LIST}/{project.id}/settings"
    fields = (await visitor.get(path)).fields(path)
    others = {name: value for name, value in fields.items() if name not in events}
    await visitor.post(path, others | {"auth.reported": "on", "auth.cancelled": "on"})
    assert (await visitor.only_project()).webhook_events == ("auth.cancelled", "auth.reported")
    shown = await visitor.get(path)
    assert {name for name in shown.fields(path) if name in events} == {"auth.cancelled", "auth.reported"}
    refused = await visitor.post(path, others)
    assert refused.status == 400
    sentence = refused.alert
    assert sentence == "The webhook events must name at least one event. To receive none, leave the webhook URL empty."
    assert (await visitor.only_project()).webhook_events == ("auth.cancelled", "auth.reported")
