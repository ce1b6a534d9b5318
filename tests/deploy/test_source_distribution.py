"""A source distribution has the package and no file that an operator filled in."""

import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_it_is_the_package_alone(tmp_path: Path) -> None:
    """Only the package's folder is packed, because files below deploy/ may contain an operator's secrets."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    beside = {name for name in names if not name.startswith("src/taproof/")}
    assert beside == {".gitignore", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}
    assert "src/taproof/http/static/sdk/0.1.0/taproof.js" in names
