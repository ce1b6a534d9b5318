"""A user who is asked for a contact, and every kind of contact that must be refused."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from taproof.core.encryption import Encryptor, associated_data_of
from taproof.messengers.telegram.updates import UpdateIntake
from taproof.messengers.texts.catalog import LANGUAGES

if TYPE_CHECKING:
    from tests.messengers.telegram.conftest import Phone, ScriptedApi

REQUIRED = "proj_0000000000000000000007"
OPTIONAL = "proj_0000000000000000000008"
NUMBER = "+4915123456789"
KEYBOARD = {
    "keyboard": [[{"text": LANGUAGES["en"].phone.share_button, "request_contact": True}]],
    "resize_keyboard": True,
    "one_time_keyboard": True,
}


class Asking:
    """A user who is asked for a contact."""

    def __init__(self, phone: "Phone", intake: UpdateIntake, api: "ScriptedApi", encryptor: Encryptor) -> None:
        self.phone = phone
        self.intake = intake
        self.api = api
        self.encryptor = encryptor

    async def begin(self, project_id: str = REQUIRED, user_id: int = 11) -> str:
        """Open a new session and confirm it; return its token."""
        session_token = (await self.phone.signin.create_session(project_id, public=True)).session_token
        assert await self.intake.handle(self.phone.message(f"/start {session_token}", user_id)) == "done"
        assert await self.intake.handle(self.phone.tap(f"c:{session_token}", user_id)) == "done"
        assert (await self.phone.session(session_token)).status == "pending"
        return session_token

    def contact(self, owner: int | None = 11, sender: int = 11, number: str = "4915123456789", **more: Any) -> Any:
        contact: dict[str, Any] = {"phone_number": number, "first_name": "Ada", "last_name": "Love"}
        contact |= more.pop("card", {})
        if owner is not None:
            contact["user_id"] = owner
        return self.phone.message(None, sender, contact=contact, **more)

    async def number(self, session_token: str) -> str | None:
        session = await self.phone.session(session_token)
        if session.encrypted_phone is None:
            return None
        return self.encryptor.decrypt(session.encrypted_phone, associated_data_of("phone", session.id))

    def texts(self) -> list[str]:
        return [sent["text"] for sent in self.api.of("sendMessage")]


USER = {"id": 22, "is_bot": False, "first_name": "Eve"}
FORWARDED: dict[str, Any] = {
    "forward_origin": {"type": "user", "date": 1795214000, "sender_user": {**USER, "id": 11}},
    "forward_date": 1795214000,
}
HIDDEN: dict[str, Any] = {"forward_origin": {"type": "hidden_user", "date": 1795214000, "sender_user_name": "Ada"}}
CARD_BOT: dict[str, Any] = {"id": 5, "is_bot": True, "first_name": "Cards", "username": "card_bot"}
GROUP = {"id": -100, "type": "supergroup", "title": "G"}
BOT: dict[str, Any] = {"id": 7000000001, "is_bot": True, "first_name": "Sign in"}
Forge = Callable[[Asking, int], dict[str, Any]]


def answering(text: str, user: int, sender: dict[str, Any] = BOT) -> dict[str, Any]:
    """Return the fields of a message that replies to one with this text."""
    chat = {"id": user, "type": "private", "first_name": "Ada"}
    return {"reply_to_message": {"message_id": 4, "from": sender, "chat": chat, "date": 1795214643, "text": text}}


def keyboard_text(project: str = "Acme & Söhne <shop>", language: str = "en") -> str:
    """Return the message that brings the button, as the messenger has it."""
    return LANGUAGES[language].phone.keyboard.format(project=f"\u2068{project}\u2069")


OUTSIDE: dict[str, Any] = {"external_reply": {"origin": {"type": "hidden_user", "date": 1, "sender_user_name": "Ada"}}}


def typed(text: str) -> Forge:
    entity = {"type": "phone_number", "offset": 0, "length": len(text)}
    return lambda asking, user: asking.phone.message(text, user, entities=[entity])


def elsewhere(kind: str) -> Forge:
    """Return the user's own contact in an update that does not come from a private chat."""

    def forge(asking: Asking, user: int) -> dict[str, Any]:
        update = asking.contact(user, user)
        return {"update_id": update["update_id"], kind: update["message"]}

    return forge


def by_a_bot(asking: Asking, user: int) -> dict[str, Any]:
    update = asking.contact(user, user)
    update["message"]["from"]["is_bot"] = True
    return dict(update)


FORGERIES: dict[str, Forge] = {
    "another user's": lambda asking, user: asking.contact(22, user),
    "another user's of the right number": lambda asking, user: asking.contact(22, user, NUMBER),
    "nobody's": lambda asking, user: asking.contact(None, user),
    "user 0's": lambda asking, user: asking.contact(0, user),
    "a negative user's": lambda asking, user: asking.contact(-user, user),
    "a huge user's": lambda asking, user: asking.contact(2**63, user),
    "own, forwarded": lambda asking, user: asking.contact(user, user, **FORWARDED),
    "own, forwarded from somebody hidden": lambda asking, user: asking.contact(user, user, **HIDDEN),
    "own, forwarded with its sender hidden, as somebody saved it": lambda asking, user: asking.contact(
        user, user, card={"first_name": "Darling", "last_name": ""}
    ),
    "own, in answer to a quiz": lambda asking, user: asking.contact(user, user, **answering("Share to win!", user)),
    "own, in answer to another project": lambda asking, user: asking.contact(
        user, user, **answering(keyboard_text("Evil"), user)
    ),
    "own, in answer to oneself": lambda asking, user: asking.contact(
        user, user, **answering(keyboard_text(), user, {**USER, "id": user})
    ),
    "own, in answer to another bot": lambda asking, user: asking.contact(
        user, user, **answering(keyboard_text(), user, CARD_BOT)
    ),
    "own, in answer to another chat": lambda asking, user: asking.contact(user, user, **OUTSIDE),
    "own, through a bot": lambda asking, user: asking.contact(user, user, via_bot=CARD_BOT),
    "own, in a group": lambda asking, user: asking.contact(user, user, chat=GROUP),
    "own, in another's chat": lambda asking, user: asking.contact(
        user, user, chat={"id": 22, "type": "private", "first_name": "Eve"}
    ),
    "own, through a business account": lambda asking, user: asking.contact(user, user, business_connection_id="b1"),
    "this user's, sent by another": lambda asking, user: asking.contact(user, 22),
    "own, by a bot": by_a_bot,
    "typed": typed(NUMBER),
    "typed without a plus": typed("4915123456789"),
    "edited": elsewhere("edited_message"),
    "business": elsewhere("business_message"),
    "channel": elsewhere("channel_post"),
    "vcard": lambda asking, user: asking.phone.message(
        None,
        user,
        contact={"phone_number": NUMBER, "first_name": "Ada", "vcard": f"BEGIN:VCARD\nTEL:{NUMBER}\nUID:{user}"},
    ),
}
