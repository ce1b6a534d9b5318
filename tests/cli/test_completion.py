"""`taproof completion`: the scripts complete commands and options, in the shells that are installed."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from taproof.config.options import variable
from taproof.config.settings import OPTIONS

Run = Callable[..., Result]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `taproof` on the PATH that runs this source."""
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
    """The script, loaded as the help says, completes a command, a command of a group, and an option."""
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
    """The script sets the variable that the program answers, and a shell that is installed accepts the script."""
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
    """The exit code is that of a wrong call, and the shells are named."""
    result = run("completion", "tcsh")
    assert result.exit_code == 2
    assert "bash" in result.stderr


def test_names_of_variables_are_never_cut_off(run: Run) -> None:
    """In a terminal of 80 columns, each name is on one line, where people can copy it."""
    words = run("serve", "--help", COLUMNS="80", TERM="xterm").stdout.replace("]", " ").split()
    assert [name for name in map(variable, OPTIONS) if name not in words] == []
