"""The texts with which users open a sign-in if their app lost the code of the link."""

from typing import Any

from tests.messengers.telegram.conftest import Phone, ScriptedApi, opened

from taproof.messengers.telegram.payloads import read_command
from taproof.messengers.telegram.types import Message
from taproof.messengers.texts.catalog import LANGUAGES

EN = LANGUAGES["en"]
TOKEN = "UGM" + "a_-Z" * 10


def message(text: str, chat: str = "private", **more: Any) -> Message:
    sender = {"id": 11, "is_bot": False, "first_name": "Ada"}
    content = {"message_id": 5, "date": 1795214643, "chat": {"id": 11, "type": chat}, "from": sender, "text": text}
    return Message.model_validate(content | more)


def test_the_ways_to_paste_a_command() -> None:
    """The session token is found in every form that people paste; case and line breaks do not matter."""
    link = f"https://t.me/Sign_In_Bot?start={TOKEN}"
    for text in [
        f"/start {TOKEN}",
        f"/start   {TOKEN}\n",
        f"/start\n{TOKEN}",
        f"/start\u00a0{TOKEN}",
        f"/START {TOKEN}",
        f"/start@Sign_In_Bot {TOKEN}",
        f"`/start {TOKEN}`",
        f'/start "{TOKEN}"',
        f"/start `{TOKEN}`.",
        f"«/start {TOKEN}»",
        f"\u2068/start {TOKEN}\u2069",
        f"/start {TOKEN[:20]}\n{TOKEN[20:]}",
        f"/start {link}",
        f"/start {TOKEN}\nSent from my phone",
        link,
        link.removeprefix("https://"),
        f"<{link}>",
        f"Sign in: {link}",
        f"tg://resolve?domain=Sign_In_Bot&start={TOKEN}",
        f"tg:resolve?domain=Sign_In_Bot&start={TOKEN}",
        TOKEN,
    ]:
        command = read_command(message(text))
        assert (command.name, command.payload) == ("start", TOKEN), text


async def test_a_pasted_command_does_what_the_link_does(phone: Phone, api: ScriptedApi) -> None:
    """The prompt is the same, and another user who sends the command learns nothing."""
    session_token = await opened(phone)
    await phone.handle(phone.message(f"https://t.me/Sign_In_Bot?start={session_token}"))
    await phone.handle(phone.message(f"`/start {session_token}`", 22))
    first, second, other = (sent["text"] for sent in api.of("sendMessage"))
    assert first == second
    assert other == EN.foreign
    assert "/start" in EN.help, "the answer to /start alone says what to send"


def test_what_opens_nothing() -> None:
    """A forwarded message opens nothing, and neither does a link in a group or another text."""
    link = f"https://t.me/Sign_In_Bot?start={TOKEN}"
    forwarded: dict[str, Any] = {"forward_origin": {"type": "hidden_user", "date": 1, "sender_user_name": "x"}}
    for written in [
        message(f"/start {TOKEN}", **forwarded),
        message(link, **forwarded),
        message(link, "group"),
        message(TOKEN, "group"),
        message(f"I got {TOKEN} from you"),
        message(f"{link}x"),
        message(f"{TOKEN}x"),
        message("hello"),
    ]:
        assert read_command(written).name is None, written.text
    assert read_command(message("/start")) == ("start", None, "")
    assert read_command(message("/start hello")) == ("start", None, "hello")
    assert read_command(message(f"/block {TOKEN} a")) == ("block", None, f"{TOKEN} a")
