"""Provide the built site, and the real service as in tests/e2e, to the documentation tests."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.blocks import ROOT
from tests.e2e.conftest import start_service

__all__ = ["start_service"]

# A build that used a network would wait for this proxy, which does not exist.
OFFLINE = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site, built in a separate directory with warnings as errors and without output.

    The environment has the variables of the command that `make docs` runs.
    """
    place = tmp_path_factory.mktemp("site")
    recipe = re.search(r"^\t(.*)\$\(BIN\)/mkdocs serve", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert recipe is not None
    given = dict(variable.split("=") for variable in recipe[1].split())
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict"]
    done = subprocess.run(
        [*command, "--config-file", str(ROOT / "mkdocs.yml"), "-d", str(place)],
        cwd=place,
        env=os.environ | OFFLINE | given,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return place
