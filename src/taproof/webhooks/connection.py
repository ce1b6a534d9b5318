"""One connection to a receiver that can be hostile: it sends a request and reads the answer, within limits.

It accepts every form of an answer that curl accepts (maintainers/decisions/0009). A body must be complete, as with
curl, but is neither decompressed nor interpreted.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from taproof.contract.delivery import AttemptError

ANSWER_BUDGET: Final = 128 * 1024
"""The maximum number of bytes that are read of an answer, including interim answers, headers and chunks."""
LINES_LIMIT: Final = 2_500
"""The maximum number of lines that are read of an answer, including interim answers, headers and chunks. Each costs the
event loop 2 µs.
"""
BODY_CAP: Final = 16 * 1024
"""The number of body bytes that are read. A longer answer counts by its status."""
_LINES_AT_ONCE: Final = 100
"""Lines that are read before the event loop continues with other work."""
_PROTOCOL: Final = b"HTTP/"
_STATUS: Final = re.compile(rb"HTTP/([0-9.]+)[ \t]+([1-9][0-9]{2})", re.IGNORECASE)
_FIELDS: Final = frozenset({b"content-length", b"transfer-encoding", b"connection", b"retry-after"})
"""The headers that are read. All others are ignored."""
_NUMBERS: Final = re.compile(rb"[0-9]+")
_LENGTH_CHARACTERS: Final = 64
_LENGTH_LIMIT: Final = 2**63
"""A greater Content-Length means the same as none, as for curl."""
_CHUNK_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{1,16}")
_RETRY_AFTERS: Final = 10
"""The number of `Retry-After` headers that count."""
_NO_BODY: Final = frozenset({101, 204, 304})
"""Final statuses of answers that end with the headers (RFC 9112, 6.3)."""


class Refused(OSError):
    """The destination or its answer is refused. The message is the code, so that equal errors count as one."""

    def __init__(self, code: AttemptError) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class ReceiverAnswer:
    """A final answer: its status, its `Retry-After` headers and the beginning of its body."""

    status: int
    retry_after: tuple[str, ...]
    body: bytes


class ReceiverConnection(asyncio.Protocol):
    """Carries one request at a time. The first byte that comes while no answer is expected ends it."""

    def __init__(self) -> None:
        self.reusable = False
        """True if the last answer was complete and the receiver keeps the connection."""
        self.on_end: Callable[[], None] | None = None
        """Called when the connection has ended while it was idle."""
        self._transport: asyncio.WriteTransport
        self._received = bytearray()
        self._budget = 0
        self._ended = False
        self._lines = 0
        self._arrival: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        self._transport = transport  # type: ignore[assignment]  # uvloop's does not derive from asyncio's.

    def data_received(self, data: bytes) -> None:
        """Keep data up to the budget, and abort at the first byte beyond it."""
        self._received += data[: max(self._budget, 0)]
        self._budget -= len(data)
        if self._budget < 0:
            self.abort()
        self._notify()

    def eof_received(self) -> None:
        """Record that no more data comes."""
        self._end()

    def connection_lost(self, _error: Exception | None) -> None:
        """Record that no more data comes. A reset after a complete answer does not invalidate it."""
        self._end()

    def abort(self) -> None:
        """Close without waiting: a TLS peer that ignores the close message would keep it open for half a minute."""
        self._transport.abort()

    async def ask(self, request: bytes) -> ReceiverAnswer:
        """Send a request and return the final answer. A connection whose answer was not read to its end is aborted.

        Raises:
            ConnectionResetError: nothing was answered.
            EOFError: the answer is not complete.
            Refused: the answer is too long or not HTTP.
        """
        self.reusable = False
        self._budget = ANSWER_BUDGET
        self._lines = 0
        self._transport.write(request)
        try:
            return await self._read_answer()
        except EOFError as end:
            if self._budget == ANSWER_BUDGET:
                raise ConnectionResetError from end
            raise
        finally:
            self._budget = 0
            if not self.reusable:
                self.abort()

    async def _read_answer(self) -> ReceiverAnswer:
        status = 100
        while 100 <= status < 200 and status != 101:
            version, status = await self._read_status()
            fields = await self._read_fields()
        lengths = _NUMBERS.findall(b",".join(fields[b"content-length"])[:_LENGTH_CHARACTERS])
        length = min((int(each) for each in lengths if int(each) < _LENGTH_LIMIT), default=None)
        chunked = b"chunked" in b",".join(fields[b"transfer-encoding"]).lower()
        complete = True
        if status in _NO_BODY:
            body = b""
            # After 101, the receiver speaks another protocol.
            complete = status != 101 and not length and not chunked
        elif chunked:
            body, complete = await self._read_chunks()
        elif length is not None:
            body = await self._take(min(length, BODY_CAP))
            complete = length <= BODY_CAP
        else:
            body, complete = await self._read_to_end(), False
        connection = b",".join(fields[b"connection"]).lower()
        kept = b"close" not in connection and (version == b"1.1" or b"keep-alive" in connection)
        self.reusable = complete and kept and not self._received and not self._ended
        retry_after = tuple(each.decode("latin-1") for each in fields[b"retry-after"][:_RETRY_AFTERS])
        return ReceiverAnswer(status, retry_after, body)

    async def _read_status(self) -> tuple[bytes, int]:
        while len(self._received) < len(_PROTOCOL):
            await self._arrive()
        # A peer that speaks another protocol may never send the end of a line.
        if self._received[: len(_PROTOCOL)].upper() != _PROTOCOL:
            raise Refused("invalid_answer")
        found = _STATUS.match(await self._read_line())
        if found is None:
            raise Refused("invalid_answer")
        return found[1], int(found[2])

    async def _read_fields(self) -> dict[bytes, list[bytes]]:
        fields: dict[bytes, list[bytes]] = defaultdict(list)
        name = b""
        try:
            while line := await self._read_line():
                if line[:1] in b" \t":
                    value = line  # A continuation of the previous line's value (RFC 9112, 5.2).
                else:
                    name, _, value = line.partition(b":")
                    name = name.rstrip(b" \t").lower()
                if name in _FIELDS:
                    fields[name].append(value.strip(b" \t"))
        except EOFError:
            pass  # curl also accepts unterminated headers. An announced body is still missing.
        return fields

    async def _read_chunks(self) -> tuple[bytes, bool]:
        """Return the beginning of a body in chunks, and whether that is all of it."""
        body = bytearray()
        while self._lines < LINES_LIMIT - 1:
            found = _CHUNK_SIZE.match(await self._read_line())
            if found is None:
                raise Refused("invalid_answer")
            size = int(found[0], 16)
            if size == 0:
                while self._lines < LINES_LIMIT:
                    if not await self._read_line():  # The end of the trailers.
                        return bytes(body), True
                break
            room = BODY_CAP - len(body)
            body += await self._take(min(size, room))
            if size > room:
                return bytes(body), False
            if await self._read_line():
                raise Refused("invalid_answer")
        return bytes(body), False

    async def _read_to_end(self) -> bytes:
        try:
            return await self._take(BODY_CAP)
        except EOFError:
            return bytes(self._received)

    async def _read_line(self) -> bytes:
        """Return the next line without its end, which is LF with any number of CR before it."""
        searched = 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            await self._arrive()
        line = bytes(self._received[:end]).rstrip(b"\r")
        del self._received[: end + 1]
        self._lines += 1
        if self._lines > LINES_LIMIT:
            raise Refused("invalid_answer")
        if self._lines % _LINES_AT_ONCE == 0:
            await asyncio.sleep(0)
        return line

    async def _take(self, count: int) -> bytes:
        while len(self._received) < count:
            await self._arrive()
        taken = bytes(self._received[:count])
        del self._received[:count]
        return taken

    async def _arrive(self) -> None:
        """Wait for more data."""
        if self._budget < 0:
            raise Refused("invalid_answer")
        if self._ended:
            raise EOFError
        self._arrival = asyncio.get_running_loop().create_future()
        await self._arrival

    def _notify(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def _end(self) -> None:
        self._ended = True
        self._notify()
        if self.on_end is not None:
            self.on_end()
