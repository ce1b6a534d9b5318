"""Bots that developers create with one tap: only the suggested one, for the account that got the link, and once."""

from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.api.conftest import BotFather
from tests.giving_bots import give_bot
from tests.service.conftest import acting, bots_of
from tests.service.project_bots import bot_entries, read

from taproof.core.accounts import Actor, Developer
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.errors import MessengerUnavailable
from taproof.core.identity import MessengerIdentity
from taproof.core.project_bots import ProjectBot
from taproof.core.projects import Project
from taproof.core.rights import Grant
from taproof.service.bots import BotAccount
from taproof.service.invitations import Invitations
from taproof.service.managed_bots import SLOT, ManagedBots

if TYPE_CHECKING:
    from tests.service.conftest import Node

MANAGER = "Sign_In_Bot"


@pytest.fixture(autouse=True)
def _manager(father: BotFather) -> None:
    father.manager = MANAGER


def managed_bots(node: "Node", father: BotFather, encryptor: Encryptor | None = None) -> ManagedBots:
    return ManagedBots(
        node.storage,
        encryptor or node.encryptor,
        node.clock,
        bots=bots_of(node, father),
        find_manager=father.find_manager,
        link_base="https://t.me/newbot/",
    )


async def linked_developer(node: "Node", messenger_id: str = "1001") -> Developer:
    """Create a developer with a messenger account."""
    invitations = Invitations(node.storage, node.clock, system_entropy)
    owner = replace(await node.developer(), is_owner=True)
    made = await invitations.invite_again(acting(owner), await node.developer())
    identity = MessengerIdentity(messenger_id, "Ada", "")
    return await invitations.accept_invitation(made.code, identity, address="203.0.113.7")


class Telegram:
    """Creates bots from links, and gives their tokens to the service."""

    def __init__(self, father: BotFather) -> None:
        self.father = father
        self.tokens: dict[int, str] = {}
        self.fetched = 0

    def create(self, link: str, username: str = "") -> BotAccount:
        """Create the bot that a link suggests, perhaps under another username."""
        bot_id = 7_100_000_000 + len(self.tokens)
        username = username or urlsplit(link).path.rpartition("/")[2]
        self.tokens[bot_id] = self.father.make_bot(username, bot_id)
        return BotAccount(bot_id, username)

    async def adopt(self, managed: ManagedBots, account: BotAccount, creator_id: str = "1001") -> bool:
        """Send the update about a bot to the service."""

        async def fetch_token() -> str:
            self.fetched += 1
            return self.tokens[account.id]

        return await managed.adopt_bot(creator_id, account, fetch_token)


async def suggested(managed: ManagedBots, developer: Developer, project: Project) -> str:
    link = await managed.suggest_bot(acting(developer), project)
    assert link is not None
    return link


async def test_a_bot_is_made_with_one_tap(node: "Node", father: BotFather) -> None:
    """The link names the manager, a free username and the project; the new bot becomes the project's, audited."""
    developer = await linked_developer(node)
    project, _ = await node.project(developer)
    managed, telegram = managed_bots(node, father), Telegram(father)
    link = urlsplit(await suggested(managed, developer, project))
    assert (link.netloc, parse_qs(link.query)) == ("t.me", {"name": ["Shop"]})
    _, newbot, manager, username = link.path.split("/")
    assert (newbot, manager) == ("newbot", MANAGER)
    assert username.startswith("shop_")
    assert username.endswith("_bot")
    assert len(username) <= 32
    account = telegram.create(link.geturl())
    assert await telegram.adopt(managed, account)
    changed = await read(node, project)
    assert (changed.bot_id, changed.bot_username) == tuple(account)
    (bot,) = await node.storage.bots.list_project_bots()
    assert bots_of(node, father).open_token(bot) == telegram.tokens[account.id]
    [(action, subject, details)] = await bot_entries(node, developer)
    assert (action, subject, details["bot_username"]) == ("bot.set", project.id, username)
    assert not await telegram.adopt(managed, account), "a repeated update changes nothing"
    assert len(await bot_entries(node, developer)) == 1


async def test_when_no_link_is_offered(node: "Node", father: BotFather) -> None:
    """The manager must be allowed to manage bots, the developer linked, and the credential able to change projects."""
    linked, unlinked = await linked_developer(node), await node.developer()
    project, _ = await node.project(linked)
    managed = managed_bots(node, father)
    assert await managed.suggest_bot(acting(linked), project) is not None
    reader = Actor(linked, "access_token", "tok_1", grant=Grant(scopes=("read",)))
    for actor in (acting(unlinked), reader):
        assert await managed.suggest_bot(actor, project) is None
    father.manager = None
    assert await managed.suggest_bot(acting(linked), project) is None


async def test_only_the_suggestion_counts(node: "Node", father: BotFather, subtests: pytest.Subtests) -> None:
    """A bot of another name, account, time, key or project state is ignored, and its token is not fetched."""
    developer, stranger = await linked_developer(node), await linked_developer(node, "1002")
    project, _ = await node.project(developer)
    managed, telegram = managed_bots(node, father), Telegram(father)
    link = await suggested(managed, developer, project)
    username = urlsplit(link).path.rpartition("/")[2]
    assert await suggested(managed, stranger, (await node.project(stranger))[0]) != link
    assert await suggested(managed, developer, (await node.project(developer))[0]) != link
    tag = username.removesuffix("_bot")[-13:]
    for name, account, creator in (
        ("another username", telegram.create(link, "shop_of_ada_bot"), "1001"),
        ("a changed tag", telegram.create(link, username.replace(tag, tag[::-1])), "1001"),
        ("another developer", telegram.create(link), "1002"),
        ("nobody", telegram.create(link), "1003"),
    ):
        with subtests.test(name):
            assert not await telegram.adopt(managed, account, creator)
    with subtests.test("another master key"):
        other = managed_bots(node, father, Encryptor(new_master_key(system_entropy)))
        assert not await telegram.adopt(other, telegram.create(link))
    with subtests.test("too late"):
        node.clock.now += 2 * SLOT
        assert not await telegram.adopt(managed, telegram.create(link))
        node.clock.now -= 2 * SLOT
    with subtests.test("the project has another bot meanwhile"):
        await give_bot(
            node.storage, developer.id, project.id, ProjectBot(project.id, 7_200_000_000, "other_bot", b"token")
        )
        assert not await telegram.adopt(managed, telegram.create(link))
    assert telegram.fetched == 0
    await give_bot(node.storage, developer.id, project.id, None)
    node.clock.now += SLOT
    assert await telegram.adopt(managed, telegram.create(link)), "the next slot is not too late"


async def test_a_suggestion_works_once(node: "Node", father: BotFather) -> None:
    """A second bot under the same link does not replace the first one; a new link does."""
    developer = await linked_developer(node)
    project, _ = await node.project(developer)
    managed, telegram = managed_bots(node, father), Telegram(father)
    link = await suggested(managed, developer, project)
    first = telegram.create(link)
    assert await telegram.adopt(managed, first)
    assert not await telegram.adopt(managed, telegram.create(link))
    assert (await read(node, project)).bot_id == first.id
    again = telegram.create(await suggested(managed, developer, await read(node, project)))
    assert await telegram.adopt(managed, again)
    assert (await read(node, project)).bot_id == again.id


async def test_a_new_token_is_fetched(node: "Node", father: BotFather) -> None:
    """The update about a revoked token brings the new one, so that the bot is not broken for long."""
    developer = await linked_developer(node)
    project, _ = await node.project(developer)
    managed, telegram = managed_bots(node, father), Telegram(father)
    account = telegram.create(await suggested(managed, developer, project))
    await telegram.adopt(managed, account)
    (bot,) = await node.storage.bots.list_project_bots()
    assert await bots_of(node, father).mark_broken(bot)
    telegram.tokens[account.id] = father.make_bot(account.username, account.id)
    assert not await telegram.adopt(managed, account, "1002"), "the bot has another owner now"
    assert await telegram.adopt(managed, account)
    assert (await read(node, project)).bot_broken_at is None


async def test_refused_tokens(node: "Node", father: BotFather) -> None:
    """A token of another bot, a refused one and a taken one change nothing.

    After a failed call, the update is repeated.
    """
    developer = await linked_developer(node)
    project, _ = await node.project(developer)
    managed, telegram = managed_bots(node, father), Telegram(father)
    link = await suggested(managed, developer, project)
    foreign, dead, taken = (telegram.create(link) for _ in range(3))
    telegram.tokens[foreign.id] = telegram.tokens[dead.id]
    assert not await telegram.adopt(managed, foreign)
    father.make_bot(dead.username, dead.id)  # Another token: the one that was fetched is no longer valid.
    assert not await telegram.adopt(managed, dead)
    other, _ = await node.project()
    await bots_of(node, father).set_bot(acting(await _developer_of(node, other)), other.id, telegram.tokens[taken.id])
    assert not await telegram.adopt(managed, taken)
    father.is_away = True
    fourth = telegram.create(link)
    with pytest.raises(MessengerUnavailable):
        await telegram.adopt(managed, fourth)
    assert (await read(node, project)).bot_id is None
    father.is_away = False
    assert await telegram.adopt(managed, fourth)


async def _developer_of(node: "Node", project: Project) -> Developer:
    found = [each for each in await node.storage.developers.list_developers() if each.id == project.developer_id]
    return found[0]
