"""The names of a setting: its option, its variable, and the error messages about missing settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

PREFIX: Final = "TAPROOF_"


@dataclass(frozen=True, slots=True)
class ValueForm:
    """The notation of a type's values.

    Attributes:
        metavar: the placeholder of the value in `--help`; "" for a switch.
        must: completes the error "--port (TAPROOF_PORT) …" about an invalid value.
        many: the option can be repeated, and accepts comma-separated values.
    """

    metavar: str
    must: str
    many: bool = False


SWITCH: Final = ValueForm("", "must be 1 or 0")


def choice_form(choices: Sequence[str]) -> ValueForm:
    """Return the form of a setting with a few possible values."""
    return ValueForm("|".join(choices), f"must be {', '.join(choices[:-1])} or {choices[-1]}")


@dataclass(frozen=True, slots=True)
class Option:
    """One setting in `--help` and in the docs; `panel` is its group.

    `default` is the default in words. The last three are those of its `ValueForm`.
    """

    flag: str
    panel: str
    help: str
    default: str
    metavar: str
    must: str
    many: bool


def flag(name: str) -> str:
    """Return the option of a setting, such as `--port`."""
    return "--database" if name == "database_url" else "--" + name.replace("_", "-")


def variable(name: str) -> str:
    """Return the environment variable of a setting, such as `TAPROOF_PORT`."""
    return PREFIX + name.upper()


def called(name: str) -> str:
    """Return the name of a setting in sentences: `--port (TAPROOF_PORT)`."""
    return f"{flag(name)} ({variable(name)})"


NO_MASTER_KEY: Final = (
    f"{variable('master_key')} is not set. With PostgreSQL, every node and every command needs the same key, which is "
    "not stored in a file. Create a key only for a new database: openssl rand -base64 32"
)
"""The error of every command that needs stored secrets, on PostgreSQL without the key."""


def no_messenger(role: str, bot_updates: str) -> str:
    """Return the error of a node that needs a bot token and has none."""
    if role == "api" and bot_updates == "polling":  # The node only answers HTTP, and so needs no bot.
        return (
            f"The address of sign-in links is unknown. Set {called('messenger_link_base')}, such as "
            f"https://t.me/my_bot, or {called('bot_token')}."
        )
    return (
        f"There is no messenger to sign in with. Set {called('bot_token')} to the token of a bot from @BotFather, or "
        f"try Taproof out with {called('sandbox')}."
    )
