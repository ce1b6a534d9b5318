"""The types of the Bot API, read from its documented examples, including fields that are not used here."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from taproof.messengers.telegram.types import (
    CallbackQuery,
    InaccessibleMessage,
    Message,
    ShownMessage,
    UnreadableMessage,
    Update,
    User,
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


def test_callback_query() -> None:
    """A tap is read with its current message, with an inaccessible message, and without one in inline mode."""
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
    """A field whose type differs from the documented one is refused when it is read."""
    model.model_validate(sample)
    with pytest.raises(ValidationError):
        model.model_validate(sample | change)
