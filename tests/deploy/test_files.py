"""Every file below deploy/ is consistent with the code, and contains no secret."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from taproof.config.options import variable
from taproof.config.settings import OPTIONS

ROOT = Path(__file__).parents[2]
IGNORED = {".env", "secret.env"}
FILES = sorted(path for path in (ROOT / "deploy").rglob("*") if path.is_file() and path.name not in IGNORED)


def names(path: Path) -> str:
    return path.relative_to(ROOT / "deploy").as_posix()


def test_every_variable_is_a_setting(subtests: pytest.Subtests) -> None:
    """Every variable in a file is a setting that exists."""
    for path in FILES:
        with subtests.test(names(path)):
            named = set(re.findall(r"\bTAPROOF_[A-Z_]+\b", path.read_text(encoding="utf-8")))
            assert named <= {variable(name) for name in OPTIONS}


def test_every_file_that_is_named_exists(subtests: pytest.Subtests) -> None:
    """Every repository file that a comment or command names exists."""
    for path in FILES:
        with subtests.test(names(path)):
            text = path.read_text(encoding="utf-8")
            named = re.findall(r"(?<![\w/.])(?:deploy|docs|requirements|src|scripts)/[\w./-]*\w", text)
            assert [each for each in named if not (ROOT / each).exists()] == []


def test_no_secret_is_in_it(subtests: pytest.Subtests) -> None:
    """Secret settings are empty or set elsewhere, and nothing looks like a key."""
    for path in FILES:
        with subtests.test(names(path)):
            text = path.read_text(encoding="utf-8")
            # NAME=value of a Dockerfile or an env file, or NAME: value of YAML.
            for value in re.findall(r"^[^#\n]*(?:TOKEN|KEY|PASSWORD)(?:=|: )(.*)$", text, re.MULTILINE):
                assert re.match(r"$|''$|\$\{\w+:\?|%d/", value), value
            assert not re.search(
                r"\b(?:sk_|tap_|whsec_)\w{8}|\d{8,}:[\w-]{30}|[A-Za-z0-9+/]{43}=|BEGIN [A-Z ]*KEY", text
            )


@pytest.mark.parametrize("path", [path for path in FILES if path.suffix == ".yaml"], ids=names)
def test_yaml_can_be_read_and_says_nothing_twice(path: Path) -> None:
    """No YAML mapping has a duplicate key, because readers silently use the last one."""

    class Strict(yaml.SafeLoader):
        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:  # noqa: FBT001, FBT002
            keys = [key.value for key, _ in node.value if key.value != "<<"]
            assert len(keys) == len(set(keys)), f"{keys} in line {node.start_mark.line + 1}"
            return super().construct_mapping(node, deep)

    assert all(document for document in yaml.load_all(path.read_text(encoding="utf-8"), Strict))


def test_the_installer_is_a_shell_script_that_can_be_run() -> None:
    """The installer is executable, and without an argument it prints its usage and does nothing."""
    script = ROOT / "deploy/install.sh"
    done = subprocess.run([script], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "usage: deploy/install.sh DIRECTORY" in done.stderr
