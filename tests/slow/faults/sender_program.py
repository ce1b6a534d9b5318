"""Run webhook senders in separate processes, composed as in `runtime/app.py`. Started as a program.

It forks a sender for each line on stdin, as `--workers` does; each prints its process id on stdout once it sends. At
the end of stdin the senders finish their work. The exit code is 0 if each of them ended that way or was killed.

They differ from a worker of `taproof serve` in three ways: they post to loopback over plain HTTP, the duration of an
attempt and of a lease are arguments, and retries come sooner and more often. With `quick` they do not wait for the
disk: see `Place.is_quick`.
"""

import asyncio
import os
import signal
import sys

import uvloop

from taproof.config.logging import configure_logging
from taproof.core.address_rules import AddressRules
from taproof.core.clock import SECOND, system_clock
from taproof.core.deliveries import AttemptOutcome
from taproof.core.encryption import Encryptor
from taproof.core.entropy import system_entropy
from taproof.runtime.store import open_storage
from taproof.service import webhooks as service
from taproof.service.webhooks import Webhooks
from taproof.storage.sqlite.store import SqliteStorage
from taproof.webhooks.http_client import open_webhook_client
from taproof.webhooks.sender import WebhookSender

# Of 10,000 events that fail three times in ten, the usual nine attempts would lose one in every fifth run.
RETRY_DELAYS = (SECOND // 2, SECOND, *(2 * SECOND for _ in range(20)))


ANY_PORT = frozenset(range(1, 65_536))


async def keep_setting(recorded: asyncio.Event) -> None:
    """Set it as often as decisions of this process would; the decisions are made in the test's process."""
    while True:
        recorded.set()
        await asyncio.sleep(0.02)


class Unwatched:
    """Counters that count nothing."""

    def count_attempt(self, outcome: AttemptOutcome) -> None: ...

    def observe_delivery(self, seconds: float) -> None: ...

    def show_oldest_due(self, seconds: float) -> None: ...


async def send(url: str, master_key: str, stop: int, *, quick: bool) -> None:
    """Send until the file descriptor `stop` reaches its end."""
    storage = await open_storage(url)
    if quick and isinstance(storage, SqliteStorage):
        storage.database.writer.connection.pragma("synchronous", 0)
    webhooks = Webhooks(
        storage,
        Encryptor(master_key),
        system_clock,
        system_entropy,
        f"Taproof/{os.getpid()}",
        retry_delays=RETRY_DELAYS,
    )
    rules = AddressRules(["loopback"])
    async with open_webhook_client(rules, ANY_PORT, allow_http=True, timeout=service.SEND_TIMEOUT) as client:
        recorded = asyncio.Event()
        stopping = asyncio.Event()
        sender = WebhookSender(webhooks, client.post, recorded, Unwatched())
        setting = asyncio.create_task(keep_setting(recorded))
        sending = asyncio.create_task(sender.run_until(stopping))
        os.write(1, f"{os.getpid()}\n".encode())
        ended = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(ended), os.fdopen(stop))
        await ended.read()
        stopping.set()
        await sending
        setting.cancel()
    await storage.close()


def main() -> int:
    url, master_key, timeout, lease, *quick = sys.argv[1:]
    service.LEASE = int(lease) * SECOND  # type: ignore[misc]
    service.SEND_TIMEOUT = int(timeout)  # type: ignore[misc]
    configure_logging("error", "json")
    senders = []
    stop, held = os.pipe()
    for _ in sys.stdin:
        sender = os.fork()
        if sender == 0:
            os.close(held)
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(send(url, master_key, stop, quick=bool(quick)))
            os._exit(0)
        senders.append(sender)
    os.close(held)
    statuses = {os.waitstatus_to_exitcode(os.waitpid(sender, 0)[1]) for sender in senders}
    return 0 if statuses <= {0, -signal.SIGKILL} else 1


sys.exit(main())
