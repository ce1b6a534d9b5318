"""Run `taproof master-key rotate` with a short wait, and kill it (SIGKILL) at a given step. Started as a program.

The arguments are the database, the seconds to wait, the name of the step (or "-"), and at which of its occurrences to
die.
"""

import asyncio
import os
import signal
import sys
from collections import Counter
from pathlib import Path

from taproof.core.clock import system_clock
from taproof.core.encryption import Encryptor
from taproof.core.entropy import system_entropy
from taproof.runtime.key_file import KeyFile
from taproof.runtime.key_rotation import rotate_key_file
from taproof.storage.sqlite.store import SqliteStorage

database, seconds, place, times = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3], int(sys.argv[4])
passed: Counter[str] = Counter()
fsync, replace = os.fsync, Path.replace


def at(name: str) -> None:
    """Kill this process if this is the step."""
    passed[name] += 1
    if (name, passed[name]) == (place, times):
        os.kill(os.getpid(), signal.SIGKILL)


def synced(descriptor: int) -> None:
    at("before fsync")
    fsync(descriptor)
    at("after fsync")


def replaced(draft: Path, target: Path) -> Path:
    at("before rename")
    found = replace(draft, target)
    at("after rename")
    return found


async def main() -> None:
    storage = SqliteStorage.open(database, system_clock(), system_clock)
    path = database.with_name(f"{database.name}.key")
    # Files are synced as in the service. The database is not, because the test is not about it.
    storage.database.writer.connection.pragma("synchronous", 0)
    os.fsync, Path.replace = synced, replaced  # type: ignore[assignment,method-assign]
    encryptor = Encryptor(path.read_text("ascii"), KeyFile(path).newer)
    await rotate_key_file(
        path, storage, encryptor, system_entropy, settle_seconds=seconds, on_progress=lambda step, _number: at(step)
    )
    await storage.close()


asyncio.run(main())
