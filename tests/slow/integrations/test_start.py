"""Applications report missing settings at the start; each framework is imported only by its own module."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.integrations.conftest import SECRET, SETTINGS, StartSite, start_without


@pytest.mark.parametrize("site", ["starlette", "fastapi", "flask", "django"])
def test_a_missing_setting_is_said_at_start(site: str, tmp_path: Path) -> None:
    """With a missing setting, the application does not start, and its last line names the setting."""
    given = SETTINGS | {"TAPROOF_PROJECT_ID": ""}
    done = start_without(site, tmp_path, **given)
    assert done.returncode != 0
    assert "TAPROOF_PROJECT_ID must be" in done.stderr.splitlines()[-1]
    assert SECRET not in done.stderr
    assert start_without(site, tmp_path, **SETTINGS).returncode == 0


@pytest.mark.parametrize("framework", ["starlette", "flask"])
def test_the_guard_is_no_option(framework: str) -> None:
    """Several processes with a guard each would accept a proof several times, so the guard must be explicit."""
    name = {"starlette": "taproof_routes", "flask": "taproof_blueprint"}[framework]
    program = f"from taproof.integrations.{framework} import {name}; {name}(None)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert "missing 1 required keyword-only argument: 'guard'" in done.stderr


@pytest.mark.parametrize("module", ["starlette", "flask", "django", "endpoint"])
def test_a_module_imports_its_own_framework_only(module: str) -> None:
    """Using one framework needs neither the others nor the service."""
    program = f"import sys, taproof.integrations.{module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert {"starlette", "fastapi", "flask", "django", "pydantic", "aiohttp", "apsw"} & loaded <= {module}
    ours = {name for name in done.stdout.split() if name.startswith("taproof.")}
    assert all(name.startswith(("taproof.sdk", "taproof.integrations")) for name in ours), ours


def test_flask_and_django_give_templates_what_the_button_needs(start: StartSite) -> None:
    """`taproof` in a template contains the script's address and the project, and no secret."""
    for name in ("flask", "django"):
        with start(name).browser() as browser:
            page = browser.get("/button").text.replace("&#39;", "'")
        assert "https://signin.example.com/sdk/taproof.js" in page
        assert SETTINGS["TAPROOF_PROJECT_ID"] in page
        assert SECRET not in page
