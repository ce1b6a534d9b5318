"""The command lists that a bot shows (https://core.telegram.org/bots/api#setmycommands).

There is one list for each scope and language. The checks and their error texts are those of the real server.
"""

import re
from typing import Final

from taproof.sandbox.telegram.people import People
from taproof.sandbox.telegram.request import Answer, Parameters, bad_request, read_json, required_field

LIST_LIMIT: Final = 100
_COMMAND_LIMIT: Final = 100
_CHAT: Final = re.compile(r"[0-9]{1,16}")
_COMMAND: Final = re.compile(r"[a-z0-9_]+")
_LANGUAGE: Final = re.compile(r"[a-z]{2}|")
_PLAIN_SCOPES: Final = {"default", "all_private_chats", "all_group_chats", "all_chat_administrators"}
_GROUP_SCOPES: Final = {"chat_administrators", "chat_member"}

Key = tuple[str, int, str]


class CommandLists:
    """One bot's lists of commands. A private chat can have its own list."""

    def __init__(self, people: People) -> None:
        self._people = people
        self._lists: dict[Key, list[dict[str, str]]] = {}

    async def set(self, parameters: Parameters) -> Answer:
        """Store a list of commands; an empty list deletes it.

        Raises:
            ApiError: a command, the scope or the language is invalid, or there are too many.
        """
        commands = _parse_commands(parameters.text("commands"))
        key = self._key(parameters)
        checked = [_checked(command) for command in commands]
        if key not in self._lists and len(self._lists) >= LIST_LIMIT:
            raise bad_request("too many scopes for the sandbox; delete some with deleteMyCommands")
        if len(checked) > _COMMAND_LIMIT:
            raise bad_request("BOT_COMMANDS_TOO_MUCH")
        if checked:
            self._lists[key] = checked
        else:
            self._lists.pop(key, None)
        return True, None

    async def get(self, parameters: Parameters) -> Answer:
        """Return the list of exactly this scope and language, empty if there is none."""
        return self._lists.get(self._key(parameters), []), None

    async def delete(self, parameters: Parameters) -> Answer:
        """Delete the list of exactly this scope and language."""
        self._lists.pop(self._key(parameters), None)
        return True, None

    def _key(self, parameters: Parameters) -> Key:
        kind, chat_id = self._scope(parameters.text("scope"))
        language_code = parameters.text("language_code")
        if _LANGUAGE.fullmatch(language_code) is None:
            raise bad_request("invalid language code specified")
        return kind, chat_id, language_code

    def _scope(self, text: str) -> tuple[str, int]:
        if not text:
            return "default", 0
        try:
            scope = read_json(text)
        except ValueError:
            raise bad_request("can't parse BotCommandScope JSON object") from None
        if not isinstance(scope, dict):
            raise bad_request("can't parse BotCommandScope: BotCommandScope must be an Object")
        kind = required_field(scope, "type", "BotCommandScope", str | int)
        if kind in _PLAIN_SCOPES:
            return kind, 0
        if kind != "chat" and kind not in _GROUP_SCOPES:
            raise bad_request("can't parse BotCommandScope: Unsupported type specified")
        chat_id = required_field(scope, "chat_id", "BotCommandScope", str | int)
        if kind == "chat_member":
            required_field(scope, "user_id", "BotCommandScope", str | int)
        user_id = int(chat_id) if _CHAT.fullmatch(chat_id) else 0
        if user_id not in self._people:
            raise bad_request("chat not found")
        if kind in _GROUP_SCOPES:
            raise bad_request("can't use specified scope in private chats")
        return kind, user_id


def _parse_commands(text: str) -> list[dict[str, str]]:
    try:
        value = read_json(text or "[]")
    except ValueError:
        raise bad_request("can't parse commands JSON object") from None
    if not isinstance(value, list):
        raise bad_request("expected an Array of BotCommand")
    commands = []
    for item in value:
        if not isinstance(item, dict):
            raise bad_request("can't parse BotCommand: expected an Object")
        commands.append({name: required_field(item, name, "BotCommand") for name in ("command", "description")})
    return commands


def _checked(item: dict[str, str]) -> dict[str, str]:
    command, description = item["command"].strip().removeprefix("/"), item["description"].strip()
    if not command:
        raise bad_request("command must be non-empty")
    if len(command) > 32:
        raise bad_request("command length must not exceed 32")
    if not description:
        raise bad_request("command description must be non-empty")
    if len(description) > 256:
        raise bad_request("command description length must not exceed 256")
    if _COMMAND.fullmatch(command) is None:
        raise bad_request("BOT_COMMAND_INVALID")
    return {"command": command, "description": description}
