"""Run Debian's Prometheus on a service, with the configuration and the rules of deploy/prometheus."""

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml
from tests.e2e.conftest import TRUST
from tests.ports import free_port

DEPLOY: Final = Path(__file__).parents[3] / "deploy"
RULES: Final = DEPLOY / "prometheus/alerts.yaml"
PATIENCE: Final = 240.0
_UNITS: Final = {"s": 1, "m": 60, "h": 3_600}


def until(condition: Callable[[], Any], what: str, act: Callable[[], object] = lambda: None) -> Any:
    """Wait until the condition is true, acting before each check; return its value."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        act()
        if found := condition():
            return found
        time.sleep(0.1)
    return pytest.fail(what)


def shortened(rules: str, factor: int) -> str:
    """Return the rules with every duration divided by `factor`, and also the age of the oldest due event.

    Each duration stays at two seconds or longer, so that a range contains several scrapes.
    """

    def divide(found: re.Match[str]) -> str:
        seconds = int(found[2]) * _UNITS[found[3]] / factor
        return f"{found[1]}{max(2, round(seconds))}s"

    rules = re.sub(r"(for: |\[|:|offset )(\d+)([smh])\b", divide, rules)
    return re.sub(r"(taproof_webhook_oldest_due_seconds\) > )(\d+)", lambda it: f"{it[1]}{int(it[2]) // factor}", rules)


class Prometheus:
    """A Prometheus that scrapes a service once a second."""

    def __init__(self, directory: Path, target: int, factor: int) -> None:
        directory.mkdir()
        config = yaml.safe_load((DEPLOY / "prometheus/prometheus.yaml").read_text(encoding="utf-8"))
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["scrape_configs"][0]["static_configs"][0]["targets"] = [f"127.0.0.1:{target}"]
        (directory / "prometheus.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        (directory / "alerts.yaml").write_text(shortened(RULES.read_text(encoding="utf-8"), factor), encoding="utf-8")
        self._log = directory / "log"
        self._start(directory)
        until(lambda: self.query('up{job="taproof"} == 1'), "Prometheus scrapes the service.")

    def _start(self, directory: Path) -> None:
        """Start Prometheus, on another port if a program has just taken this one."""
        port = free_port()
        command = ["prometheus", f"--config.file={directory / 'prometheus.yaml'}"]
        command += [f"--storage.tsdb.path={directory / 'data'}", f"--web.listen-address=127.0.0.1:{port}"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, cwd=directory, stdout=log, stderr=log)
        self._client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, verify=TRUST)
        until(lambda: self._process.poll() is not None or self._is_ready(), "Prometheus starts.")
        if self._process.poll() is not None:
            log_text = self._log.read_text("utf-8")
            assert "address already in use" in log_text, log_text
            self._start(directory)

    def _is_ready(self) -> bool:
        try:
            return self._client.get("/-/ready").status_code == 200
        except httpx.TransportError:
            return False

    def stop(self) -> None:
        self._client.close()
        self._process.terminate()
        self._process.wait(60)

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the current samples of an expression."""
        answer = self._client.get("/api/v1/query", params={"query": expression}).json()
        assert answer["status"] == "success", answer
        samples: list[dict[str, Any]] = answer["data"]["result"]
        return samples

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire."""
        alerts = self._client.get("/api/v1/alerts").json()["data"]["alerts"]
        return {each["labels"]["alertname"] for each in alerts if each["state"] == "firing"}

    def rules(self) -> dict[str, dict[str, Any]]:
        """Return the loaded rules by name, with the health and the error of the last evaluation."""
        groups = self._client.get("/api/v1/rules").json()["data"]["groups"]
        return {rule["name"]: rule for group in groups for rule in group["rules"]}

    def until_fires(self, name: str, act: Callable[[], object] = lambda: None) -> None:
        """Wait until the alert fires, acting before each check."""
        until(lambda: name in self.firing(), f"{name} fires.", act)
