"""The wheel works on Python 3.13, which Debian 13 has: rules, SDK, SQLite, webhooks, and a sign-in over HTTPS."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TREE = ROOT / "build" / "python-3.13" / "tree"
"""See `python_313` in scripts/setup.sh. It is a root directory if this machine has no Python 3.13."""
TESTS = (
    *("tests/core", "tests/sdk", "tests/config", "tests/storage/conformance", "tests/storage/sqlite"),
    *("tests/webhooks/test_http_client.py", "tests/e2e/test_process_https.py"),
    # These run JavaScript and curl, which the tree does not have.
    *(f"--ignore=tests/sdk/{name}.py" for name in ("test_proof_docs", "test_webhook_docs", "test_webhook_npm")),
)
_NOT_COPIED = shutil.ignore_patterns(".*", "build", "node_modules", "__pycache__", "*.pyc")


def test_the_wheel_passes_its_tests(tmp_path: Path) -> None:
    """Warnings are errors there too. PostgreSQL is left out, because its tests need /proc."""
    packages, checkout = TREE / "packages", TREE / "taproof"
    assert packages.is_dir(), "scripts/setup.sh slow has not prepared Python 3.13"
    wheels = list((ROOT / "build" / "wheel").glob("taproof-*.whl"))
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    if not wheels:
        run(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path, ROOT, cwd=tmp_path)
        wheels = list(tmp_path.glob("taproof-*.whl"))
    for old in packages.glob("taproof*"):
        shutil.rmtree(old)
    run(*pip, "install", "--no-deps", "--target", packages, *wheels, cwd=tmp_path)
    shutil.rmtree(checkout, ignore_errors=True)
    shutil.copytree(ROOT, checkout, ignore=_NOT_COPIED)
    options = ("-m", "pytest", "-p", "no:cacheprovider", "-k", "not postgres", "-n", "2", "--dist", "loadfile", *TESTS)
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/", "LANG": "C.UTF-8", "CI": "true"}
    if (TREE / "usr" / "bin" / "python3").exists():
        environment["PYTHONPATH"] = "/packages:/taproof"
        as_root = () if os.geteuid() == 0 else ("sudo", "-n", "--preserve-env=PYTHONPATH")
        inside = 'cd /taproof && exec python3 "$@"'
        command = (*as_root, "chroot", str(TREE), "sh", "-c", inside, "sh", *options)
    else:
        environment["PYTHONPATH"] = f"{packages}:{checkout}"
        command = (shutil.which("python3.13") or "python3.13", *options)
    output = run(*command, cwd=checkout, environment=environment)
    print(output[-2_000:])  # noqa: T201 — pytest shows it if the last line is missing.
    assert " passed in " in output.splitlines()[-1]


def run(*command: str | Path, cwd: Path, environment: dict[str, str] | None = None) -> str:
    """Return the output of a command that must succeed."""
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-6_000:]}\n{done.stderr[-2_000:]}"
    return done.stdout
