"""The types of the Bot API: read from what the documentation shows, with all the fields that are not used here."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from taproof.messengers.telegram.types import (
    CallbackQuery,
    ChatMemberUpdated,
    InaccessibleMessage,
    Message,
    Response,
    ShownMessage,
    UnreadableMessage,
    Update,
    User,
    WebhookInfo,
)

ADA = {
    "id": 2**52 - 1,
    "is_bot": False,
    "first_name": "Ada",
    "last_name": "Lovelace",
    "username": "ada",
    "language_code": "en",
    "is_premium": True,
}
BOT = {"id": 7000000001, "is_bot": True, "first_name": "Sign in", "username": "Sign_In_Bot"}
CHAT = {"id": 2**52 - 1, "first_name": "Ada", "last_name": "Lovelace", "username": "ada", "type": "private"}
GROUP = {"id": -1002147483649, "title": "Group", "type": "supergroup", "is_forum": True}
CONTACT = {"phone_number": "+12025550101", "first_name": "Ada", "user_id": 2**52 - 1, "vcard": "BEGIN:VCARD"}
MESSAGE: dict[str, Any] = {
    "message_id": 500,
    "from": ADA,
    "chat": CHAT,
    "date": 1795214643,
    "text": "/start token",
    "entities": [
        {"offset": 0, "length": 6, "type": "bot_command"},
        {"offset": 7, "length": 5, "type": "text_link", "url": "https://example.org/"},
    ],
}
PROMPT: dict[str, Any] = {
    "message_id": 501,
    "from": BOT,
    "chat": CHAT,
    "date": 1795214643,
    "edit_date": 1795214650,
    "text": "Sign in?",
    "link_preview_options": {"is_disabled": True},
    "reply_markup": {
        "inline_keyboard": [
            [{"text": "Confirm", "callback_data": "c:1", "style": "success"}],
            [{"text": "Help", "url": "https://example.org/"}],
        ]
    },
}
RICH: dict[str, Any] = {
    **MESSAGE,
    "message_thread_id": 5,
    "sender_business_bot": BOT,
    "forward_origin": {"type": "user", "date": 1795214000, "sender_user": ADA},
    "via_bot": BOT,
    "business_connection_id": "b1",
    "reply_to_message": {**PROMPT, "pinned_message": MESSAGE},
    "external_reply": {"origin": {"type": "hidden_user", "date": 1, "sender_user_name": "Q"}},
    "reply_to_story": {"chat": CHAT, "id": 1},
    "contact": CONTACT,
    "photo": [{"file_id": "A", "file_unique_id": "B", "width": 90, "height": 90}],
    "new_in_some_later_version": {"nested": [1, {"deep": None}]},
}


def test_message() -> None:
    """A private message with its sender, text and entities."""
    update = Update.model_validate({"update_id": 900000001, "message": MESSAGE})
    message = update.message
    assert (update.update_id, update.callback_query, update.my_chat_member) == (900000001, None, None)
    assert message is not None
    assert message.from_user is not None
    assert (message.message_id, message.date, message.text) == (500, 1795214643, "/start token")
    assert (message.chat.id, message.chat.type) == (2**52 - 1, "private")
    assert (message.from_user.id, message.from_user.is_bot) == (2**52 - 1, False)
    assert (message.from_user.full_name, message.from_user.username) == ("Ada Lovelace", "ada")
    assert message.from_user.language_code == "en"
    left_out = (message.message_thread_id, message.contact, message.via_bot, message.voice)
    assert left_out == (None,) * 4


def test_message_with_everything() -> None:
    """A message is parsed with unknown fields and in each documented version."""
    message = Message.model_validate(RICH)
    assert message.contact is not None
    assert (message.contact.phone_number, message.contact.user_id) == ("+12025550101", 2**52 - 1)
    assert (message.contact.first_name, message.contact.last_name) == ("Ada", None)
    assert message.reply_to_message is not None
    assert message.reply_to_message.from_user is not None
    assert (message.reply_to_message.from_user.id, message.reply_to_message.text) == (7000000001, "Sign in?")
    for present in (message.forward_origin, message.via_bot, message.external_reply, message.reply_to_story):
        assert present is not None
    assert message.business_connection_id == "b1"
    assert message.photo
    sent_by_a_channel = {**MESSAGE, "chat": GROUP, "sender_chat": GROUP}
    del sent_by_a_channel["from"], sent_by_a_channel["text"]
    message = Message.model_validate(sent_by_a_channel)
    assert (message.from_user, message.text, message.chat.id) == (None, None, -1002147483649)


def test_callback_query() -> None:
    """A tap with the message as it is now; with one that is not accessible any more; with none, in inline mode."""
    query: dict[str, Any] = {"id": "4382", "from": ADA, "chat_instance": "-8", "data": "c:1", "message": PROMPT}
    update = Update.model_validate({"update_id": 1, "callback_query": query})
    tapped = update.callback_query
    assert tapped is not None
    assert (tapped.id, tapped.from_user.first_name, tapped.data) == ("4382", "Ada", "c:1")
    message = tapped.message
    assert isinstance(message, ShownMessage)
    assert (message.message_id, message.text, message.edit_date) == (501, "Sign in?", 1795214650)
    assert message.link_preview_options is not None
    assert message.link_preview_options.is_disabled is True
    assert message.reply_markup is not None
    [[confirm], [link]] = message.reply_markup.inline_keyboard
    assert (confirm.text, confirm.callback_data, confirm.style) == ("Confirm", "c:1", "success")
    assert (link.text, link.callback_data, link.icon_custom_emoji_id) == ("Help", None, None)
    gone = CallbackQuery.model_validate({**query, "message": {"chat": CHAT, "message_id": 501, "date": 0}}).message
    assert isinstance(gone, InaccessibleMessage)
    assert (gone.chat.id, gone.message_id) == (2**52 - 1, 501)
    odd: list[dict[str, Any]] = [{}, {**PROMPT, "text": 5}, {**PROMPT, "entities": {}}, {**PROMPT, "chat": None}]
    for unreadable in odd:
        found = CallbackQuery.model_validate({**query, "message": unreadable})
        assert (found.message, found.data) == (UnreadableMessage(), "c:1")
    del query["message"], query["data"]
    bare = CallbackQuery.model_validate({**query, "inline_message_id": "AAAA", "game_short_name": "g"})
    assert (bare.message, bare.data) == (None, None)


def test_membership() -> None:
    """The status shows that a user blocked the bot; other fields are ignored."""
    change = {
        "chat": CHAT,
        "from": ADA,
        "date": 1795214643,
        "old_chat_member": {"status": "member", "user": BOT},
        "new_chat_member": {"status": "kicked", "user": BOT, "until_date": 0},
    }
    update = Update.model_validate({"update_id": 1, "my_chat_member": change})
    assert isinstance(update.my_chat_member, ChatMemberUpdated)
    assert (update.my_chat_member.chat.type, update.my_chat_member.new_chat_member.status) == ("private", "kicked")


@pytest.mark.parametrize("kind", ["edited_message", "inline_query", "poll_answer", "of_the_next_version"])
def test_other_kinds_of_updates(kind: str) -> None:
    """They are read, and hold nothing that is handled here."""
    update = Update.model_validate({"update_id": 1, kind: {"anything": [1]}})
    assert (update.message, update.callback_query, update.my_chat_member) == (None, None, None)


def test_answers() -> None:
    """An answer has its result, or the reason of the refusal and the time to wait; a webhook has its URL."""
    taken = Response.model_validate({"ok": True, "result": [1], "description": "Webhook was set"})
    assert (taken.ok, taken.result, taken.parameters) == (True, [1], None)
    refused = Response.model_validate(
        {"ok": False, "error_code": 429, "description": "Too Many Requests", "parameters": {"retry_after": 7}}
    )
    assert (refused.ok, refused.result, refused.description) == (False, None, "Too Many Requests")
    assert refused.parameters is not None
    assert refused.parameters.retry_after == 7
    info = {"url": "https://x/y", "has_custom_certificate": False, "pending_update_count": 2, "ip_address": "1.2.3.4"}
    assert WebhookInfo.model_validate(info).url == "https://x/y"


@pytest.mark.parametrize(
    ("model", "sample", "change"),
    [
        (Update, {"update_id": 1}, {"update_id": 1.5}),
        (Update, {"update_id": 1}, {"message": "text"}),
        (Message, MESSAGE, {"chat": None}),
        (Message, MESSAGE, {"message_id": "x"}),
        (Message, MESSAGE, {"text": 5}),
        (Message, MESSAGE, {"from": {"id": 1}}),
        (Message, MESSAGE, {"contact": {"phone_number": 49}}),
        (ShownMessage, MESSAGE, {"entities": [{"offset": 0}]}),
        (ShownMessage, MESSAGE, {"reply_markup": {"inline_keyboard": [{"text": "x"}]}}),
        (User, ADA, {"first_name": None}),
        (User, ADA, {"id": None}),
    ],
)
def test_what_is_not_as_documented(model: type[BaseModel], sample: dict[str, Any], change: dict[str, Any]) -> None:
    """A field of another type than the documented one is refused, rather than met later."""
    model.model_validate(sample)
    with pytest.raises(ValidationError):
        model.model_validate(sample | change)
