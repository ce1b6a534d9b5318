"""Posts updates to the bot's webhook (https://core.telegram.org/bots/api#setwebhook).

One person's updates are sent in order, one at a time, and those of different people concurrently. Without a 2xx answer,
an update is sent again immediately, then after growing pauses, until it is accepted or is a day old.
"""

import asyncio
import contextlib
import ssl
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from taproof.core.clock import SECOND, Clock
from taproof.sandbox.hosts import OwnHosts
from taproof.sandbox.telegram.updates import SandboxUpdate, UpdateQueue

SECRET_HEADER: Final = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 — a header's name.
_ANSWER_SECONDS: Final = 30
_LONGEST_PAUSE: Final = 60
_LONGEST_RETRY_AFTER: Final = 3600


@dataclass(frozen=True, slots=True)
class Webhook:
    """The URL to which updates are sent, and the secret token that proves that the messenger sent them."""

    url: str
    secret_token: str
    max_connections: int


class UpdateSender:
    """Sends the pending updates while a webhook is set."""

    def __init__(self, updates: UpdateQueue, own_hosts: OwnHosts, clock: Clock) -> None:
        self._updates = updates
        self._own_hosts = own_hosts
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self.webhook: Webhook | None = None
        self.last_error_date: int | None = None
        """The time of the last error, in seconds since the epoch."""
        self.last_error_message = ""

    async def set(self, webhook: Webhook | None) -> None:
        """Send updates to this webhook from now on; with None, stop sending."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        self.webhook = webhook
        self.last_error_date, self.last_error_message = None, ""
        if webhook is not None:
            self._task = asyncio.create_task(self._send(webhook))

    async def _send(self, webhook: Webhook) -> None:
        tasks: dict[int, asyncio.Task[None]] = {}
        # A certificate on this machine is usually self-signed, so it is not verified.
        trusted: ssl.SSLContext | bool = not self._own_hosts.include(urlsplit(webhook.url).hostname or "")
        connector = aiohttp.TCPConnector(ssl=trusted)
        async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as client:
            try:
                while True:
                    self._updates.arrived.clear()
                    for user_id in [user_id for user_id, task in tasks.items() if task.done()]:
                        del tasks[user_id]
                    for update in self._updates.pending():
                        if update.user_id not in tasks and len(tasks) < webhook.max_connections:
                            task = asyncio.create_task(self._deliver(client, webhook, update))
                            task.add_done_callback(lambda _: self._updates.arrived.set())
                            tasks[update.user_id] = task
                    await self._updates.arrived.wait()
            finally:
                for task in tasks.values():
                    task.cancel()
                await asyncio.gather(*tasks.values(), return_exceptions=True)

    async def _deliver(self, client: aiohttp.ClientSession, webhook: Webhook, update: SandboxUpdate) -> None:
        pause = 0
        while update in self._updates.pending():
            retry_after = await self._attempt(client, webhook, update)
            if retry_after is None:
                self._updates.drop(update.update_id)
                return
            await asyncio.sleep(retry_after or pause)
            pause = min(max(2, 2 * pause), _LONGEST_PAUSE)

    async def _attempt(self, client: aiohttp.ClientSession, webhook: Webhook, update: SandboxUpdate) -> int | None:
        """Post an update. Return None if it was accepted, else the number of seconds that the receiver asks to wait."""
        headers = {SECRET_HEADER: webhook.secret_token} if webhook.secret_token else {}
        try:
            async with client.post(
                webhook.url,
                json=update.content,
                headers=headers,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=_ANSWER_SECONDS),
            ) as answer:
                if 200 <= answer.status <= 299:
                    return None
                problem = f"Wrong response from the webhook: {answer.status} {answer.reason}"
                wanted = answer.headers.get("Retry-After", "")
                retry_after = min(int(wanted[:9]), _LONGEST_RETRY_AFTER) if wanted.isdecimal() else 0
        except TimeoutError:
            problem, retry_after = "Read timeout expired", 0
        except aiohttp.ClientSSLError:
            problem, retry_after = "SSL error: certificate verify failed", 0
        except (aiohttp.ClientError, OSError):
            problem, retry_after = "Connection refused", 0
        self.last_error_date, self.last_error_message = self._clock() // SECOND, problem
        return retry_after
