"""docs/how-to/high-availability.md: its cluster fails over under load, and Taproof reverses no answer.

`make soak` runs the long form.
"""

import asyncio
import dataclasses
import shutil
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from tests.conftest import Figure
from tests.deploy.test_systemd import analyze
from tests.docs.blocks import block_of
from tests.e2e.conftest import StartService
from tests.faults.place import assert_counters_fit, make_place
from tests.slow.faults.fail_over_load import FailOverLoad, fail_over_load
from tests.slow.faults.patroni_cluster import PAGE, Machine, PatroniCluster, running_cluster

from taproof.cli.doctor.finding import Finding
from taproof.cli.doctor.postgres import check_postgres_store
from taproof.config.settings import load_settings
from taproof.core.clock import system_clock

FAULTS: Final = ("kill", "freeze", "cut", "isolate")
"""kill: SIGKILL of Patroni and PostgreSQL. freeze: SIGSTOP of both. cut: no traffic with the other machines, etcd or
the clients. isolate: the same, but the clients still reach the former primary."""
BACK_WITHIN: Final = 10.0
"""Seconds from the new primary's first write until every node of Taproof writes again (the issue's figure)."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster() -> AsyncIterator[PatroniCluster]:
    async with running_cluster() as cluster:
        yield cluster


def strike(fault: str, machine: Machine) -> None:
    assert machine.cluster_relay is not None
    assert machine.client_relay is not None
    if fault in {"kill", "freeze"}:
        machine.send(signal.SIGKILL if fault == "kill" else signal.SIGSTOP)
    else:
        machine.cluster_relay.send_signal(signal.SIGSTOP)
        if fault == "cut":
            machine.client_relay.send_signal(signal.SIGSTOP)


def heal(fault: str, machine: Machine, cluster: PatroniCluster) -> None:
    assert machine.cluster_relay is not None
    assert machine.client_relay is not None
    if fault == "kill":
        assert machine.patroni is not None
        machine.patroni.wait()
        cluster.start_patroni(machine)
    elif fault == "freeze":
        machine.send(signal.SIGCONT)
    else:
        machine.cluster_relay.send_signal(signal.SIGCONT)
        machine.client_relay.send_signal(signal.SIGCONT)


class Times:
    """The seconds of all fail-overs."""

    def __init__(self) -> None:
        self.patroni: list[float] = []
        self.taproof: dict[str, list[float]] = {}
        self.whole: list[float] = []

    def note(self, struck: float, writable: float, back: dict[str, float]) -> None:
        self.patroni.append(writable - struck)
        self.whole.append(max(back.values()) - struck)
        for name, instant in back.items():
            self.taproof.setdefault(name, []).append(max(0.0, instant - writable))

    def report(self, figure: Figure) -> None:
        figure("seconds until the new primary writes (p50, p99, max)", _shown(self.patroni))
        for name, seconds in self.taproof.items():
            figure(f"seconds from then until {name} writes", _shown(seconds))
        figure("seconds from the fault until all of Taproof writes", _shown(self.whole))


def _shown(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    return ", ".join(f"{ordered[min(len(ordered) - 1, int(len(ordered) * part))]:.2f}" for part in (0.5, 0.99, 1))


async def fail_over(fault: str, cluster: PatroniCluster, load: FailOverLoad, times: Times, *, early: bool) -> None:
    """Apply a fault to the primary, and wait until Taproof writes to the new one.

    `early`: the former primary returns before.
    """
    former = await cluster.settled()
    await load.until_finished(10)
    strike(fault, former)
    struck = time.monotonic()
    writable, primary = await cluster.first_write(former)
    if early:
        heal(fault, former, cluster)
    back = await load.recovered(struck)
    times.note(struck, writable, back)
    await load.check(lambda: cluster.ask(primary, "SELECT day, token_hash, status FROM sessions"))
    if not early:
        heal(fault, former, cluster)
    await cluster.demoted(former)


@pytest.mark.asyncio(loop_scope="module")
async def test_fail_overs(cluster: PatroniCluster, start_service: StartService, figure: Figure, *, soak: bool) -> None:
    """No acknowledged step is lost, no proof is given twice, no answer is reversed, and Taproof reconnects soon."""
    place = await make_place(cluster.dsn())
    through_haproxy = dataclasses.replace(place, url=cluster.haproxy_dsn())
    started = [await asyncio.to_thread(start_service, each) for each in (place, place, through_haproxy)]
    services = {
        name: service.base_url for name, service in zip(("node 1", "node 2", "node 3 (HAProxy)"), started, strict=True)
    }
    times = Times()
    number, sign_ins = (100, 10_000) if soak else (len(FAULTS), 300)
    async with fail_over_load(place, services) as load:
        for turn in range(number):
            await fail_over(FAULTS[turn % len(FAULTS)], cluster, load, times, early=turn // len(FAULTS) % 2 == 1)
        await cluster.settled()
        await cluster.patronictl("switchover")
        await load.until_finished(max(20, sign_ins - load.finished))
    primary = await cluster.settled()
    await load.check(lambda: cluster.ask(primary, "SELECT day, token_hash, status FROM sessions"))
    assert await cluster.ask(primary, "SELECT FROM probes WHERE written_by = 'former'") == []
    await assert_counters_fit(primary.dsn())
    await cluster.patronictl("list")
    times.report(figure)
    figure("fail-overs", len(times.whole))
    figure("sessions, finished sign-ins", f"{len(load.sign_ins)}, {load.finished}")
    answers = [answer.status for sign_in in load.sign_ins for answer in sign_in.answers]
    figure("answers", {status: answers.count(status) for status in sorted(set(answers))})
    figure("refused with 503", dict(load.refused))
    figure("pending after the decision", load.stale())
    for name, seconds in times.taproof.items():
        assert max(seconds) < BACK_WITHIN, name


@pytest.mark.asyncio(loop_scope="module")
async def test_the_doctor_in_this_cluster(cluster: PatroniCluster) -> None:
    """The doctor says that writes wait for a standby.

    It names the risk if none is connected or they are asynchronous.
    """

    async def durability(dsn: str, status: str, words: str) -> None:
        settings = load_settings({"database_url": dsn, "sandbox": True, "port": 1})
        found: list[Finding] = []
        async with asyncio.timeout(120):
            while not any(
                (each.name, each.status) == ("durability", status) and words in each.detail for each in found
            ):
                found = await check_postgres_store(settings, system_clock)
                await asyncio.sleep(0.2)

    primary = await cluster.settled()
    for dsn in (cluster.dsn(), cluster.haproxy_dsn()):
        await durability(dsn, "ok", "writes wait for a standby")
    standbys = [each for each in cluster.machines if each is not primary]
    for each in standbys:
        each.send(signal.SIGKILL)
    await durability(cluster.dsn(), "problem", "no standby is connected")
    for each in standbys:
        heal("kill", each, cluster)
    await cluster.settled()
    path = cluster.machines[0].configuration
    await cluster.run(f"patronictl -c {path} edit-config --force --quiet -s synchronous_mode=false")
    await durability(cluster.dsn(), "warning", "the standbys are asynchronous")
    await cluster.run(f"patronictl -c {path} edit-config --force --quiet -s synchronous_mode=true")


def test_systemd_accepts_the_drop_in(tmp_path: Path) -> None:
    """The page's file changes the line of Debian's unit that leaves PostgreSQL running, and systemd knows its names."""
    unit = Path("/lib/systemd/system/patroni@.service")
    assert "KillMode=process\n" in unit.read_text(encoding="utf-8")
    shutil.copy(unit, tmp_path / "patroni@15-taproof.service")
    drop_in = tmp_path / "patroni@.service.d/taproof.conf"
    drop_in.parent.mkdir()
    drop_in.write_text(block_of(PAGE, "ini").text, encoding="utf-8")
    # It warns about unknown lines, but succeeds.
    assert str(drop_in) not in analyze("verify", "--man=no", str(tmp_path / "patroni@15-taproof.service"))
