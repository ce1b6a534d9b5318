"""The names of a setting: its option, its variable, and the sentences that ask for it."""

from dataclasses import dataclass
from typing import Final

PREFIX: Final = "TAPROOF_"


@dataclass(frozen=True, slots=True)
class ValueForm:
    """The notation of a type's values.

    Attributes:
        metavar: what stands for the value in `--help`; "" for a switch.
        must: completes "--port (TAPROOF_PORT) …" when the value cannot be used.
        many: the option may be repeated, and takes values with commas between them.
    """

    metavar: str
    must: str
    many: bool = False


SWITCH: Final = ValueForm("", "must be 1 or 0")


@dataclass(frozen=True, slots=True)
class Option:
    """One setting in `--help` and in the docs; `panel` is its group.

    `help` completes a line of `--help`. `default` says in words what holds without the setting.
    The last three are those of its `ValueForm`.
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
    """Return how a sentence names a setting: `--port (TAPROOF_PORT)`."""
    return f"{flag(name)} ({variable(name)})"


NO_MESSENGER: Final = (
    f"There is no messenger to sign in with. Give {called('bot_token')}, the token of a bot from @BotFather, or try "
    f"everything out with {called('sandbox')}."
)
"""The error of `serve` without a bot token and without the sandbox."""

NO_LINK_BASE: Final = (
    f"This node cannot tell where sign-in links lead. Give {called('messenger_link_base')}, such as "
    f"https://t.me/my_bot, or {called('bot_token')}."
)
"""The same error for a node that only answers HTTP, and so needs no bot."""

NO_MASTER_KEY: Final = (
    f"Set {variable('master_key')}: with PostgreSQL every node and every command needs the same key, which is kept in "
    "no file. Only for a new database make one, with: openssl rand -base64 32"
)
"""The error of every command that needs stored secrets, on PostgreSQL without the key."""


def no_messenger(role: str, bot_updates: str) -> str:
    """Return the error of a node that needs a bot token and has none."""
    return NO_LINK_BASE if role == "api" and bot_updates == "polling" else NO_MESSENGER
