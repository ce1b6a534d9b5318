"""Export one user's data: for a developer, or for the operator.

An export contains what `erasure.py` erases: both find the rows with the same conditions. It is JSON in which each item
of a list is on a line of its own. It is written in pieces, and each step reads a bounded number of rows, so its size
does not matter to other calls. Between two steps it holds no transaction and no lock, so a slow reader delays nobody.

The steps are no snapshot together, but no session appears twice or is left out because it changed its state. If data
is erased meanwhile, or the developer's rights end, the export ends with an error and without its last line. A reader
can thus tell a complete export.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import structlog

from taproof.core.accounts import Developer
from taproof.core.clock import DAY, Clock, iso8601
from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.errors import DecryptionFailed, ErasedMeanwhile, ProjectNotFound
from taproof.core.model import SessionKey
from taproof.service.erasure import checked_messenger_id
from taproof.service.project_access import require_writer
from taproof.service.webhooks import answer_associated_data
from taproof.storage.protocol import Storage
from taproof.storage.protocol.erasure import FIRST_DAY, FIRST_KEY, DaysCursor, Row, Rows, UserTable

STEP: Final = 100
"""The number of rows of a list that one step reads."""
PIECE: Final = 32 * 1024
"""The number of characters after which a piece ends. One item may be longer: a session with all its webhooks."""
LAST_LINE: Final = "}\n"
"""The last line of a complete export. No other line is equal to it."""
REST: Final[tuple[UserTable, ...]] = ("phone_requests", "prompts", "blocks")
"""The lists that only the operator's export has."""
_UNKNOWN: Final = dict.fromkeys(
    ("confirmed_at", "messenger_id", "messenger_name", "messenger_username", "encrypted_phone")
)
_UNREADABLE: Final = "It was altered, or its master key is missing."
_log = structlog.get_logger(__name__)

Pieces = AsyncGenerator[str, None]
_Items = AsyncIterator[Iterable[dict[str, Any]]]


class UserExports:
    """Exports users' data."""

    def __init__(self, storage: Storage, encryptor: Encryptor, clock: Clock) -> None:
        self._storage = storage
        self._encryptor = encryptor
        self._clock = clock

    async def export_user(self, developer: Developer, messenger_id: str) -> Pieces:
        """Return the pieces of all data about an account that `Erasure.erase_user` would erase.

        Raises:
            InvalidRequest: `messenger_id` is not a messenger account's id.
            InsufficientRole: the developer is only a viewer of their projects.
        """
        checked_messenger_id(messenger_id)
        await require_writer(self._storage, developer)
        return self._pieces(messenger_id, developer.id)

    def export_everywhere(self, messenger_id: str) -> Pieces:
        """Return the pieces of all data about an account that `Erasure.erase_everywhere` would erase.

        Raises:
            InvalidRequest: `messenger_id` is not a messenger account's id.
        """
        return self._pieces(checked_messenger_id(messenger_id), None)

    async def _pieces(self, messenger_id: str, developer_id: str | None) -> Pieces:
        """Yield the pieces of an export.

        Raises:
            ErasedMeanwhile: some of the data may be missing.
            ProjectNotFound, InsufficientRole: the developer's rights in a project have ended.
        """
        last = _LastRead(self._storage, messenger_id)
        rights = await self._writable(developer_id)
        lists: list[tuple[str, _Items]] = [
            ("sessions", self._sessions(messenger_id, developer_id, last)),
            ("days", self._days(messenger_id, developer_id)),
        ]
        if developer_id is None:
            lists += [(table, self._rest(messenger_id, table)) for table in REST]
        head = {"messenger_id": messenger_id, "exported_at": iso8601(self._clock())}
        text = "{" + ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in head.items())
        for name, items in lists:
            text += f',\n"{name}": ['
            separator = "\n"
            async for some in items:
                for each in some:
                    text += separator + json.dumps(each, ensure_ascii=False)
                    separator = ",\n"
                    if len(text) >= PIECE:
                        yield text
                        text = ""
            text += "]"
        await last.require_kept()
        # The rows of a project whose rights ended meanwhile are left out of the later steps without an error.
        if not rights <= await self._writable(developer_id):
            raise ProjectNotFound
        yield f"{text}\n{LAST_LINE}"

    async def _writable(self, developer_id: str | None) -> set[str]:
        return set() if developer_id is None else await self._storage.erasure.find_writable(developer_id)

    async def _sessions(self, messenger_id: str, developer_id: str | None, last: "_LastRead") -> _Items:
        """Yield the sessions of each project, in the order in which an erasure would erase them."""
        project_id = ""
        while found := await self._storage.erasure.find_project(messenger_id, developer_id, project_id):
            project_id, key = found, FIRST_KEY
            while True:
                rows = await self._storage.erasure.export_sessions(messenger_id, project_id, developer_id, key, STEP)
                await last.require_kept()
                sessions = rows["sessions"]
                if sessions:
                    last.key = key = _key(sessions[-1])
                    yield self._shown_sessions(rows)
                if len(sessions) < STEP:
                    break

    async def _days(self, messenger_id: str, developer_id: str | None) -> _Items:
        after = FIRST_DAY
        while rows := await self._storage.erasure.export_days(messenger_id, developer_id, after, STEP):
            yield [_shown(row) for row in rows]
            after = DaysCursor(*(rows[-1][column] for column in ("developer_id", "day", "project_id")))

    async def _rest(self, messenger_id: str, table: UserTable) -> _Items:
        after: Row | None = None
        while rows := await self._storage.erasure.export_rest(messenger_id, table, after, STEP):
            yield [_shown(row) for row in rows]
            after = rows[-1]

    def _shown_sessions(self, rows: Rows) -> Iterable[dict[str, Any]]:
        """Yield the sessions of one step as JSON values, each with the rows that are erased with it."""
        attempts = _by(rows.get("webhook_attempts", []), "event_id")
        events = _by(rows.get("webhook_events", []), "session_id")
        requests = {_key(row): row for row in rows.get("phone_requests", [])}
        prompts = {_key(row): row for row in rows.get("prompts", [])}
        for row in rows["sessions"]:
            request, prompt = requests.get(_key(row)), prompts.get(_key(row))
            yield self._shown_session(row) | {
                "deliveries": [
                    self._shown_event(event)
                    | {"attempts": [self._shown_attempt(each) for each in attempts.get(event["id"], [])]}
                    for event in events.get(row["id"], [])
                ],
                "phone_request": None if request is None else _shown(request),
                "prompt": None if prompt is None else _shown(prompt),
            }

    def _shown_session(self, row: Row) -> dict[str, Any]:
        shown = _shown(row)
        if row["status"] == "pending":
            # Nobody has signed in yet: see `storage.rows.session_from`.
            row, shown = row | _UNKNOWN, shown | _UNKNOWN
            del shown["encrypted_phone"]
        phone = self._decrypted(row["encrypted_phone"], associated_data_of("phone", row["id"]))
        return shown | {"messenger_phone": phone}

    def _shown_event(self, row: Row) -> dict[str, Any]:
        text = self._decrypted(row["encrypted_body"], associated_data_of("event_body", row["id"]))
        body = None if text is None else json.loads(text)
        if isinstance(body, dict):
            body.pop("session_token", None)
        return _shown(row) | {"body": body}

    def _shown_attempt(self, row: Row) -> dict[str, Any]:
        bound = answer_associated_data(row["event_id"], row["number"])
        return _shown(row) | {"answer": self._decrypted(row["encrypted_answer"], bound)}

    def _decrypted(self, encrypted: bytes | None, associated_data: str) -> str | None:
        """Return the plaintext; None if there is none, or if it cannot be decrypted."""
        if not encrypted:
            return None
        try:
            return self._encryptor.decrypt(encrypted, associated_data)
        except DecryptionFailed:
            # One bad value must not make the whole export fail.
            _log.error("export_unreadable", value=associated_data.split(":", 1)[0], advice=_UNREADABLE)
            return None


class _LastRead:
    """The session that an export has read last; `key` is None before the first.

    An erasure erases in the order in which an export reads. So if it has erased a session before the export read it,
    the one that was read before it is gone too.
    """

    def __init__(self, storage: Storage, messenger_id: str) -> None:
        self._storage = storage
        self._messenger_id = messenger_id
        self.key: SessionKey | None = None

    async def require_kept(self) -> None:
        """Refuse to go on if the session is gone, after each further read.

        Raises:
            ErasedMeanwhile: it is gone.
        """
        if self.key is not None and not await self._storage.erasure.is_kept(self._messenger_id, self.key):
            raise ErasedMeanwhile


def _key(row: Row) -> SessionKey:
    return SessionKey(row["day"], row["token_hash"])


def _by(rows: list[Row], column: str) -> dict[Any, list[Row]]:
    """Return rows grouped by a column, in the order of their primary keys."""
    ordered = sorted(rows, key=lambda row: (row[column], row.get("id", ""), row.get("number", 0)))
    return {value: list(group) for value, group in groupby(ordered, key=itemgetter(column))}


def _shown(row: Row) -> dict[str, Any]:
    """Return a row as JSON values, without hashes, secrets and encrypted values."""
    return {column: _shown_value(column, value) for column, value in row.items() if not _is_secret(column, value)}


def _is_secret(column: str, value: object) -> bool:
    return isinstance(value, bytes) or column.startswith("encrypted_") or column.endswith(("_hash", "code_challenge"))


def _shown_value(column: str, value: Any) -> Any:
    if value is None:
        return None
    if column == "day":
        return iso8601(value * DAY)[:10]
    return iso8601(value) if column.endswith(("_at", "_until")) and value else value
