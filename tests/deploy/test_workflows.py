"""The GitHub workflows call only what exists, and give a changed action or a stolen job as few rights as possible."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
WORKFLOWS: dict[str, Any] = {
    path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / ".github/workflows").glob("*.yml")
}


def _steps() -> list[dict[str, Any]]:
    return [step for each in WORKFLOWS.values() for job in each["jobs"].values() for step in job["steps"]]


def test_both_workflows_are_here() -> None:
    """One workflow tests each change; the other publishes a version tag only."""
    assert set(WORKFLOWS) == {"test", "release"}
    # YAML 1.1 reads the key `on` as true.
    assert WORKFLOWS["release"][True] == {"push": {"tags": ["v*"]}}


def test_every_action_is_pinned() -> None:
    """A tag of an action can be moved; a commit cannot."""
    used = [step["uses"] for step in _steps() if "uses" in step]
    assert len(used) >= 6
    assert not [each for each in used if not re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", each)]


def test_rights_are_given_to_single_jobs() -> None:
    """Only the jobs that publish can get an identity, and they run no code of the repository."""
    jobs = WORKFLOWS["release"]["jobs"]
    assert WORKFLOWS["release"]["permissions"] == {}
    assert WORKFLOWS["test"]["permissions"] == {"contents": "read"}
    publish = {name for name, job in jobs.items() if "id-token" in job["permissions"]}
    assert publish == {"pypi", "npm", "github"}
    for name in publish:
        assert not [step for step in jobs[name]["steps"] if "actions/checkout" in step.get("uses", "")], name
        assert jobs[name]["needs"], name
    assert [jobs[name].get("environment") for name in ("pypi", "npm")] == ["pypi", "npm"]
    assert not re.search(r"\$\{\{\s*secrets\.", (ROOT / ".github/workflows/release.yml").read_text())


def test_nothing_is_published_untested() -> None:
    """Each job that publishes waits for all tests, directly or through another."""
    jobs = WORKFLOWS["release"]["jobs"]
    assert jobs["pypi"]["needs"] == jobs["npm"]["needs"] == ["test", "build"]
    assert jobs["github"]["needs"] == ["pypi", "npm"]
    assert {"run": ".ci/run"} in jobs["test"]["steps"]
    assert {"run": ".ci/run"} in WORKFLOWS["test"]["jobs"]["test"]["steps"]


def test_commands_exist() -> None:
    """Each `make` target and script that a workflow runs is in the repository."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    lines = [line for step in _steps() for line in str(step.get("run", "")).splitlines()]
    assert lines
    for line in lines:
        program, *arguments = line.split()
        if program == "make":
            assert arguments[0] in targets, line
        elif "/" in program:
            assert (ROOT / program).is_file(), line
