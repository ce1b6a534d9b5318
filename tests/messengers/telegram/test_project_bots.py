"""The bots of projects: one process runs all, each serves only its project, and no failure affects another bot."""

import functools
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, cast

import pytest
import structlog
from structlog.testing import capture_logs
from tests.giving_bots import give_bot
from tests.messengers.telegram.bots_server import BotsServer, ServedBot, tagged
from tests.messengers.telegram.conftest import HandClock, add_project, in_background, stored_session, talking_intake
from tests.signals import unheard
from tests.waiting import until
from tests.whole_sign_in import WholeSignIn

from taproof.core.encryption import Encryptor, associated_data_of, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.errors import BotBroken, StoreUnavailable
from taproof.core.project_bots import BotChange, BotLoss, ProjectBot
from taproof.core.projects import ProjectChanges
from taproof.core.sessions import Session
from taproof.messengers.telegram.account_watch import WatchTimes
from taproof.messengers.telegram.bot_api import Bot, BotApiClient
from taproof.messengers.telegram.connection import Reconnection
from taproof.messengers.telegram.polling import LongPolling, PollTimes
from taproof.messengers.telegram.project_bots import PACE_SECONDS, ProjectBots, ProjectBotTimes
from taproof.messengers.telegram.signed_buttons import PURPOSE, ButtonSigner
from taproof.messengers.texts.catalog import LANGUAGES
from taproof.service.audit import service_entry
from taproof.service.bots import Bots
from taproof.storage.sqlite.store import SqliteStorage

UNKNOWN = "This request is unknown or no longer valid. To sign in, start again on the site or in the app."


SHORT = ProjectBotTimes(look=0.02, refused=0.02, longest_delay=0.02, watch=WatchTimes(account=0.02))
"""Short delays: the tests check their effect, not their length."""


@dataclass
class Farm:
    """The bots of projects on a real store, against a Bot API server."""

    server: BotsServer
    storage: SqliteStorage
    clock: HandClock
    encryptor: Encryptor
    signin: WholeSignIn
    bots: Bots
    running_bots: ProjectBots
    shown: list[tuple[int, int]]
    connect: Callable[[str], Bot]
    service_bot: Bot
    signer: ButtonSigner
    pace: float = PACE_SECONDS
    finish: float = PollTimes().finish
    project_count: int = 1

    async def add_project(self, bot: ServedBot | None = None) -> str:
        self.project_count += 1
        project_id = f"proj_{self.project_count:022d}"
        await add_project(self.storage, self.clock(), f"Shop {self.project_count}", project_id)
        if bot is not None:
            await self.give(project_id, bot)
        return project_id

    async def give(self, project_id: str, bot: ServedBot, token: str | None = None) -> None:
        """Store a bot as a project's, with its current token unless another is given."""
        encrypted = self.encryptor.encrypt(
            token or bot.token, associated_data_of("bot_token", project_id), system_entropy
        )
        given = ProjectBot(project_id, bot.id, bot.username, encrypted)
        assert await give_bot(self.storage, "dev_1", project_id, given) == "set"

    def tap(self, bot: ServedBot, data: str, user_id: int = 11) -> dict[str, Any]:
        """Return a tap on a button that the service has made for a message of this bot's."""
        return self.server.tap(tagged(self.signer, bot.id, user_id, data), user_id)

    async def start_session(self, project_id: str) -> str:
        return (await self.signin.create_session(project_id, public=True)).session_token

    async def session(self, session_token: str) -> Session:
        return await stored_session(self.storage, session_token)

    async def broken_at(self, bot: ServedBot) -> int | None:
        found = await self.storage.bots.read_project_bot(bot.id)
        return None if found is None else found.broken_at

    async def look_again(self) -> None:
        """Wait until the list of bots has been read several times."""
        looks = len(self.shown)
        await until(lambda: len(self.shown) > looks + 5)

    def running(self) -> AbstractAsyncContextManager[None]:
        """Run all bots."""
        return in_background(self.running_bots.run(0))


@pytest.fixture
async def farm(storage: SqliteStorage, clock: HandClock) -> AsyncIterator[Farm]:
    encryptor = Encryptor(new_master_key(system_entropy))
    signin = WholeSignIn(storage, encryptor, lambda: "https://t.me/Sign_In_Bot", clock, system_entropy)
    nothing = cast("Any", None)
    bots = Bots(
        storage,
        encryptor,
        clock,
        system_entropy,
        projects=nothing,
        ask=nothing,
        is_service_bot=lambda *_: False,
        limited=unheard,
    )
    signer = ButtonSigner(functools.partial(encryptor.derive_all, PURPOSE))
    async with BotsServer().serving() as server:
        project_bot_api = BotApiClient(server.base)
        service_bot = Bot(BotApiClient(server.base), server.add("Sign_In_Bot").token)

        def connect(token: str) -> Bot:
            return Bot(project_bot_api, token)

        async def receive(bot: Bot, reconnection: Reconnection) -> None:
            intake = talking_intake(bot, signin, signer, storage, clock, bot_id=bot.id)
            times = PollTimes(patience=0.05, longest_delay=0.05, finish=made.finish)
            await LongPolling(bot, intake, clock(), reconnection, pace=made.pace, times=times).run()

        shown: list[tuple[int, int]] = []
        running_bots = ProjectBots(
            bots, connect, receive, service_bot, lambda *counts: shown.append(counts), times=SHORT
        )
        made = Farm(server, storage, clock, encryptor, signin, bots, running_bots, shown, connect, service_bot, signer)
        yield made
        for each in (project_bot_api, service_bot.api):
            await each.close()


async def test_each_bot_serves_its_own_project(farm: Farm) -> None:
    """A sign-in is shown and decided in its project's bot, and no other bot sends anything."""
    first, second = farm.server.add(), farm.server.add()
    project, other = await farm.add_project(first), await farm.add_project(second)
    created = await farm.signin.create_session(project, public=True)
    assert created.deeplink == f"https://t.me/{first.username}?start={created.session_token}"
    token, other_token = created.session_token, await farm.start_session(other)
    async with farm.running():
        first.give(farm.server.message(f"/start {token}"), farm.tap(first, f"c:{token}"))
        second.give(farm.server.message(f"/start {other_token}", 12), farm.tap(second, f"x:{other_token}", 12))
        await until(lambda: first.of("answerCallbackQuery") and second.of("answerCallbackQuery"))
        await until(lambda: not first.updates and not second.updates)
    assert (await farm.session(token)).status == "confirmed"
    assert (await farm.session(other_token)).status == "cancelled"
    assert {each["chat_id"] for each in first.of("sendMessage", "editMessageText")} == {11}
    assert {each["chat_id"] for each in second.of("sendMessage", "editMessageText")} == {12}
    assert farm.shown[-2:] == [(2, 0), (0, 0)]


async def test_a_foreign_bot_shows_nothing_and_changes_nothing(farm: Farm) -> None:
    """A project's bot must not open, show or decide a sign-in of another project or of the service's own bot."""
    first, second = farm.server.add(), farm.server.add()
    tokens = [
        await farm.start_session(await farm.add_project(second)),
        await farm.start_session(await farm.add_project()),
    ]
    await farm.add_project(first)
    async with farm.running():
        for token in tokens:
            first.give(farm.server.message(f"/start {token}"))
            first.give(*(farm.tap(first, f"{choice}:{token}") for choice in ("c", "x", "m", "w", "r")))
            first.give(farm.tap(first, f"m:{token}:0"))
        await until(lambda: not first.updates)
    for token in tokens:
        session = await farm.session(token)
        assert (session.status, session.opener_id, session.reported_at) == ("pending", None, None)
    assert not any("Shop" in text for text in first.texts())
    assert len(first.texts()) >= len(tokens)
    assert second.texts() == []


async def test_the_services_project_bot_shows_no_sign_in_of_an_project_bot(farm: Farm) -> None:
    """The service's own bot does not show a sign-in of a project with its own bot to any user."""
    token = await farm.start_session(await farm.add_project(farm.server.add()))
    service_bot = farm.server.bots[7_000_000_001]
    bot = Bot(BotApiClient(farm.server.base), service_bot.token)
    intake = talking_intake(bot, farm.signin, farm.signer, farm.storage, farm.clock)
    assert await intake.handle(farm.server.message(f"/start {token}")) == "done"
    for choice in ("c", "x", "r"):
        assert await intake.handle(farm.tap(service_bot, f"{choice}:{token}")) == "done"
    await bot.api.close()
    session = await farm.session(token)
    assert (session.status, session.opener_id) == ("pending", None)
    assert service_bot.texts()
    assert not any("Shop" in text for text in service_bot.texts())


async def test_bots_that_are_set_and_removed_are_noticed(farm: Farm) -> None:
    """A bot that any node stored runs soon after, and a removed one is no longer polled."""
    bot = farm.server.add()
    project = await farm.add_project()
    async with farm.running():
        await until(lambda: farm.shown)
        await farm.give(project, bot)
        token = await farm.start_session(project)
        bot.give(farm.server.message(f"/start {token}"))
        await until(bot.texts)
        await give_bot(farm.storage, "dev_1", project, None)
        # The last call acknowledges the update.
        await until(lambda: farm.shown[-1] == (0, 0) and bot.of("getUpdates")[-1].get("limit") == 1)
        await farm.look_again()
        bot.give(farm.server.message("/help"))
        calls = len(bot.calls)
        await farm.look_again()
        assert bot.calls[calls:] == []
    assert bot.most_polls == 1


async def test_a_new_token_of_a_bot_takes_over(farm: Farm) -> None:
    """With a new token, the same bot continues with its pending updates, and never has two polls at once."""
    bot = farm.server.add()
    project = await farm.add_project(bot)
    async with farm.running():
        await until(lambda: bot.polls == 1)
        await farm.give(project, bot, bot.revoke())
        bot.give(farm.server.message("/help"))
        await until(bot.texts)
        assert await farm.broken_at(bot) is None
    assert bot.most_polls == 1


async def test_a_bot_that_moves_to_another_project_goes_with_it(farm: Farm) -> None:
    """After the move, the bot's updates belong to the new project."""
    bot = farm.server.add()
    project, other = await farm.add_project(bot), await farm.add_project()
    async with farm.running():
        await until(lambda: bot.polls == 1)
        await give_bot(farm.storage, "dev_1", project, None)
        await farm.give(other, bot)
        token = await farm.start_session(other)
        bot.give(farm.server.message(f"/start {token}"), farm.tap(bot, f"c:{token}"))
        await until(lambda: bot.of("answerCallbackQuery"))
    assert (await farm.session(token)).status == "confirmed"


async def test_a_broken_bot_that_another_project_gets_goes_with_it(farm: Farm) -> None:
    """With its new token, the bot serves only the new project, and the former one starts no sign-ins."""
    bot = farm.server.add()
    loser, project = await farm.add_project(bot), await farm.add_project()
    async with farm.running():
        await until(lambda: bot.polls == 1)
        new = bot.revoke()
        (held,) = await farm.bots.list_project_bots()
        assert await farm.bots.mark_broken(held)
        encrypted = farm.encryptor.encrypt(new, associated_data_of("bot_token", project), system_entropy)
        loss = BotLoss(loser, service_entry("dev_1", "bot.removed", 1, system_entropy, subject=loser, details={}))
        change = BotChange(ProjectBot(project, bot.id, bot.username, encrypted), None, loss)
        assert await farm.storage.projects.update_project("dev_1", project, ProjectChanges(), 1, bot=change) is not None
        await until(lambda: farm.shown[-1] == (1, 0))
        token = await farm.start_session(project)
        bot.give(farm.server.message(f"/start {token}"), farm.tap(bot, f"c:{token}"))
        await until(lambda: bot.of("answerCallbackQuery"))
        with pytest.raises(BotBroken):
            await farm.start_session(loser)
    assert (await farm.session(token)).status == "confirmed"
    assert bot.most_polls == 1


async def test_a_revoked_token_breaks_its_project_alone(farm: Farm) -> None:
    """The developer sees it in the project and the audit log, the operator in the log, once and without the token.

    New sign-ins of the project are refused and go to no other bot; other bots are not affected; the broken bot is no
    longer polled.
    """
    bot, other = farm.server.add(), farm.server.add()
    project, other_project = await farm.add_project(bot), await farm.add_project(other)
    tokens = [bot.token]
    with capture_logs([structlog.contextvars.merge_contextvars]) as logs:
        async with farm.running():
            await until(lambda: bot.polls == other.polls == 1)
            tokens.append(bot.revoke())
            await until(lambda: farm.shown[-1] == (1, 1))
            assert await farm.broken_at(bot) == farm.clock()
            with pytest.raises(BotBroken):
                await farm.start_session(project)
            calls = len(bot.calls)
            token = await farm.start_session(other_project)
            other.give(farm.server.message(f"/start {token}"))
            await until(other.texts)
            await farm.look_again()
            assert bot.calls[calls:] == []
            await farm.give(project, bot)
            await until(lambda: farm.shown[-1] == (2, 0))
            assert await farm.start_session(project)
            bot.give(farm.server.message("/help"))
            await until(bot.texts)
    told = [line for line in logs if line["event"] == "project_bot_broken"]
    assert [(line["log_level"], line["project_id"], line["bot_username"]) for line in told] == [
        ("error", project, bot.username)
    ]
    assert not any(token.partition(":")[2] in str(logs) for token in tokens)
    entries = await farm.storage.audit.list_audit_entries("dev_1", None, 50)
    assert [(each.action, each.subject, each.actor) for each in entries] == [("bot.broken", project, "Taproof")]
    assert not any(token.partition(":")[2] in str(entries) for token in tokens)


async def test_a_token_that_was_wrong_from_the_start_is_found_out(farm: Farm) -> None:
    """A bot that was deleted while no process ran it is refused with 401 or 404."""
    bots = [farm.server.add() for _ in range(3)]
    for number, bot in enumerate(bots):
        await farm.add_project(bot)
        if number == 0:
            bot.revoke()
        if number == 1:
            bot.faults = dict.fromkeys(("getUpdates", "getMe"), lambda: (404, "Not Found"))
    async with farm.running():
        await until(lambda: farm.shown[-1:] == [(1, 2)])
    assert [await farm.broken_at(bot) is not None for bot in bots] == [True, True, False]


async def test_one_refusal_breaks_nothing(farm: Farm) -> None:
    """A single refusal, not followed by another, is a transient failure of the Bot API."""
    bot = farm.server.add()
    await farm.add_project(bot)
    refusals = 0

    def refuse_once() -> tuple[int, str]:
        nonlocal refusals
        refusals += 1
        del bot.faults["getUpdates"]
        return 401, "Unauthorized"

    bot.faults["getMe"] = lambda: (401, "Unauthorized")
    async with farm.running():
        await until(lambda: bot.polls == 1)
        for number in range(4):
            bot.faults["getUpdates"] = refuse_once
            bot.give(farm.server.message("/help"))
            await until(lambda number=number: len(bot.texts()) == number + 1 and not bot.updates)  # type: ignore[misc]
    assert refusals == 4
    assert await farm.broken_at(bot) is None


async def test_a_token_that_get_me_accepts_is_not_broken(farm: Farm) -> None:
    """A bot is marked broken only if getMe refuses its token too."""
    bot = farm.server.add()
    await farm.add_project(bot)
    bot.faults["getUpdates"] = lambda: (401, "Unauthorized")
    async with farm.running():
        await until(lambda: len(bot.of("getUpdates")) >= 8)
        assert await farm.broken_at(bot) is None
        del bot.faults["getUpdates"]
        bot.give(farm.server.message("/help"))
        await until(bot.texts)
    assert await farm.broken_at(bot) is None


async def test_a_messenger_that_refuses_everybody_breaks_no_bot(farm: Farm) -> None:
    """If every token is refused, as with a wrong address or another Bot API server, no bot is marked broken."""
    bots = [farm.server.add() for _ in range(3)]
    for bot in bots:
        await farm.add_project(bot)
    with capture_logs([structlog.contextvars.merge_contextvars]) as logs:
        async with farm.running():
            await until(lambda: all(bot.polls == 1 for bot in bots))
            farm.server.refuses_everybody = True
            for bot in bots:
                bot.give(farm.server.message("/help"))
            await until(lambda: sum(line["event"] == "project_bot_refused" for line in logs) >= 6)
            farm.server.refuses_everybody = False
            await until(lambda: all(bot.texts() for bot in bots))
    assert [await farm.broken_at(bot) for bot in bots] == [None] * 3


async def test_a_messenger_that_recovers_meanwhile_breaks_no_bot(farm: Farm) -> None:
    """A bot whose token works again once the service's own bot was checked is not marked broken."""
    bot = farm.server.add()
    await farm.add_project(bot)

    def refuse_for_the_last_time() -> tuple[int, str]:
        bot.faults.clear()
        return 401, "Unauthorized"

    async with farm.running():
        await until(lambda: bot.polls == 1 and bot.of("getMe"))
        bot.faults |= {"getUpdates": lambda: (401, "Unauthorized"), "getMe": refuse_for_the_last_time}
        bot.give(farm.server.message("/help"))
        await until(lambda: not bot.faults)
        bot.give(farm.server.message("/help"))
        await until(lambda: len(bot.texts()) == 2)
    assert await farm.broken_at(bot) is None


async def test_one_bots_trouble_delays_no_other(farm: Farm) -> None:
    """While calls of one bot hang or fail, or its updates cannot be read, the other bots answer."""
    slow, flooded, poisoned, failing, well = (farm.server.add() for _ in range(5))
    for bot in (slow, flooded, poisoned, failing, well):
        await farm.add_project(bot)
    farm.finish = 0.1
    slow.slowness = 60.0
    flooded.faults["sendMessage"] = lambda: (429, "Too Many Requests: retry after 60")
    failing.faults["getUpdates"] = lambda: (502, "Bad Gateway")
    poison: list[dict[str, Any]] = [{"update_id": 1, "message": {"from": {"id": "x"}}}, {"update_id": 2}, {}]
    async with farm.running():
        await until(lambda: well.polls == 1)
        for bot in (slow, flooded):
            bot.give(*(farm.server.message("/help", user) for user in range(100, 180)))
        poisoned.give(*poison, *(farm.server.message(f"/start {'A' * 43}", user) for user in range(100, 180)))
        await until(lambda: slow.of("sendMessage") and flooded.of("sendMessage") and failing.of("getUpdates"))
        for number in range(5):
            well.give(farm.server.message("/help", 11 + number))
            await until(lambda number=number: len(well.texts()) == number + 1)  # type: ignore[misc]
        # It has answered all of them while the slow one has not got one answer out.
        assert slow.updates
        await until(lambda: len(poisoned.texts()) == 80)


async def test_a_flooded_bot_leaves_time_for_the_others(farm: Farm) -> None:
    """However many updates wait for one bot, they start one by one, and other bots' updates start in between."""
    farm.pace = 0.05
    flooded, well = farm.server.add(), farm.server.add()
    for bot in (flooded, well):
        await farm.add_project(bot)
    async with farm.running():
        await until(lambda: flooded.polls == well.polls == 1)
        flooded.give(*(farm.server.message("/help", user) for user in range(100, 200)))
        await until(flooded.texts)
        well.give(farm.server.message("/help"))
        await until(well.texts)
        assert len(flooded.texts()) < 50
        await until(lambda: len(flooded.texts()) == 100)


async def test_a_changed_username_is_learned(farm: Farm) -> None:
    """Links use the bot's current username."""
    bot = farm.server.add("Old_Bot")
    project = await farm.add_project(bot)
    async with farm.running():
        await until(lambda: len(bot.of("getMe")) >= 2)
        bot.username = "New_Bot"
        looks = len(bot.of("getMe"))
        await until(lambda: len(bot.of("getMe")) >= looks + 3)
        polls = len(bot.of("getUpdates"))
    created = await farm.signin.create_session(project, public=True)
    assert created.deeplink.startswith("https://t.me/New_Bot?start=")
    assert polls == 1, "a new name is no reason to start the bot again"


async def test_commands_are_listed_once(farm: Farm) -> None:
    """Each bot shows its commands in each language; after a restart, they are only checked."""
    bot = farm.server.add()
    await farm.add_project(bot)
    for _ in range(3):
        async with farm.running():
            looks = len(bot.of("getMyCommands"))
            await until(lambda looks=looks: len(bot.of("getMyCommands")) > looks and bot.commands)  # type: ignore[misc]
            await until(lambda: len(bot.of("setMyCommands")) == len(LANGUAGES))
    assert {each["command"] for each in bot.commands} >= {"sessions", "block", "unblock"}


async def test_a_token_under_another_master_key_goes_on_without_a_break(farm: Farm) -> None:
    """A rotation of the master key re-encrypts every token, but restarts no bot, because the token is the same."""
    bot = farm.server.add()
    project = await farm.add_project(bot)
    async with farm.running():
        await until(lambda: bot.polls == 1)
        await farm.give(project, bot)
        await farm.look_again()
        assert len(bot.of("getUpdates")) == 1
        bot.revoke()
        await until(lambda: farm.shown[-1] == (0, 1))


async def test_a_token_that_cannot_be_opened_stops_its_bot_alone(farm: Farm) -> None:
    """The log names the project once. The bot is not marked broken, because its token may be right."""
    bot, other = farm.server.add(), farm.server.add()
    project = await farm.add_project(bot)
    await farm.add_project(other)
    foreign = ProjectBot(project, bot.id, bot.username, b"\x01 encrypted under another key, or for another project")
    with capture_logs() as logs:
        async with farm.running():
            await until(lambda: farm.shown[-1:] == [(2, 0)])
            await give_bot(farm.storage, "dev_1", project, foreign)
            await until(lambda: farm.shown[-1] == (1, 0))
            await farm.look_again()
            other.give(farm.server.message("/help"))
            await until(other.texts)
    assert [line["project_id"] for line in logs if line["event"] == "project_bot_unreadable"] == [project]
    assert await farm.broken_at(bot) is None


async def test_a_store_out_of_reach_stops_no_bot(farm: Farm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Running bots continue while the store is unavailable. The list is read again afterwards."""
    bot = farm.server.add()
    await farm.add_project(bot)
    list_project_bots = farm.bots.list_project_bots
    failures = 0

    async def fail() -> list[ProjectBot]:
        nonlocal failures
        failures += 1
        raise StoreUnavailable

    async with farm.running():
        await until(lambda: bot.polls == 1)
        monkeypatch.setattr(farm.bots, "list_project_bots", fail)
        await until(lambda: failures > 5)
        bot.give(farm.server.message("/help"))
        await until(bot.texts)
        monkeypatch.setattr(farm.bots, "list_project_bots", list_project_bots)
        late = farm.server.add()
        await farm.add_project(late)
        await until(lambda: late.polls == 1)


async def test_stopping_finishes_what_is_in_hand(farm: Farm) -> None:
    """An update in progress is answered and acknowledged, and no poll follows."""
    bots = [farm.server.add() for _ in range(20)]
    for bot in bots:
        await farm.add_project(bot)
        bot.slowness = 0.3
    async with farm.running():
        await until(lambda: all(bot.polls == 1 for bot in bots))
        for bot in bots:
            bot.give(farm.server.message("/help"))
        await until(lambda: all(bot.of("sendMessage") for bot in bots))
    for bot in bots:
        assert len(bot.texts()) == 1
        assert bot.updates == []
        assert bot.polls == 0
