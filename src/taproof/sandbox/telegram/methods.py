"""The methods of the sandbox's Bot API (https://core.telegram.org/bots/api#available-methods).

Each takes the call's parameters and returns the result, or raises ApiError with the real server's text. The checks
also run in the real order: the text, the keyboard, the chat, and then the checks of the messenger itself.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import urlsplit

from taproof.core.clock import DAY, Clock
from taproof.sandbox.hosts import OwnHosts
from taproof.sandbox.telegram.chats import SandboxChat
from taproof.sandbox.telegram.commands import CommandLists
from taproof.sandbox.telegram.faults import FloodLimit
from taproof.sandbox.telegram.html import EntitiesInvalid, FormattedText, clean_text, parse_html, trim, utf16_length
from taproof.sandbox.telegram.messenger import CALLBACK_MODES, Messenger
from taproof.sandbox.telegram.reply_markup import parse_reply_markup
from taproof.sandbox.telegram.request import Answer, ApiError, Parameters, bad_request
from taproof.sandbox.telegram.webhook import UpdateSender, Webhook

TEXT_LIMIT: Final = 4096
NOTICE_LIMIT: Final = 200
LONGEST_POLL: Final = 50
"""The maximum wait of getUpdates, in seconds."""
DELETABLE: Final = 2 * DAY
"""The time in ms within which a message can be deleted."""
_SETTINGS: Final = (
    *("can_join_groups", "can_read_all_group_messages", "supports_inline_queries", "supports_guest_queries"),
    *("can_connect_to_business", "supports_join_request_queries"),
    *("has_topics_enabled", "allows_users_to_create_topics"),
)
"""The settings that setMySettings changes and getMe returns, apart from `can_manage_bots`."""
_SECRET_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]*")
_WEBHOOK_PORTS: Final = {None, 443, 80, 88, 8443}
_NOT_MODIFIED: Final = (
    "message is not modified: specified new message content and reply markup are exactly the same as a current "
    "content and reply markup of the message"
)
_QUERY_TOO_OLD: Final = "query is too old and response timeout expired or query ID is invalid"


class BotMethods:
    """Answers one bot's calls. Only on `own_hosts` can a webhook use plain HTTP and any port.

    `managed_token` returns the token of a bot that this one manages. With `can_manage_bots`, people can create such
    bots; @BotFather calls this "Bot Management Mode".
    """

    def __init__(
        self,
        messenger: Messenger,
        webhook: UpdateSender,
        own_hosts: OwnHosts,
        clock: Clock,
        managed_token: Callable[[int], str | None],
    ) -> None:
        self.can_manage_bots = False
        self._settings = dict.fromkeys(_SETTINGS, False)
        self._managed_token = managed_token
        self._messenger = messenger
        self._webhook = webhook
        self._own_hosts = own_hosts
        self._clock = clock
        self._flood = FloodLimit(clock)
        commands = CommandLists(messenger.people)
        self.by_name: Final[dict[str, Callable[[Parameters], Awaitable[Answer]]]] = {
            "getme": self._get_me,
            "getupdates": self._get_updates,
            "setwebhook": self._set_webhook,
            "deletewebhook": self._delete_webhook,
            "getwebhookinfo": self._get_webhook_info,
            "sendmessage": self._send_message,
            "editmessagetext": self._edit_message_text,
            "editmessagereplymarkup": self._edit_message_reply_markup,
            "deletemessage": self._delete_message,
            "answercallbackquery": self._answer_callback_query,
            "setmycommands": commands.set,
            "setmysettings": self._set_my_settings,
            "getmanagedbottoken": self._get_managed_bot_token,
            "getmycommands": commands.get,
            "deletemycommands": commands.delete,
            "logout": self._do_nothing,
            "close": self._do_nothing,
        }
        """The methods by their name in lower case. A refused call raises `ApiError`."""

    async def _get_me(self, _: Parameters) -> Answer:
        # Unlike the other settings, the mode of callback queries is not returned.
        abilities = {"has_main_web_app": False, "can_manage_bots": self.can_manage_bots, **self._settings}
        return self._messenger.bot | abilities, None

    async def _set_my_settings(self, parameters: Parameters) -> Answer:
        mode = parameters.text("callback_query_mode")
        if mode and mode not in CALLBACK_MODES:
            raise bad_request("invalid callback query mode specified")
        self._messenger.callback_mode = mode or self._messenger.callback_mode
        if parameters.text("can_manage_bots"):
            self.can_manage_bots = parameters.boolean("can_manage_bots")
        for name in self._settings:
            if parameters.text(name):
                self._settings[name] = parameters.boolean(name)
        return True, None

    async def _get_managed_bot_token(self, parameters: Parameters) -> Answer:
        token = self._managed_token(parameters.integer("user_id"))
        if token is None:
            raise bad_request("BOT_INVALID")
        return token, None

    async def _do_nothing(self, _: Parameters) -> Answer:
        return True, None

    # ---- updates

    async def _get_updates(self, parameters: Parameters) -> Answer:
        if self._webhook.webhook is not None:
            raise ApiError(
                409,
                "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the "
                "webhook first",
            )
        limit = min(max(parameters.integer("limit", 100), 1), 100)
        seconds = min(max(parameters.integer("timeout"), 0), LONGEST_POLL)
        self._messenger.updates.allow(parameters.text("allowed_updates"))
        return await self._messenger.updates.poll(parameters.integer("offset"), limit, seconds), None

    async def _set_webhook(self, parameters: Parameters) -> Answer:
        url = parameters.text("url")
        if not url:
            return await self._delete_webhook(parameters)
        webhook = Webhook(
            url=self._webhook_url(url),
            secret_token=parameters.text("secret_token"),
            max_connections=min(max(parameters.integer("max_connections", 40), 1), 100),
        )
        if len(webhook.secret_token) > 256:
            raise bad_request("secret token is too long")
        if not _SECRET_TOKEN.fullmatch(webhook.secret_token):
            raise bad_request("secret token contains unallowed characters")
        updates = self._messenger.updates
        updates.allow(parameters.text("allowed_updates"))
        dropping = parameters.boolean("drop_pending_updates")
        if webhook == self._webhook.webhook and not dropping:
            return True, "Webhook is already set"
        if dropping:
            updates.clear()
        updates.end_poll(ApiError(409, "Conflict: terminated by setWebhook request"))
        await self._webhook.set(webhook)
        return True, "Webhook was set"

    def _webhook_url(self, url: str) -> str:
        """Return a webhook's URL, or refuse it. Like the real server, add https:// if the scheme is missing."""
        if "://" not in url:
            url = f"https://{url}"
        try:
            parts = urlsplit(url)
            port, host = parts.port, parts.hostname or ""
        except ValueError:
            raise bad_request("invalid webhook URL specified") from None
        if not host or parts.scheme not in {"http", "https"} or not (url.isascii() and url.isprintable()) or " " in url:
            raise bad_request("invalid webhook URL specified")
        if not self._own_hosts.include(host):
            if parts.scheme != "https":
                raise bad_request("bad webhook: An HTTPS URL must be provided for webhook")
            if port not in _WEBHOOK_PORTS:
                raise bad_request("bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443")
        return url

    async def _delete_webhook(self, parameters: Parameters) -> Answer:
        if parameters.boolean("drop_pending_updates"):
            self._messenger.updates.clear()
        if self._webhook.webhook is None:
            return True, "Webhook is already deleted"
        await self._webhook.set(None)
        return True, "Webhook was deleted"

    async def _get_webhook_info(self, _: Parameters) -> Answer:
        webhook = self._webhook.webhook
        info: dict[str, Any] = {
            "url": webhook.url if webhook is not None else "",
            "has_custom_certificate": False,
            "pending_update_count": len(self._messenger.updates.pending()),
        }
        if self._webhook.last_error_date is not None:
            info["last_error_date"] = self._webhook.last_error_date
            info["last_error_message"] = self._webhook.last_error_message
        if webhook is not None:
            info["max_connections"] = webhook.max_connections
        if self._messenger.updates.allowed:
            info["allowed_updates"] = self._messenger.updates.allowed
        return info, None

    # ---- messages

    async def _send_message(self, parameters: Parameters) -> Answer:
        formatted = _formatted_text(parameters)
        markup = parse_reply_markup(parameters.text("reply_markup"))
        chat = self._chat(parameters)
        _check_writable(chat)
        _check_length(formatted)
        self._flood.count(chat.person.id)
        # Like the real server, read any other value than true, yes or 1 as false.
        is_protected = parameters.boolean("protect_content")
        message = self._messenger.post(chat, formatted, markup, is_protected=is_protected)
        return chat.as_message(message, self._messenger.bot), None

    async def _edit_message_text(self, parameters: Parameters) -> Answer:
        return self._edit(parameters, _formatted_text(parameters))

    async def _edit_message_reply_markup(self, parameters: Parameters) -> Answer:
        return self._edit(parameters, None)

    def _edit(self, parameters: Parameters, formatted: FormattedText | None) -> Answer:
        """Replace the text and the buttons of a message. With `formatted` None, keep the text."""
        if not parameters.text("chat_id") and not parameters.text("message_id"):
            raise bad_request("message identifier is not specified")
        markup = parse_reply_markup(parameters.text("reply_markup"))
        chat = self._chat(parameters)
        _check_writable(chat)
        message = chat.messages.get(parameters.integer("message_id"))
        if message is None:
            raise bad_request("message to edit not found")
        if not message.from_bot or not message.is_editable:
            raise bad_request("message can't be edited")
        if not markup.is_inline:
            raise bad_request("inline keyboard expected")
        current = FormattedText(message.text, message.entities)
        formatted = current if formatted is None else formatted
        _check_length(formatted)
        if (formatted, markup.inline) == (current, message.keyboard):
            raise bad_request(_NOT_MODIFIED)
        chat.edit(message, formatted, markup.inline, self._clock())
        return chat.as_message(message, self._messenger.bot), None

    async def _delete_message(self, parameters: Parameters) -> Answer:
        if not parameters.text("chat_id"):
            raise bad_request("chat identifier is not specified")
        if not parameters.text("message_id"):
            raise bad_request("message identifier is not specified")
        chat = self._chat(parameters)
        message = chat.messages.get(parameters.integer("message_id"))
        if message is None:
            raise bad_request("message to delete not found")
        if self._clock() - message.date > DELETABLE:
            raise bad_request("message can't be deleted for everyone")
        chat.delete(message)
        return True, None

    async def _answer_callback_query(self, parameters: Parameters) -> Answer:
        notice = clean_text(parameters.text("text"))
        if utf16_length(notice) > NOTICE_LIMIT:
            raise bad_request("MESSAGE_TOO_LONG")
        query_id = parameters.text("callback_query_id")
        if not self._messenger.answer(query_id, notice, shows_alert=parameters.boolean("show_alert")):
            raise bad_request(_QUERY_TOO_OLD)
        return True, None

    def _chat(self, parameters: Parameters) -> SandboxChat:
        if not parameters.text("chat_id"):
            raise bad_request("chat_id is empty")
        user_id = parameters.integer("chat_id")
        if user_id not in self._messenger.people:
            raise bad_request("chat not found")
        return self._messenger.chat(user_id)


def _formatted_text(parameters: Parameters) -> FormattedText:
    text = parameters.text("text")
    if not text:
        raise bad_request("message text is empty")
    parse_mode = parameters.text("parse_mode").lower()
    if parse_mode == "html":
        try:
            formatted = parse_html(text)
        except EntitiesInvalid as problem:
            raise bad_request(f"can't parse entities: {problem}") from None
    elif parse_mode in {"markdown", "markdownv2"} or parameters.text("entities") not in {"", "[]"}:
        raise bad_request("the sandbox knows no Markdown and takes no entities; use parse_mode HTML")
    elif parse_mode not in {"", "none"}:
        raise bad_request("unsupported parse_mode")
    else:
        formatted = FormattedText(clean_text(text), [])
    formatted = trim(formatted)
    if not formatted.text:
        raise bad_request("text must be non-empty")
    return formatted


def _check_length(formatted: FormattedText) -> None:
    if utf16_length(formatted.text) > TEXT_LIMIT:
        raise bad_request("message is too long")


def _check_writable(chat: SandboxChat) -> None:
    if chat.has_blocked:
        raise ApiError(403, "Forbidden: bot was blocked by the user")
    if not chat.has_started:
        raise ApiError(403, "Forbidden: bot can't initiate conversation with a user")
