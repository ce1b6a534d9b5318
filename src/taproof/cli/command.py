"""Declare and run commands: settings become options, errors become sentences, and commands open their store here."""
# ruff: noqa: PLC0415 — only the command that needs a slow module imports it, so that `--help` is fast.

import asyncio
import contextlib
import inspect
import os
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Annotated, Any, Final

import typer

from taproof.cli.help import HelpCommand, HelpGroup
from taproof.config.database_url import shown_database
from taproof.config.options import called, variable
from taproof.config.settings import OPTIONS, Settings, load_settings
from taproof.core.clock import system_clock
from taproof.core.encryption import Encryptor
from taproof.core.entropy import system_entropy
from taproof.core.errors import TaproofError
from taproof.service.developers import Developers
from taproof.service.installation import check_mode
from taproof.storage.protocol import Storage

Given = Mapping[str, Any]
"""The settings that were given as options or in the environment, by field name."""

Email = Annotated[str, typer.Argument(metavar="EMAIL", help="The developer's e-mail address.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

STORE: Final = ("database_url", "pgbouncer", "sandbox")
"""The settings that locate the database. The sandbox has its own default."""

_EXIT_CODES: Final = {"invalid_settings": 2}
"""Exit codes by error code; the code of every other error is 1."""
_MUST: Final = {
    **{name: (called(name), option.must) for name, option in OPTIONS.items()},
    "plan": ("--plan", "must be free, pro or business"),
    "to_plan": ("PLAN", "must be free, pro or business"),
    "limit": ("--limit", "must be a whole number from 1 to 200"),
    "expires_days": ("--expires-days", "must be a whole number of days from 1 to 3650"),
    "id_token_lifetime": ("--id-token-lifetime", "must be a whole number of seconds from 300 to 86400"),
    "listen_port": ("--port", "must be a whole number from 0 to 65535"),
    "answer_status": ("--status", "must be an HTTP status from 200 to 599"),
}
"""By parameter: its name in the error message, and what the value must be."""


class _Command(HelpCommand):
    """A command that reports an invalid option with the same message as its environment variable.

    If an argument is missing, the error shows all of them in order: the value that was given may be meant for another.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            name = (error.param.name if error.param else None) or ""
            arguments = {each.name: each.metavar for each in self.params if each.param_type_name == "argument"}
            # Typer does not export this class.
            if type(error).__name__ == "MissingParameter" and name in arguments:
                usage = " ".join([ctx.command_path, *map(str, arguments.values()), "[OPTIONS]"])
                typer.echo(f"{arguments[name]} is missing. Usage: {usage}", err=True)
                raise typer.Exit(2) from None
            if name not in _MUST:
                raise
            typer.echo(f"{' '.join(_MUST[name])}.", err=True)
            raise typer.Exit(2) from None


class NoDatabase(TaproofError, code="no_database"):
    """There is no database yet."""


def group(name: str, text: str) -> typer.Typer:
    """Return a group of commands; `text` is its line in `--help`."""
    # Rich's tracebacks show local variables, which may contain secrets.
    return typer.Typer(
        name=name,
        cls=HelpGroup,
        help=text,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def command(commands: typer.Typer, name: str, *settings: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a function, which may be async, as a command. Its first argument is these settings, read from options.

    An error ends the command with one sentence on stderr, never a traceback, which could contain a secret.
    """

    def add(work: Callable[..., Any]) -> Callable[..., Any]:
        own = list(inspect.signature(work).parameters.values())[1:]
        # Only the commands that listen start the sandbox itself.
        others = {} if "host" in settings else {"sandbox": "Use the sandbox's database."}
        parameters = [*own, *(_option(setting, others.get(setting, OPTIONS[setting].help)) for setting in settings)]

        def run(**values: Any) -> None:
            options = {setting: values.pop(setting) for setting in settings}
            given = {setting: value for setting, value in options.items() if value not in (None, False, [])}
            try:
                result = work(given, **values)
                if inspect.iscoroutine(result):
                    asyncio.run(result)
            except TaproofError as error:
                typer.echo(error.sentence, err=True)
                raise typer.Exit(_EXIT_CODES.get(error.code, 1)) from None
            except (BrokenPipeError, typer.Exit):
                raise
            except Exception as error:  # noqa: BLE001 — a traceback may contain a secret.
                _print_bug(error)
                raise typer.Exit(1) from None

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # Typer reads it.
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.__doc__ = work.__doc__
        commands.command(name, cls=_Command)(run)
        return work

    return add


def _option(setting: str, meaning: str) -> inspect.Parameter:
    """Return the option of a setting, as a parameter of a command."""
    option = OPTIONS[setting]
    kind: Any = (list[str] if option.many else str) | None if option.metavar else bool
    details = typer.Option(
        option.flag,
        envvar=variable(setting),
        help=f"{meaning} Default: {option.default}." if option.default else meaning,
        rich_help_panel=option.panel,
        metavar=option.metavar or None,
    )
    return inspect.Parameter(
        setting,
        inspect.Parameter.KEYWORD_ONLY,
        default=None if option.metavar else False,
        annotation=Annotated[kind, details],
    )


def _print_bug(error: Exception) -> None:
    """Print the type of an unexpected error. TAPROOF_LOG_LEVEL=debug adds the traceback, with secrets masked."""
    if isinstance(error, OSError) and error.strerror:
        typer.echo(f"{error.filename or 'The system'}: {error.strerror}.", err=True)
    else:
        typer.echo(
            f"Internal error ({type(error).__name__}). Please report it, with the output of this command after "
            f"setting {variable('log_level')}=debug.",
            err=True,
        )
    if os.environ.get(variable("log_level"), "").lower() == "debug":
        import traceback

        from taproof.config.logging import redact_text

        typer.echo(redact_text("".join(traceback.format_exception(error))), err=True)


def load(given: Given) -> Settings:
    """Read the settings and send the log to stderr, so that stdout contains only the result."""
    from taproof.config.logging import configure_logging

    settings = load_settings({name: ",".join(each) if OPTIONS[name].many else each for name, each in given.items()})
    configure_logging(settings.log_level, settings.log_format)
    return settings


async def require_database(settings: Settings) -> None:
    """Refuse to continue without a database. Creating one in the wrong place would hide the mistake."""
    from taproof.runtime.store import has_database

    if await has_database(settings.database_url):
        return
    missing = f"There is no Taproof database at {shown_database(settings.database_url)}."
    option = called("database_url")
    if settings.sandbox:
        raise NoDatabase(
            f"{missing} Run this command in the directory in which you started the sandbox, or set {option} to its "
            "database."
        )
    raise NoDatabase(
        f"{missing} Set {option} to its address, add --sandbox to use the sandbox's database, or create a database "
        "with: taproof migrate"
    )


@contextlib.asynccontextmanager
async def open_store(settings: Settings, *, may_create: bool = False) -> AsyncIterator[Storage]:
    """Open the store of a command. It must exist, unless `may_create` is true."""
    from taproof.runtime.store import open_storage

    if not may_create:
        await require_database(settings)
    storage = await open_storage(settings.database_url, pgbouncer=settings.pgbouncer)
    try:
        yield storage
    finally:
        await storage.close()


@contextlib.asynccontextmanager
async def open_developers(given: Given, *, may_create: bool = False) -> AsyncIterator[Developers]:
    """Open the store for the use cases of developers; see `open_store`."""
    async with open_store(load(given), may_create=may_create) as storage:
        yield Developers(storage, system_clock, system_entropy)


@contextlib.asynccontextmanager
async def open_encrypted_store(settings: Settings) -> AsyncIterator[tuple[Storage, Encryptor]]:
    """Open an existing store, and the encryptor for its secrets."""
    from taproof.runtime.store import open_encryptor

    async with open_store(settings) as storage:
        await check_mode(storage, sandbox=settings.sandbox)
        yield storage, await open_encryptor(settings, storage)
