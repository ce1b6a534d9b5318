"""scripts/setup.sh shows its progress, reports failures, and prints readable text on terminals and in logs."""

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SETUP = (ROOT / "scripts/setup.sh").read_text(encoding="utf-8")


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


@pytest.mark.parametrize("script", ["setup.sh", "build_release.sh"])
def test_only_a_terminal_gets_bold_text(script: str) -> None:
    """A log contains no escape codes."""
    [function] = re.findall(r"(?ms)^say\(\) \{.*?^\}$", (ROOT / "scripts" / script).read_text("utf-8"))
    terminal, output = pty.openpty()
    command = ["bash", "-c", f"{function}\nsay '100 %s' two"]
    subprocess.run(command, stderr=output, timeout=60, check=True)
    assert os.read(terminal, 100) == b"\x1b[1m100 %s two\x1b[0m\r\n"
    os.close(terminal)
    os.close(output)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == "100 %s two\n"
