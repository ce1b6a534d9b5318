"""Run the tests of the Node SDK and of the React wrapper that need no browser, with Node's own test runner."""

import re
import subprocess
from pathlib import Path

import pytest

SDK = Path(__file__).parents[2] / "sdk/js"


@pytest.mark.parametrize("test", sorted((SDK / "test").glob("*.test.js")), ids=lambda path: path.name)
def test_in_node(test: Path) -> None:
    """Each test of the file passes, and there is at least one."""
    command = ["node", "--test", "--test-reporter=tap", f"test/{test.name}"]
    done = subprocess.run(command, cwd=SDK, capture_output=True, text=True, timeout=300, check=False)
    failures = re.split(r"(?m)^(?=# Subtest: )", done.stdout)
    shown = "".join(each for each in failures if re.search(r"(?m)^ *not ok ", each))
    assert done.returncode == 0, shown or done.stdout + done.stderr
    counts = dict(re.findall(r"(?m)^# (tests|pass|fail|skipped|todo) (\d+)$", done.stdout))
    assert int(counts["pass"]) == int(counts["tests"]) > 0
