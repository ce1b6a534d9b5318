"""Group commit: concurrent writes share a commit, and no write is affected by another one of its group."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.signals import unheard

from taproof.storage.sqlite.group_commit import GROUP_LIMIT, GroupCommit, Write


class Notebook:
    """A database with one table of unique notes, written by a GroupCommit. It records every transaction."""

    def __init__(self, path: Path, **seconds: float) -> None:
        self.path = path
        self.connection = apsw.Connection(str(path))
        self.connection.pragma("journal_mode", "wal")
        self.connection.execute("CREATE TABLE notes (text TEXT PRIMARY KEY, times INTEGER NOT NULL DEFAULT 1)")
        self.transactions: list[str] = []
        self.connection.exec_trace = self._trace
        self.writer = GroupCommit(self.connection, unheard, unheard, **seconds)

    def _trace(self, _cursor: apsw.Cursor, statement: str, _values: Any) -> bool:
        verb = statement.split(maxsplit=1)[0]
        if verb in {"BEGIN", "COMMIT", "ROLLBACK"}:
            self.transactions.append(verb)
        return True

    @staticmethod
    def note(text: str) -> Write:
        return lambda connection: connection.execute("INSERT INTO notes (text) VALUES (?)", (text,)) and text

    async def write(self, text: str) -> Any:
        return await self.writer.run(self.note(text))

    def read(self) -> set[str]:
        """Read with a separate connection, which sees only committed rows."""
        reader = apsw.Connection(str(self.path))
        try:
            return {text for (text,) in reader.execute("SELECT text FROM notes WHERE times = 1")}
        finally:
            reader.close()


@pytest.fixture
async def notebook(tmp_path: Path) -> AsyncIterator[Notebook]:
    book = Notebook(tmp_path / "notes.db")
    yield book
    await book.writer.close()


async def test_concurrent_writes_share_a_commit(notebook: Notebook) -> None:
    """A hundred concurrent writes wait for the disk once or twice, not a hundred times."""
    texts = {f"{number}" for number in range(100)}
    assert set(await asyncio.gather(*map(notebook.write, texts))) == texts
    assert notebook.transactions.count("COMMIT") <= 2
    assert notebook.read() == texts


async def test_a_group_is_bounded(notebook: Notebook) -> None:
    """The event loop is never blocked for longer than the statements of one group take."""
    await asyncio.gather(*(notebook.write(f"{number}") for number in range(2 * GROUP_LIMIT + 1)))
    assert notebook.transactions.count("COMMIT") >= 3
    assert len(notebook.read()) == 2 * GROUP_LIMIT + 1


async def test_a_failing_write_does_not_fail_its_neighbours(notebook: Notebook) -> None:
    """Only the caller of the failing write gets the error; all other writes happen exactly once."""

    def broken(_connection: apsw.Connection) -> None:
        raise LookupError("a bug")

    await notebook.write("taken")
    results = await asyncio.gather(
        notebook.write("a"),
        notebook.write("taken"),
        notebook.write("b"),
        notebook.writer.run(broken),
        notebook.writer.run(lambda connection: connection.execute("INSERT INTO no_such_table VALUES (1)")),
        notebook.writer.run(lambda connection: connection.execute("INSERT INTO notes VALUES (?, 1)", (2**70,))),
        notebook.writer.run(lambda connection: connection.execute("INSERT INTO notes VALUES (?, 1)", ("\ud800",))),
        notebook.write("c"),
        return_exceptions=True,
    )
    kinds = [result if isinstance(result, str) else type(result) for result in results]
    assert kinds[:4] == ["a", apsw.ConstraintError, "b", LookupError]
    assert kinds[4:] == [apsw.SQLError, OverflowError, UnicodeEncodeError, "c"]
    assert notebook.read() == {"taken", "a", "b", "c"}
    assert await notebook.write("after") == "after"


async def test_a_failing_write_undoes_all_of_itself(notebook: Notebook) -> None:
    """A write of several statements is atomic, even if it is alone in its group."""

    def half(connection: apsw.Connection) -> None:
        connection.execute("INSERT INTO notes (text) VALUES ('half')")
        raise LookupError

    with pytest.raises(LookupError):
        await notebook.writer.run(half)
    assert notebook.read() == set()
    assert not notebook.connection.in_transaction


async def test_a_caller_that_leaves_during_the_commit_has_written(notebook: Notebook) -> None:
    """Cancelling does not undo a started write, and all other callers get their results."""
    tasks: list[asyncio.Task[Any]] = []

    def leave(connection: apsw.Connection) -> str:
        tasks[0].cancel()
        tasks[1].cancel()
        connection.execute("INSERT INTO notes (text) VALUES ('leaver')")
        return "leaver"

    tasks.append(asyncio.create_task(notebook.write("before")))
    tasks.append(asyncio.create_task(notebook.writer.run(leave)))
    tasks.append(asyncio.create_task(notebook.write("behind")))
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results[:2]] == [asyncio.CancelledError] * 2
    assert results[2] == "behind"
    assert notebook.read() == {"before", "leaver", "behind"}


async def test_the_event_loop_is_free_while_the_disk_is_waited_for(notebook: Notebook) -> None:
    """Reads continue during COMMIT, and writes that arrive meanwhile share the next transaction."""
    reached, released = threading.Event(), threading.Event()

    def wait_for_disk() -> bool:
        reached.set()
        released.wait(30)
        return False

    notebook.connection.set_commit_hook(wait_for_disk)
    first = asyncio.create_task(notebook.write("first"))
    await asyncio.to_thread(reached.wait, 30)
    assert notebook.read() == set()
    later = [asyncio.create_task(notebook.write(f"{number}")) for number in range(20)]
    await asyncio.sleep(0)
    released.set()
    await asyncio.gather(first, *later)
    assert notebook.transactions.count("COMMIT") == 2
    assert len(notebook.read()) == 21


async def test_a_lock_that_is_let_go_in_time_is_waited_for(notebook: Notebook) -> None:
    """A backup or the command line may hold the lock briefly without an error for the caller."""
    other = apsw.Connection(str(notebook.path))
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.create_task(notebook.write("patient"))
    while notebook.transactions.count("BEGIN") < 3:
        assert not waiting.done()
        await asyncio.sleep(0.001)
    other.execute("COMMIT")
    assert await waiting == "patient"
    other.close()


async def test_a_commit_that_fails_is_undone_and_told(notebook: Notebook) -> None:
    """If the commit itself fails, no caller gets a result, and nothing is written."""
    notebook.connection.set_commit_hook(lambda: True)
    results = await asyncio.gather(notebook.write("a"), notebook.write("b"), return_exceptions=True)
    assert all(isinstance(result, Exception) for result in results)
    notebook.connection.set_commit_hook(None)
    assert notebook.read() == set()
    assert not notebook.connection.in_transaction
    assert await notebook.write("again") == "again"


async def test_writes_one_by_one_never_wait_for_company(tmp_path: Path) -> None:
    """Only groups under load wait for more writes. If single writes waited, this test would take twenty minutes."""
    notebook = Notebook(tmp_path / "notes.db", gather=60)
    async with asyncio.timeout(60):
        for number in range(20):
            await notebook.write(f"{number}")
    await notebook.writer.close()


async def test_while_there_are_many_a_group_gathers_those_that_come_a_little_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a group of eight writes, three writes from different turns of the event loop share one commit."""
    notebook = Notebook(tmp_path / "notes.db", recent=60, gather=60)
    sleep, gathered = asyncio.sleep, asyncio.Event()

    async def sleep_or_gather(seconds: float) -> None:
        await (gathered.wait() if seconds == 60 else sleep(seconds))

    monkeypatch.setattr(asyncio, "sleep", sleep_or_gather)
    await asyncio.gather(*(notebook.write(f"first {number}") for number in range(8)))
    before = notebook.transactions.count("COMMIT")
    later = []
    for number in range(3):
        later.append(asyncio.create_task(notebook.write(f"later {number}")))
        await asyncio.sleep(0.01)
    gathered.set()
    await asyncio.gather(*later)
    assert notebook.transactions.count("COMMIT") == before + 1
    await notebook.writer.close()
