"""Export one user's data: for a developer, or for the operator.

An export contains what `erasure.py` erases: both find the rows with the same conditions. It is JSON in which each item
of a list is on a line of its own. It comes line by line, and each step reads a bounded number of rows, so its size does
not matter to other calls. Between two steps it holds no transaction and no lock, so a slow reader delays nobody.

The steps are no snapshot together, but no session appears twice or is left out because it changed its state. If data
is erased meanwhile, or the developer's rights end, the export ends with an error and without its last line. A reader
can thus tell a complete export.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import structlog

from taproof.core.accounts import Developer
from taproof.core.clock import DAY, Clock, iso8601
from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.errors import DecryptionFailed, ErasedMeanwhile, ProjectNotFound
from taproof.core.sessions import SessionKey
from taproof.service.erasure import checked_messenger_id
from taproof.service.project_access import require_writer
from taproof.service.webhooks import answer_associated_data
from taproof.storage.protocol import Storage
from taproof.storage.queries.erasure import FIRST_DAY, FIRST_KEY, DaysCursor, Row, Rows, UserTable

STEP: Final = 100
"""The number of rows of a list that one step reads."""
LAST_LINE: Final = "}\n"
"""The last line of a complete export. No other line is equal to it."""
REST: Final[tuple[UserTable, ...]] = ("phone_requests", "prompts", "blocks")
"""The lists that only the operator's export has."""
_UNKNOWN: Final = dict.fromkeys(
    ("confirmed_at", "messenger_id", "messenger_name", "messenger_username", "encrypted_phone")
)
_UNREADABLE: Final = "It was altered, or its master key is missing."
_log = structlog.get_logger(__name__)

Texts = AsyncGenerator[str, None]
"""The texts of an export in their order. Each has at most one item: a session with all its webhooks, for example."""
_Items = AsyncIterator[Iterable[dict[str, Any]]]


class UserExports:
    """Exports users' data; `step` is the number of rows of a list that one step reads."""

    def __init__(self, storage: Storage, encryptor: Encryptor, clock: Clock, *, step: int = STEP) -> None:
        self._export = partial(_Export, storage, encryptor, step)
        self._storage = storage
        self._clock = clock

    async def export_user(self, developer: Developer, messenger_id: str) -> Texts:
        """Return all data about an account that `Erasure.erase_user` would erase.

        Raises:
            InvalidRequest: `messenger_id` is not a messenger account's id.
            InsufficientRole: the developer is only a viewer of their projects.
        """
        checked_messenger_id(messenger_id)
        await require_writer(self._storage, developer)
        return self._export(messenger_id, developer.id).texts(self._clock())

    def export_everywhere(self, messenger_id: str) -> Texts:
        """Return all data about an account that `Erasure.erase_everywhere` would erase, or raise InvalidRequest."""
        return self._export(checked_messenger_id(messenger_id), None).texts(self._clock())


@dataclass(slots=True)
class _Export:
    """One export: of all projects, or of those whose data a developer may change."""

    storage: Storage
    encryptor: Encryptor
    step: int
    messenger_id: str
    developer_id: str | None
    last_key: SessionKey | None = None
    """The session that was read last; None before the first."""
    unreadable: set[str] = field(default_factory=set)
    """The kinds of values that could not be decrypted; each is logged once."""

    async def texts(self, now: int) -> Texts:
        """Yield the texts.

        Raises:
            ErasedMeanwhile: some of the data may be missing.
            ProjectNotFound, InsufficientRole: the developer's rights in a project have ended.
        """
        rights = await self._writable()
        lists: list[tuple[str, _Items]] = [
            ("sessions", self._sessions()),
            ("days", self._days()),
            ("grants", self._grants()),
            ("groups", self._groups()),
        ]
        if self.developer_id is None:
            lists += [(table, self._rest(table)) for table in REST]
        yield f'{{"messenger_id": "{self.messenger_id}",\n"exported_at": "{iso8601(now)}"'
        for name, items in lists:
            yield f',\n"{name}": ['
            separator = "\n"
            async for some in items:
                for each in some:
                    yield separator + json.dumps(each, ensure_ascii=False)
                    separator = ",\n"
            yield "]"
        await self._require_kept()
        # The rows of a project whose rights ended meanwhile are left out of the later steps without an error.
        if not rights <= await self._writable():
            raise ProjectNotFound
        yield f"\n{LAST_LINE}"

    async def _writable(self) -> set[str]:
        return set() if self.developer_id is None else await self.storage.erasure.find_writable(self.developer_id)

    async def _sessions(self) -> _Items:
        """Yield the sessions of each project, in the order in which an erasure would erase them."""
        erasure, project_id = self.storage.erasure, ""
        while found := await erasure.find_project(self.messenger_id, self.developer_id, project_id):
            project_id, key = found, FIRST_KEY
            while True:
                rows = await erasure.export_sessions(self.messenger_id, project_id, self.developer_id, key, self.step)
                await self._require_kept()
                if sessions := rows["sessions"]:
                    self.last_key = key = _key(sessions[-1])
                    yield self._shown_sessions(rows)
                if len(sessions) < self.step:
                    break

    async def _require_kept(self) -> None:
        """Raise ErasedMeanwhile if the session that was read last is gone; called after each further read.

        An erasure erases in the order in which an export reads. So if it has erased a session before the export read
        it, the one that was read before it is gone too.
        """
        key = self.last_key
        if key is not None and not await self.storage.erasure.is_kept(self.messenger_id, key):
            raise ErasedMeanwhile

    async def _days(self) -> _Items:
        after = FIRST_DAY
        while rows := await self.storage.erasure.export_days(self.messenger_id, self.developer_id, after, self.step):
            yield map(_shown, rows)
            after = DaysCursor(*(rows[-1][column] for column in ("developer_id", "day", "project_id")))

    async def _groups(self) -> _Items:
        yield await self.storage.erasure.export_groups(self.messenger_id, self.developer_id)

    async def _grants(self) -> _Items:
        """Yield the grants of OpenID Connect clients for the account."""
        after = ""
        while rows := await self.storage.erasure.export_grants(self.messenger_id, self.developer_id, after, STEP):
            yield map(self._shown_grant, rows)
            after = rows[-1]["id"]

    def _shown_grant(self, row: Row) -> dict[str, Any]:
        phone = self._decrypted(row["encrypted_phone"], associated_data_of("grant_phone", row["id"]))
        row = {column: value for column, value in row.items() if column not in {"session_day", "client_version"}}
        return _shown(row) | {"auth_time": iso8601(row["auth_time"]), "messenger_phone": phone}

    async def _rest(self, table: UserTable) -> _Items:
        after: Row | None = None
        while rows := await self.storage.erasure.export_rest(self.messenger_id, table, after, self.step):
            yield map(_shown, rows)
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
            return self.encryptor.decrypt(encrypted, associated_data)
        except DecryptionFailed:
            # One bad value must not make the whole export fail, and a million must not fill the log.
            kind = associated_data.split(":", 1)[0]
            if kind not in self.unreadable:
                _log.error("export_unreadable", value=kind, advice=_UNREADABLE)
            self.unreadable.add(kind)
            return None


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
