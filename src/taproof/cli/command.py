"""Declare and run commands: settings become options, errors become sentences, and use cases get their store."""
# ruff: noqa: PLC0415 — slow imports are left to the command that needs them, so that `--help` is quick.

import asyncio
import contextlib
import inspect
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer
from typer.core import TyperCommand

from taproof.config.database_url import shown_database
from taproof.config.options import called, variable
from taproof.config.settings import OPTIONS, Settings, load_settings
from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.errors import TaproofError

if TYPE_CHECKING:
    from taproof.core.encryption import Encryptor
    from taproof.service.developers import Developers
    from taproof.service.projects import Projects
    from taproof.storage.protocol import Storage

T = TypeVar("T")
Given = Mapping[str, Any]
"""The settings that were given as options or in the environment, by field name."""

_ENDS: Final = {"invalid_settings": 2}
"""Exit codes by error code; every other error ends with 1."""
_MUST: Final = {
    **{name: (called(name), option.must) for name, option in OPTIONS.items()},
    "plan": ("--plan", "must be free, pro or business"),
    "to_plan": ("PLAN", "must be free, pro or business"),
    "limit": ("--limit", "must be a whole number from 1 to 10000"),
    "expires_days": ("--expires-days", "must be a whole number of days from 1 to 3650"),
    "listen_port": ("--port", "must be a whole number from 0 to 65535"),
    "answer_status": ("--status", "must be an HTTP status from 200 to 599"),
}
"""By parameter: its name in the sentence about an invalid value, and what the value must be."""


class _Command(TyperCommand):
    """A command that refuses an option in the same words as the environment variable."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            name = (error.param.name if error.param else None) or ""
            if name not in _MUST:
                raise
            typer.echo(f"{' '.join(_MUST[name])}.", err=True)
            raise typer.Exit(2) from None


class NoDatabase(TaproofError, code="no_database"):
    """There is no database yet."""


def command(group: typer.Typer, name: str, *settings: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a command that also takes these settings as options. Its function gets them as its first argument.

    An error ends it with one sentence on stderr, never a traceback, which could hold a secret.
    """

    def add(work: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(work).parameters.values())[1:]
        # Only the commands that listen start the sandbox itself.
        others = {} if "host" in settings else {"sandbox": "Use the sandbox's database."}
        parameters = [*own, *(_option(setting, others.get(setting, OPTIONS[setting].help)) for setting in settings)]

        def run(**values: Any) -> None:
            options = {setting: values.pop(setting) for setting in settings}
            try:
                work({setting: value for setting, value in options.items() if value not in (None, False, [])}, **values)
            except TaproofError as error:
                typer.echo(error.sentence, err=True)
                raise typer.Exit(_ENDS.get(error.code, 1)) from None
            except (BrokenPipeError, typer.Exit):
                raise
            except Exception as error:  # noqa: BLE001 — a traceback may hold a secret.
                _print_bug(error)
                raise typer.Exit(1) from None

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # What typer reads.
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.__doc__ = work.__doc__
        group.command(name, cls=_Command)(run)
        return work

    return add


def _option(setting: str, meaning: str) -> inspect.Parameter:
    """Return the option of a setting, as a parameter of a command."""
    option = OPTIONS[setting]
    details: dict[str, Any] = {
        "envvar": variable(setting),
        "help": f"{meaning} Default: {option.default}." if option.default else meaning,
        "rich_help_panel": option.panel,
    }
    kind: Any = bool if not option.metavar else list[str] if option.many else str
    default = False if kind is bool else None
    if kind is not bool:
        details["metavar"] = option.metavar
        kind = kind | None
    return inspect.Parameter(
        setting,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, typer.Option(option.flag, **details)],
    )


def _print_bug(error: Exception) -> None:
    """Print the type of an unexpected error. TAPROOF_LOG_LEVEL=debug adds the traceback, with secrets masked."""
    if isinstance(error, OSError) and error.strerror:
        typer.echo(f"{error.filename or 'The system'}: {error.strerror}.", err=True)
    else:
        typer.echo(
            f"Internal error ({type(error).__name__}). Please report it, with what this says after setting "
            f"{variable('log_level')}=debug.",
            err=True,
        )
    if os.environ.get(variable("log_level"), "").lower() == "debug":
        import traceback

        from taproof.config.logging import redact_text

        typer.echo(redact_text("".join(traceback.format_exception(error))), err=True)


def load(given: Given) -> Settings:
    """Read the settings and send the log to stderr, so that stdout holds only the answer."""
    from taproof.config.logging import configure_logging

    settings = load_settings({name: ",".join(each) if OPTIONS[name].many else each for name, each in given.items()})
    configure_logging(settings.log_level, settings.log_format)
    return settings


async def require_database(settings: Settings) -> None:
    """Refuse to go on without a database. A new, empty one in the wrong place would hide the mistake."""
    from taproof.runtime.store import has_database

    if not await has_database(settings.database_url):
        missing = f"There is no database of Taproof at {shown_database(settings.database_url)}."
        option = called("database_url")
        if settings.sandbox:
            raise NoDatabase(
                f"{missing} Run this in the directory in which the sandbox was started, or say with {option} where its "
                "database is."
            )
        raise NoDatabase(
            f"{missing} Say where it is with {option}, add --sandbox for the sandbox's, or make a new one with: "
            "taproof migrate"
        )


def with_storage(given: Given, work: Callable[["Storage"], Awaitable[T]], *, may_make: bool = False) -> T:
    """Run a use case that needs only the store. With `may_make` the store may be created."""
    settings = load(given)

    from taproof.runtime.store import open_storage

    async def run() -> T:
        if not may_make:
            await require_database(settings)
        storage = await open_storage(settings.database_url, pgbouncer=settings.pgbouncer)
        try:
            return await work(storage)
        finally:
            await storage.close()

    return asyncio.run(run())


def with_developers(given: Given, work: Callable[["Developers"], Awaitable[T]], *, may_make: bool = False) -> T:
    """Run a use case of developers; see `with_storage`."""
    from taproof.service.developers import Developers

    return with_storage(
        given, lambda storage: work(Developers(storage, system_clock, system_entropy)), may_make=may_make
    )


def with_projects(given: Given, work: Callable[["Developers", "Projects"], Awaitable[T]]) -> T:
    """Run a use case that also needs the master key."""
    settings = load(given)

    from taproof.runtime.store import open_projects
    from taproof.service.developers import Developers

    async def run() -> T:
        async with open_encrypted_store(settings) as (storage, encryptor):
            developers = Developers(storage, system_clock, system_entropy)
            return await work(developers, open_projects(settings, storage, encryptor))

    return asyncio.run(run())


@contextlib.asynccontextmanager
async def open_encrypted_store(settings: Settings) -> AsyncIterator[tuple["Storage", "Encryptor"]]:
    """Open an existing store, and the encryptor of its secrets."""
    from taproof.runtime.store import open_encryptor, open_storage
    from taproof.service.installation import check_mode

    await require_database(settings)
    storage = await open_storage(settings.database_url, pgbouncer=settings.pgbouncer)
    try:
        await check_mode(storage, sandbox=settings.sandbox)
        yield storage, await open_encryptor(settings, storage)
    finally:
        await storage.close()
