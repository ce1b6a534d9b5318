"""The types of the Bot API (https://core.telegram.org/bots/api#available-types), with the fields that Taproof uses.

A class without a description is the object of the same name, such as https://core.telegram.org/bots/api#user.
Unknown fields are ignored. For a field of type `Any`, only its presence matters.
"""

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError


class _Type(BaseModel):
    model_config = ConfigDict(frozen=True)


class User(_Type):
    id: int
    is_bot: bool
    first_name: str
    last_name: str | None = None
    username: str | None = None
    language_code: str | None = None

    @property
    def full_name(self) -> str:
        """The first and the last name."""
        return f"{self.first_name} {self.last_name}" if self.last_name else self.first_name


class BotFullInfo(User):
    """The bot itself with its settings, as getMe returns it: https://core.telegram.org/bots/api#getme.

    No server is known to return `callback_query_mode`, which setMySettings changes (Bot API 10.5).
    """

    can_manage_bots: bool | None = None
    can_read_all_group_messages: bool | None = None
    supports_inline_queries: bool | None = None
    supports_guest_queries: bool | None = None
    can_connect_to_business: bool | None = None
    callback_query_mode: str | None = None


class Chat(_Type):
    id: int
    type: str


class Contact(_Type):
    phone_number: str
    first_name: str
    last_name: str | None = None
    user_id: int | None = None


class _Whole(_Type):
    """A type whose unknown fields are kept, because they may change what a message shows."""

    model_config = ConfigDict(frozen=True, extra="allow")


class MessageEntity(_Whole):
    type: str


class LinkPreviewOptions(_Whole):
    is_disabled: bool | None = None


class InlineKeyboardButton(_Type):
    text: str
    callback_data: str | None = None
    url: str | None = None
    style: str | None = None
    icon_custom_emoji_id: str | None = None


class InlineKeyboardMarkup(_Type):
    inline_keyboard: list[list[InlineKeyboardButton]]


def inline_keyboard(*rows: Iterable[tuple[str, str]], link: tuple[str, str] | None = None) -> InlineKeyboardMarkup:
    """Return a keyboard from rows of buttons, each given as its label and its callback data.

    `link` is the label and URL of a button above them.
    """
    buttons = [[InlineKeyboardButton(text=label, callback_data=data) for label, data in row] for row in rows]
    first = [] if link is None else [[InlineKeyboardButton(text=link[0], url=link[1])]]
    return InlineKeyboardMarkup(inline_keyboard=[*first, *buttons])


class KeyboardButton(_Type):
    text: str
    request_contact: bool | None = None


class ReplyKeyboardMarkup(_Type):
    keyboard: list[list[KeyboardButton]]
    resize_keyboard: bool | None = None
    one_time_keyboard: bool | None = None


class ReplyKeyboardRemove(_Type):
    remove_keyboard: Literal[True] = True


class RepliedMessage(_Type):
    """A message that another one replies to. `date` is 0 if the messenger no longer has it."""

    message_id: int | None = None
    date: int | None = None
    from_user: User | None = Field(default=None, alias="from")
    text: str | None = None
    forum_topic_created: Any = None


class Message(_Type):
    """The Bot API object Message, from a user: https://core.telegram.org/bots/api#message."""

    message_id: int
    date: int
    chat: Chat
    message_thread_id: int | None = None
    is_topic_message: bool | None = None
    from_user: User | None = Field(default=None, alias="from")
    text: str | None = None
    contact: Contact | None = None
    reply_to_message: RepliedMessage | None = None
    external_reply: Any = None
    reply_to_story: Any = None
    forward_origin: Any = None
    via_bot: Any = None
    business_connection_id: Any = None
    animation: Any = None
    audio: Any = None
    document: Any = None
    live_photo: Any = None
    location: Any = None
    photo: Any = None
    rich_message: Any = None
    sticker: Any = None
    venue: Any = None
    video: Any = None
    video_note: Any = None
    voice: Any = None


class ShownMessage(Message):
    """The same object, with all that a message of the bot's own shows.

    A message of a user is parsed without these fields, so an unknown form of one of them cannot make it unreadable.
    """

    entities: list[MessageEntity] | None = None
    reply_markup: InlineKeyboardMarkup | None = None
    edit_date: int | None = None
    link_preview_options: LinkPreviewOptions | None = None


class SentMessage(_Type):
    """A message that the bot has just sent or edited. `shown` is None if the messenger returned it in an unknown form.

    The user has the message in any case, so its form must not make the call fail.
    """

    message_id: int
    shown: ShownMessage | None = None

    @classmethod
    def read(cls, result: Any) -> "SentMessage":
        """Return the result of a call that sends or edits a message.

        Raises:
            ValueError: the result is not a message.
        """
        only_id = {"message_id": result.get("message_id")} if isinstance(result, dict) else result
        sent = cls.model_validate(only_id)
        try:
            return cls(message_id=sent.message_id, shown=ShownMessage.model_validate(result))
        except ValidationError:
            return sent


class InaccessibleMessage(_Type):
    message_id: int
    date: Literal[0]
    chat: Chat


class UnreadableMessage(_Type):
    """A message in another form than the documentation's. It must not make the whole tap unreadable."""


TappedMessage = InaccessibleMessage | ShownMessage | UnreadableMessage


class CallbackQuery(_Type):
    id: str
    from_user: User = Field(alias="from")
    message: TappedMessage | None = Field(default=None, union_mode="left_to_right")
    inline_message_id: Any = None
    data: str | None = None


class ChatMember(_Type):
    status: str


class ChatMemberUpdated(_Type):
    chat: Chat
    new_chat_member: ChatMember


class ManagedBotUpdated(_Type):
    user: User
    bot: User


class Update(_Type):
    """The Bot API object Update: https://core.telegram.org/bots/api#update.

    An update of any other kind has none of the optional fields.
    """

    update_id: int
    message: Message | None = None
    callback_query: CallbackQuery | None = None
    my_chat_member: ChatMemberUpdated | None = None
    managed_bot: ManagedBotUpdated | None = None


class BotCommand(_Type):
    command: str
    description: str


class WebhookInfo(_Type):
    url: str
    allowed_updates: list[str] | None = None
    """The kinds of updates that are delivered; None or an empty list means all that are delivered by default."""


class ResponseParameters(_Type):
    retry_after: int | None = None


class Response(_Type):
    """The response to any call: https://core.telegram.org/bots/api#making-requests."""

    ok: bool
    result: Any = None
    description: str | None = None
    parameters: ResponseParameters | None = None
