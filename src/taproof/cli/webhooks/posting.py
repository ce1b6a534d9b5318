"""Posts an event to an application, which may run on this machine."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from taproof.config.settings import InvalidSettings
from taproof.core.clock import SECOND
from taproof.core.webhook_url import is_loopback

_PATIENCE: Final = 10.0
"""Seconds for one whole post, as the service allows."""
_HOP_BY_HOP: Final = frozenset(
    {
        *("connection", "content-length", "expect", "host", "keep-alive", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    }
)
"""Headers of one connection (RFC 9110, 7.6.1 and 11.7.2), which the next connection replaces."""


@dataclass(frozen=True, slots=True)
class Posted:
    """The result of a post. `duration` is in ms. `error` is the reason for no response; then `status` is None.

    `retry_after` is the response's Retry-After header.
    """

    duration: int
    status: int | None
    error: str | None = None
    retry_after: str | None = None


class Poster:
    """Posts to applications; created by `open_poster`."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Posted:
        """Post once, without following redirects."""
        connection = ",".join(value for name, value in headers.items() if name.lower() == "connection")
        dropped = _HOP_BY_HOP | {each.strip().lower() for each in connection.split(",")}
        kept = [(name, value) for name, value in headers.items() if name.lower() not in dropped]
        loop = asyncio.get_running_loop()
        begun = loop.time()
        status, error, retry_after = None, None, None
        try:
            target = URL(url, encoded=True)
            async with asyncio.timeout(_PATIENCE):
                async with self._session.post(target, data=body, headers=kept, allow_redirects=False) as response:
                    status, retry_after = response.status, response.headers.get("Retry-After")
        except TimeoutError:
            error = "no response within 10 seconds"
        except aiohttp.ClientError as failure:
            error = getattr(failure, "strerror", None) or type(failure).__name__
        return Posted(round((loop.time() - begun) * SECOND), status, error, retry_after)


@contextlib.asynccontextmanager
async def open_poster() -> AsyncIterator[Poster]:
    """Yield a poster. It uses no proxy and keeps no cookies."""
    async with aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=("User-Agent", "Content-Type", "Accept", "Accept-Encoding"),
        auto_decompress=False,
        trust_env=False,
    ) as session:
        yield Poster(session)


def require_url(option: str, url: str, *, loopback: bool) -> None:
    """Refuse a value of an option that is not an http:// or https:// URL or, with `loopback`, not of this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        readable = parts.scheme in {"http", "https"} and host and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        host, readable = "", ""
    if not readable or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidSettings([f"{option} must be an http:// or https:// URL without a user name or password."])
    if loopback and not is_loopback(host):
        # An event contains a session token and the user's identity, so it must not leave this machine.
        raise InvalidSettings([f"{option} must be a URL of this machine, such as http://127.0.0.1:3000/hooks/taproof."])
