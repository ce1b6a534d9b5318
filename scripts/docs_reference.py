"""Write the reference pages that are generated from the code: `python -m scripts.docs_reference`.

The pages are committed, so that they can be read on a code host. `tests/docs/test_reference.py` fails if one of them
is not up to date.
"""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

import typer
from prometheus_client import CollectorRegistry
from scripts.docs_api import api_page, errors_page
from scripts.docs_cli_schema import cli_schema
from scripts.docs_markdown import cell, table
from scripts.docs_python_sdk import python_sdk_page
from scripts.docs_states import states_page, states_picture

from taproof.api.developer import DeveloperApi
from taproof.api.openapi.document import build_openapi
from taproof.cli.main import commands
from taproof.config.options import variable
from taproof.config.settings import OPTIONS
from taproof.core.roles import ACTIONS, PERMITTED, ROLES
from taproof.http.metrics import Metrics
from taproof.service.use_cases import UseCases

DOCS: Final = Path(__file__).parent.parent / "docs"
SETTINGS_INTRO: Final = """\
# Settings

Every option of `taproof serve` is also an environment variable; an option on the command line takes precedence. Other
users of the machine can see command lines, so put secrets (the bot token, the master key, a database password) in the
environment. Invalid settings stop the start; each one is reported. An unknown variable that begins with `TAPROOF_`
causes a warning in the log.
"""
CLI_INTRO: Final = """\
# Command line

A command exits with 0 on success, with 1 on failure (one sentence on stderr gives the reason), and with 2 if it was
called incorrectly. If an option also has a variable, the option takes precedence.

`--json` prints output for programs, as described by [this schema](cli.schema.json): the definition `projects-list` is
for `taproof projects list`. Field names are those of the API. Releases may add fields, but never remove one.

`--help` shows the options that are used most; `--help-all` shows all of them. `taproof --help-all` lists all commands.

## Where a command acts

The commands of `projects`, `sessions`, `users`, `members`, `clients`, `tokens` and `audit` act on the local database or
on a service. They make the same calls, and print the same, in both cases.

- Without `--service`, they act on the database. They need the same settings as the service: `TAPROOF_DATABASE_URL`
  and, with PostgreSQL, `TAPROOF_MASTER_KEY`. They act for the developer of `--developer`. By default, that is an owner
  of the project that the command names, or the only developer of the database. The audit log shows "command line".
- With `--service URL`, they call the developer API of that service with the access token that `taproof login URL`
  stored. They act for the developer who signed in, with that developer's roles.

If there is no database, the error names the services that you are signed in to.

`users export` and `users erase` act on all projects of the database, unless `--developer` or `--service` is given.

All other commands except `serve`, `login`, `logout`, `token`, `version` and `completion` act on the database.
`webhooks listen` and `webhooks trigger` can also ask a service. All commands except `restore` may run while the service
is running. Commands that delete something, and `regenerate`, ask first, unless `--yes` is given.

## Commands
"""


def openapi() -> dict[str, Any]:
    """Return the document that `/openapi.json` serves. Building it calls no service."""
    no_use_cases: Any = SimpleNamespace(**dict.fromkeys(each.name for each in fields(UseCases)))
    return build_openapi(DeveloperApi(no_use_cases, Metrics(CollectorRegistry(), ""), cast("Any", None)).build_app())


def settings_page() -> str:
    """Return the page of all settings, in the groups and the order of `taproof serve --help-all`."""
    parts = [SETTINGS_INTRO]
    for panel in dict.fromkeys(option.panel for option in OPTIONS.values()):
        rows = []
        for name, option in OPTIONS.items():
            if option.panel != panel:
                continue
            flag = f"`{option.flag} {option.metavar}`" if option.metavar else f"`{option.flag}`"
            default = option.default or ("" if option.metavar else "off")
            told = f"{option.help} {_sentence(option.must)}".strip()
            rows.append((f"{cell(flag)}<br>`{variable(name)}`", cell(default), cell(told)))
        parts += [f"## {panel}", "", table(("option, variable", "default", "what it does"), rows)]
    return "\n".join(parts)


def _sentence(must: str) -> str:
    """Return a value's rule, such as "must be 1 or 0", as a separate sentence."""
    return f"{must[0].upper()}{must[1:]}." if must else ""


def cli_page() -> str:
    """Return the page of all commands, with every argument and option."""
    found: list[tuple[str, Any]] = []

    def walk(command: Any, path: str) -> None:
        # Typer bundles its own click, so the type is not named.
        for name, each in getattr(command, "commands", {}).items():
            if hasattr(each, "commands"):
                walk(each, f"{path} {name}")
            else:
                found.append((f"{path} {name}", each))

    walk(typer.main.get_command(commands), "taproof")
    summary = [(f"[`{path}`](#{path.replace(' ', '-')})", cell(each.help.split("\n")[0])) for path, each in found]
    return "\n".join([CLI_INTRO, table(("command", "what it does"), summary), *(_command(*each) for each in found)])


def _command(path: str, command: Any) -> str:
    given = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and each.name != "help"]
    usage = " ".join([path, *(_argument(each) for each in given), "[OPTIONS]" if options else ""]).strip()
    parts = [f"## {path}", "", f"`{usage}`", "", command.help.strip(), ""]
    if given:
        parts.append(
            table(("argument", "meaning"), [(f"`{_argument(each)}`", cell(each.help or "")) for each in given])
        )
    if options:
        rows = [(_option(each), cell(each.help or "")) for each in options]
        parts.append(table(("option, variable", "meaning"), rows))
    return "\n".join(parts)


def _argument(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.required else f"[{name}]"


def _option(option: Any) -> str:
    names = [each for each in (*option.opts, *option.secondary_opts) if each.strip()]
    metavar = "" if option.is_flag else f" {option.metavar or 'TEXT'}"
    told = cell(", ".join(f"`{name}{metavar}`" for name in names))
    return f"{told}<br>`{option.envvar}`" if option.envvar else told


def teams_page() -> str:
    """Return the page about teams with the current table of roles."""
    text = (DOCS / "how-to/teams.md").read_text(encoding="utf-8")
    before, _, rest = text.partition("<!-- roles -->\n")
    rows = [
        (words, *("yes" if action in PERMITTED[role] else "no" for role in ROLES)) for action, words in ACTIONS.items()
    ]
    return f"{before}<!-- roles -->\n{table(('', *ROLES), rows)}<!-- /roles -->{rest.partition('<!-- /roles -->')[2]}"


PAGES: Final[dict[str, Callable[[], str]]] = {
    "reference/api.md": lambda: api_page(openapi()),
    "reference/errors.md": errors_page,
    "reference/settings.md": settings_page,
    "reference/cli.md": cli_page,
    "reference/cli.schema.json": cli_schema,
    "reference/python-sdk.md": python_sdk_page,
    "reference/session-states.md": states_page,
    "images/session-states.svg": states_picture,
    "how-to/teams.md": teams_page,
}
"""The generated files by their path below docs/, and the function that makes each."""


def main() -> None:
    """Write every page that is not up to date."""
    for name, make in PAGES.items():
        path, text = DOCS / name, make().rstrip("\n") + "\n"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"docs/{name}")


if __name__ == "__main__":
    main()
