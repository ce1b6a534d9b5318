"""Find the fenced blocks of the documentation, and say how each is tested.

What is done with a block goes by its language, unless a comment stands right above its fence:

    <!-- same as examples/fastapi/app.py -->    it is a part of that file, which is tested as a whole
    <!-- run by tests/slow/docs/test_tutorial.py --> that test reads it from its page and runs it
    <!-- not run: REASON -->                    it cannot be run here, for one of the reasons in EXEMPT
    <!-- before: COMMAND -->                    it is run, after this command

Without one, a program is run (see `walk.py`), and data is parsed. There is no way for a block to be overlooked.
"""

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
MAINTAINERS = ROOT / "maintainers"
RUN = {"bash", "sh", "console", "python", "js"}
PARSED = {"json", "yaml", "toml", "ini", "env", "text"}
EXEMPT = {
    "asks a person with a messenger",
    "configures a program that is not installed here",
    "ends a system service or starts one",
    "installs from a package index",
    "needs a container engine or a cluster",
    "needs a real bot's token and a public address",
    "publishes a release",
    "runs until it is stopped",
    "writes to /etc",
    "the test sets these itself",
}
"""The allowed reasons for not running a block. Adding one is a decision."""
_BLOCK = re.compile(
    r"(?:^ *<!-- (?P<note>[^\n]+?) -->\n)?^ *```(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. `note` is the comment above it; `text` has no list indent.

    `page` is the path below docs/; for a page of maintainers/, it begins with that folder.
    `before` is a command to run first, which a reader of the page has already run.
    """

    page: str
    line: int
    language: str
    note: str
    text: str
    before: str = ""

    @property
    def name(self) -> str:
        """Return its place, for the output of a test."""
        return f"{self.page}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = [
        Block(
            page.relative_to(DOCS if page.is_relative_to(DOCS) else ROOT).as_posix(),
            text.count("\n", 0, each.start()) + 1,
            each["language"],
            "" if (each["note"] or "").startswith("before: ") else each["note"] or "",
            textwrap.dedent(each["text"]),
            (each["note"] or "").removeprefix("before: ") if (each["note"] or "").startswith("before: ") else "",
        )
        for each in _BLOCK.finditer(text)
    ]
    fences = len(re.findall(r"^ *(?:```|~~~)", text, re.MULTILINE))
    assert fences == 2 * len(found), f"{page}: a fence is not closed, or is none that is understood."
    return found


PAGES = [*sorted(DOCS.glob("**/*.md")), *sorted(MAINTAINERS.glob("**/*.md"))]
BLOCKS = [block for page in PAGES for block in blocks_of(page)]
PROGRAMS = [block for block in BLOCKS if block.language in RUN and not block.note]


def block_of(page: str, language: str, part: str = "") -> Block:
    """Return the one block of a page that has this language and this text, for a test that runs it."""
    (found,) = [each for each in BLOCKS if (each.page, each.language) == (page, language) and part in each.text]
    return found
