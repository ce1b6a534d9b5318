"""The pages of projects: list, creation, overview, settings, new secrets and deletion."""

import json
import re
from dataclasses import replace
from typing import Any, get_args

import pytest
from tests.console.browsing import Shown
from tests.console.conftest import SESSION_COOKIE, Installation, Visitor

from taproof.console.projects import PAGE_SIZE
from taproof.contract.project import ProjectEvent
from taproof.core.clock import DAY
from taproof.core.errors import InvalidSecretKey, TooManyProjects
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import PROJECT_DEFAULTS, Project

LIST = "/console/projects"
FLASH = "__Host-taproof_flash"
BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066\u2067]")
SECRET = re.compile(r"\b(?:sk_[A-Za-z0-9]{49}|whsec_[A-Za-z0-9+/=]{20,})")


def secrets_in(shown: Shown) -> list[str]:
    return SECRET.findall(shown.html)


async def test_an_empty_list_leads_to_the_first_project(visitor: Visitor) -> None:
    """An empty list says what a project is and leads to the form for the first one."""
    shown = await visitor.get(LIST)
    assert shown.status == 200
    assert not shown.all(".//table")
    assert shown.texts(f".//a[@href='{LIST}/new']") == ["Create your first project"]


async def test_the_list_shows_status_access_and_both_counts(
    visitor: Visitor, console: Installation, project: Project
) -> None:
    """Each project is listed with its status, public access and counts, and a link."""
    console.clock.now += 1
    await visitor.create_project("Blog")
    await visitor.start_session(project.id)
    await visitor.confirm(project.id)
    await visitor.change(project, is_active=False, public_access=False)
    shown = await visitor.get(LIST)
    assert [row[:5] for row in shown.rows()] == [
        ["Shop", "Paused", "Off", "2", "1"],
        ["Blog", "Active", "On", "0", "0"],
    ]
    assert shown.texts(f".//tbody//a[@href='{LIST}/{project.id}']") == ["Shop"]


async def test_the_list_has_pages(visitor: Visitor, console: Installation) -> None:
    """Long lists have pages: each project is on one of them, and a link leads back."""
    for number in range(PAGE_SIZE + 2):
        await visitor.create_project(f"Project {number}")
        console.clock.now += 1
    first = await visitor.get(LIST)
    [more] = first.all(".//nav[@aria-label='Pages']/a")
    assert more.get("href") == f"{LIST}?page=2"
    second = await visitor.get(LIST, page="2")
    names = [row[0] for shown in (first, second) for row in shown.rows()]
    assert names == [f"Project {number}" for number in range(PAGE_SIZE + 2)]
    [back] = second.all(".//nav[@aria-label='Pages']/a")
    assert back.get("href") == LIST
    past = await visitor.get(LIST, page="3")
    assert past.status == 200
    assert "There are no more projects." in past.text


async def test_the_list_has_no_such_page(visitor: Visitor) -> None:
    """A page number that no link contains is refused with a page."""
    await visitor.create_project()
    for page in ("0", "-1", "", "x", "1.0", "٣", "10000", "9" * 5000):
        shown = await visitor.get(LIST, page=page)
        assert (shown.status, "This page of your projects does not exist" in shown.text) == (400, True), page


async def test_too_many_projects(visitor: Visitor, console: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the limit of projects, the form says to delete some and keeps the input."""

    async def refuse(*_: object) -> None:
        raise TooManyProjects

    monkeypatch.setattr(console.services.projects, "create_project", refuse)
    shown = await visitor.submit(f"{LIST}/new", LIST, name="Blog")
    assert shown.status == 400
    error = shown.alert
    assert "Delete or leave some" in error
    assert [field.get("value") for field in shown.all(".//input[@name='name']")] == ["Blog"]


async def test_a_new_project_shows_its_secrets_once(
    visitor: Visitor, console: Installation, capfd: pytest.CaptureFixture[str]
) -> None:
    """Both secrets are shown once after the creation and work; they are in no other page, address or log."""
    answer = await visitor.submit(f"{LIST}/new", LIST, name="Shop")
    assert answer.status == 303
    kept = visitor.client.cookies[FLASH]
    shown = await visitor.follow(answer)
    secret_key, webhook_secret = secrets_in(shown)
    assert "Copy its two secrets" in shown.text
    assert "The secret key is shown only once. You can show the webhook secret again" in shown.text
    assert shown.response.headers["cache-control"] == "no-store"
    project = await console.services.projects.authenticate(secret_key)
    assert answer.location == f"{LIST}/{project.id}"
    assert (project.name, project.webhook_url, project.is_active) == ("Shop", "", True)
    assert project.public_access
    found = await console.services.projects.read_webhook_secret(visitor.actor, project.id)
    assert found.webhook_secret == webhook_secret
    again = await visitor.get(answer.location)
    assert again.status == 200
    assert not secrets_in(again)
    written = "".join(capfd.readouterr()) + str(answer.response.headers) + kept
    for secret in (secret_key, webhook_secret):
        assert secret not in written


async def test_the_secrets_are_for_their_visitor_only(
    visitor: Visitor, stranger: Visitor, console: Installation
) -> None:
    """The cookie with the secrets can be read only for that visitor and page, and only for a minute."""
    answer = await visitor.submit(f"{LIST}/new", LIST, name="Shop")
    kept = visitor.client.cookies[FLASH]

    async def shown_to(someone: Visitor, path: str) -> list[str]:
        """Return the secrets that a browser with this cookie sees on a page."""
        browser = await console.browser()
        browser.client.cookies.set(SESSION_COOKIE, someone.client.cookies[SESSION_COOKIE])
        browser.client.cookies.set(FLASH, kept)
        return secrets_in(await browser.get(path))

    assert await shown_to(visitor, LIST) == []
    assert await shown_to(stranger, answer.location) == []
    assert await shown_to(stranger, LIST) == []
    assert len(await shown_to(visitor, answer.location)) == 2, "else this test proves nothing"
    console.clock.now += 60_000
    assert await shown_to(visitor, answer.location) == []


async def test_a_new_project_asks_only_for_its_name(visitor: Visitor, console: Installation) -> None:
    """The form has one field, and other fields that a request contains are ignored."""
    assert (await visitor.get(f"{LIST}/new")).fields(LIST) == {"name": ""}
    await visitor.post(LIST, {"name": "Shop", "webhook_url": "https://shop.example", "match_code": "on"})
    project = await visitor.only_project()
    assert all(getattr(project, field) == value for field, value in PROJECT_DEFAULTS.given().items())


async def test_a_refused_name_stays_in_the_form(visitor: Visitor, console: Installation) -> None:
    """A refused form says why, keeps the input, and creates no project."""
    shown = await visitor.post(LIST, {"name": "x" * 101})
    assert shown.status == 400
    assert shown.alert == "The name must have 1 to 100 characters."
    assert shown.fields(LIST) == {"name": "x" * 101}
    assert await console.services.projects.list_projects(visitor.developer) == []


async def test_phone_collection_is_offered_with_the_plan_that_has_it(
    visitor: Visitor, console: Installation, project: Project
) -> None:
    """On the free plan the box is disabled and says why; a form that sends it is refused."""
    path = f"{LIST}/{project.id}/settings"
    assert "disabled" not in (await visitor.get(path)).one(".//input[@id='collect_phone']").attrib
    await visitor.submit(path, path, collect_phone="on")
    assert (await visitor.only_project()).collect_phone
    free = await console.sign_in(await console.add_developer("free@example.com", "free"))
    project, _ = await free.create_project()
    path = f"{LIST}/{project.id}/settings"
    shown = await free.get(path)
    assert "disabled" in shown.one(".//input[@id='collect_phone']").attrib
    assert "your account is on the Free plan" in shown.text
    refused = await free.post(path, shown.fields(path) | {"collect_phone": "on"})
    assert refused.status == 400
    assert "Phone collection is available on the pro and business plans" in refused.text


async def test_the_overview_shows_the_project_and_no_secret(visitor: Visitor, console: Installation) -> None:
    """The page shows status, counts, the id to copy and the preview of the key, but no secrets."""
    project, secrets = await visitor.create_project("Shop")
    await visitor.confirm(project.id)
    shown = await visitor.get(f"{LIST}/{project.id}")
    assert shown.heading == "Shop"
    assert shown.texts(".//dl[@class='figures']//dd") == ["1", "1"]
    assert shown.texts(".//*[@id='project-id']") == [project.id]
    assert shown.one(".//button[@data-copy='#project-id']").get("type") == "button"
    assert project.secret_key_preview in shown.text
    assert secrets.secret_key not in shown.html
    assert not secrets_in(shown)
    for page in ("settings", "try", "webhooks", "clients"):
        assert shown.all(f".//nav//a[@href='{LIST}/{project.id}/{page}']")


async def settings_of(visitor: Visitor, project: Project, **typed: str) -> Shown:
    path = f"{LIST}/{project.id}/settings"
    return await visitor.submit(path, path, **typed)


async def test_settings_change_what_was_changed_in_the_form(visitor: Visitor, console: Installation) -> None:
    """Only fields that differ from the values shown are changed, so an outdated form undoes nothing."""
    project, _ = await visitor.create_project("Shop", webhook_url="https://shop.example/old")
    path = f"{LIST}/{project.id}/settings"
    stale = (await visitor.get(path)).fields(path)
    await visitor.change(project, webhook_url="https://shop.example/new", is_active=False)
    console.clock.now += 1
    answer = await visitor.post(path, stale | {"name": "Store"})
    assert "Saved." in (await visitor.follow(answer)).text
    kept = await visitor.only_project()
    assert (kept.name, kept.webhook_url, kept.is_active) == ("Store", "https://shop.example/new", False)
    newest, *_ = await visitor.log()
    assert (json.loads(newest.details), newest.via) == ({"name": "Store"}, "console")


async def test_a_project_is_paused_and_resumed(visitor: Visitor, console: Installation, project: Project) -> None:
    """The danger zone pauses a project; a paused project offers to resume it, there and on its page."""
    path = f"{LIST}/{project.id}"
    shown = await visitor.follow(await visitor.submit(f"{path}/settings", f"{path}/active"))
    assert await visitor.only_project() == replace(project, is_active=False)
    assert shown.texts(f".//form[@action='{path}/active']/button") == ["Resume the project"]
    await visitor.submit(f"{path}/settings", f"{path}/active")
    assert await visitor.only_project() == project


DEPENDENT: dict[str, tuple[set[str], dict[str, Any]]] = {
    "same_device": ({"was_return_urls", "return_urls"}, {"return_urls": ("https://app.example/b",)}),
    "collect_phone": ({"was_phone_required", "phone_required"}, {"phone_required": False}),
    "webhook_url": (
        {"was_webhook_events", *get_args(ProjectEvent)},
        {"webhook_events": ("auth.confirmed", "auth.reported")},
    ),
}
"""For each setting that others depend on: the fields in its disabled group, and an uncommon value of them."""


@pytest.mark.parametrize("needed", DEPENDENT)
async def test_a_disabled_group_changes_nothing(
    visitor: Visitor, console: Installation, needed: str, project: Project
) -> None:
    """Browsers send no field of a disabled group: its settings stay, also when the form is refused and sent again."""
    fields, values = DEPENDENT[needed]
    await visitor.change(project, **values)
    before = await visitor.only_project()
    path = f"{LIST}/{project.id}/settings"
    shown = await visitor.get(path)
    group = shown.one(f".//fieldset[@data-needs='{needed}']")
    assert {control.get("name") for control in group.iter() if control.get("name")} == fields
    sent = {name: value for name, value in shown.fields(path).items() if name not in fields}
    refused = await visitor.post(path, sent | {"name": ""})
    assert refused.status == 400
    await visitor.post(path, refused.fields(path) | {"name": "Store"})
    assert await visitor.only_project() == replace(before, name="Store")


async def test_untouched_settings_change_nothing(visitor: Visitor, console: Installation) -> None:
    """Saving an untouched form changes nothing, even if the name holds invisible characters."""
    project, _ = await visitor.create_project("Sh\u202eop")
    before = await visitor.log()
    shown = await visitor.follow(await settings_of(visitor, project))
    assert "Nothing was changed." in shown.text
    assert await visitor.only_project() == project
    assert await visitor.log() == before


async def test_refused_settings_stay_in_the_form(visitor: Visitor, console: Installation, project: Project) -> None:
    """A refused form keeps the input; sent again without the mistake, it changes the same fields."""
    path = f"{LIST}/{project.id}/settings"
    typed = "https://shop.example\nhttps://shop.example/sign-in"
    shown = await settings_of(visitor, project, name="Store", allowed_origins=typed)
    assert shown.alert.startswith(
        "Pages that may start sign-ins: number 2 of the list must end after the host and port"
    )
    assert str(shown.one(".//textarea[@id='allowed_origins']").text).split() == typed.split()
    shown = await settings_of(visitor, project, name="Store", webhook_url="ftp://x")
    assert (shown.status, shown.alert) == (400, "The webhook URL must begin with https://.")
    assert await visitor.only_project() == project
    await visitor.post(path, shown.fields(path) | {"webhook_url": ""})
    assert await visitor.only_project() == replace(project, name="Store")


@pytest.mark.parametrize("act", ["regenerate", "delete"])
async def test_irreversible_changes_need_the_name(visitor: Visitor, console: Installation, act: str) -> None:
    """Without the project's name or id nothing happens, and the form says so."""
    project, secrets = await visitor.create_project("Shop")
    for typed in ("", "shop", "Shop2", "proj_", " "):
        shown = await visitor.post(f"{LIST}/{project.id}/{act}", {"confirmation": typed})
        assert shown.status == 400, typed
        assert len(shown.all(".//main/p[@role='alert']")) == 1, "at the top: the form itself is far down"
        assert shown.one(".//input[@aria-invalid]").get("id") == f"{act}-confirmation"
        assert shown.texts(f".//p[@id='{act}-confirmation-error']") == shown.texts(".//p[@role='alert']")
    assert await visitor.only_project() == project
    assert (await console.services.projects.authenticate(secrets.secret_key)).id == project.id


async def test_new_secrets_replace_the_old_ones(visitor: Visitor, console: Installation) -> None:
    """The page names the effects; after the confirmation the old key is refused and the new secrets are shown once."""
    project, old = await visitor.create_project("Shop")
    path = f"{LIST}/{project.id}"
    settings = await visitor.get(f"{path}/settings")
    assert "The old ones stop working immediately" in settings.text
    answer = await visitor.submit(f"{path}/settings", f"{path}/regenerate", confirmation=project.name)
    shown = await visitor.follow(answer)
    secret_key, webhook_secret = secrets_in(shown)
    assert (await console.services.projects.authenticate(secret_key)).id == project.id
    with pytest.raises(InvalidSecretKey):
        await console.services.projects.authenticate(old.secret_key)
    found = await console.services.projects.read_webhook_secret(visitor.actor, project.id)
    assert webhook_secret == found.webhook_secret != old.webhook_secret
    assert not secrets_in(await visitor.get(path))


@pytest.mark.parametrize("by", ["name", "id"])
async def test_deletion_says_what_goes_and_deletes(visitor: Visitor, console: Installation, by: str) -> None:
    """The form says how many sessions will be deleted; after the confirmation the project is gone."""
    project, secrets = await visitor.create_project("Shop")
    await visitor.start_session(project.id)
    await visitor.confirm(project.id)
    path = f"{LIST}/{project.id}"
    assert "its sessions (2, 1 confirmed)" in (await visitor.get(f"{path}/settings")).text
    answer = await visitor.submit(
        f"{path}/settings", f"{path}/delete", confirmation=project.name if by == "name" else project.id
    )
    shown = await visitor.follow(answer)
    assert "was deleted, with its sessions and analytics" in shown.text
    assert await console.services.projects.list_projects(visitor.developer) == []
    with pytest.raises(InvalidSecretKey):
        await console.services.projects.authenticate(secrets.secret_key)
    assert (await visitor.get(path)).status == 404


ODD_NAMES = [
    "<script>alert(1)</script>",
    "Shop\u202egnp.exe\u2066",
    "\"'><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }}&amp;",
]


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_a_project_with_an_odd_name_can_be_deleted(visitor: Visitor, console: Installation, name: str) -> None:
    """The visible form of any name confirms, and so does the id."""
    project, _ = await visitor.create_project(name)
    path = f"{LIST}/{project.id}"
    shown = await visitor.get(f"{path}/settings")
    seen = "".join(shown.one(f".//form[@action='{path}/delete']//bdi").itertext())
    shown = await visitor.follow(await visitor.submit(f"{path}/settings", f"{path}/delete", confirmation=seen))
    assert BIDI.search(shown.html) is None
    assert await console.services.projects.list_projects(visitor.developer) == []


async def test_the_usage_is_shown_with_the_projects(console: Installation, visitor: Visitor) -> None:
    """There is no notice below four fifths, then the usage, then that nothing can start; it resets with the month."""
    ada = await console.sign_in(await console.add_developer("grace@example.com", "pro"))
    project, _ = await ada.create_project()
    await visitor.create_project()
    for used in range(6):
        for page in (LIST, f"{LIST}/{project.id}"):
            shown = await ada.get(page)
            told = [text for text in shown.texts(".//p[@class='notice wait']") if "You have used 4" in text]
            refused = [text for text in shown.texts(".//p[@class='error']") if "you have used all" in text]
            assert (len(told), len(refused)) == (int(used == 4), int(used == 5)), (page, used)
            if told:
                assert told[0].startswith("You have used 4 of the 5 sign-ins of your plan this month.")
            if refused:
                assert refused[0].startswith("No sign-ins can be started: you have used all 5 sign-ins of your plan")
            assert bool(shown.all(".//main//a[@href='/console/account']")) == (used >= 4)
        if used < 5:
            created = await ada.start_session(project.id)
            await console.messenger.confirm(created.deeplink, MessengerIdentity(str(used + 1), "User", ""))
        console.clock.now += 11_000  # Past what a process remembers of the count.
    assert "ave used" not in (await visitor.get(LIST)).text
    console.clock.now += 31 * DAY
    ada = await console.sign_in(ada.developer)
    assert "ave used" not in (await ada.get(LIST)).text
