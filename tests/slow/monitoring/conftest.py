"""Provide the real service, and a real Prometheus that scrapes it with the rules of deploy/prometheus."""

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from tests.e2e.conftest import Service, start_service
from tests.slow.monitoring.prometheus import Prometheus

__all__ = ["start_service"]


class Watch(Protocol):
    """Starts a Prometheus; see the fixture `watch`."""

    def __call__(self, service: Service, factor: int = 60) -> Prometheus: ...


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Watch]:
    """Return a function that watches a service; every duration in the rules is divided by `factor`."""
    started: list[Prometheus] = []

    def start(service: Service, factor: int = 60) -> Prometheus:
        started.append(Prometheus(tmp_path / f"prometheus-{len(started)}", service.port, factor))
        return started[-1]

    yield start
    for each in started:
        each.stop()
