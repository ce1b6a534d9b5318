"""The alerts, their unit tests, the tests that inject faults, and the table of the docs name the same alerts."""

import json
import re
from typing import Any, Final

import yaml
from prometheus_client import CollectorRegistry
from tests.deploy.test_files import ROOT

from taproof.http.metrics import Metrics

PAGE: Final = (ROOT / "docs/how-to/monitoring.md").read_text(encoding="utf-8")
RULES: Final[list[dict[str, Any]]] = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text("utf-8"))[
    "groups"
][0]["rules"]
ALERTS: Final = [rule["alert"] for rule in RULES]


def test_the_same_alerts_everywhere() -> None:
    """Each alert has a row, a runbook, unit tests of firing and not firing, and a test that injects its fault."""
    assert sorted(re.findall(r"^\| \[`(Taproof\w+)`\]\(#\w+\) \|", PAGE, re.MULTILINE)) == sorted(ALERTS)
    assert sorted(re.findall(r"^### (Taproof\w+)$", PAGE, re.MULTILINE)) == sorted(ALERTS)
    faults = (ROOT / "tests/slow/monitoring/test_alerts.py").read_text("utf-8")
    assert set(re.findall(r'until_fires\("(\w+)"', faults)) == set(ALERTS)
    silent, *loud = yaml.safe_load((ROOT / "deploy/prometheus/alerts.test.yaml").read_text("utf-8"))["tests"]
    assert [each["alertname"] for each in silent["alert_rule_test"]] == ALERTS
    assert [each["name"] for each in loud] == ALERTS
    assert [each["alert_rule_test"][0]["alertname"] for each in loud] == ALERTS
    assert all(each["alert_rule_test"][0]["exp_alerts"] for each in loud)


def test_each_alert_leads_to_its_runbook() -> None:
    """Each alert states its urgency, its effect, and its runbook."""
    for rule in RULES:
        assert rule["labels"]["severity"] in {"page", "ticket"}
        assert rule["annotations"].keys() == {"summary", "runbook"}
        assert rule["annotations"]["runbook"] == f"docs/how-to/monitoring.md#{rule['alert'].lower()}"


def test_every_metric_that_is_queried_exists() -> None:
    """The rules and the dashboard query metrics of the service or of its processes only."""
    registry = CollectorRegistry()
    Metrics(registry, "0")
    known = {sample.name for metric in registry.collect() for sample in metric.samples}
    # These have no sample before the first one, or belong to Prometheus.
    known |= {"taproof_developer_requests_total", "up"}
    dashboard = json.loads((ROOT / "deploy/grafana/taproof.json").read_text("utf-8"))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    for query in [*queries, *(rule["expr"] for rule in RULES)]:
        assert set(re.findall(r"\b((?:taproof|process)_\w+|up)\b(?=[{\[) ]|$)", query)) <= known, query
