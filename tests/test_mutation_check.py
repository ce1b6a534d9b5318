"""The deliberate defects of scripts/mutation_check.py."""

from pathlib import Path

import pytest
from scripts.mutation_check import DEFECTS

_ROOT = Path(__file__).resolve().parent.parent


def test_each_defect_can_still_be_made(subtests: pytest.Subtests) -> None:
    """Each defect edits exactly one place, so a change of these lines must update the defect.

    If a test file that finds a defect is deleted, name another one that finds it.
    """
    for number, defect in enumerate(DEFECTS, 1):
        with subtests.test(number=number, file=defect.file):
            assert (_ROOT / defect.file).read_text(encoding="utf-8").count(defect.before) == 1
            assert (_ROOT / defect.test).is_file()
