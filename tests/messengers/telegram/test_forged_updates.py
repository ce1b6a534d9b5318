"""Forged updates, which no user caused, leave no trace in the database."""

import itertools
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.giving_bots import give_bot
from tests.messengers.telegram.conftest import PROJECT_ID, HandClock, Phone, add_project, talking_intake
from tests.messengers.telegram.phone_asking import Asking
from tests.whole_sign_in import WholeSignIn

from taproof.core.identifiers import session_key
from taproof.core.project_bots import ProjectBot
from taproof.messengers.telegram.bot_api import Bot
from taproof.messengers.telegram.signed_buttons import ButtonSigner
from taproof.messengers.telegram.updates import UpdateIntake
from taproof.messengers.telegram.user_control_replies import write_key
from taproof.messengers.telegram.webhook import WebhookEndpoint
from taproof.storage.sqlite.store import SqliteStorage

OWN_BOT = 7_000_000_002
OWN_PROJECT = "proj_0000000000000000000003"
MATCHING = "proj_0000000000000000000004"
SECRET = "s3cret"
OWNER, EVE = 11, 22
GROUP = {"id": -100123, "type": "supergroup", "title": "G"}
OTHERS_CHAT = {"id": 33, "type": "private", "first_name": "Bob"}
OWNERS_CHAT = {"id": OWNER, "type": "private", "first_name": "Ada"}
VIA = {"via_bot": {"id": 5, "is_bot": True, "first_name": "Cards", "username": "card_bot"}}
FORWARDED = {"forward_origin": {"type": "hidden_user", "date": 1795214000, "sender_user_name": "Ada"}}


class Scene:
    """Sign-ins of one owner in every state, and forged updates that must not change them."""

    def __init__(self, phone: Phone) -> None:
        self.phone = phone
        self.tokens: dict[str, str] = {}

    async def set_up(self, asking: Asking, own: UpdateIntake) -> None:
        phone, take = self.phone, asking.intake.handle
        self.tokens["phone"] = await asking.begin(user_id=OWNER)
        places = {"opened": PROJECT_ID, "confirmed": PROJECT_ID, "cancelled": PROJECT_ID, "matching": MATCHING}
        for name, project_id in {**places, "own": OWN_PROJECT}.items():
            token = (await phone.signin.create_session(project_id, public=True)).session_token
            self.tokens[name] = token
            await (own.handle if name == "own" else take)(phone.message(f"/start {token}", OWNER))
        await take(phone.tap(f"c:{self.tokens['confirmed']}", OWNER))
        await take(phone.tap(f"x:{self.tokens['cancelled']}", OWNER))
        statuses = [(await phone.session(token)).status for token in self.tokens.values()]
        assert statuses == ["pending", "pending", "confirmed", "cancelled", "pending", "pending"]

    def buttons(self, token: str) -> list[str]:
        """Return the data of all buttons that decide or report this session."""
        key = session_key(token)
        assert key is not None
        numbers = [f"m:{token}:{place}" for place in range(3)]
        return [*(f"{act}:{token}" for act in "cxwr"), *numbers, f"rs:{write_key(key)}"]

    def contact(self, user: int, owner: int, **more: Any) -> dict[str, Any]:
        names = {"first_name": "Ada", "last_name": "Love"}
        contact = {"phone_number": "4915123456789", **names, "user_id": owner}
        return self.phone.message(None, user, contact=contact, **more)

    def made_up(self) -> Iterator[dict[str, Any]]:
        """Return taps with data that no button has."""
        unknown = "AAAA" + "b" * 39
        token = self.tokens["opened"]
        junk = [
            "",
            ":",
            "c",
            "c:",
            "m::0",
            "c:" + "A" * 42,
            f"c:{token[:-1]}",
            f"C:{token}",
            f"c :{token}",
            f"cc:{token}",
        ]
        junk += [f"m:{token}:{place}" for place in ("3", "-1", "00", "", "a", "٠", " 0", "0\n")]
        junk += [f"c:{unknown}", f"x:{unknown}", f"r:{unknown}", f"m:{unknown}:1", f"w:{unknown}"]
        junk += ["rs:0:", "rs:99999:" + "A" * 43, "rs:-1:" + "A" * 43, "b:", "b:proj_", "u:proj_\0", "b:' OR 1=1 --"]
        junk += [f"b:proj_{'9' * 22}", f"u:{PROJECT_ID}", "z:" + "A" * 43, "c:" + "é" * 43, "\0:\0", "a" * 64]
        for data, user in itertools.product(junk, (OWNER, EVE)):
            yield self.phone.tap(data, user)

    def others(self) -> Iterator[dict[str, Any]]:
        """Eve's taps on the buttons of the owner's prompts, in her own chat and in other chats."""
        for token in self.tokens.values():
            for data in self.buttons(token):
                yield self.phone.tap(data, EVE)
                for chat in (GROUP, OTHERS_CHAT, OWNERS_CHAT):
                    prompt = {"message_id": 501, "chat": chat, "date": 1795214643, "text": "Sign in?"}
                    yield self.phone.tap(data, EVE, message=prompt)

    def elsewhere(self) -> Iterator[dict[str, Any]]:
        """The owner's buttons where they cannot be: in groups and others' chats, and tapped by a bot.

        A tap of the owner's without its message, or in a business chat, may be genuine: see `test_unverified_taps.py`.
        """
        for token in self.tokens.values():
            for data in self.buttons(token):
                for chat in (GROUP, OTHERS_CHAT, {"id": -1, "type": "channel", "title": "C"}):
                    prompt = {"message_id": 501, "chat": chat, "date": 0}
                    yield self.phone.tap(data, OWNER, message=prompt)
                business = {"message_id": 5, "chat": OWNERS_CHAT, "date": 1, "business_connection_id": "b1"}
                yield self.phone.tap(data, EVE, message=business)
                inline = self.phone.tap(data, EVE)
                del inline["callback_query"]["message"]
                inline["callback_query"]["inline_message_id"] = "AAAA"
                yield inline
                yield self.phone.tap(data, OWNER, **{"from": self.phone.user(OWNER, is_bot=True)})

    def words(self) -> Iterator[dict[str, Any]]:
        """Links, commands and contacts that the owner did not send in the private chat with the bot."""
        for token in self.tokens.values():
            start = f"/start {token}"
            yield self.phone.message(start, EVE)
            yield self.phone.message(start, 2**52 + 1)
            for more in (VIA, FORWARDED, {"chat": GROUP}, {"chat": OTHERS_CHAT}, {"business_connection_id": "b1"}):
                yield self.phone.message(start, OWNER, **more)
        for owner in (EVE, 0, -OWNER, 2**63, 12):
            yield self.contact(OWNER, owner)
        for more in (VIA, FORWARDED, {"chat": GROUP}, {"chat": OTHERS_CHAT}, {"business_connection_id": "b1"}):
            yield self.contact(OWNER, OWNER, **more)
        yield self.contact(EVE, OWNER)
        yield self.contact(EVE, EVE)
        for text in ("+4915123456789", "/block", "/unblock", "/sessions", "/start", "/start " + "A" * 43, "/start \0"):
            yield self.phone.message(text, OWNER)
            yield self.phone.message(text, EVE, chat=GROUP)

    def other_kinds(self) -> Iterator[dict[str, Any]]:
        """The owner's actions in updates that are neither a message nor a tap."""
        kinds = ("edited_message", "channel_post", "edited_channel_post", "business_message", "edited_business_message")
        for kind, token in itertools.product(kinds, self.tokens.values()):
            for update in (self.phone.message(f"/start {token}", OWNER), self.contact(OWNER, OWNER)):
                yield {"update_id": update["update_id"], kind: update["message"]}
        for token in self.tokens.values():
            query = {"id": "1", "from": self.phone.user(OWNER), "query": f"c:{token}", "offset": ""}
            yield self.phone.update(inline_query=query)
            result = {"result_id": "1", "from": self.phone.user(OWNER), "query": f"c:{token}"}
            yield self.phone.update(chosen_inline_result=result)

    def odd_ids(self) -> Iterator[dict[str, Any]]:
        """Valid taps in updates whose ids no messenger would assign."""
        for token in self.tokens.values():
            odd: list[Any] = [-1, 2**63, 2**70, "x", None, [], 1.5]
            for update_id in odd:
                yield {**self.phone.tap(f"c:{token}", OWNER), "update_id": update_id}
            for user_id in (2**63, -(2**63), 2**80, "11", "x", None):
                if user_id != "11":
                    yield self.phone.tap(f"c:{token}", OWNER, **{"from": {**self.phone.user(), "id": user_id}})


def dump(path: Path) -> list[str]:
    """Return all stored rows except the claims of updates."""
    connection = sqlite3.connect(path)
    try:
        return [line for line in connection.iterdump() if '"bot_updates"' not in line]
    finally:
        connection.close()


async def post(endpoint: WebhookEndpoint, body: bytes, *secrets: bytes) -> int:
    """Return the status of an answer to an update that comes with these secrets."""
    statuses: list[int] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        statuses.extend([message["status"]] if "status" in message else [])

    headers = [(b"x-telegram-bot-api-secret-token", secret) for secret in secrets]
    await endpoint({"type": "http", "method": "POST", "headers": headers}, receive, send)
    return statuses[0]


@pytest.fixture
async def own(
    bot: Bot, signin: WholeSignIn, signer: ButtonSigner, storage: SqliteStorage, clock: HandClock
) -> UpdateIntake:
    """The intake of a project's own bot."""
    await add_project(storage, clock(), "Own", OWN_PROJECT)
    bot_set = await give_bot(storage, "dev_1", OWN_PROJECT, ProjectBot(OWN_PROJECT, OWN_BOT, "own_bot", b"encrypted"))
    assert bot_set == "set"
    await add_project(storage, clock(), "Matching", MATCHING, match_code=True)
    return talking_intake(bot, signin, signer, storage, clock, bot_id=OWN_BOT)


async def test_1000_forged_updates_change_nothing(
    asking: Asking, own: UpdateIntake, phone: Phone, tmp_path: Path
) -> None:
    """The whole database is the same before and after, except for the ids of the updates."""
    scene = Scene(phone)
    await scene.set_up(asking, own)
    before = dump(tmp_path / "taproof.db")
    endpoint = WebhookEndpoint(asking.intake.handle, lambda: [SECRET])
    sent = refused = 0

    groups = (scene.made_up, scene.others, scene.elsewhere, scene.words, scene.other_kinds, scene.odd_ids)
    for update in itertools.chain.from_iterable(group() for group in groups):
        assert await post(endpoint, json.dumps(update).encode(), SECRET.encode()) == 200, update
        sent += 1
    # The owner's own handlers, with another bot than the link led to.
    for name, token in scene.tokens.items():
        wrong_bot = asking.intake if name == "own" else own
        for data in scene.buttons(token)[:-1]:
            # The service's own bot takes a report of any sign-in: that is no forgery.
            if name != "own" or not data.startswith("r:"):
                assert await wrong_bot.handle(phone.tap(data, OWNER)) == "done"
                sent += 1
        assert await wrong_bot.handle(phone.message(f"/start {token}", OWNER)) == "done"
        sent += 1
    assert await own.handle(scene.contact(OWNER, OWNER)) == "done"
    # The owner's own handlers, by who does not know the webhook's secret.
    for token in scene.tokens.values():
        for data in scene.buttons(token):
            body = json.dumps(phone.tap(data, OWNER)).encode()
            for secrets in ((), (b"wrong",), (b"",), (SECRET.encode(), SECRET.encode()), (b"s3cret\xff",)):
                refused += await post(endpoint, body, *secrets) == 401
                sent += 1
    assert dump(tmp_path / "taproof.db") == before
    print(f"{sent} forged updates, of which {refused} were refused unread, changed nothing")  # noqa: T201
    assert sent >= 1000
    # The scene was live: the same handlers, done by the owner, do change it.
    for name, intake in (("opened", asking.intake), ("own", own)):
        await intake.handle(phone.tap(f"c:{scene.tokens[name]}", OWNER))
        assert (await phone.session(scene.tokens[name])).status == "confirmed"
    await asking.phone.handle(scene.contact(OWNER, OWNER))
    assert (await phone.session(scene.tokens["phone"])).status == "confirmed"
