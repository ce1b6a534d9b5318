"""A bot that another project has goes to the holder of its valid token, and to nobody else."""

from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs
from tests.api.conftest import BotFather
from tests.service.conftest import acting, bots_of
from tests.service.project_bots import bot_entries, read

from taproof.core.accounts import Developer
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.errors import BotBroken, BotTaken, BotTokenRefused, MessengerUnavailable, TaproofError
from taproof.core.projects import Project
from taproof.service.bots import BotAccount, Bots

if TYPE_CHECKING:
    from tests.service.conftest import Node


class Leaked:
    """A bot whose token leaked: a thief set it in their project, and the bot's owner has another project."""

    def __init__(self, node: "Node", bots: Bots, father: BotFather) -> None:
        self.node, self.bots, self.father = node, bots, father
        self.owner: Developer
        self.thief: Developer
        self.project: Project
        self.stolen: Project

    async def make(self) -> "Leaked":
        """Let the thief set the token in the thief's project."""
        self.owner, self.thief = await self.node.developer(), await self.node.developer()
        self.project, _ = await self.node.project(self.owner)
        self.stolen, _ = await self.node.project(self.thief)
        await self.bots.set_bot(acting(self.thief), self.stolen.id, self.father.make_bot("Shop_Bot"))
        return self

    def revoke(self) -> str:
        """Return the bot's new token, which is the only valid one."""
        return self.father.make_bot("Shop_Bot")

    async def actions(self, developer: Developer) -> list[str]:
        """Return the developer's log entries about bots, oldest first."""
        return [action for action, _, _ in await bot_entries(self.node, developer)][::-1]

    async def assert_taken(self) -> None:
        """Assert that the owner's project has the bot, and that the thief's has none and starts no sign-ins."""
        (bot,) = await self.bots.list_project_bots()
        assert (bot.project_id, bot.broken_at) == (self.project.id, None)
        assert await self.node.signin.create_session(self.project.id, public=True)
        lost = await read(self.node, self.stolen)
        assert (lost.bot_id, lost.bot_username) == (None, "Shop_Bot")
        assert lost.bot_broken_at is not None
        with pytest.raises(BotBroken):
            await self.node.signin.create_session(self.stolen.id, public=True)

    async def assert_kept(self) -> None:
        """Assert that the thief's project has the bot, and the owner's none."""
        assert [bot.project_id for bot in await self.bots.list_project_bots()] == [self.stolen.id]
        assert (await read(self.node, self.project)).bot_username is None
        assert await self.actions(self.owner) == []


async def test_a_broken_bot_goes_to_who_has_its_new_token(node: "Node", bots: Bots, father: BotFather) -> None:
    """The holder of an old token cannot keep the bot. Each project's log records its own change."""
    leaked = await Leaked(node, bots, father).make()
    token = leaked.revoke()
    (held,) = await bots.list_project_bots()
    node.clock.now += 1
    assert await bots.mark_broken(held)
    node.clock.now += 1
    await bots.set_bot(acting(leaked.owner), leaked.project.id, token)
    await leaked.assert_taken()
    assert father.asked[-1] == token, "what is known to be broken is not asked about again"
    assert await leaked.actions(leaked.owner) == ["bot.set"]
    assert await leaked.actions(leaked.thief) == ["bot.set", "bot.broken", "bot.removed"]
    entry = (await node.storage.audit.list_audit_entries(leaked.thief.id, None, 1))[0]
    assert (entry.actor, entry.via, entry.subject) == ("Taproof", "service", leaked.stolen.id)
    assert leaked.project.id not in entry.details
    with pytest.raises(BotTokenRefused):
        await bots.set_bot(acting(leaked.thief), leaked.stolen.id, f"7000000001:AA{1:033d}")
    await leaked.assert_taken()
    await bots.set_bot(acting(leaked.thief), leaked.stolen.id, "")
    shown = await read(node, leaked.stolen)
    assert (shown.bot_username, shown.bot_broken_at) == (None, None)
    created = await node.signin.create_session(leaked.stolen.id, public=True)
    assert created.deeplink.startswith("https://t.me/Sign_In_Bot?start=")


async def test_nobody_waits_until_a_dead_token_is_found_out(node: "Node", bots: Bots, father: BotFather) -> None:
    """The messenger is asked about the other project's token immediately; both logs record the result."""
    leaked = await Leaked(node, bots, father).make()
    old, token = father.asked[0], leaked.revoke()
    with capture_logs() as logs:
        await bots.set_bot(acting(leaked.owner), leaked.project.id, token)
    await leaked.assert_taken()
    assert [(each["event"], each["project_id"]) for each in logs] == [("project_bot_broken", leaked.stolen.id)]
    assert token not in str(logs)
    assert old not in str(logs)
    assert father.asked[-2:] == [token, old]
    assert sorted(await leaked.actions(leaked.thief)) == ["bot.broken", "bot.removed", "bot.set"]


@pytest.mark.parametrize("case", ["same token", "both accepted", "away", "lost key", "mended meanwhile"])
async def test_a_bot_that_may_work_is_not_taken_away(
    node: "Node", bots: Bots, father: BotFather, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bot is taken only if the messenger refused the other project's token, and that is still its token."""
    leaked = await Leaked(node, bots, father).make()
    old = father.asked[0]
    account = father.accounts[old]
    token = old if case == "same token" else leaked.revoke()
    expected: type[TaproofError] = BotTaken
    if case == "both accepted":
        father.accounts[old] = account
    if case == "lost key":
        node.encryptor = Encryptor(new_master_key(system_entropy))
        bots = bots_of(node, father)
    ask = father.ask

    async def ask_about(asked: str) -> BotAccount:
        if asked != token:
            raise MessengerUnavailable
        return await ask(asked)

    if case == "away":
        expected = MessengerUnavailable
        monkeypatch.setattr(father, "ask", ask_about)
        bots = bots_of(node, father)
    if case == "mended meanwhile":
        mark = node.storage.bots.mark_bot_broken

        async def mend_and_mark(*values: Any, **more: Any) -> bool:
            await bots.set_bot(acting(leaked.thief), leaked.stolen.id, token)
            return await mark(*values, **more)

        monkeypatch.setattr(node.storage.bots, "mark_bot_broken", mend_and_mark)
    with pytest.raises(expected) as caught:
        await bots.set_bot(acting(leaked.owner), leaked.project.id, token)
    assert type(caught.value) is expected
    await leaked.assert_kept()
    assert set(await leaked.actions(leaked.thief)) == {"bot.set"}
