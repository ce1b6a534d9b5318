"""The deliberate defects of scripts/mutation_check.py."""

from pathlib import Path

import pytest
from scripts.mutation_check import DEFECTS

_SOURCE = Path(__file__).resolve().parent.parent / "src/taproof"


def test_each_defect_can_still_be_made(subtests: pytest.Subtests) -> None:
    """Each defect edits exactly one place: a change of `src/` adapts the defects of the lines that it changes."""
    for number, defect in enumerate(DEFECTS, 1):
        with subtests.test(number=number, file=defect.file):
            assert (_SOURCE / defect.file).read_text(encoding="utf-8").count(defect.before) == 1
