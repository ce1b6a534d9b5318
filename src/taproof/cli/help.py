"""`--help`, which fits a screen, and `--help-all`, which shows everything.

`--help` leaves out options that are seldom used, and shows the first sentence of each explanation. For a group,
`--help-all` lists its commands with those of the groups below it.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from taproof.config.settings import OPTIONS

SELDOM: Final = "Seldom used"
"""The panel of a command's own options that only `--help-all` shows."""
_USUAL: Final = frozenset({
    "sandbox", "host", "port", "base_url", "trusted_proxy", "bot_token", "database_url", "service", "developer"
})  # fmt: skip
"""The settings that `--help` shows."""
_ALL: Final = "taproof.help_all"
_PARAGRAPHS: Final = 2
"""The number of paragraphs of a command's description that `--help` shows."""


class HelpCommand(TyperCommand):
    """A command with both kinds of help."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, including `--help` and `--help-all`."""
        return _with_help_all(self, super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        with _adapted(self, ctx, whole=bool(ctx.meta.get(_ALL))):
            super().format_help(ctx, formatter)


class HelpGroup(TyperGroup):
    """A group with both kinds of help."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, including `--help` and `--help-all`."""
        return _with_help_all(self, super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help."""
        if not ctx.meta.get(_ALL):
            super().format_help(ctx, formatter)
            return
        found = list(_leaves(self, ctx.command_path))
        width = max(len(path) for path, _ in found)
        for path, summary in found:
            typer.echo(f"{path:<{width}}  {summary}")
        typer.echo("\nFor all options of a command, add --help-all to it.")


def _leaves(group: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the summary of each command in a group and in those below it."""
    for name, each in group.commands.items():
        if hasattr(each, "commands"):
            yield from _leaves(each, f"{path} {name}")
        else:
            yield f"{path} {name}", (each.help or "").split("\n")[0]


def _with_help_all(command: Any, params: list[Any]) -> list[Any]:
    """Add `--help-all` to the parameters of a command. The last of them is `--help`."""
    if not hasattr(command, "help_all"):
        option = copy.copy(params[-1])
        option.name, option.opts, option.help = "help_all", ["--help-all"], "Show all options and explanations."
        if hasattr(command, "commands"):
            option.help = "List all commands."
        option.callback = _print_all
        command.help_all = option
    return [*params, command.help_all]


def _print_all(ctx: Any, _option: Any, asked: bool) -> None:  # noqa: FBT001 — passed by position.
    if asked and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        typer.echo(ctx.get_help().rstrip("\n"))
        ctx.exit()


@contextmanager
def _adapted(command: Any, ctx: Any, *, whole: bool) -> Iterator[None]:
    """Adapt a command to its help, and restore it afterwards.

    The names of switches such as `--no-public-access` move to the explanations, because they make the column too wide.
    """
    params = command.get_params(ctx)
    saved = [(each, dict(vars(each))) for each in (command, *params)]
    for each in params:
        if whole and any(name.strip() for name in getattr(each, "secondary_opts", [])):
            each.help = f"{each.help} Off: {each.secondary_opts[0]}."
        each.secondary_opts = []
        if not whole:
            _shorten(each)
    if not whole:
        command.help = "\n\n".join((command.help or "").split("\n\n")[:_PARAGRAPHS])
        command.epilog = f"For all options and explanations: {ctx.command_path} --help-all"
    try:
        yield
    finally:
        for each, values in saved:
            vars(each).update(values)


def _shorten(param: Any) -> None:
    """Hide an option that is seldom used, and shorten the explanation to its first sentence."""
    if param.param_type_name == "option":
        is_seldom = getattr(param, "rich_help_panel", None) == SELDOM
        param.hidden = is_seldom or (param.name in OPTIONS and param.name not in _USUAL)
        param.rich_help_panel = None
    param.help = _first_sentence(param.help or "")


def _first_sentence(text: str) -> str:
    sentence, separator, _ = text.partition(". ")
    return f"{sentence}." if separator else text
