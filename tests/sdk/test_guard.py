"""Each guard accepts a proof once, among concurrent callers and across crashes."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from taproof import MemoryGuard, SingleUseGuard, SqliteGuard

NOW = 1_760_000_000
NewGuard = Callable[[Callable[[], float]], SingleUseGuard]


@pytest.fixture(params=["memory", "sqlite"])
def new_guard(request: pytest.FixtureRequest, tmp_path: Path) -> NewGuard:
    """Return a function that makes a guard of either kind with a clock."""
    if request.param == "memory":
        return lambda clock: MemoryGuard(clock=clock)
    return lambda clock: SqliteGuard(tmp_path / "used-proofs.db", clock=clock)


def test_each_token_is_taken_once(new_guard: NewGuard) -> None:
    """The first call returns True, every later one False, and tokens are independent."""
    guard = new_guard(lambda: NOW)
    assert [guard.take(token, NOW + 300) for token in ("a", "a", "b", "a", "b", "")] == [
        True,
        False,
        True,
        *[False] * 2,
        True,
    ]


def test_a_token_is_remembered_to_its_end_and_beyond(new_guard: NewGuard) -> None:
    """A token is remembered as long as its proof could be accepted anywhere, and forgotten afterwards."""
    now = float(NOW)
    guard = new_guard(lambda: now)
    assert guard.take("a", NOW + 300)
    now = NOW + 300 + 59.0
    assert not guard.take("a", NOW + 300)
    now = NOW + 300 + 61.0
    assert guard.take("a", NOW + 600), "a guard that never forgets grows for ever"


def test_a_token_whose_time_is_over_is_still_taken_once(new_guard: NewGuard) -> None:
    """A caller with another clock or with a leeway does not get a second True either."""
    guard = new_guard(lambda: NOW)
    assert guard.take("a", NOW - 10_000)
    assert not guard.take("a", NOW - 10_000)


class SlowSet(set[bytes]):
    """Lets other threads run between a check and its effect."""

    def __contains__(self, item: object) -> bool:
        found = super().__contains__(item)
        time.sleep(0.001)
        return found


def test_exactly_one_of_many_threads_wins(new_guard: NewGuard) -> None:
    """Of any number of concurrent calls, exactly one returns True."""
    guard = new_guard(lambda: NOW)
    if isinstance(guard, MemoryGuard):
        guard._taken = SlowSet()
    with ThreadPoolExecutor(16) as pool:
        for token in map(str, range(10)):
            assert sum(pool.map(lambda _, token=token: guard.take(token, NOW + 300), range(32))) == 1


def test_the_token_is_not_stored(tmp_path: Path) -> None:
    """Only a hash of the session token is stored, so the file reveals no sign-in."""
    guard = SqliteGuard(tmp_path / "used.db", clock=lambda: NOW)
    guard.take("the-session-token", NOW + 300)
    for file in tmp_path.iterdir():
        assert b"the-session-token" not in file.read_bytes()


def test_sqlite_remembers_over_a_restart(tmp_path: Path) -> None:
    """Another guard on the same file, after a restart or in another process, knows the used tokens."""
    assert SqliteGuard(tmp_path / "used.db", clock=lambda: NOW).take("a", NOW + 300)
    assert not SqliteGuard(str(tmp_path / "used.db"), clock=lambda: NOW).take("a", NOW + 300)


def test_sqlite_goes_on_in_its_file_wherever_the_process_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path is resolved at the start, so a later change of the directory does not begin a new file."""
    monkeypatch.chdir(tmp_path)
    guard = SqliteGuard("used.db", clock=lambda: NOW)
    assert guard.take("a", NOW + 300)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert not guard.take("a", NOW + 300)


def test_a_file_that_cannot_be_used_is_an_error_and_never_true(tmp_path: Path) -> None:
    """If the guard cannot check, it raises an error, at the start and at each call."""
    with pytest.raises(sqlite3.Error):
        SqliteGuard(tmp_path / "missing" / "used.db")
    guard = SqliteGuard(tmp_path / "used.db")
    (tmp_path / "used.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(sqlite3.Error):
        guard.take("a", NOW + 300)


def test_a_take_is_synced_to_its_directory(tmp_path: Path) -> None:
    """A power cut cannot undo an answered call, because EXTRA (3) also syncs the journal's directory."""
    with contextlib.closing(SqliteGuard(tmp_path / "used.db")._connect()) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


RACER = """
import sys
from taproof import SqliteGuard
guard = SqliteGuard(sys.argv[1], clock=lambda: 1_760_000_000)
print("ready", flush=True)
sys.stdin.readline()
print(sum(guard.take(str(token), 1_760_000_300) for token in range(40)))
"""


def test_exactly_one_of_many_processes_wins(tmp_path: Path) -> None:
    """All processes of a machine share one file: together, they accept each of 40 tokens once."""
    command = [sys.executable, "-c", RACER, str(tmp_path / "used.db")]
    racers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(5)]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    won = [int(racer.communicate(timeout=120)[0]) for racer in racers]
    assert sum(won) == 40, won


TAKER = """
import itertools, sys
from taproof import SqliteGuard
guard = SqliteGuard(sys.argv[1], clock=lambda: 1_760_000_000)
for token in itertools.count():
    assert guard.take(str(token), 1_760_000_300)
    print(token, flush=True)
"""


def test_kill_minus_nine_undoes_no_take(tmp_path: Path) -> None:
    """An answered call stays recorded even if the process is killed in the next one."""
    path = tmp_path / "used.db"
    with subprocess.Popen([sys.executable, "-c", TAKER, str(path)], stdout=subprocess.PIPE, text=True) as taker:
        assert taker.stdout is not None
        for _ in range(20):
            taker.stdout.readline()
        os.kill(taker.pid, signal.SIGKILL)
        told = 20 + len(taker.stdout.read().splitlines())
    guard = SqliteGuard(path, clock=lambda: NOW)
    assert not any(guard.take(str(token), NOW + 300) for token in range(told))
    assert guard.take(str(told + 1), NOW + 300)
