"""The bots of projects: how one is given, taken away and found broken; on every driver."""

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest
from tests.api.conftest import SERVICE_BOT_ID, BotFather
from tests.databases import every_driver
from tests.service.conftest import acting
from tests.service.project_bots import bot_entries, bots_of, read

from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.errors import (
    BotBroken,
    BotTaken,
    BotTokenRefused,
    DecryptionFailed,
    InvalidRequest,
    MessengerUnavailable,
    ProjectNotFound,
    RateLimited,
    TaproofError,
)
from taproof.core.project_bots import ProjectBot
from taproof.core.projects import Project, ProjectChanges
from taproof.service.bots import CHECKS, Bots
from taproof.service.projects import ProjectSecrets

if TYPE_CHECKING:
    from tests.service.conftest import Node


@pytest.fixture
def father() -> BotFather:
    return BotFather()


@pytest.fixture
def bots(node: "Node", father: BotFather) -> Bots:
    return bots_of(node, father)


async def test_a_bot_is_given_with_its_token_encrypted(node: "Node", bots: Bots, father: BotFather) -> None:
    """Links lead to it from then on; the token is in no row and no log, and opens for this project alone."""
    developer = await node.developer()
    project, _ = await node.project(developer)
    token = father.make_bot("Shop_Bot")
    await bots.set_bot(acting(developer), project.id, token)
    shown = await read(node, project)
    assert (shown.bot_id, shown.bot_username, shown.bot_broken_at) == (7_000_000_001, "Shop_Bot", None)
    created = await node.signin.create_session(project.id, public=True)
    assert created.deeplink == f"https://t.me/Shop_Bot?start={created.session_token}"
    (bot,) = await bots.list_project_bots()
    assert token.encode() not in bot.encrypted_token
    assert bots.open_token(bot) == token
    moved = ProjectBot("proj_0000000000000000000009", bot.bot_id, bot.username, bot.encrypted_token)
    with pytest.raises(DecryptionFailed):
        bots.open_token(moved)
    details = {"bot_id": 7_000_000_001, "bot_username": "Shop_Bot"}
    assert await bot_entries(node, developer) == [("bot.set", project.id, details)]


async def test_a_bot_is_taken_away(node: "Node", bots: Bots, father: BotFather) -> None:
    """The service's own bot asks from then on; there is one entry in the log, and the messenger is not asked."""
    developer = await node.developer()
    project, _ = await node.project(developer)
    await bots.set_bot(acting(developer), project.id, father.make_bot("Shop_Bot"))
    father.is_away = True
    node.clock.now += 1
    for _ in range(2):
        await bots.set_bot(acting(developer), project.id, "")
    assert await bots.list_project_bots() == []
    created = await node.signin.create_session(project.id, public=True)
    assert created.deeplink.startswith("https://t.me/Sign_In_Bot?start=")
    entries = await bot_entries(node, developer)
    assert entries[0] == ("bot.removed", project.id, {"bot_username": "Shop_Bot"})
    assert [action for action, _, _ in entries] == ["bot.removed", "bot.set"]


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("malformed", InvalidRequest),
        ("unknown", BotTokenRefused),
        ("away", MessengerUnavailable),
        ("service", BotTaken),
        ("service by name", BotTaken),
        ("another's id", BotTokenRefused),
        ("taken", BotTaken),
    ],
)
async def test_a_token_that_cannot_be_used_changes_nothing(
    node: "Node", bots: Bots, father: BotFather, case: str, expected: type[TaproofError]
) -> None:
    """Each is refused with what to do, and the token is in no sentence; the project keeps the bot that it has."""
    developer = await node.developer()
    project, _ = await node.project(developer)
    await bots.set_bot(acting(developer), project.id, father.make_bot("Shop_Bot"))
    before = await bots.list_project_bots()
    token = father.make_bot("Other_Bot", 7_000_000_002)
    if case == "malformed":
        token = token.replace(":", "-")
    if case == "unknown":
        token = token[:-1] + "xy"[token.endswith("x")]
    if case == "away":
        father.is_away = True
    if case == "service":
        token = father.make_bot("Whatever_Bot", SERVICE_BOT_ID)
    if case == "service by name":
        token = father.make_bot("TEST_bot", 7_000_000_003)
    if case == "another's id":
        father.accounts[f"7000000009:{'A' * 35}"] = father.accounts[token]
        token = f"7000000009:{'A' * 35}"
    if case == "taken":
        other, _ = await node.project()
        stranger = await node.storage.projects.read_project(other.id)
        assert stranger is not None
        owner = next(
            each for each in await node.storage.developers.list_developers() if each.id == stranger.developer_id
        )
        await bots.set_bot(acting(owner), other.id, token)
        before = await bots.list_project_bots()
    with pytest.raises(expected) as caught:
        await bots.set_bot(acting(developer), project.id, token)
    assert type(caught.value) is expected
    assert token.rpartition(":")[2] not in caught.value.sentence
    assert await bots.list_project_bots() == before
    assert [action for action, _, _ in await bot_entries(node, developer)] == ["bot.set"]


async def test_a_strangers_project_is_not_found_before_the_messenger_is_asked(
    node: "Node", bots: Bots, father: BotFather
) -> None:
    """Nobody gives another developer's project a bot, or learns here whether a token is good."""
    project, _ = await node.project()
    stranger = await node.developer()
    token = father.make_bot("Shop_Bot")
    for given in (token, "", "nonsense"):
        with pytest.raises(ProjectNotFound):
            await bots.set_bot(acting(stranger), project.id, given)
    assert father.asked == []
    assert await bots.list_project_bots() == []


@every_driver
async def test_two_projects_want_one_bot_at_once(
    node: "Node", other_node: "Node", bots: Bots, father: BotFather
) -> None:
    """On two nodes: one gets it, and the others are told that it is taken."""
    token = father.make_bot("Shop_Bot")
    there = bots_of(other_node, father)
    owners = [await node.developer() for _ in range(6)]
    projects = [(await node.project(owner))[0] for owner in owners]

    async def give(number: int) -> str:
        try:
            await (bots, there)[number % 2].set_bot(acting(owners[number]), projects[number].id, token)
        except BotTaken:
            return "taken"
        return "set"

    outcomes = await asyncio.gather(*map(give, range(6)))
    assert sorted(outcomes) == ["set"] + ["taken"] * 5
    (bot,) = await bots.list_project_bots()
    assert bot.project_id == projects[outcomes.index("set")].id


async def test_a_request_that_is_wrong_elsewhere_leaves_the_bot_alone(
    node: "Node", bots: Bots, father: BotFather
) -> None:
    """And a bot that cannot be given leaves all else of the request undone."""
    developer = await node.developer()
    project, _ = await node.project(developer)
    token = father.make_bot("Shop_Bot")

    async def update(changes: ProjectChanges, bot_token: str | None) -> Project:
        actor = acting(developer)
        await node.projects.check_changes(actor, project.id, changes)
        bot = None if bot_token is None else await bots.check_change(actor, project.id, bot_token)
        return await node.projects.update_project(actor, project.id, changes, bot=bot)

    with pytest.raises(InvalidRequest, match="webhook_url"):
        await update(ProjectChanges(webhook_url="ftp://x"), token)
    assert await read(node, project) == project
    assert father.asked == []
    with pytest.raises(BotTokenRefused):
        await update(ProjectChanges(name="New"), token[:-1] + "xy"[token.endswith("x")])
    assert await read(node, project) == project
    changed = await update(ProjectChanges(name="New"), token)
    assert (changed.name, changed.bot_username) == ("New", "Shop_Bot")
    kept = await update(ProjectChanges(name="Newer"), None)
    assert (kept.name, kept.bot_username) == ("Newer", "Shop_Bot")
    gone = await update(ProjectChanges(), "")
    assert (gone.name, gone.bot_username) == ("Newer", None)


async def test_a_bot_is_not_given_when_the_rest_cannot_be_written(node: "Node", bots: Bots, father: BotFather) -> None:
    """The plan ends, or another takes the bot, while the messenger is asked: the whole request is undone."""
    developer, other = await node.developer(plan="pro"), await node.developer()
    project, _ = await node.project(developer)
    rival, _ = await node.project(other)
    token = father.make_bot("Shop_Bot")

    async def downgrade() -> None:
        assert await node.storage.plans.update_plan(developer.id, "free")

    async def take() -> None:
        await bots.set_bot(acting(other), rival.id, token)

    for changes, meanwhile, refusal in (
        (ProjectChanges(collect_phone=True), downgrade, InvalidRequest),
        (ProjectChanges(name="New"), take, BotTaken),
    ):
        actor = acting(developer)
        bot = await bots.check_change(actor, project.id, token)
        await meanwhile()
        with pytest.raises(refusal):
            await node.projects.update_project(actor, project.id, changes, bot=bot)
        assert await read(node, project) == project
    assert await bot_entries(node, developer) == []


@every_driver
async def test_a_new_project_comes_with_its_bot_or_not_at_all(
    node: "Node", other_node: "Node", bots: Bots, father: BotFather
) -> None:
    """No project is left behind that would send people to another bot than the one that was asked for."""
    developer, other = await node.developer(), await node.developer()
    token = father.make_bot("Shop_Bot")

    async def create(on: "Node", bot_token: str, name: str = "Shop") -> tuple[Project, ProjectSecrets]:
        actor, wanted = acting(developer), ProjectChanges(name=name)
        on.projects.check_new(actor, wanted)
        return await on.projects.create_project(actor, wanted, bot=await bots.check_token(actor, bot_token))

    for wrong in (token[:-1] + "xy"[token.endswith("x")], "nonsense", father.make_bot("Any_Bot", SERVICE_BOT_ID)):
        with pytest.raises(TaproofError):
            await create(node, wrong)
    with pytest.raises(InvalidRequest, match="name"):
        await create(node, token, name="")
    assert len(father.asked) == 1, "the messenger is asked of what it can know, once all else is right"
    assert await node.projects.list_projects(developer) == []
    outcomes = await asyncio.gather(*(create(on, token) for on in (node, other_node) * 3), return_exceptions=True)
    created = [each for each in outcomes if isinstance(each, tuple)]
    assert [type(each) for each in outcomes if not isinstance(each, tuple)] == [BotTaken] * 5
    ((project, secrets),) = created
    assert project == await read(node, project)
    assert project.bot_username == "Shop_Bot"
    assert (await node.projects.authenticate(secrets.secret_key)).id == project.id
    assert [each.id for each in await node.projects.list_projects(developer)] == [project.id]
    assert [action for action, _, _ in await bot_entries(node, developer)] == ["bot.set"]
    with pytest.raises(BotTaken):
        await bots.set_bot(acting(other), (await node.project(other))[0].id, token)


@every_driver
async def test_a_broken_bot_is_told_once_and_ends_with_a_new_token(
    node: "Node", other_node: "Node", bots: Bots, father: BotFather
) -> None:
    """Its developer reads who found out what; no sign-ins start, in no bot, until a token is set that works."""
    developer = await node.developer()
    project, _ = await node.project(developer)
    await bots.set_bot(acting(developer), project.id, father.make_bot("Shop_Bot"))
    (bot,) = await bots.list_project_bots()
    there = bots_of(other_node, father)
    node.clock.now += 1
    told = await asyncio.gather(*(each.mark_broken(bot) for each in (bots, there, bots, there)))
    assert told.count(True) == 1
    assert (await read(node, project)).bot_broken_at == node.clock()
    with pytest.raises(BotBroken):
        await node.signin.create_session(project.id, public=True)
    assert (await bot_entries(node, developer))[0][0] == "bot.broken"
    entry = (await node.storage.audit.list_audit_entries(developer.id, None, 1))[0]
    assert (entry.actor, entry.via, entry.subject) == ("Taproof", "service", project.id)
    await bots.set_bot(acting(developer), project.id, father.make_bot("Shop_Bot"))
    assert (await read(node, project)).bot_broken_at is None
    assert await node.signin.create_session(project.id, public=True)
    assert not await bots.mark_broken(bot)
    assert (await read(node, project)).bot_broken_at is None


async def test_a_bot_of_a_project_that_is_gone_is_not_marked(node: "Node", bots: Bots, father: BotFather) -> None:
    """A process that notices it too late changes nothing."""
    developer = await node.developer()
    project, _ = await node.project(developer)
    await bots.set_bot(acting(developer), project.id, father.make_bot("Shop_Bot"))
    (bot,) = await bots.list_project_bots()
    await node.projects.delete_project(acting(developer), project.id)
    assert not await bots.mark_broken(bot)


async def test_a_token_under_a_lost_master_key_cannot_be_opened(node: "Node", bots: Bots, father: BotFather) -> None:
    """It is told as what it is, not as a token that is wrong."""
    developer = await node.developer()
    project, _ = await node.project(developer)
    await bots.set_bot(acting(developer), project.id, father.make_bot("Shop_Bot"))
    (bot,) = await bots.list_project_bots()
    node.encryptor = Encryptor(new_master_key(system_entropy))
    with pytest.raises(DecryptionFailed):
        bots_of(node, father).open_token(bot)


async def test_one_developer_asks_the_messenger_so_often(node: "Node", bots: Bots, father: BotFather) -> None:
    """Good tokens and bad ones count, whatever the project; other developers go on, and so does this one in time."""
    developer, other = await node.developer(), await node.developer()
    projects = [(await node.project(developer))[0] for _ in range(2)]
    token = father.make_bot("Shop_Bot")
    for number in range(CHECKS.number):
        with contextlib.suppress(BotTokenRefused):
            await bots.set_bot(acting(developer), projects[number % 2].id, f"{7_000_000_100 + number}:{'A' * 35}")
    assert len(father.asked) == CHECKS.number
    with pytest.raises(RateLimited) as caught:
        await bots.set_bot(acting(developer), projects[0].id, token)
    assert caught.value.retry_after == 3
    with pytest.raises(InvalidRequest):
        await bots.set_bot(acting(developer), projects[0].id, "nonsense")
    assert len(father.asked) == CHECKS.number
    await bots.set_bot(acting(other), (await node.project(other))[0].id, token)
    node.clock.now += 3_000
    with pytest.raises(BotTaken):
        await bots.set_bot(acting(developer), projects[0].id, token)
