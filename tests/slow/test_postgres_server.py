"""The tests' PostgreSQL server restarts with its data after a stop, and leaves nothing behind."""

import subprocess
import sys
import time
from pathlib import Path

from tests.postgres_server import PostgresServer, execute, fresh_database

PROGRAM = """
import time
from tests.postgres_server import PostgresServer
server = PostgresServer()
print(server._directory, server.port, flush=True)
time.sleep(600)
"""


def test_what_was_committed_is_there_after_every_kind_of_stop() -> None:
    """After a stop, a crash or a kill, the server restarts on the same port with every acknowledged commit."""
    server = PostgresServer()
    try:
        port = server.port
        with fresh_database(server=server) as dsn:
            execute(dsn, "CREATE TABLE notes (number INTEGER)")
            stops = [server.stop, lambda: server.stop("immediate"), server.kill]
            for number, stop in enumerate(stops):
                execute(dsn, f"INSERT INTO notes VALUES ({number})")  # noqa: S608 — a number of this test.
                stop()
                server.start()
                assert execute(dsn, "SELECT COUNT(*), current_setting('fsync') FROM notes") == f"{number + 1}|on\n"
        assert server.port == port
    finally:
        server.close()
    assert not server._directory.exists()


def test_nothing_is_left_of_a_test_process_that_was_killed() -> None:
    """After a test process is killed, no server keeps running and no data stays on the disk."""
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        directory, port = process.stdout.readline().split()
        assert execute(f"postgresql://postgres@127.0.0.1:{port}/postgres", "SELECT 1") == "1\n"
        process.kill()
    deadline = time.monotonic() + 20
    while Path(directory).exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
