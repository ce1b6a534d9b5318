"""Every query of the dashboard and of the alerts returns what it should from a real Prometheus; promtool agrees."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import httpx
from tests.e2e.conftest import TRUST, Developer, StartService, make_phone
from tests.slow.monitoring.conftest import Watch
from tests.slow.monitoring.prometheus import DEPLOY, RULES, until
from tests.slow.monitoring.test_alerts import receiver

DASHBOARD: Final = DEPLOY / "grafana/taproof.json"
VARIABLES: Final = {"$job": "taproof", "$instance": ".*", "$__rate_interval": "30s"}


def queries() -> list[tuple[str, str]]:
    """Return the panel and the expression of every query, with Grafana's variables replaced."""
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    found = []
    for panel in panels:
        for target in panel.get("targets", []):
            expression = target["expr"]
            for name, value in VARIABLES.items():
                expression = expression.replace(name, value)
            assert "$" not in expression
            found.append((panel["title"], expression))
    return found


def test_every_query_returns_data(start_service: StartService, watch: Watch) -> None:
    """After ordinary traffic, every panel shows something, no rule has an error, and no alert fires."""
    service = start_service()
    with httpx.Client(base_url=service.base_url, timeout=60, verify=TRUST) as client, receiver(200) as url:
        project = Developer(client, service.access_token).create_project(webhook_url=url)
        phone = make_phone(client)
        prometheus = watch(service, factor=1)

        def use() -> None:
            """Start, poll, confirm, cancel and read sign-ins, and make a call that fails."""
            for button in ("Confirm", "Cancel"):
                session = project.generate()
                project.verify(session["session_token"])
                phone.sign_in(session, button)
                project.verify(session["session_token"])
            client.post("/api/v1/verify/public", json={})

        missing = queries()

        def nothing_missing() -> bool:
            missing[:] = [each for each in missing if not has_data(prometheus.query(each[1]))]
            return not missing

        until(nothing_missing, f"These queries return nothing: {missing}", use)
        rules = prometheus.rules()
        assert {name: rule["lastError"] for name, rule in rules.items() if rule["health"] != "ok"} == {}
        assert prometheus.firing() == set()
    # A comparison hides values that are as they should be, so what is compared has to return data as well.
    assert [
        name for name, rule in rules.items() for each in compared(rule["query"]) if not prometheus.query(each)
    ] == []


def has_data(samples: list[dict[str, Any]]) -> bool:
    """Return whether a sample is a number. A ratio without traffic is none."""
    return any(each["value"][1] != "NaN" for each in samples)


def compared(query: str) -> list[str]:
    """Return the parts of a rule's query before their comparisons; none of a rule that compares with an hour ago."""
    if "offset" in query:
        return []
    return [re.sub(r"\s*(==|>)\s*[\d.]+$", "", part) for part in re.split(r"\s+(?:and|or)\s+", query)]


def test_promtool_accepts_the_files(tmp_path: Path) -> None:
    """The configuration and the rules are valid, and each alert fires exactly as its unit tests say."""
    shutil.copytree(RULES.parent, tmp_path, dirs_exist_ok=True)
    for command in (["check", "config", "prometheus.yaml"], ["test", "rules", "alerts.test.yaml"]):
        done = subprocess.run(["promtool", *command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_accepts_the_metrics(start_service: StartService) -> None:
    """Names, types and help texts follow Prometheus' conventions."""
    service = start_service()
    text = httpx.get(f"{service.base_url}/metrics", verify=TRUST).content
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")
