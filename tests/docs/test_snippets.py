"""Every fenced block of the documentation is run, parsed, equal to tested code, or exempt for a stated reason.

tests/slow/docs runs them.
"""

import configparser
import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.docs.blocks import BLOCKS, EXEMPT, PARSED, PROGRAMS, ROOT, blocks_of

from taproof.config.options import variable
from taproof.config.settings import OPTIONS

NOTED = [block for block in BLOCKS if block.note]
PARSE = [block for block in BLOCKS if block.language in PARSED and not block.note]


def _env(text: str) -> object:
    """Check that each line is a setting that exists."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    known = {variable(name) for name in OPTIONS}
    assert all(line.partition("=")[0] in known for line in lines), text
    return lines


def _ini(text: str) -> object:
    parser = configparser.RawConfigParser(strict=True)
    parser.read_string(text)
    return parser.sections()


PARSERS: dict[str, Callable[[str], object]] = {
    "env": _env,
    "ini": _ini,
    "json": json.loads,
    "text": str,  # The output of a program, or a drawing: there is nothing to run.
    "toml": tomllib.loads,
    "yaml": yaml.safe_load,
}


def test_data_is_well_formed(subtests: pytest.Subtests) -> None:
    """Data blocks are well-formed."""
    for block in PARSE:
        with subtests.test(block.name):
            assert PARSERS[block.language](block.text)
            assert block.language != "text" or "\n$ " not in f"\n{block.text}", "Commands belong in a console block."


def test_a_block_that_is_not_run_says_why(subtests: pytest.Subtests) -> None:
    """A block that is not run is part of a tested file, is read by a test, or has a reason from a short list."""
    for block in NOTED:
        with subtests.test(block.name):
            if block.note.startswith("same as "):
                path = ROOT / block.note.removeprefix("same as ")
                assert contains(path.read_text(encoding="utf-8"), block.text), f"{path} does not have these lines."
            elif block.note.startswith("run by "):
                test = (ROOT / block.note.removeprefix("run by ")).read_text(encoding="utf-8")
                assert block.page in test, "That test does not name this page."
            else:
                reason = block.note.removeprefix("not run: ")
                assert reason != block.note, block.note
                assert reason in EXEMPT, reason


def contains(whole: str, part: str) -> bool:
    """Return whether `whole` contains the lines of `part` in a row, at any indent."""
    lines, wanted = whole.splitlines(), part.splitlines()
    first = next(line for line in wanted if line)
    for start in (number for number, line in enumerate(lines) if line.strip() == first.strip()):
        indent = lines[start][: len(lines[start]) - len(lines[start].lstrip())]
        place = [line.removeprefix(indent) for line in lines[start : start + len(wanted)]]
        if place == wanted:
            return True
    return False


def test_every_block_is_one_of_these() -> None:
    """Every block has a known language and is not empty, so that none is overlooked."""
    assert set(BLOCKS) == {*PROGRAMS, *PARSE, *NOTED}, set(BLOCKS) - {*PROGRAMS, *PARSE, *NOTED}
    assert all(block.text.strip() for block in BLOCKS)


def test_reasons_are_used() -> None:
    """Every reason on the list is used by a block."""
    assert {block.note.removeprefix("not run: ") for block in NOTED} >= EXEMPT


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("```bash\nfalse\n```\n", [("bash", "", "false\n")]),
        ("1. One\n\n    ```console\n    $ a\n    ```\n", [("console", "", "$ a\n")]),
        ("<!-- not run: x -->\n```js\n1\n```\n", [("js", "not run: x", "1\n")]),
        ("<!-- not run: x -->\n\ntext\n\n```js\n1\n```\n", [("js", "", "1\n")]),
        ("```\nbare\n```\n", [("", "", "bare\n")]),
        ("```mermaid\ngraph\n```\n```rust\n1\n```\n", [("mermaid", "", "graph\n"), ("rust", "", "1\n")]),
    ],
)
def test_the_blocks_are_found(
    page: str, found: list[tuple[str, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks are also found in lists and without a known language; a comment counts right above a block."""
    monkeypatch.setattr("tests.docs.blocks.DOCS", tmp_path)
    (tmp_path / "page.md").write_text(page, encoding="utf-8")
    assert [(each.language, each.note, each.text) for each in blocks_of(tmp_path / "page.md")] == found
