"""`taproof completion`: complete commands and options with the Tab key."""
# ruff: noqa: PLC0415 — only this command needs the module.

from typing import Annotated, Any, Final, Literal

import typer

from taproof.cli.command import command

commands: Final = typer.Typer()

COMPLETE_VARIABLE: Final = "_TAPROOF_COMPLETE"
"""The variable with which the script asks for completions; Typer answers instead of running a command."""


@command(commands, "completion")
def completion(
    _given: Any,
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> None:
    """Print a script that completes commands and options in a shell.

    In ~/.bashrc: eval "$(taproof completion bash)"

    In ~/.zshrc, after compinit: eval "$(taproof completion zsh)"

    For fish: taproof completion fish > ~/.config/fish/completions/taproof.fish
    """
    from typer import completion as scripts

    # Typer does not list this name, but prints the same script with its own option.
    script = scripts.get_completion_script(prog_name="taproof", complete_var=COMPLETE_VARIABLE, shell=shell)  # type: ignore[attr-defined]
    typer.echo(script)
