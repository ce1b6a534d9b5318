"""Static checks of the Dockerfile and .dockerignore. test_container.py runs the steps."""

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest
from tests.deploy.dockerfile import Stage, is_in_context, read_dockerfile

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "deploy/docker/Dockerfile"
IGNORE = (ROOT / ".dockerignore").read_text(encoding="utf-8")


@pytest.fixture
def stages() -> list[Stage]:
    """Return the stages; the last one is the image."""
    return read_dockerfile(DOCKERFILE)[1]


def test_the_image_is_pinned_and_can_be_pinned_by_digest(stages: list[Stage]) -> None:
    """Both stages use the same image, so that the environment fits its interpreter; no tag is "latest"."""
    arguments = read_dockerfile(DOCKERFILE)[0]
    assert [stage.image for stage in stages] == ["${PYTHON_IMAGE} AS build", "${PYTHON_IMAGE}"]
    found = re.fullmatch(r"python:3\.(\d+)-slim-[a-z]+", arguments["PYTHON_IMAGE"])
    assert found
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = int(project["requires-python"].removeprefix(">=3."))
    assert oldest <= int(found[1]) <= max(oldest, sys.version_info.minor), "nobody has run the tests on that one"


def test_the_process_is_an_unnamed_user_and_the_signal_reaches_it(stages: list[Stage]) -> None:
    """The user is numeric, which Kubernetes can check, and no shell keeps SIGTERM from the process."""
    image = stages[-1]
    user, group = image.one("USER").split(":")
    assert int(user) == int(group) > 1000
    assert image.one("STOPSIGNAL") == "SIGTERM"
    assert json.loads(image.one("ENTRYPOINT")) == ["taproof"]
    assert json.loads(image.one("CMD")) == ["serve"]
    assert json.loads(image.one("HEALTHCHECK").partition("CMD ")[2])[0] == "python"
    assert f"TAPROOF_PORT={image.one('EXPOSE')}" in image.one("ENV")
    assert json.loads(image.one("VOLUME")) == [image.one("WORKDIR")] == ["/data"]
    # OpenShift runs the container as any user in group 0.
    assert f"-o {user} -g 0 -m 770 /data" in image.one("RUN")


def test_no_secret_is_in_a_layer(stages: list[Stage]) -> None:
    """The builder needs no secret, downloads only what is locked, and no setting is a secret."""
    for stage in stages:
        assert stage.all("ARG") == stage.all("ADD") == []
        for arguments in [*stage.all("ENV"), *stage.all("RUN")]:
            assert not re.search(r"(?i)password|secret|token|master_key|curl|wget|apt-get", arguments)


def test_what_is_copied_is_there_and_let_through(stages: list[Stage]) -> None:
    """Every COPY finds its sources: they exist, and .dockerignore lets them through."""
    for arguments in stages[0].all("COPY") + [each for each in stages[1].all("COPY") if not each.startswith("--from")]:
        for source in arguments.split()[:-1]:
            path = ROOT / source
            assert path.exists(), source
            assert is_in_context(f"{source}/__init__.py" if path.is_dir() else source, IGNORE), source


@pytest.mark.parametrize(
    "name",
    [
        ".git/config",
        ".venv/pyvenv.cfg",
        "taproof.db",
        "taproof.db.key",
        "deploy/compose/.env",
        "deploy/kubernetes/secret.env",
        "requirements/test.txt",
        "tests/conftest.py",
        "src/taproof/__pycache__/app.cpython-311.pyc",
        "a-file-that-somebody-left",
    ],
)
def test_nothing_else_gets_to_the_builder(name: str) -> None:
    """Databases, keys, settings and any unknown file in a checkout never get into an image."""
    assert not is_in_context(name, IGNORE)
