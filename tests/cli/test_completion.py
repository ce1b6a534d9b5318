"""`taproof completion`: the scripts complete commands and options, in the shells that are installed."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from typer.main import get_command

from taproof.cli.main import commands


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `taproof` on the PATH that runs these sources."""
    directory = tmp_path / "bin"
    directory.mkdir()
    program = directory / "taproof"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m taproof "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")


def output(*command: str, **environment: str) -> list[str]:
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.usefixtures("program")
def test_bash_completes(run: Run) -> None:
    """The script, loaded as the help describes, completes a command, a subcommand and an option."""
    cases = {"taproof ver": "version", "taproof projects cr": "create", "taproof status --da": "--database"}
    assert 'eval "$(taproof completion bash)"' in run("completion", "--help").stdout
    for line, expected in cases.items():
        words = " ".join(f"'{word}'" for word in line.split())
        script = (
            f'eval "$(taproof completion bash)"; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); '
            f"COMP_LINE='{line}'; _taproof_completion taproof; echo ${{COMPREPLY[@]}}"
        )
        assert output("bash", "-c", script) == [expected], line


@pytest.mark.usefixtures("program")
def test_the_other_shells_get_what_their_scripts_ask_for(run: Run) -> None:
    """The script sets the variable that the program expects, and each installed shell accepts it."""
    asked = {
        "zsh": {"_TAPROOF_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "taproof mig"},
        "fish": {
            "_TAPROOF_COMPLETE": "complete_fish",
            "_TYPER_COMPLETE_ARGS": "taproof mig",
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        },
    }
    for shell, environment in asked.items():
        script = run("completion", shell).stdout
        assert all(f"{name}=" in script for name in environment), shell
        assert environment["_TAPROOF_COMPLETE"] in script
        assert any("migrate" in word for word in output("taproof", **environment)), shell
        if shutil.which(shell):
            Path(f"script.{shell}").write_text(script, encoding="utf-8")
            assert output(shell, "-n", f"script.{shell}") == []


def test_other_shells_are_refused(run: Run) -> None:
    """Other shells end the command with the exit code of a usage error, and the supported shells are named."""
    result = run("completion", "tcsh")
    assert result.exit_code == 2
    assert "bash" in result.stderr


def test_help_fits_a_screen_and_cuts_no_name(run: Run, subtests: pytest.Subtests) -> None:
    """In 80 columns, help is not cut off. `--help-all` shows every option, and variable names can be copied."""
    terminal = {"COLUMNS": "80", "TERM": "xterm"}

    def walk(command: Any, path: list[str]) -> Iterator[tuple[list[str], Any]]:
        yield path, command
        for name, each in getattr(command, "commands", {}).items():
            yield from walk(each, [*path, name])

    for path, command in walk(get_command(commands), []):
        with subtests.test(" ".join(path)):
            short = run(*path, "--help", **terminal).stdout
            assert len(short.rstrip().splitlines()) <= 40
            assert "--help-all" in short
            whole = run(*path, "--help-all", **terminal).stdout
            if hasattr(command, "commands"):
                leaves = [each for each, leaf in walk(command, path) if not hasattr(leaf, "commands")]
                assert all(f"taproof {' '.join(each)} " in whole for each in leaves)
                continue
            shown = [set(re.split(r"[^\w-]+", text)) for text in (short, whole)]
            options = [each for each in command.params if each.param_type_name == "option"]
            names = {name for each in options for name in (*each.opts, *each.secondary_opts) if name.strip()}
            variables = {each.envvar for each in options if each.envvar}
            assert names | variables <= shown[1]
            assert {each.envvar for each in options if each.envvar and each.opts[0] in shown[0]} <= shown[0]


@pytest.mark.usefixtures("program")
def test_seldom_used_options_are_completed(run: Run) -> None:
    """Options that `--help` leaves out are completed too, as are the new groups."""
    for words, expected in (("projects update --allowed", "--allowed-origin"), ("members set", "set-role")):
        environment = {"_TAPROOF_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": f"taproof {words}"}
        assert any(expected in word for word in output("taproof", **environment))
    assert "--allowed-origin" not in run("projects", "update", "--help").stdout
