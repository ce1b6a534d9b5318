"""A Bot API client for the sandbox's tests, independent of the service's own and written from the documentation.

It knows exactly the documented fields that the sandbox returns, in their documented types: anything else fails.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import httpx
import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter


class _Type(BaseModel):
    """A type of https://core.telegram.org/bots/api#available-types."""

    model_config = ConfigDict(strict=True, extra="forbid", populate_by_name=True)


class User(_Type):
    id: int
    is_bot: bool
    first_name: str
    last_name: str | None = None
    username: str | None = None
    language_code: str | None = None


class Me(User):
    can_join_groups: bool
    supports_guest_queries: bool
    supports_join_request_queries: bool
    has_topics_enabled: bool
    allows_users_to_create_topics: bool
    can_read_all_group_messages: bool
    supports_inline_queries: bool
    can_connect_to_business: bool
    has_main_web_app: bool
    can_manage_bots: bool


class Chat(_Type):
    id: int
    first_name: str
    last_name: str | None = None
    username: str | None = None
    type: Literal["private"]


class Contact(_Type):
    phone_number: str
    first_name: str
    last_name: str | None = None
    user_id: int | None = None
    vcard: str | None = None


class MessageEntity(_Type):
    type: str
    offset: int
    length: int
    url: str | None = None
    language: str | None = None


class InlineKeyboardButton(_Type):
    text: str
    callback_data: str | None = None
    url: str | None = None


class InlineKeyboardMarkup(_Type):
    inline_keyboard: list[list[InlineKeyboardButton]]


class KeyboardButton(_Type):
    text: str
    request_contact: bool | None = None


class ReplyKeyboardMarkup(_Type):
    keyboard: list[list[KeyboardButton]]
    is_persistent: bool | None = None
    resize_keyboard: bool | None = None
    one_time_keyboard: bool | None = None
    input_field_placeholder: str | None = None


class ReplyKeyboardRemove(_Type):
    remove_keyboard: Literal[True] = True


class ForceReply(_Type):
    force_reply: Literal[True] = True


Markup = InlineKeyboardMarkup | ReplyKeyboardMarkup | ReplyKeyboardRemove | ForceReply


class MessageOrigin(_Type):
    type: Literal["user"]
    date: int
    sender_user: User


class Message(_Type):
    message_id: int
    from_user: User = Field(alias="from")
    date: int
    chat: Chat
    has_protected_content: bool | None = None
    forward_origin: MessageOrigin | None = None
    forward_from: User | None = None
    forward_date: int | None = None
    reply_to_message: "Message | None" = None
    edit_date: int | None = None
    text: str | None = None
    entities: list[MessageEntity] | None = None
    contact: Contact | None = None
    reply_markup: InlineKeyboardMarkup | None = None

    def as_sent(self) -> dict[str, Any]:
        """Return the message as it came over the wire."""
        return self.model_dump(exclude_unset=True, by_alias=True)


class CallbackQuery(_Type):
    id: str
    from_user: User = Field(alias="from")
    message: Message
    chat_instance: str
    data: str


class ChatMember(_Type):
    user: User
    status: Literal["member", "kicked"]
    until_date: int | None = None


class ChatMemberUpdated(_Type):
    chat: Chat
    from_user: User = Field(alias="from")
    date: int
    old_chat_member: ChatMember
    new_chat_member: ChatMember


class Update(_Type):
    update_id: int
    message: Message | None = None
    callback_query: CallbackQuery | None = None
    my_chat_member: ChatMemberUpdated | None = None


class WebhookInfo(_Type):
    url: str
    has_custom_certificate: bool
    pending_update_count: int
    max_connections: int | None = None
    allowed_updates: list[str] | None = None
    last_error_date: int | None = None
    last_error_message: str | None = None


class BotCommand(_Type):
    command: str
    description: str


class RefusedCall(Exception):
    """The sandbox refused a call."""

    def __init__(self, code: int, description: str, parameters: dict[str, int] | None) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters


@contextmanager
def refused(code: int, words: str = "") -> Iterator[pytest.ExceptionInfo[RefusedCall]]:
    """Expect a call to be refused with this code and a text that contains these words."""
    with pytest.raises(RefusedCall) as raised:
        yield raised
    assert raised.value.code == code
    assert words in raised.value.description


class Bot:
    """Calls the methods of one bot with multipart forms, as many libraries do."""

    def __init__(self, client: httpx.AsyncClient, token: str) -> None:
        self._client = client
        self._token = token

    async def call(self, method: str, returns: Any, **parameters: Any) -> Any:
        """Return a call's result, read as its type. Parameters that are None are left out."""
        form = {name: (None, _field(value)) for name, value in parameters.items() if value is not None}
        answer = await self._client.post(f"/sandbox/bot{self._token}/{method}", files=form or None, timeout=60)
        body = answer.json()
        if answer.status_code == 200:
            assert body.keys() <= {"ok", "result", "description"}
            assert body["ok"] is True
            return TypeAdapter(returns).validate_json(json.dumps(body["result"]))
        assert body.keys() <= {"ok", "error_code", "description", "parameters"}
        assert (body["ok"], body["error_code"]) == (False, answer.status_code)
        raise RefusedCall(body["error_code"], body["description"], body.get("parameters"))

    async def get_me(self) -> Me:
        me: Me = await self.call("getMe", Me)
        return me

    async def get_updates(
        self,
        offset: int | None = None,
        *,
        limit: int | None = None,
        timeout: int | None = None,  # noqa: ASYNC109 — how long the server waits.
        allowed_updates: Sequence[str] | None = None,
    ) -> list[Update]:
        parameters = {"offset": offset, "limit": limit, "timeout": timeout, "allowed_updates": allowed_updates}
        updates: list[Update] = await self.call("getUpdates", list[Update], **parameters)
        return updates

    async def send_message(
        self, chat_id: int, text: str, *, reply_markup: Markup | None = None, protect_content: bool | None = None
    ) -> Message:
        parameters = {"chat_id": chat_id, "text": text, "parse_mode": "HTML", "protect_content": protect_content}
        sent: Message = await self.call("sendMessage", Message, **parameters, reply_markup=reply_markup)
        return sent

    async def edit_message_text(self, text: str, *, chat_id: int, message_id: int) -> Message:
        parameters = {"chat_id": chat_id, "message_id": message_id, "text": text, "parse_mode": "HTML"}
        edited: Message = await self.call("editMessageText", Message, **parameters)
        return edited

    async def edit_message_reply_markup(self, *, chat_id: int, message_id: int, reply_markup: Markup) -> None:
        parameters = {"chat_id": chat_id, "message_id": message_id, "reply_markup": reply_markup}
        await self.call("editMessageReplyMarkup", Message, **parameters)

    async def delete_message(self, chat_id: int, message_id: int) -> None:
        await self.call("deleteMessage", Literal[True], chat_id=chat_id, message_id=message_id)

    async def answer_callback_query(
        self, query_id: str, *, text: str | None = None, show_alert: bool | None = None
    ) -> None:
        parameters = {"callback_query_id": query_id, "text": text, "show_alert": show_alert}
        await self.call("answerCallbackQuery", Literal[True], **parameters)

    async def set_webhook(
        self,
        url: str,
        *,
        secret_token: str | None = None,
        allowed_updates: Sequence[str] | None = None,
        drop_pending_updates: bool | None = None,
    ) -> None:
        parameters = {"secret_token": secret_token, "allowed_updates": allowed_updates}
        await self.call("setWebhook", Literal[True], url=url, drop_pending_updates=drop_pending_updates, **parameters)

    async def delete_webhook(self, *, drop_pending_updates: bool | None = None) -> None:
        await self.call("deleteWebhook", Literal[True], drop_pending_updates=drop_pending_updates)

    async def get_webhook_info(self) -> WebhookInfo:
        info: WebhookInfo = await self.call("getWebhookInfo", WebhookInfo)
        return info

    async def set_my_commands(
        self, commands: Sequence[BotCommand], *, scope: dict[str, Any] | None = None, language_code: str | None = None
    ) -> None:
        parameters = {"commands": commands, "scope": scope, "language_code": language_code}
        await self.call("setMyCommands", Literal[True], **parameters)

    async def get_my_commands(
        self, *, scope: dict[str, Any] | None = None, language_code: str | None = None
    ) -> list[BotCommand]:
        parameters = {"scope": scope, "language_code": language_code}
        commands: list[BotCommand] = await self.call("getMyCommands", list[BotCommand], **parameters)
        return commands

    async def delete_my_commands(self) -> None:
        await self.call("deleteMyCommands", Literal[True])


def _field(value: Any) -> str:
    """Return a parameter as a form carries it: objects and lists as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, default=lambda each: each.model_dump(exclude_none=True))
