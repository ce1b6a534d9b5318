"""What a source distribution holds: the package, and nothing that somebody has filled in beside it."""

import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_it_is_the_package_alone(tmp_path: Path) -> None:
    """Files with secrets lie below deploy/ on an operator's machine: no folder but the package's own is packed."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    beside = {name for name in names if not name.startswith("src/taproof/")}
    assert beside == {".gitignore", "CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}
    assert "src/taproof/http/static/sdk/0.1.0/taproof.js" in names
