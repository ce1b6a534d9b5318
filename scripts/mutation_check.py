"""Check that the tests find deliberate defects: make one edit at a time, and run tests until one of them fails.

Usage: python -m scripts.mutation_check [--only NUMBER …] [--near] [PYTEST ARGUMENT …]. The defects are in defects.toml.
Each is made in a copy of the last commit. The test file that found it before runs first, then the tests of its room,
and then all others that `make test` runs. The exit code is 1 if a defect survives.
"""

import argparse
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_ROOT: Final = Path(__file__).resolve().parent.parent


class Defect(NamedTuple):
    """An edit of a file that breaks a rule. The text `before` occurs once in it.

    `test` is the test file that finds the defect.
    """

    rule: str
    file: str
    before: str
    after: str
    test: str


DEFECTS: Final = tuple(
    Defect(**each)
    for each in tomllib.loads(Path(__file__).with_name("defects.toml").read_text(encoding="utf-8"))["defect"]
)


def main() -> int:
    """Make each defect and run the tests; print the test that found it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=int, nargs="+", help="the numbers of the defects, from 1")
    parser.add_argument("--near", action="store_true", help="run only the test file that found the defect before")
    given, arguments = parser.parse_known_args()
    survivors = 0
    with tempfile.TemporaryDirectory(prefix="mutation-") as directory:
        copy = Path(directory) / "taproof"
        _run(_ROOT, "git", "clone", "--quiet", "--shared", str(_ROOT), str(copy))
        for installed in ("tests/npm/node_modules", "sdk/js/node_modules", ".venv"):
            (copy / installed).symlink_to(_ROOT / installed)
        for number, defect in enumerate(DEFECTS, 1):
            if given.only is None or number in given.only:
                found = _find(copy, defect, arguments, is_near=given.near)
                survivors += found is None
                print(f"{number:2} {defect.rule:60} {defect.file:45} {found or 'SURVIVES'}", flush=True)
    return 1 if survivors else 0


def _find(copy: Path, defect: Defect, arguments: list[str], *, is_near: bool) -> str | None:
    """Return the first test that fails with the defect, None if all pass."""
    path = copy / defect.file
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(defect.before, defect.after), encoding="utf-8")
    if defect.file.startswith("sdk/js/"):
        # Otherwise, a test would only find that the built files are not those of the source.
        _run(copy / "sdk/js", "npm", "run", "--silent", "build")
    try:
        for tests in _stages(copy, defect, is_near=is_near):
            if found := _failure(copy, [tests, *arguments]):
                return found
        return None
    finally:
        _run(copy, "git", "checkout", "--quiet", ".")


def _stages(copy: Path, defect: Defect, *, is_near: bool) -> Iterator[str]:
    """Yield the tests to run: the file that found the defect before, those of its room, and all others."""
    room = "sdk_js" if defect.file.startswith("sdk/js/") else Path(defect.file).parts[2]
    for tests in (defect.test, *(() if is_near else (f"tests/{room}", "tests"))):
        if (copy / tests).exists():
            yield tests


def _failure(copy: Path, arguments: list[str]) -> str | None:
    # The source, not the installed wheel.
    command = ["env", f"PYTHONPATH={copy / 'src'}", sys.executable, "-m", "pytest", "-x", "-n", "auto"]
    # The test of the defects fails with any of them.
    ignored = ["--ignore", "tests/test_mutation_check.py", "--ignore", "tests/slow"]
    command += ["--dist", "loadfile", *ignored, *arguments]
    run = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED tests", "ERROR tests"))]
    if run.returncode and not failed:
        sys.exit(f"The tests could not run:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    return failed[0].split(" - ")[0] if failed else None


def _run(directory: Path, *command: str) -> None:
    subprocess.run(command, cwd=directory, check=True)


if __name__ == "__main__":
    sys.exit(main())
