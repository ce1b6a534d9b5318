"""A leaked bot token lets its holder write and edit messages, but no tap on those messages signs anybody in."""

import html
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.e2e.conftest import NewPhone, OwnProject, Phone, make_bot

QUIZ = "<b>Quiz!</b> What is the capital of France?"


class Attacker:
    """Knows the bot's token and starts the project's sign-ins; reads callback data from the Bot API."""

    def __init__(self, client: httpx.Client, project: OwnProject, bot: dict[str, Any], victim: Phone) -> None:
        self.client, self.project, self.bot, self.victim = client, project, bot, victim
        self.session = project.generate()

    def call(self, method: str, text: str, rows: list[list[dict[str, str]]], message_id: int = 0) -> int:
        body: dict[str, Any] = {"chat_id": int(self.victim.messenger_id), "text": text, "parse_mode": "HTML"}
        body |= {"reply_markup": {"inline_keyboard": rows}} | ({"message_id": message_id} if message_id else {})
        answer = self.client.post(f"/sandbox/bot{self.bot['token']}/{method}", json=body)
        assert answer.status_code == 200, answer.text
        sent: int = answer.json()["result"]["message_id"]
        return sent

    def prompt(self) -> dict[str, Any]:
        """Let the victim open the attacker's link, and return the service's prompt."""
        return self.victim.open(self.session["deeplink"])[-1]

    def tap(self, label: str, message_id: int, **more: str) -> None:
        """Let the victim tap a button of one message."""
        button = more or {"button": label}
        body = {"message_id": message_id, "bot": self.bot["username"]} | button
        answer = self.client.post(f"/sandbox/users/{self.victim.messenger_id}/tap", json=body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["answered"]


def quiz(rows: list[list[dict[str, str]]]) -> list[list[dict[str, str]]]:
    """Return the genuine buttons with other labels."""
    names = iter(["Paris", "Rome", "Oslo", "Bern", "Riga"])
    return [[{**button, "text": next(names)} for button in row] for row in rows]


def edited_prompt(attacker: Attacker) -> None:
    genuine = attacker.prompt()
    attacker.call("editMessageText", QUIZ, quiz(genuine["inline_keyboard"]), genuine["message_id"])
    attacker.tap("Paris", genuine["message_id"])


def another_prompt(attacker: Attacker) -> None:
    """The prompt of the victim's own sign-in, with the buttons of the attacker's prompt, which was opened before."""
    foreign = attacker.prompt()
    own = attacker.victim.open(attacker.project.generate()["deeplink"])[-1]
    attacker.call("editMessageText", html.escape(own["text"]), foreign["inline_keyboard"], own["message_id"])
    attacker.tap("Confirm", own["message_id"])


def made_up(attacker: Attacker) -> None:
    attacker.prompt()
    data = f"c:{attacker.session['session_token']}"
    attacker.tap("Paris", attacker.call("sendMessage", QUIZ, [[{"text": "Paris", "callback_data": data}]]))


def edited_and_put_back(attacker: Attacker) -> None:
    """The app still shows the quiz after the message has been restored."""
    genuine = attacker.prompt()
    attacker.call("editMessageText", QUIZ, quiz(genuine["inline_keyboard"]), genuine["message_id"])
    text = html.escape(genuine["text"])
    for name in ("Shop", attacker.project.read()["name"]):
        text = text.replace(f"\u2068{name}\u2069", f"<code>\u2068{name}\u2069</code>")
    attacker.call("editMessageText", text, genuine["inline_keyboard"], genuine["message_id"])
    attacker.tap("Confirm", genuine["message_id"])


def taps_without_messages(attacker: Attacker) -> None:
    """The attacker makes the messenger leave out the message that the victim saw."""
    genuine = attacker.prompt()
    mode = {"callback_query_mode": "inline"}
    assert attacker.client.post(f"/sandbox/bot{attacker.bot['token']}/setMySettings", json=mode).status_code == 200
    attacker.tap("Paris", attacker.call("sendMessage", QUIZ, quiz(genuine["inline_keyboard"])))


TRICKS: list[Callable[[Attacker], None]] = [
    edited_prompt,
    another_prompt,
    made_up,
    edited_and_put_back,
    taps_without_messages,
]


@pytest.fixture
def bot(client: httpx.Client, project: OwnProject) -> dict[str, Any]:
    """Return a project bot whose token the attacker knows."""
    made = make_bot(client)
    project.developer.ask("PATCH", f"/projects/{project.id}", json={"bot_token": made["token"]})
    return made


def test_a_leaked_bot_token_confirms_nothing(
    client: httpx.Client, project: OwnProject, bot: dict[str, Any], new_phone: NewPhone
) -> None:
    """A tap on reused buttons decides nothing, whatever message contains them; an unchanged prompt works."""
    signed_in = []
    for trick in TRICKS:
        attacker = Attacker(client, project, bot, new_phone())
        trick(attacker)
        if project.verify(attacker.session["session_token"])["status"] != "pending":
            signed_in.append(trick.__name__)
    assert signed_in == []
    attacker = Attacker(client, project, bot, new_phone())
    attacker.tap("Confirm", attacker.prompt()["message_id"])
    assert project.verify(attacker.session["session_token"])["status"] == "confirmed"


def test_the_owner_of_a_bot_ends_no_block(
    client: httpx.Client, project: OwnProject, bot: dict[str, Any], new_phone: NewPhone
) -> None:
    """A tap on a message that the bot's owner wrote cannot end a user's block."""
    owner = Attacker(client, project, bot, new_phone())
    owner.tap("This wasn't me", owner.prompt()["message_id"])
    order = [[{"text": "See your order", "callback_data": f"u:{project.id}"}]]
    owner.tap("See your order", owner.call("sendMessage", "Your order has left.", order))
    blocked = owner.victim.open(project.generate()["deeplink"])[-1]
    assert [button["text"] for row in blocked["inline_keyboard"] for button in row] == ["Unblock"]
    owner.tap("Unblock", blocked["message_id"])
    assert "Confirm" in str(owner.victim.open(project.generate()["deeplink"])[-1]["inline_keyboard"])
