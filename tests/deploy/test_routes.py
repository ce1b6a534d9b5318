"""The paths in the files of deploy/ are compared with the service's routes: only public ones are passed on."""

import re
from pathlib import Path

import pytest
import yaml
from tests.api.unauthenticated import call_of, routes_of, running

DEPLOY = Path(__file__).parents[2] / "deploy"
PRIVATE = {"/metrics", "/healthz", "/readyz"}
"""The paths that the ingress does not expose outside the cluster."""


@pytest.fixture
async def paths(tmp_path: Path) -> dict[str, set[str]]:
    """Return a path for each route of the service, and of its sandbox."""
    found = {}
    for name in ("service", "sandbox"):
        (tmp_path / name).mkdir()
        async with running(tmp_path / name, sandbox=name == "sandbox") as at:
            found[name] = {call_of(*route).path for route in routes_of(at.app)}
    return found


async def test_the_ingress(paths: dict[str, set[str]]) -> None:
    """The ingress passes on every route except those for the cluster, and none of the sandbox."""
    ingress = yaml.safe_load((DEPLOY / "kubernetes/ingress.yaml").read_text("utf-8"))
    [rule] = ingress["spec"]["rules"]
    whole, stems = set(), []
    for each in rule["http"]["paths"]:
        if each["pathType"] == "Prefix":
            stems.append(each["path"])
        else:
            # Controllers differ in what ImplementationSpecific means. All of them match a path that is equal.
            whole.add(each["path"])
        if each["pathType"] != "ImplementationSpecific":
            # The rule of ingress-nginx 1.12 and 1.13, which otherwise refuse the whole Ingress.
            assert re.fullmatch(r"/[A-Za-z0-9_\-/]*", each["path"])

    def passes(path: str) -> bool:
        return path in whole or any(path == stem or path.startswith(f"{stem}/") for stem in stems)

    assert len(paths["service"]) > 60
    assert {path for path in paths["service"] if not passes(path)} == PRIVATE
    assert {path for path in paths["sandbox"] - paths["service"] if passes(path)} == set()
    # A rule that nothing needs any more would pass on a private route of the same name.
    needed = paths["service"] - PRIVATE
    assert whole <= needed
    assert [stem for stem in stems if not any(path == stem or path.startswith(f"{stem}/") for path in needed)] == []
