"""A project's own bot in the console: set, removed, and shown as broken."""

import pytest
from tests.console.conftest import Installation, Visitor

from taproof.core.accounts import Actor, Developer
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import Project

LIST = "/console/projects"


def settings(project: Project) -> str:
    return f"{LIST}/{project.id}/settings"


def bot_form(project: Project) -> str:
    return f"{LIST}/{project.id}/bot"


async def linked_developer(console: Installation) -> Developer:
    """Create a developer with a messenger account."""
    owner = await console.add_developer("owner@example.com", is_owner=True)
    made = await console.services.invitations.invite_again(
        Actor(owner, "command_line"), await console.add_developer("linked@example.com")
    )
    identity = MessengerIdentity("1001", "Ada", "")
    return await console.services.invitations.accept_invitation(made.code, identity, address="192.0.2.1")


async def break_bot(console: Installation) -> None:
    (bot,) = await console.storage.bots.list_project_bots()
    assert await console.services.bots.mark_broken(bot)


async def test_a_bot_is_given_by_its_token(visitor: Visitor, console: Installation, project: Project) -> None:
    """The settings name the bot that now asks; the token is on no later page and in no field."""
    before = await visitor.get(settings(project))
    assert "By default, the service's own bot asks people to confirm." in before.text
    assert before.one(".//input[@name='bot_token']").get("type") == "password"
    token = console.bot_father.make_bot("Shop_Bot")
    answer = await visitor.submit(settings(project), bot_form(project), bot_token=token)
    shown = await visitor.follow(answer)
    assert "@Shop_Bot now asks people to confirm." in shown.text
    assert "Active @Shop_Bot asks people to confirm." in shown.text
    assert (await visitor.change(project)).bot_username == "Shop_Bot"
    pages = [shown, *[await visitor.get(path) for path in (LIST, f"{LIST}/{project.id}", "/console/audit")]]
    assert not [page for page in pages if token.partition(":")[2] in page.html]
    assert "@Shop_Bot" in pages[2].text
    assert "Set a project's own bot" in pages[3].text


async def test_a_bot_can_be_created_with_a_link(console: Installation, visitor: Visitor) -> None:
    """The link is offered to a developer with a messenger account, while the service's bot may manage bots."""
    linked = await console.sign_in(await linked_developer(console))
    project, _ = await linked.create_project("Shop <b>")
    for manager, is_offered in ((None, False), ("Sign_In_Bot", True)):
        console.bot_father.manager = manager
        page = await linked.get(settings(project))
        hrefs = [link.get("href") or "" for link in page.all(".//a[@rel='noopener noreferrer']")]
        links = [href for href in hrefs if href.startswith("https://t.me/newbot/Sign_In_Bot/shopb_")]
        assert bool(links) is is_offered
        assert page.one(".//input[@name='bot_token']") is not None
        assert ("@BotFather" in page.text) is True
    assert links[0].endswith("_bot?name=Shop%20%3Cb%3E")
    await console.services.bots.set_bot(linked.actor, project.id, console.bot_father.make_bot("Shop_Bot"))
    assert "newbot" not in (await linked.get(settings(project))).html
    await break_bot(console)
    assert "newbot" in (await linked.get(settings(project))).html
    other, _ = await visitor.create_project()
    assert "newbot" not in (await visitor.get(settings(other))).html, "this developer has no messenger account"


async def test_a_bot_is_removed(visitor: Visitor, console: Installation, project: Project) -> None:
    """After the removal, the service's bot sends the prompts. The removal form is shown only if there is a bot."""
    await console.services.bots.set_bot(visitor.actor, project.id, console.bot_father.make_bot("Shop_Bot"))
    shown = await visitor.follow(await visitor.submit(settings(project), f"{bot_form(project)}/remove"))
    assert "The bot was removed. The service's own bot now asks people to confirm." in shown.text
    assert not shown.all(f".//form[@action='{bot_form(project)}/remove']")
    assert (await visitor.change(project)).bot_username is None


@pytest.mark.parametrize(
    ("problem", "status", "words"),
    [
        ("empty", 400, "Paste the token that @BotFather shows"),
        ("malformed", 400, "The token must be a bot's token as @BotFather shows it"),
        ("refused", 400, "The messenger does not recognise this bot token. Copy the whole token from @BotFather here."),
        ("taken", 400, "This bot already serves another project."),
        ("away", 503, "The messenger cannot be reached right now"),
    ],
)
async def test_a_refused_token_is_reported_beside_its_field(
    visitor: Visitor, console: Installation, problem: str, status: int, words: str, project: Project
) -> None:
    """The page does not repeat a refused token; the project keeps its bot."""
    token = console.bot_father.make_bot("Shop_Bot")
    token = {"empty": "", "malformed": "Shop_Bot_of_mine", "refused": f"7000000009:{'A' * 35}"}.get(problem, token)
    if problem == "taken":
        other, _ = await visitor.create_project("Other")
        await console.services.bots.set_bot(visitor.actor, other.id, token)
    if problem == "away":
        console.bot_father.is_away = True
    shown = await visitor.submit(settings(project), bot_form(project), bot_token=token)
    assert shown.status == status
    [error] = shown.texts(".//p[@id='bot_token-error']")
    assert words in error
    assert shown.texts(".//p[@role='alert']") == [error]
    assert not token or token not in shown.html
    assert (await visitor.change(project)).bot_username is None


async def test_a_broken_bot_is_reported_on_every_page_of_its_project(
    visitor: Visitor, console: Installation, project: Project
) -> None:
    """A broken bot is reported on the list, the project's pages and its settings until a new token is set."""
    well, _ = await visitor.create_project("Well")
    await console.services.bots.set_bot(visitor.actor, project.id, console.bot_father.make_bot("Shop_Bot"))
    await break_bot(console)
    listed = await visitor.get(LIST)
    assert "No sign-ins can be started for Shop: the messenger no longer accepts its bot's token." in listed.text
    assert [row[1] for row in sorted(listed.rows())] == ["Active Bot broken", "Active"]
    banner = "No sign-ins can be started: the messenger no longer accepts the token of @Shop_Bot."
    for page in ("", "/webhooks", "/try"):
        shown = await visitor.get(f"{LIST}/{project.id}{page}")
        assert banner in shown.text
        assert shown.all(f".//a[@href='{settings(project)}#bot']")
        assert banner not in (await visitor.get(f"{LIST}/{well.id}{page}")).text
    shown = await visitor.get(settings(project))
    assert "Broken since 2026-11-18 11:06:40 UTC: @Shop_Bot asks people to confirm." in shown.text
    assert "Copy the new token from @BotFather" in shown.text
    token = console.bot_father.make_bot("Shop_Bot")
    await visitor.submit(settings(project), bot_form(project), bot_token=token)
    assert "broken" not in (await visitor.get(LIST)).text
    assert banner not in (await visitor.get(f"{LIST}/{project.id}")).text
