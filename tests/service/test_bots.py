"""The bots of projects: setting and removing one, and refused tokens."""

import contextlib
from typing import TYPE_CHECKING

import pytest
from tests.api.conftest import SERVICE_BOT_ID, BotFather
from tests.service.conftest import acting
from tests.service.project_bots import bot_entries, read

from taproof.core.errors import (
    BotTaken,
    BotTokenRefused,
    DecryptionFailed,
    InvalidRequest,
    RateLimited,
)
from taproof.core.project_bots import ProjectBot
from taproof.core.projects import ProjectChanges
from taproof.service.bots import CHECKS, Bots

if TYPE_CHECKING:
    from tests.service.conftest import Node


async def test_a_bot_is_given_and_taken_away(node: "Node", bots: Bots, father: BotFather) -> None:
    """The token is stored encrypted, for this project only.

    A removal does not call the messenger, and adds one entry.
    """
    developer, project = await node.owned()
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
    father.is_away = True
    node.clock.now += 1
    for _ in range(2):
        await bots.set_bot(acting(developer), project.id, "")
    assert await bots.list_project_bots() == []
    assert (await node.signin.create_session(project.id, public=True)).deeplink.startswith("https://t.me/Sign_In_Bot?")
    assert await bot_entries(node, developer) == [
        ("bot.removed", project.id, {"bot_username": "Shop_Bot"}),
        ("bot.set", project.id, {"bot_id": 7_000_000_001, "bot_username": "Shop_Bot"}),
    ]


async def test_bots_that_no_project_may_have(node: "Node", bots: Bots, father: BotFather) -> None:
    """The service's own bot, by its id or name, and a token that does not match its bot's id, are refused."""
    developer, project = await node.owned()
    await bots.set_bot(acting(developer), project.id, father.make_bot("Shop_Bot"))
    before = await bots.list_project_bots()
    foreign = f"7000000009:{'A' * 35}"
    father.accounts[foreign] = father.accounts[father.make_bot("Other_Bot", 7_000_000_002)]
    for token, expected in (
        (father.make_bot("Whatever_Bot", SERVICE_BOT_ID), BotTaken),
        (father.make_bot("TEST_bot", 7_000_000_003), BotTaken),
        (foreign, BotTokenRefused),
    ):
        with pytest.raises(expected):
            await bots.set_bot(acting(developer), project.id, token)
    assert await bots.list_project_bots() == before


async def test_a_bot_is_not_given_when_the_rest_cannot_be_written(node: "Node", bots: Bots, father: BotFather) -> None:
    """If the plan ends or another project takes the bot during the call to the messenger, nothing is changed."""
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


async def test_one_developer_asks_the_messenger_so_often(node: "Node", bots: Bots, father: BotFather) -> None:
    """Valid and invalid tokens count in all projects.

    Other developers are not affected, and the limit refills with time.
    """
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
