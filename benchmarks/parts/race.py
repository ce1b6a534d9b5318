"""Redeem two hundred approved sign-ins over eight connections at once. Only one may get the proof of each."""

import json
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

from benchmarks.machine import LOAD_CORE, SERVER_CORE, fail, say
from benchmarks.outcome import PartOutcome, Plan, Table
from benchmarks.parts.speed import STORES
from benchmarks.peers.catalog import PEERS
from benchmarks.peers.measuring import Message, ask
from benchmarks.peers.race import ATTEMPTS, REDEEMS, Race, contend
from benchmarks.peers.run import race_all, racers
from benchmarks.serving import running
from benchmarks.stores import Postgres, sqlite_copy

_JSON: Final = "application/json"
_HEAD: Final = ["who", "processes", "attempts", "more than one result", "exactly one", "none", "results in all"]


def race_taproof(url: str, processes: int) -> Race:
    """Approve the sign-ins on one process, and redeem each on all of them at once."""
    cores = str(SERVER_CORE) if processes == 1 else f"{SERVER_CORE},{LOAD_CORE}"
    with ExitStack() as stack:
        services = [stack.enter_context(running(url, cores=cores)) for _ in range(processes)]
        connection = HTTPConnection("127.0.0.1", services[0].port, timeout=30)
        redeems = []
        for number in range(ATTEMPTS):
            project_id = services[0].projects[number % len(services[0].projects)]
            created = ask(connection, _message("/api/v1/generate/public", {"project_id": project_id}))
            token = created["session_token"]
            ask(connection, _message("/bench/decide", {"session_token": token}))
            body = {"project_id": project_id, "session_token": token}
            redeems.append(_message("/api/v1/verify/public", body))
        connection.close()
        return contend([service.port for service in services], redeems, _is_result)


def _message(path: str, fields: dict[str, str]) -> Message:
    return Message(path, _JSON, json.dumps(fields).encode())


def _is_result(status: int, body: bytes) -> bool:
    answer: dict[str, Any] = json.loads(body) if status == 200 else {}
    if answer.get("status") == "confirmed" and answer.get("proof"):
        return True
    if answer == {"status": "used"}:
        return False
    return fail(f"The race ended: a redeem was answered {status} {body[:300].decode(errors='replace')}")


def measure_race(plan: Plan, postgres: Postgres | None, *, with_peers: bool) -> PartOutcome:
    """Race Taproof on its stores, then each peer."""
    outcome = PartOutcome()
    rows = [_HEAD]
    with sqlite_copy(plan.few, plan.directory, "race") as sqlite:
        urls = {STORES["sqlite"]: sqlite}
        if postgres is not None:
            urls[STORES["postgres"]] = postgres.database("race", plan.few)
        for store, url in urls.items():
            for processes in (1, 2):
                say(f"race: Taproof on {store}, processes: {processes}")
                found = race_taproof(url, processes)
                if found.single != found.attempts:
                    fail(f"Taproof on {store} gave {found.doubled} of {found.attempts} sign-ins more than one result.")
                rows.append(_row(f"Taproof on {store}", processes, found))
    if with_peers:
        rows += _race_peers(plan.directory / "race")
    note = f"{ATTEMPTS} approved sign-ins, each redeemed by {REDEEMS} callers at once; two processes share both cores."
    outcome.tables.append(Table("The race", rows, note))
    return outcome


def _race_peers(directory: Path) -> list[list[str]]:
    directory.mkdir()
    rows = []
    for (peer, processes), found in race_all(racers(PEERS), directory).items():
        rows.append(_row(peer.name, processes, found))
    return rows


def _row(name: str, processes: int, found: Race | None) -> list[str]:
    if found is None:
        return [name, str(processes), "not possible: memory is not shared", "", "", "", ""]
    numbers = (found.attempts, found.doubled, found.single, found.none, found.results)
    return [name, str(processes), *map(str, numbers)]
