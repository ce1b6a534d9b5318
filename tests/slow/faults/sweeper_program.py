"""Sweep as the leader does, at a fixed time, until it is killed. Started as a program.

The arguments are the database, the master key and the time (ms). The program prints a line when it is ready, and begins
when it reads one.
"""

import asyncio
import sys

from taproof.core.encryption import Encryptor
from taproof.core.entropy import system_entropy
from taproof.jobs.housekeeping import sweep_until
from taproof.runtime.store import open_storage
from taproof.service.housekeeping import Housekeeping
from taproof.storage.sqlite.store import SqliteStorage

url, master_key, now = sys.argv[1], sys.argv[2], int(sys.argv[3])


async def main() -> None:
    storage = await open_storage(url)
    if isinstance(storage, SqliteStorage):
        storage.database.writer.connection.pragma("synchronous", 0)
    housekeeping = Housekeeping(storage, Encryptor(master_key), lambda: now, system_entropy, 90)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.readline)
    await sweep_until(asyncio.Event(), housekeeping)


asyncio.run(main())
