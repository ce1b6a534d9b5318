"""Install the locked peers: npm's into node_modules here, Python's into build/bench/peers-venv.

Existing installations are kept until a lock file changes.
"""

import filecmp
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.peers.catalog import HERE, MODULES, PYTHON_HOME


def install() -> None:
    """Install what is missing; end with a sentence if that fails."""
    for program in ("npm", "nginx", "redis-server", "wrk"):
        if shutil.which(program) is None:
            raise SystemExit(f"{program} is missing: run `make bench`, or install Debian's package {program}.")
    install_npm()
    _install_once(HERE / "requirements.txt", PYTHON_HOME, _install_python)


def install_npm() -> None:
    """Install npm's packages alone if they are missing."""
    _install_once(HERE / "package-lock.json", MODULES, _install_npm_packages)


def _install_once(lock: Path, into: Path, installer: Callable[[], None]) -> None:
    done = into / f".installed-{lock.name}"
    if done.exists() and filecmp.cmp(lock, done, shallow=False):
        return
    print(f"Installing the peers that {lock.name} names: once, and it may take some minutes.", flush=True)
    try:
        installer()
    except subprocess.CalledProcessError as failed:
        raise SystemExit(f"{failed.cmd[0]} could not install the peers; what it printed above says why.") from failed
    shutil.copyfile(lock, done)  # Last, so that an interrupted installation is repeated.


def _install_npm_packages() -> None:
    # No install script is needed: better-sqlite3 and Node.js come as binaries inside packages that the lock file pins
    # by hash.
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(command, cwd=HERE, check=True)


def _install_python() -> None:
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(PYTHON_HOME)], check=True)
    pip = [str(PYTHON_HOME / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--require-hashes", "-r", str(HERE / "requirements.txt")], check=True)
