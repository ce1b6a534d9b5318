"""The README works: its commands run exactly as shown, and every command and option in it exists."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.e2e.conftest import Service

from taproof.cli.main import commands

ROOT = Path(__file__).parent.parent.parent
README = ROOT / "README.md"
DOCUMENTS = [README, *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("maintainers/**/*.md"))]
OF_MOST_COMMANDS = {"--help-all", "--json"}
OF_OTHER_PROGRAMS = {"--allow-root", "--mapping-phone", "--proxy-headers", "--unique-uid"}
"""The options of JupyterHub, Nextcloud and Uvicorn that the pages of docs/how-to/oidc name."""


def blocks(path: Path, language: str) -> list[str]:
    """Return the fenced blocks of a language, in order, without the indent of a surrounding list."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [re.sub(rf"^{indent}", "", block, flags=re.MULTILINE) for indent, block in found]


def test_the_walk_through_the_whole_flow(service: Service, tmp_path: Path) -> None:
    """The README's commands, run in order in one shell, sign a user in; its Python code then prints the identity."""
    (python,) = blocks(README, "python")
    (tmp_path / "check.py").write_text(python, encoding="utf-8")
    script = "\n".join(
        [
            "set -euo pipefail",
            *blocks(README, "bash"),
            "export PROOF TAPROOF_WEBHOOK_SECRET TAPROOF_PROJECT_ID",
            f"{shlex.quote(sys.executable)} check.py",
        ]
    )
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=os.environ | {"TAPROOF_BASE_URL": service.base_url, "ACCESS_TOKEN": service.access_token},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"status":"confirmed"' in done.stdout.replace(" ", "")
    messenger_id, name, *_ = done.stdout.splitlines()[-1].split()
    assert messenger_id.isdecimal()
    assert f'"first_name": "{name}"' in script
    assert f'"messenger_id":"{messenger_id}"' in done.stdout.replace(" ", "")


def options_of(command: Any, path: str) -> Iterator[tuple[str, set[str]]]:
    """Yield every command below this one, with its options. Typer bundles its own click, so the type is not named."""
    if hasattr(command, "commands"):
        for name, each in command.commands.items():
            yield from options_of(each, f"{path} {name}")
    else:
        yield (
            path,
            {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
            | {"--help", "--help-all"},
        )


OPTIONS = dict(options_of(typer.main.get_command(commands), "taproof"))


def named_commands(path: Path) -> Iterator[list[str]]:
    """Yield the words of every `taproof …` in a document, from console blocks and inline code."""
    text = path.read_text(encoding="utf-8")
    whole = (block.replace("\\\n", " ") for block in blocks(path, "console"))
    lines = [line.removeprefix("$ ") for block in whole for line in block.splitlines()]
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)
    lines += [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", prose)]
    for line in lines:
        words = line.removeprefix(".venv/bin/")
        if words.startswith("taproof "):
            yield shlex.split(words.partition(" #")[0])


def test_every_command_that_is_named_exists(subtests: pytest.Subtests) -> None:
    """Every command or option in a document exists on the command line at that place."""
    for path in DOCUMENTS:
        with subtests.test(str(path.relative_to(ROOT))):
            for words in named_commands(path):
                known = [name for name in OPTIONS if " ".join(words).startswith((f"{name} ", name))]
                groups = {name.rpartition(" ")[0] for name in OPTIONS}
                options = {word.partition("=")[0] for word in words if word.startswith("--")}
                if " ".join(words) in {"taproof --help", "taproof --help-all"}:
                    continue
                if not known:
                    # Such as `tokens list|revoke`, or the name of a group.
                    assert " ".join(words[:2]) in groups, f"{path.name}: {' '.join(words)}"
                    continue
                assert options <= OPTIONS[max(known, key=len)], f"{path.name}: {' '.join(words)}"


def test_every_option_that_is_named_exists(subtests: pytest.Subtests) -> None:
    """An option in inline code, without its command, belongs to `taproof serve` or to a command of the page."""
    for path in DOCUMENTS:
        with subtests.test(str(path.relative_to(ROOT))):
            text = path.read_text(encoding="utf-8")
            named = set(re.findall(r"`(--[a-z-]+)", text))
            lines = [" ".join(words) for words in named_commands(path)]
            lines += re.findall(r"^(?:\$ |## )?(taproof .*)$", text, re.MULTILINE)
            about = [
                "taproof serve",
                *(command for command in OPTIONS if any(f"{line} ".startswith(f"{command} ") for line in lines)),
            ]
            known = [OPTIONS[command] for command in about]
            assert named <= OF_OTHER_PROGRAMS.union(OF_MOST_COMMANDS, *known)


def test_the_two_commands() -> None:
    """The two commands at the top of the README are Makefile targets, and each sets up its own environment."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = {line.split()[2] for block in blocks(README, "console") for line in block.splitlines() if "make " in line}
    assert named == {"run", "test"}
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    for environment in ("run", "test"):
        assert f"scripts/setup.sh {environment}\n" in makefile
