"""PostgreSQL freezes under load, as if the network cut it off: no connection closes, and nothing is answered."""

import asyncio
import os
import signal
import time
from pathlib import Path

from tests.conftest import Figure
from tests.faults.load import loaded
from tests.faults.place import make_place
from tests.postgres_server import PostgresServer, execute


def processes(server: PostgresServer) -> list[int]:
    """Return the processes of the server, the first one first."""
    first = int((server._data / "postmaster.pid").read_text().split("\n", 1)[0])
    others = Path(f"/proc/{first}/task/{first}/children").read_text("ascii").split()
    return [first, *map(int, others)]


async def test_a_server_that_stands_still(figure: Figure) -> None:
    """Calls give up after a while. Calls that the server executes after it resumes do no harm."""
    server = PostgresServer()
    try:
        execute(server.dsn(), "CREATE DATABASE taproof TEMPLATE template0")
        place = await make_place(server.dsn("taproof"))
        async with loaded(place) as load:
            for seconds in (3, 14, 14):
                for worker in load.workers:
                    await worker.until_acknowledged(100)
                load.ledger.unavailable.clear()
                stopped = processes(server)
                for process in stopped:
                    os.kill(process, signal.SIGSTOP)
                await asyncio.sleep(seconds)
                for process in stopped:
                    os.kill(process, signal.SIGCONT)
                took = await load.until_all_work(time.monotonic())
                assert took < 10
                figure(f"seconds until all work again, after {seconds}", f"{took:.2f}")
                waited = [seconds for _, seconds in load.ledger.unavailable]
                figure("seconds until a call gave up", f"{max(waited, default=0):.1f}")
                assert max(waited, default=0) < 15
    finally:
        server.close()
