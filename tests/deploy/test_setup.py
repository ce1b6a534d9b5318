"""scripts/setup.sh shows how far the installation of packages is, and does not hide its failure."""

import re
import subprocess
from pathlib import Path

import pytest

SETUP = (Path(__file__).parents[2] / "scripts/setup.sh").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", [0, 7])
def test_progress(tmp_path: Path, code: int) -> None:
    """A log gets a line for each tenth package. If pip fails, so does the set-up."""
    [function] = re.findall(r"(?ms)^locked_packages\(\) \{.*?^\}$", SETUP)
    lock = tmp_path / "lock.txt"
    lock.write_text("".join(f"p{number}==1 \\\n    --hash=sha256:0\n" for number in range(23)), "utf-8")
    pip = tmp_path / "python"
    collected = "".join(f"echo Collecting p{number}==1; echo '  Downloading'\n" for number in range(23))
    pip.write_text(f"#!/bin/sh\n{collected}echo Installing collected packages\nexit {code}\n", "utf-8")
    pip.chmod(0o755)
    script = f"set -euo pipefail\n{function}\nlocked_packages {pip} {lock}\n"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code
    assert [line.strip() for line in done.stderr.splitlines()] == [
        "10 of 23 packages",
        "20 of 23 packages",
        "All packages fetched, installing them",
    ]
