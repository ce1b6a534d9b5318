"""The diagrams of maintainers/architecture.md name files and functions that exist."""

import re

from tests.docs.blocks import ROOT

_PAGE = ROOT / "maintainers/architecture.md"
_HOP = re.compile(
    r"^[ │├└─▶]*(?P<file>[\w/*]+/[\w*]+\.py) +(?P<names>\w+(?:\.\w+)?(?:, \w+(?:\.\w+)?)*)(?: {2,}|$)", re.MULTILINE
)


def test_every_hop_exists() -> None:
    """Each hop names a file below src/taproof, and a class, function or statement that this file defines."""
    hops = [(found["file"], found["names"].split(", ")) for found in _HOP.finditer(_PAGE.read_text(encoding="utf-8"))]
    assert len(hops) > 40
    wrong = []
    for file, names in hops:
        texts = [path.read_text(encoding="utf-8") for path in (ROOT / "src/taproof").glob(file)]
        for name in names:
            kind, _, method = name.rpartition(".")
            wanted = [rf"^ *(?:async )?(?:def|class) {method}\b|^{method}\b"] + ([rf"^class {kind}\b"] if kind else [])
            if not any(all(re.search(each, text, re.MULTILINE) for each in wanted) for text in texts):
                wrong.append(f"{file} {name}")
    assert not wrong, f"not in the code: {', '.join(wrong)}"
