"""docs/reference/python-sdk.md: its sign-in with `Client` prints the user, or that the user did not confirm."""

import os
import subprocess
import sys

import pytest
from tests.docs.blocks import block_of
from tests.e2e.conftest import StartService
from tests.slow.docs.signing_in import confirm
from tests.slow.docs.walk import environment_of

PAGE = "reference/python-sdk.md"


@pytest.mark.parametrize(
    ("button", "said"), [("Confirm", "Welcome, Grace\n"), ("Cancel", "Not signed in: cancelled\n")]
)
def test_the_sign_in(button: str, said: str, start_service: StartService) -> None:
    """The printed link can be opened, and the last line is the outcome."""
    service = start_service()
    with subprocess.Popen(
        [sys.executable, "-u", "-c", block_of(PAGE, "python", "wait_for_user").text],
        env=os.environ | environment_of(service),
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        confirm(service, program.stdout.readline().split()[1], "Grace", button)
        assert program.stdout.read() == said
    assert program.returncode == 0
