"""Phone numbers when something fails: each update has one effect, and no log contains a digit."""

import itertools
import logging
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.messengers.telegram.conftest import ACME, WHEN, Fault, HandClock, ScriptedApi, talking_intake
from tests.messengers.telegram.phone_asking import FORGERIES, NUMBER, OPTIONAL, REQUIRED, Asking
from tests.whole_sign_in import WholeSignIn

from taproof.core.clock import MINUTE
from taproof.core.encryption import Encryptor
from taproof.core.entropy import system_entropy
from taproof.core.errors import StoreUnavailable
from taproof.messengers.telegram.bot_api import Bot
from taproof.messengers.texts.catalog import LANGUAGES

EN = LANGUAGES["en"]
CONFIRMED = f"{EN.confirmed}\n\n{EN.confirmed_next}"


class Killed(BaseException):
    """Stands for kill -9: no handler catches it."""


class Dying:
    """A store or a Bot API at whose `last`th use the process is killed."""

    def __init__(self, target: Any, last: int, *, after: bool, calls: "itertools.count[int] | None" = None) -> None:
        self._target = target
        self._calls = calls or itertools.count(1)
        self._last = last
        self._after = after

    def __getattr__(self, name: str) -> Any:
        method: Any = getattr(self._target, name)
        if not callable(method):  # It is a part of a store.
            return Dying(method, self._last, after=self._after, calls=self._calls)

        async def call(*arguments: Any, **named: Any) -> Any:
            number = next(self._calls)
            if number == self._last and not self._after:
                raise Killed
            answer = await method(*arguments, **named)
            if number == self._last:
                raise Killed
            return answer

        return call


@pytest.mark.parametrize("step", ["confirm", "contact", "without"])
@pytest.mark.parametrize("after", [False, True])
async def test_killed_between_any_two_steps_one_effect(
    step: str, *, after: bool, asking: Asking, bot: Bot, encryptor: Encryptor, clock: HandClock
) -> None:
    """After kill -9 at any point, the repeated update completes its work once and is answered."""
    deaths = 0
    for last in itertools.count(1):
        user = 100 + last
        project_id = OPTIONAL if step == "without" else REQUIRED
        signin = asking.phone.signin
        session_token = (await signin.create_session(project_id, public=True)).session_token
        await asking.phone.handle(asking.phone.message(f"/start {session_token}", user))
        tap = asking.phone.tap(f"c:{session_token}", user)
        update = tap
        if step != "confirm":
            await asking.phone.handle(tap)
            contact = asking.contact(user, user)
            update = contact if step == "contact" else asking.phone.tap(f"w:{session_token}", user)
        dying: Any = Dying(asking.phone.storage, last, after=after)
        mortal = WholeSignIn(dying, encryptor, lambda: "https://t.me/b", clock, system_entropy)
        try:
            await talking_intake(bot, mortal, asking.phone.signer, dying, clock).handle(update)
        except Killed:
            deaths += 1
        else:
            break
        clock.now += MINUTE  # The claim of the process that was killed is over.
        assert await asking.phone.new_intake().handle(update) == "done"
        session = await asking.phone.session(session_token)
        [(events,)] = asking.phone.storage.database.rows("SELECT COUNT(*) FROM webhook_events", ())
        counts = (await asking.phone.storage.counts.read_daily_counts([project_id], 0))[0]
        if step == "confirm":
            assert session.status == "pending"
            assert asking.texts()[-1] == EN.phone.keyboard.format(project=ACME)
            await asking.phone.handle(asking.contact(user, user))
            assert await asking.number(session_token) == NUMBER
        else:
            assert session.status == "confirmed"
            assert events == counts.confirmed == last
            assert await asking.number(session_token) == (NUMBER if step == "contact" else None)
    assert deaths >= 4


async def test_outcome_is_shown_although_the_messenger_failed_first(asking: Asking, api: ScriptedApi) -> None:
    """The repeated update sends the reply that failed: the outcome, not "No sign-in is waiting"."""
    session_token = await asking.begin()
    update = asking.contact()
    api.fail("sendMessage", Fault(502, "Bad Gateway"))
    assert await asking.phone.handle(update) == "unanswered"
    assert (await asking.phone.session(session_token)).status == "confirmed"
    assert await asking.phone.handle(update) == "done"
    assert asking.texts()[-1] == CONFIRMED.format(project=ACME, when=WHEN)


async def test_contact_that_is_handled_twice_confirms_once(asking: Asking, api: ScriptedApi) -> None:
    """A repeated update or a second contact does not share the number with another waiting project."""
    other, asked_last = await asking.begin(OPTIONAL), await asking.begin()
    update = asking.contact()
    api.fail("sendMessage", Fault(502, "Bad Gateway"))
    assert await asking.phone.handle(update) == "unanswered"
    assert await asking.phone.handle(update) == "done"
    assert await asking.phone.handle(asking.contact()) == "done"
    assert await asking.number(asked_last) == NUMBER
    assert (await asking.phone.session(other)).status == "pending"
    assert await asking.number(other) is None


async def test_plan_that_ends_while_the_contact_is_handled(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the plan ends between its check and the confirmation, the user is signed in and no number is stored."""
    session_token = await asking.begin()
    storage = asking.phone.storage
    confirm = storage.sessions.confirm_session

    async def downgraded(*arguments: Any) -> object:
        project = await storage.projects.read_project(REQUIRED)
        assert project is not None
        await storage.plans.update_plan(project.developer_id, "free")
        return await confirm(*arguments)

    monkeypatch.setattr(storage.sessions, "confirm_session", downgraded)
    assert await asking.phone.handle(asking.contact()) == "done"
    assert (await asking.phone.session(session_token)).status == "confirmed"
    assert await asking.number(session_token) is None
    assert asking.texts()[-1] == CONFIRMED.format(project=ACME, when=WHEN)


async def test_no_number_reaches_a_log(
    asking: Asking,
    api: ScriptedApi,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Neither a log at debug level nor an error of any library contains a number, whether things succeed or fail."""

    async def unavailable(*arguments: Any) -> bool:
        raise StoreUnavailable

    async def fails(*arguments: Any) -> bool:
        raise RuntimeError(arguments)

    def refuses(*arguments: Any) -> None:
        raise ValueError(arguments)

    caplog.set_level(logging.DEBUG)
    with capture_logs() as logs:
        user = 31
        session_token = await asking.begin(user_id=user)
        for name, forge in FORGERIES.items():
            if name != "this user's, sent by another":
                await asking.phone.handle(forge(asking, user))
        storage = asking.phone.storage
        broken = ((storage.sessions, "confirm_session", unavailable), (storage.users, "find_phone_request", fails))
        for part, method, instead in broken:
            with monkeypatch.context() as away:
                away.setattr(part, method, instead)
                await asking.phone.handle(asking.contact(user, user))
        with monkeypatch.context() as away:
            away.setattr("taproof.service.sessions.decide.e164_number", refuses)
            await asking.phone.handle(asking.contact(user, user))
        api.fail("sendMessage", Fault(400, "Bad Request: can't parse entities", times=3))
        await asking.phone.handle(asking.contact(user, user))
        assert await asking.number(session_token) == NUMBER
        malformed = asking.contact(user, user)
        malformed["message"]["contact"] = {"phone_number": NUMBER, "user_id": NUMBER}
        await asking.phone.handle(malformed)
    assert len(logs) > 10
    for text in (str(logs), caplog.text, *capfd.readouterr()):
        assert "15123456789" not in text
