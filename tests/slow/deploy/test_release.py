"""`make release` builds the same bytes in another folder at another time, and its SBOMs name the locked packages.

The page is maintainers/releasing.md.
"""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BUILT = ROOT / "build/release-venv"


def _build(checkout: Path, **environment: str) -> Path:
    """Build the release of a checkout, and return the directory with the files."""
    made = checkout / "build/release"
    done = subprocess.run(
        [checkout / "scripts/build_release.sh", made],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two builds of one commit, in folders with different names, in different time zones."""
    made = []
    for name, environment in (("one", {"TZ": "UTC"}), ("another place", {"TZ": "Asia/Tokyo"})):
        checkout = tmp_path_factory.mktemp("release") / name
        subprocess.run(["git", "clone", "--quiet", ROOT, checkout], check=True, timeout=60)
        (checkout / "build").mkdir()
        (checkout / "build/release-venv").symlink_to(BUILT)
        (checkout / "src/taproof/not-committed.txt").write_text("secret")
        made.append(_build(checkout, **environment))
    return made[0], made[1]


def test_two_builds_have_the_same_bytes(builds: tuple[Path, Path]) -> None:
    """Wheel, source distribution, npm package and server's SBOM are identical, and the checksums are right."""
    one, other = builds
    names = {str(each.relative_to(one)) for each in one.rglob("*") if each.is_file()}
    assert {re.sub(r"\d+\.\d+\.\d+", "V", name) for name in names} == {
        "SHA256SUMS",
        "npm/taproof-V.tgz",
        "python/taproof-V-py3-none-any.whl",
        "python/taproof-V.tar.gz",
        "sbom/taproof-npm.cdx.json",
        "sbom/taproof-server.cdx.json",
    }
    # npm writes the time and a random serial number into its SBOM.
    varies = {"SHA256SUMS", "sbom/taproof-npm.cdx.json"}
    differ = {name for name in names if (one / name).read_bytes() != (other / name).read_bytes()}
    assert differ <= varies
    for made in builds:
        subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=made, check=True)


def test_only_committed_files_are_packed(builds: tuple[Path, Path]) -> None:
    """A file in the working tree that is not committed is in no package."""
    (wheel,) = builds[0].glob("python/*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "taproof/__main__.py" in names
    assert not [name for name in names if "not-committed" in name]


def test_the_sbom_names_every_locked_package(builds: tuple[Path, Path]) -> None:
    """The server's SBOM has exactly the packages and versions of requirements/run.txt."""
    sbom = json.loads((builds[0] / "sbom/taproof-server.cdx.json").read_text())
    assert (sbom["bomFormat"], sbom["specVersion"]) == ("CycloneDX", "1.6")
    locked = set(re.findall(r"^([a-z0-9.-]+)==(\S+)", (ROOT / "requirements/run.txt").read_text(), re.MULTILINE))
    named = {(each["name"].lower(), each["version"]) for each in sbom["components"]}
    assert named == locked
    assert sbom["metadata"]["component"]["name"] == "taproof"
    npm = json.loads((builds[0] / "sbom/taproof-npm.cdx.json").read_text())
    assert npm["metadata"]["component"]["purl"].startswith("pkg:npm/taproof@")
    assert npm["components"] == []  # The npm package has no dependencies.


def test_the_wheel_is_installable(builds: tuple[Path, Path], tmp_path: Path) -> None:
    """The wheel installs, and its SDK can be imported."""
    (wheel,) = builds[0].glob("python/*.whl")
    command = f"{sys.executable} -m pip install --quiet --no-deps --no-index --target".split()
    subprocess.run([*command, str(tmp_path), str(wheel)], check=True, timeout=60)
    script = "import taproof, sys; sys.exit(not taproof.__file__.startswith(sys.argv[1]))"
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script, tmp_path], env=environment, check=True, timeout=60)
