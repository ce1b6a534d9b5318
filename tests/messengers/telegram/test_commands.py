"""The list of commands that clients show."""

import pytest
from aiogram import Bot
from structlog.testing import capture_logs
from tests.messengers.telegram.conftest import TOKEN, Fault, ScriptedApi

from taproof.messengers.telegram.commands import announce_commands
from taproof.messengers.telegram.texts import LANGUAGES


async def test_commands_are_listed_in_each_language(bot: Bot, api: ScriptedApi) -> None:
    """For private chats only; English is for whoever's language has no list."""
    await announce_commands(bot)
    listed = {call.get("language_code"): call["commands"] for call in api.of("setMyCommands")}
    assert set(listed) == {None, *LANGUAGES} - {"en"}
    for language, commands in listed.items():
        control = LANGUAGES[language or "en"].control
        assert commands == [
            {"command": "sessions", "description": control.sessions_command},
            {"command": "block", "description": control.block_command},
            {"command": "unblock", "description": control.unblock_command},
        ]
    assert {str(call["scope"]) for call in api.of("setMyCommands")} == {"{'type': 'all_private_chats'}"}


@pytest.mark.parametrize("fault", [Fault(429, "Too Many Requests: retry after 9", {"retry_after": 9}), Fault(500, "x")])
async def test_failure_is_only_logged(fault: Fault, bot: Bot, api: ScriptedApi) -> None:
    """Nothing depends on the list, and it is not worth a second call."""
    api.fail("setMyCommands", fault)
    with capture_logs() as logs:
        await announce_commands(bot)
    assert len(api.of("setMyCommands")) == 1
    assert [entry["event"] for entry in logs] == ["bot_commands_not_listed"]
    assert TOKEN not in str(logs)
