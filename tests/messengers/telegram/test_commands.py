"""The list of commands that clients show."""

import pytest
from structlog.testing import capture_logs
from tests.messengers.telegram.conftest import TOKEN, Fault, ScriptedApi

from taproof.messengers.telegram.bot_api import Bot
from taproof.messengers.telegram.commands import announce_commands
from taproof.messengers.telegram.user_control_replies import commands_help
from taproof.messengers.texts.catalog import LANGUAGES


async def test_commands_are_listed_in_each_language(bot: Bot, api: ScriptedApi) -> None:
    """The lists are for private chats only, and English is the default. An existing list is not set again."""
    api.results["getMyCommands"] = []
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
    api.results["getMyCommands"] = listed[None]
    await announce_commands(bot)
    assert len(api.of("setMyCommands")) == len(listed)


@pytest.mark.parametrize("fault", [Fault(429, "Too Many Requests: retry after 9", {"retry_after": 9}), Fault(500, "x")])
async def test_failure_is_only_logged(fault: Fault, bot: Bot, api: ScriptedApi) -> None:
    """The list is optional, so a failure is logged and not retried."""
    api.results["getMyCommands"] = []
    api.fail("setMyCommands", fault)
    with capture_logs() as logs:
        await announce_commands(bot)
    assert len(api.of("setMyCommands")) == 1
    assert [entry["event"] for entry in logs] == ["bot_commands_not_listed"]
    assert TOKEN not in str(logs)


def test_commands_can_be_tapped_in_the_help() -> None:
    """In each language's help, commands begin their lines, where clients make them links."""
    names = {
        language: [line.split()[0] for line in commands_help(texts.control).splitlines()]
        for language, texts in LANGUAGES.items()
    }
    assert names == {language: ["/sessions", "/block", "/unblock"] for language in LANGUAGES}
