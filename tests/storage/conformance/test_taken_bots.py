"""Conformance: a broken bot of one project that another one gets."""

import asyncio
import dataclasses
from typing import TYPE_CHECKING, Any

import pytest
from tests.storage.conformance.test_bots import actions, bot_of, give

from taproof.core.errors import BotTaken, InvalidRequest
from taproof.core.project_bots import BotChange, BotLoss, ProjectBot
from taproof.core.projects import Project, ProjectChanges
from taproof.storage.protocol import Storage

if TYPE_CHECKING:
    from tests.storage.seed import Seed


async def take(
    storage: Storage, seed: "Seed", project: Project, loser: Project, bot: ProjectBot, **changes: Any
) -> Project | None:
    """Give a project a bot that the loser has had until now."""
    loss = BotLoss(loser.id, seed.entry(loser.developer_id, "bot.removed"))
    change = BotChange(bot, seed.entry(project.developer_id, "bot.set"), loss)
    return await storage.projects.update_project(
        project.developer_id, project.id, ProjectChanges(**changes), seed.now, bot=change
    )


async def broken(storage: Storage, seed: "Seed", bot_id: int = 7_000_000_001) -> tuple[Project, ProjectBot]:
    """Return a project whose bot is broken."""
    project = await seed.project()
    bot = bot_of(project, bot_id)
    assert await give(storage, project, bot) == "set"
    assert await storage.bots.mark_bot_broken(project.id, bot.encrypted_token, seed.now)
    return project, bot


async def test_update_project_takes_a_broken_bot_from_its_loser(
    storage: Storage, other_node: Storage, seed: "Seed"
) -> None:
    """Id and token go; that it is broken stays, for it is the loser's to say which bot takes its place."""
    loser, bot = await broken(storage, seed)
    project = await seed.project()
    updated = await take(other_node, seed, project, loser, bot_of(project), name="New")
    assert updated is not None
    assert (updated.name, updated.bot_id, updated.bot_broken_at) == ("New", bot.bot_id, None)
    assert await storage.bots.list_project_bots() == [bot_of(project)]
    assert await storage.bots.read_project_bot(bot.bot_id) == bot_of(project)
    lost, of_sign_in = (
        await storage.projects.read_project(loser.id),
        await storage.projects.read_sign_in_project(loser.id),
    )
    for each in (lost, of_sign_in):
        assert each is not None
        assert (each.bot_id, each.bot_username, each.bot_broken_at) == (None, "Shop_Bot", seed.now)
    assert not [
        row
        for row in (await storage.encrypted_values.list_encrypted_values("bot_token", None, 10)).rows
        if row.name == loser.id
    ]
    assert (await actions(storage, loser), await actions(storage, project)) == (["bot.removed"], ["bot.set"])
    assert not await storage.bots.mark_bot_broken(loser.id, bot.encrypted_token, seed.now + 1)
    assert await give(storage, loser, None) == "set"
    lost = await storage.projects.read_project(loser.id)
    assert lost is not None
    assert (lost.bot_username, lost.bot_broken_at) == (None, None)


async def test_update_project_gives_a_loser_another_bot(storage: Storage, seed: "Seed") -> None:
    """Then nothing is broken any more."""
    loser, _ = await broken(storage, seed)
    project = await seed.project()
    await take(storage, seed, project, loser, bot_of(project))
    assert await give(storage, loser, bot_of(loser)) == "taken"
    other = bot_of(loser, 7_000_000_002, "Other_Bot")
    assert await give(storage, loser, other) == "set"
    assert await storage.bots.list_project_bots() == [bot_of(project), other]


async def test_create_project_takes_a_broken_bot_from_its_loser(storage: Storage, seed: "Seed") -> None:
    """As `update_project` does."""
    loser, bot = await broken(storage, seed)
    model = await seed.project()
    project = dataclasses.replace(model, id=f"proj_{0xA00:022x}")
    loss = BotLoss(loser.id, seed.entry(loser.developer_id, "bot.removed"))
    assert await storage.projects.create_project(project, bytes(32), bot=BotChange(bot_of(project), None, loss))
    assert await storage.bots.list_project_bots() == [bot_of(project)]
    lost = await storage.projects.read_project(loser.id)
    assert lost is not None
    assert (lost.bot_id, lost.bot_broken_at) == (None, seed.now)
    assert await actions(storage, loser) == ["bot.removed"]
    assert bot.bot_id == bot_of(project).bot_id


async def test_update_project_takes_no_bot_that_works(storage: Storage, seed: "Seed") -> None:
    """A loser that has set a new token, or was not the one who has the bot, loses nothing; nor does anybody else."""
    loser, bot = await broken(storage, seed)
    project, third = await seed.project(), await seed.project()
    await give(storage, third, bot_of(third, 7_000_000_002, "Other_Bot"))
    mended = dataclasses.replace(bot, encrypted_token=b"a new one")
    assert await give(storage, loser, mended) == "set"
    before = await storage.projects.read_project(project.id)
    for name, wanted in (
        ("loser", bot_of(project)),
        ("third", bot_of(project)),
        ("third", bot_of(project, 7_000_000_002)),
    ):
        with pytest.raises(BotTaken):
            await take(storage, seed, project, loser if name == "loser" else third, wanted, name="New")
    assert await storage.bots.list_project_bots() == [mended, bot_of(third, 7_000_000_002, "Other_Bot")]
    assert await storage.projects.read_project(project.id) == before
    assert [await actions(storage, each) for each in (project, loser, third)] == [[], [], []]


async def test_update_project_takes_another_bot_of_no_loser(storage: Storage, seed: "Seed") -> None:
    """Whoever has another bot by now, broken or not, keeps that; and a loser that is gone is no loser."""
    loser, _ = await broken(storage, seed)
    project, other = await seed.project(), await seed.project()
    second = bot_of(loser, 7_000_000_002, "Other_Bot")
    await give(storage, loser, second)
    assert await storage.bots.mark_bot_broken(loser.id, second.encrypted_token, seed.now)
    assert await take(storage, seed, project, loser, bot_of(project)) is not None
    broken_at = dataclasses.replace(second, broken_at=seed.now)
    assert await storage.bots.list_project_bots() == [bot_of(project), broken_at]
    assert await actions(storage, loser) == []
    await storage.projects.delete_project(loser.developer_id, loser.id)
    assert await take(storage, seed, other, loser, bot_of(other, 7_000_000_002)) is not None
    assert await actions(storage, loser) == []


async def test_update_project_takes_the_bot_or_changes_nothing(storage: Storage, seed: "Seed") -> None:
    """A plan that does not allow the rest, or a stranger, leaves the loser as it was."""
    loser, bot = await broken(storage, seed)
    project, stranger = await seed.project(), await seed.developer()
    with pytest.raises(InvalidRequest):
        await take(storage, seed, project, loser, bot_of(project), collect_phone=True)
    foreign = dataclasses.replace(project, developer_id=stranger.id)
    assert await take(storage, seed, foreign, loser, bot_of(project)) is None
    assert await storage.bots.list_project_bots() == [dataclasses.replace(bot, broken_at=seed.now)]
    assert await actions(storage, loser) == []


async def test_update_project_takes_a_broken_bot_once(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """Of many projects, on two nodes at once, one gets it; the loser is told once."""
    loser, _ = await broken(storage, seed)
    projects = [await seed.project() for _ in range(8)]
    outcomes = await asyncio.gather(
        *(
            take((storage, other_node)[number % 2], seed, project, loser, bot_of(project))
            for number, project in enumerate(projects)
        ),
        return_exceptions=True,
    )
    assert [type(each) for each in outcomes].count(Project) == 1
    assert [type(each) for each in outcomes].count(BotTaken) == 7
    (winner,) = [project for project, each in zip(projects, outcomes, strict=True) if isinstance(each, Project)]
    assert await storage.bots.list_project_bots() == [bot_of(winner)]
    assert await actions(storage, loser) == ["bot.removed"]


async def test_update_project_swaps_broken_bots(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """Two projects that take each other's at the same instant, on two nodes, do not wait for each other for ever."""
    pairs = [
        (await broken(storage, seed, 7_000_000_100 + number), await broken(storage, seed, 7_000_000_200 + number))
        for number in range(6)
    ]
    await asyncio.gather(
        *(
            take(node, seed, taker, loser, bot_of(taker, bot.bot_id))
            for (one, bot_of_one), (other, bot_of_other) in pairs
            for node, taker, loser, bot in (
                (storage, one, other, bot_of_other),
                (other_node, other, one, bot_of_one),
            )
        )
    )
    swapped = [bot_of(other, bot.bot_id) for (_, bot), (other, _) in pairs]
    swapped += [bot_of(one, bot.bot_id) for (one, _), (_, bot) in pairs]
    assert await storage.bots.list_project_bots() == swapped
