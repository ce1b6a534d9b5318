"""Conformance: the bots of projects."""

import asyncio
import dataclasses
from collections.abc import Coroutine
from typing import Any

import pytest
from tests.giving_bots import give_bot
from tests.storage.seed import Seed, at_once, present

from taproof.core.errors import BotTaken, InvalidRequest
from taproof.core.project_bots import BotChange, BotLoss, ProjectBot
from taproof.core.projects import Project, ProjectChanges
from taproof.storage.protocol import Storage

LARGEST_ID = 2**52 - 1
"""The Bot API promises that an id has at most 52 significant bits."""


def bot_of(project: Project, bot_id: int = 7_000_000_001, username: str = "Shop_Bot") -> ProjectBot:
    return ProjectBot(project.id, bot_id, username, b"encrypted \0 " + str(bot_id).encode())


async def give(storage: Storage, project: Project, bot: ProjectBot | None) -> str:
    return await give_bot(storage, project.developer_id, project.id, bot)


async def actions(storage: Storage, project: Project) -> list[str]:
    return [each.action for each in await storage.audit.list_audit_entries(project.developer_id, None, 50)]


async def test_update_project_gives_every_reader_the_bot(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Every reader on every node sees the bot: project, new sign-ins, list of bots. Other projects have none."""
    project, other = await seed.project(), await seed.project()
    bot = bot_of(project, LARGEST_ID)
    assert await give(storage, project, bot) == "set"
    assert await other_node.bots.list_project_bots() == [bot]
    assert await other_node.bots.read_project_bot(LARGEST_ID) == bot
    assert await other_node.bots.read_project_bot(LARGEST_ID - 1) is None
    read = present(await other_node.projects.read_project(project.id))
    assert (read.bot_id, read.bot_username, read.bot_broken_at) == (LARGEST_ID, "Shop_Bot", None)
    of_sign_in = present(await other_node.projects.read_sign_in_project(project.id))
    assert (of_sign_in.bot_id, of_sign_in.bot_username, of_sign_in.bot_broken_at) == (LARGEST_ID, "Shop_Bot", None)
    unchanged = present(await other_node.projects.read_project(other.id))
    assert (unchanged.bot_id, unchanged.bot_username) == (None, None)


async def test_list_project_bots_leaves_out_projects_without_one(storage: Storage, seed: Seed) -> None:
    """A project without a bot is not in the list."""
    project, _ = await seed.project(), await seed.project()
    assert await storage.bots.list_project_bots() == []
    await give(storage, project, bot_of(project))
    assert await storage.bots.list_project_bots() == [bot_of(project)]


async def test_read_project_bot_by_its_id(storage: Storage, seed: Seed) -> None:
    """Each bot belongs to its own project; a removed bot belongs to none."""
    project, other = await seed.project(), await seed.project()
    await give(storage, project, bot_of(project))
    await give(storage, other, bot_of(other, 7_000_000_002, "Other_Bot"))
    assert await storage.bots.read_project_bot(7_000_000_002) == bot_of(other, 7_000_000_002, "Other_Bot")
    await give(storage, other, None)
    assert await storage.bots.read_project_bot(7_000_000_002) is None


async def test_update_project_replaces_the_bot_whole(storage: Storage, seed: Seed) -> None:
    """A new token or another bot clears the broken mark, and another project may use the old bot."""
    project, other = await seed.project(), await seed.project()
    first, second = bot_of(project), bot_of(project, 7_000_000_002, "Other_Bot")
    await give(storage, project, first)
    assert await storage.bots.mark_bot_broken(project.id, first.encrypted_token, seed.now)
    assert await give(storage, project, first) == "set"
    assert await storage.bots.list_project_bots() == [first]
    assert await give(storage, project, second) == "set"
    assert await storage.bots.list_project_bots() == [second]
    moved = bot_of(other)
    assert await give(storage, other, moved) == "set"
    assert await storage.bots.list_project_bots() == [moved, second]


async def test_update_project_takes_the_bot_away(storage: Storage, seed: Seed) -> None:
    """Nothing of the bot is left. Removing it again is no error and adds no audit entry."""
    project = await seed.project()
    await give(storage, project, bot_of(project))
    for _ in range(2):
        entry = seed.entry(project.developer_id, "bot.removed")
        assert await give_bot(storage, project.developer_id, project.id, None, entry=entry) == "set"
    assert await storage.bots.list_project_bots() == []
    assert await storage.bots.read_project_bot(7_000_000_001) is None
    read = present(await storage.projects.read_project(project.id))
    assert (read.bot_id, read.bot_username, read.bot_broken_at) == (None, None, None)
    assert await actions(storage, project) == ["bot.removed"]


async def test_update_project_serves_one_project(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Of many concurrent changes on two nodes, exactly one project gets the bot; the others change nothing."""
    projects = [await seed.project() for _ in range(8)]
    old = [bot_of(project, 7_100_000_000 + number) for number, project in enumerate(projects)]
    for project, bot in zip(projects, old, strict=True):
        await give(storage, project, bot)

    def set_bot(node: Storage, number: int) -> Coroutine[Any, Any, str]:
        project = projects[number]
        entry = seed.entry(project.developer_id, "bot.set")
        return give_bot(node, project.developer_id, project.id, bot_of(project), entry=entry)

    outcomes = await at_once(8, set_bot, storage, other_node)
    assert outcomes.count("set") == 1
    assert outcomes.count("taken") == 7
    winner = outcomes.index("set")
    kept = [bot for number, bot in enumerate(old) if number != winner]
    assert await storage.bots.list_project_bots() == [bot_of(projects[winner]), *kept]
    for number, project in enumerate(projects):
        assert await actions(storage, project) == (["bot.set"] if number == winner else [])


async def test_update_project_frees_the_bot_of_a_deleted_project(storage: Storage, seed: Seed) -> None:
    """The bot of a deleted project may serve another one at once."""
    project, other = await seed.project(), await seed.project()
    await give(storage, project, bot_of(project))
    await seed.delete(project)
    assert await storage.bots.list_project_bots() == []
    assert await give(storage, other, bot_of(other)) == "set"


async def test_update_project_changes_the_fields_and_the_bot_or_neither(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """A taken bot, the wrong plan or another developer changes nothing, not even the audit log."""
    project, other = await seed.project(), await seed.project()

    async def update(changes: ProjectChanges, bot: ProjectBot | None, developer_id: str) -> Project | None:
        entry = seed.entry(developer_id, "project.updated")
        change = BotChange(bot, seed.entry(developer_id, "bot.set" if bot else "bot.removed"))
        return await storage.projects.update_project(
            developer_id, project.id, changes, seed.now, entry=entry, bot=change
        )

    before = await storage.projects.read_project(project.id)
    await give(storage, other, bot_of(other))
    with pytest.raises(BotTaken):
        await update(ProjectChanges(name="New"), bot_of(project), project.developer_id)
    free = bot_of(project, 7_000_000_002)
    with pytest.raises(InvalidRequest):
        await update(ProjectChanges(collect_phone=True), free, project.developer_id)
    stranger = await seed.developer()
    assert await update(ProjectChanges(name="New"), free, stranger.id) is None
    assert await storage.projects.read_project(project.id) == before
    assert await storage.bots.list_project_bots() == [bot_of(other)]
    assert await actions(storage, project) == []
    changed = present(await update(ProjectChanges(name="New"), free, project.developer_id))
    assert (changed.name, changed.bot_id) == ("New", free.bot_id)
    assert changed == await other_node.projects.read_project(project.id)
    assert await actions(storage, project) == ["bot.set", "project.updated"]
    gone = present(await update(ProjectChanges(), None, project.developer_id))
    assert gone.bot_id is None
    assert (await actions(storage, project))[0] == "bot.removed"


async def test_create_project_comes_with_the_bot_or_not_at_all(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """Of several new projects that use one bot, on two nodes at once, exactly one is stored."""
    model = await seed.project()
    projects = [dataclasses.replace(model, id=f"proj_{number:022x}", name="Shop") for number in range(0xA00, 0xA06)]
    outcomes = await asyncio.gather(
        *(
            (storage, other_node)[number % 2].projects.create_project(
                project,
                number.to_bytes(32),
                entry=seed.entry(project.developer_id, "project.created"),
                bot=BotChange(bot_of(project), seed.entry(project.developer_id, "bot.set")),
            )
            for number, project in enumerate(projects)
        ),
        return_exceptions=True,
    )
    assert sorted(str(type(each)) for each in outcomes) == sorted([str(bool)] + [str(BotTaken)] * 5)
    winner = projects[outcomes.index(True)]
    assert {each.id for each in await storage.projects.list_projects(model.developer_id)} == {model.id, winner.id}
    assert await storage.bots.list_project_bots() == [bot_of(winner)]
    assert sorted(await actions(storage, winner)) == ["bot.set", "project.created"]


async def test_mark_bot_broken_is_told_once(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Of all nodes that notice it, exactly one records it, with its time; new sign-ins see it."""
    project = await seed.project()
    bot = bot_of(project)
    await give(storage, project, bot)

    def mark(node: Storage, number: int) -> Coroutine[Any, Any, bool]:
        entry = seed.entry(project.developer_id, "bot.broken")
        return node.bots.mark_bot_broken(project.id, bot.encrypted_token, seed.now + number, entry=entry)

    told = await at_once(6, mark, storage, other_node)
    assert told.count(True) == 1
    since = seed.now + told.index(True)
    assert await actions(storage, project) == ["bot.broken"]
    (listed,) = await storage.bots.list_project_bots()
    assert listed.broken_at == since
    of_sign_in = present(await storage.projects.read_sign_in_project(project.id))
    assert of_sign_in.bot_broken_at == since
    updated = present(await seed.update(project, name="New"))
    assert updated.bot_broken_at == since


async def test_mark_bot_broken_leaves_a_newer_token_alone(storage: Storage, seed: Seed) -> None:
    """A refused token does not mark a bot that has another token by now, or none."""
    project = await seed.project()
    old, new = bot_of(project), ProjectBot(project.id, 7_000_000_001, "Shop_Bot", b"another")
    await give(storage, project, old)
    await give(storage, project, new)
    entry = seed.entry(project.developer_id, "bot.broken")
    assert not await storage.bots.mark_bot_broken(project.id, old.encrypted_token, seed.now, entry=entry)
    assert await storage.bots.list_project_bots() == [new]
    await give(storage, project, None)
    assert not await storage.bots.mark_bot_broken(project.id, new.encrypted_token, seed.now, entry=entry)
    assert not await storage.bots.mark_bot_broken("proj_\0", new.encrypted_token, seed.now, entry=entry)
    assert await actions(storage, project) == []


async def test_rename_bot_changes_what_links_begin_with(storage: Storage, seed: Seed) -> None:
    """Only the name of this bot changes. The same name again, or an unknown bot, changes nothing."""
    project, other = await seed.project(), await seed.project()
    bot, neighbour = bot_of(project), bot_of(other, 7_000_000_002, "Neighbour_Bot")
    await give(storage, project, bot)
    await give(storage, other, neighbour)
    assert not await storage.bots.rename_bot(bot.bot_id, "Shop_Bot")
    assert await storage.bots.rename_bot(bot.bot_id, "Store_Bot")
    assert not await storage.bots.rename_bot(7_000_000_003, "Store_Bot")
    renamed = ProjectBot(project.id, bot.bot_id, "Store_Bot", bot.encrypted_token)
    assert await storage.bots.list_project_bots() == [renamed, neighbour]


async def take(
    storage: Storage, seed: Seed, project: Project, loser: Project, bot: ProjectBot, **changes: Any
) -> Project | None:
    """Give a project a bot that the loser has."""
    loss = BotLoss(loser.id, seed.entry(loser.developer_id, "bot.removed"))
    change = BotChange(bot, seed.entry(project.developer_id, "bot.set"), loss)
    return await storage.projects.update_project(
        project.developer_id, project.id, ProjectChanges(**changes), seed.now, bot=change
    )


async def broken(storage: Storage, seed: Seed, bot_id: int = 7_000_000_001) -> tuple[Project, ProjectBot]:
    """Return a project whose bot is broken."""
    project = await seed.project()
    bot = bot_of(project, bot_id)
    assert await give(storage, project, bot) == "set"
    assert await storage.bots.mark_bot_broken(project.id, bot.encrypted_token, seed.now)
    return project, bot


async def test_update_project_takes_a_broken_bot_from_its_loser(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """The loser's id and token are removed, but it stays broken until its developer chooses another bot."""
    loser, bot = await broken(storage, seed)
    project = await seed.project()
    updated = present(await take(other_node, seed, project, loser, bot_of(project), name="New"))
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
    lost = present(await storage.projects.read_project(loser.id))
    assert (lost.bot_username, lost.bot_broken_at) == (None, None)


async def test_update_project_gives_a_loser_another_bot(storage: Storage, seed: Seed) -> None:
    """With another bot, the project is no longer broken."""
    loser, _ = await broken(storage, seed)
    project = await seed.project()
    await take(storage, seed, project, loser, bot_of(project))
    assert await give(storage, loser, bot_of(loser)) == "taken"
    other = bot_of(loser, 7_000_000_002, "Other_Bot")
    assert await give(storage, loser, other) == "set"
    assert await storage.bots.list_project_bots() == [bot_of(project), other]


async def test_create_project_takes_a_broken_bot_from_its_loser(storage: Storage, seed: Seed) -> None:
    """Creating a project takes the bot as `update_project` does."""
    loser, bot = await broken(storage, seed)
    model = await seed.project()
    project = dataclasses.replace(model, id=f"proj_{0xA00:022x}")
    loss = BotLoss(loser.id, seed.entry(loser.developer_id, "bot.removed"))
    assert await storage.projects.create_project(project, bytes(32), bot=BotChange(bot_of(project), None, loss))
    assert await storage.bots.list_project_bots() == [bot_of(project)]
    lost = present(await storage.projects.read_project(loser.id))
    assert (lost.bot_id, lost.bot_broken_at) == (None, seed.now)
    assert await actions(storage, loser) == ["bot.removed"]
    assert bot.bot_id == bot_of(project).bot_id


async def test_update_project_takes_no_bot_that_works(storage: Storage, seed: Seed) -> None:
    """A loser that has set a new token, or does not have the bot, loses nothing; nor does any other project."""
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


async def test_update_project_takes_another_bot_of_no_loser(storage: Storage, seed: Seed) -> None:
    """A broken bot is removed from the projects that still have it, but not from one with another bot by now."""
    loser, _ = await broken(storage, seed)
    project, other = await seed.project(), await seed.project()
    second = bot_of(loser, 7_000_000_002, "Other_Bot")
    await give(storage, loser, second)
    assert await storage.bots.mark_bot_broken(loser.id, second.encrypted_token, seed.now)
    assert await take(storage, seed, project, loser, bot_of(project)) is not None
    broken_at = dataclasses.replace(second, broken_at=seed.now)
    assert await storage.bots.list_project_bots() == [bot_of(project), broken_at]
    assert await actions(storage, loser) == []
    await seed.delete(loser)
    assert await take(storage, seed, other, loser, bot_of(other, 7_000_000_002)) is not None
    assert await actions(storage, loser) == []


async def test_update_project_takes_the_bot_or_changes_nothing(storage: Storage, seed: Seed) -> None:
    """If the plan refuses the rest, or the caller is a stranger, the loser keeps the bot."""
    loser, bot = await broken(storage, seed)
    project, stranger = await seed.project(), await seed.developer()
    with pytest.raises(InvalidRequest):
        await take(storage, seed, project, loser, bot_of(project), collect_phone=True)
    foreign = dataclasses.replace(project, developer_id=stranger.id)
    assert await take(storage, seed, foreign, loser, bot_of(project)) is None
    assert await storage.bots.list_project_bots() == [dataclasses.replace(bot, broken_at=seed.now)]
    assert await actions(storage, loser) == []


async def test_update_project_takes_a_broken_bot_once(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Of many projects on two nodes, one gets the bot; the loser has one entry."""
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


async def test_update_project_swaps_broken_bots(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Two projects that take each other's bots concurrently on two nodes do not deadlock."""
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
