"""Every program of the documentation runs. tests/docs checks that each block is one of these or says why not."""

from itertools import groupby

import pytest
from tests.docs.blocks import PROGRAMS
from tests.e2e.conftest import StartService
from tests.slow.docs.walk import run

PAGES = {page: [*blocks] for page, blocks in groupby(PROGRAMS, lambda block: block.page)}


@pytest.mark.parametrize("page", PAGES)
def test_the_programs_of_a_page_run(page: str, start_service: StartService) -> None:
    """The programs of a page run in order, as shown, on a separate service, without an error."""
    done = run(PAGES[page], start_service())
    assert done.returncode == 0, done.stdout + done.stderr
