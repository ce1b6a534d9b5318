"""The format of an export: all data of a store in one file, and the code that writes and reads such a file.

The file is JSON Lines in ASCII. The first line is a header with the names of all columns. Each following line is an
array with one row, which begins with the name of its table. The last line is a footer with the number of rows and the
SHA-256 of everything before it. Values of type bytes are base64. Writing and reading keep a few thousand rows in memory
at a time.

`sqlite.py` and `postgres.py` read and write the databases. An export omits data that has no meaning in another store:
leases, console sessions, pushed authorization requests, and the table of decisions with which the processes on a
SQLite file wake each other. Developers have to sign in to the console again.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, BinaryIO, Final, Literal, NamedTuple, Protocol

from taproof.core.errors import TaproofError
from taproof.core.projects import PROJECT_FLAGS
from taproof.storage.queries.sessions import OF_RETURN

FORMAT: Final = "taproof-export"
VERSION: Final = 1
CHUNK: Final = 5_000
"""The maximum number of rows in memory at a time."""
_CHUNK_BYTES: Final = 8 << 20
_LINE_LIMIT: Final = 1 << 20
"""The maximum number of bytes in a line. The longest line of an export contains a webhook body of a few thousand
bytes."""

Kind = Literal["text", "bytes", "day", "small", "int"]
Row = Sequence[Any]
_RANGES: Final[Mapping[Kind, range]] = {
    "day": range(1 << 16),  # A session token contains its day in two bytes.
    "small": range(-(1 << 31), 1 << 31),
    "int": range(-(1 << 63), 1 << 63),
}


class ExportFileWrong(TaproofError, code="export_file_wrong"):
    """The file is not a complete export of Taproof."""


class NotEmpty(TaproofError, code="not_empty"):
    """The target database of an import is not empty."""

    def __init__(self, database: str, table: str) -> None:
        super().__init__(
            f"The database {database}is not empty: its table {table} has rows. An import needs an empty one. "
            "Choose another one with --database (TAPROOF_DATABASE_URL)."
        )


class Column(NamedTuple):
    """A column and the kind of its values; `small` is an integer of four bytes on PostgreSQL."""

    name: str
    kind: Kind
    may_be_null: bool


def _columns(text: str) -> tuple[Column, ...]:
    """Return the columns in a text of items `name:kind`, or `name:kind?` if the column may be null."""
    parts = (part.split(":") for part in text.split())
    return tuple(Column(name, kind.rstrip("?"), kind.endswith("?")) for name, kind in parts)  # type: ignore[arg-type]


TABLES: Final[Mapping[str, tuple[Column, ...]]] = {
    # First, so that a wrong master key is detected before any other data is read.
    "metadata": _columns("name:text value:bytes"),
    "developers": _columns(
        "id:text email:text email_key:text plan:text created_at:int is_owner:small messenger_id:text? "
        "messenger_name:text inviter_id:text? sign_in:text? bound_by:text?"
    ),
    "access_tokens": _columns(
        "id:text developer_id:text name:text preview:text token_hash:bytes created_at:int last_used_at:int? "
        "expires_at:int? scopes:text parent_id:text? sign_in:text?"
    ),
    "invitations": _columns(
        "id:text code_hash:bytes email:text plan:text is_owner:small developer_id:text? invited_by:text created_at:int "
        "expires_at:int inviter_id:text? sign_in:text?"
    ),
    "audit_entries": _columns(
        "id:text developer_id:text created_at:int action:text actor:text via:text via_id:text address:text "
        "subject:text details:text project_id:text"
    ),
    "audit_purges": _columns("developer_id:text before:int entries:int purged_at:int"),
    "projects": _columns(
        "id:text developer_id:text creator_id:text name:text secret_key_hash:bytes secret_key_preview:text "
        "encrypted_webhook_secret:bytes webhook_url:text created_at:int encrypted_next_webhook_secret:bytes? "
        "next_webhook_secret_at:int? secrets_version:small allowed_origins:text webhook_events:text same_device:text "
        "return_urls:text texts:text logo_url:text bot_id:int? "
        "bot_username:text? encrypted_bot_token:bytes? bot_broken_at:int? "
        + " ".join(f"{flag}:small" for flag in PROJECT_FLAGS)
    ),
    "project_members": _columns("project_id:text developer_id:text role:text created_at:int invited_by:text"),
    "member_origins": _columns("project_id:text developer_id:text inviter_id:text sign_in:text"),
    "member_invitations": _columns(
        "id:text project_id:text code_hash:bytes role:text created_at:int expires_at:int invited_by:text "
        "inviter_id:text access_token_id:text? sign_in:text?"
    ),
    "oidc_clients": _columns(
        "id:text project_id:text name:text redirect_uris:text auth_method:text signing_alg:text email:text "
        "id_token_lifetime:small grant_types:text devices_since:int? secret_hash:bytes? secret_preview:text? "
        "created_at:int post_logout_redirect_uris:text backchannel_logout_uri:text version:small refused_method:text? "
        "refused_at:int?"
    ),
    "oidc_group_members": _columns("client_id:text messenger_id:text group_name:text is_allowed:small"),
    "deleted_projects": _columns("id:text developer_id:text creator_id:text"),
    "sessions": _columns(
        "day:day token_hash:bytes id:text project_id:text status:text created_at:int expires_at:int opened_at:int? "
        "opener_id:text? confirmed_at:int? cancelled_at:int? used_at:int? messenger_id:text? messenger_name:text? "
        "messenger_username:text? code_challenge:bytes? secrets_version:small? bot_id:int context:text? "
        "match_code:text? match_choices:text? encrypted_phone:bytes? reported_at:int? hint:text? withdrawn:small "
        "return_url:text? return_required:small return_hash:bytes?"
    ),
    "daily_counts": _columns(
        "project_id:text day:day requested:small opened:small confirmed:small used:small cancelled:small "
        "expired:small unique_users:small latest_users:small reported:small"
    ),
    "daily_users": _columns("developer_id:text day:day unique_users:small latest_users:small"),
    "user_days": _columns(
        "developer_id:text messenger_id:text day:day project_id:text messenger_name:text? messenger_username:text? "
        "first_at:int? last_at:int? sign_ins:small?"
    ),
    "webhook_events": _columns(
        "id:text project_id:text type:text encrypted_body:bytes created_at:int state:text due_at:int leased_until:int "
        "attempts:small finished_at:int? schedule_start:small interrupted:small session_id:text?"
    ),
    "webhook_attempts": _columns(
        "event_id:text number:small started_at:int duration:int status:small? error:text? encrypted_answer:bytes?"
    ),
    "webhook_endpoints": _columns("project_id:text failing_since:int? off_at:int? off_reason:text? off_url:text?"),
    "ended_webhooks": _columns("project_id:text ended_at:int"),
    "phone_requests": _columns(
        "day:day token_hash:bytes session_id:text messenger_id:text bot_id:int encrypted_token:bytes asked_at:int "
        "expires_at:int"
    ),
    "prompts": _columns(
        "day:day token_hash:bytes bot_id:int messenger_id:text message_id:int? language:text expires_at:int hint:text? "
        "ended_at:int? leased_until:int renewals:small renewed_at:int? renewed_for:text?"
    ),
    "oidc_authorizations": _columns(
        "id:text client_id:text project_id:text request:text created_at:int expires_at:int browser_hash:bytes? "
        "session_day:day? session_hash:bytes? encrypted_session:bytes? user_code:text? expected_user:text? "
        "ended_at:int? code_expires_at:int? redeemed_at:int? access_expires_at:int? revoked_at:int? "
        "client_version:small? device_code_hash:bytes? polled_at:int? code_hash:bytes? access_token_hash:bytes? "
        "kept_until:int"
    ),
    "oidc_grants": _columns(
        "id:text client_id:text project_id:text messenger_id:text messenger_name:text messenger_username:text "
        "encrypted_phone:bytes? scopes:text auth_time:int session_day:day session_hash:bytes client_version:small "
        "family_hash:bytes? refresh_hash:bytes? access_token_hash:bytes? access_expires_at:int? access_scopes:text? "
        "created_at:int refreshed_at:int? idle_expires_at:int expires_at:int ended_at:int? ended_reason:text?"
    ),
    "oidc_logouts": _columns(
        "sid:text client_id:text project_id:text messenger_id:text? created_at:int due_at:int? attempts:small "
        "failed_at:int? failure:text?"
    ),
    "oidc_signing_keys": _columns(
        "alg:text generation:small kid:text encrypted_private_key:bytes public_jwk:text created_at:int signs_from:int"
    ),
    "blocks": _columns("messenger_id:text project_id:text created_at:int"),
    "removed_usage": _columns("developer_id:text day:day confirmed:small"),
    "bot_updates": _columns("bot_id:int update_id:int claimed_at:int done:small"),
}
"""The exported columns by table, in the order of the file. They are the same in both stores."""


class Source(Protocol):
    """One consistent snapshot of a store, regardless of later writes."""

    async def count(self, table: str) -> int:
        """Return the number of rows of a table."""

    def read(self, table: str) -> AsyncIterator[list[Row]]:
        """Yield all rows of a table, in chunks, with the columns that `TABLES` names."""


class Target(Protocol):
    """An empty store that is filled in one transaction. Meanwhile, no other process can write to it."""

    async def insert(self, table: str, rows: Sequence[Row], lines: Sequence[int]) -> None:
        """Add rows, with the columns that `TABLES` names; `lines` has the line number of each in the file.

        Raises:
            ExportFileWrong: a row cannot be added, for example because it exists already.
        """

    async def commit(self, counts: Mapping[str, int]) -> None:
        """Commit all rows. Raise ExportFileWrong if a table does not have the given number of rows."""


_NAMES: Final = {table: ", ".join(column.name for column in columns) for table, columns in TABLES.items()}
# The statements are built only from the constants above.
SELECT: Final = {table: f"SELECT {_NAMES[table]} FROM {table}" for table in TABLES}  # noqa: S608
# Nobody has signed in to a session that waits for its return code, so its user is not exported.
_SESSION_VALUES: Final = {column.name: column.name for column in TABLES["sessions"]}
_SESSION_VALUES.update({name: f"CASE WHEN status = 'pending' THEN NULL ELSE {name} END" for name in OF_RETURN})
_SESSION_VALUES["hint"] = """CASE WHEN status <> 'pending' OR hint IS NULL OR hint <> 'return' THEN hint
  WHEN match_code IS NULL THEN 'opened' ELSE 'choosing' END"""
SELECT["sessions"] = f"SELECT {', '.join(_SESSION_VALUES.values())} FROM sessions"  # noqa: S608
INSERT: Final = {table: f"INSERT INTO {table} ({_NAMES[table]})" for table in TABLES}
COUNT: Final = {table: f"SELECT COUNT(*) FROM {table}" for table in TABLES}  # noqa: S608
ANY: Final = {table: f"SELECT 1 FROM {table} LIMIT 1" for table in TABLES}  # noqa: S608
"""The statements that both databases use, by table."""


# ---- writing


async def write_export(
    source: Source, write: Callable[[bytes], object], created_at: str, on_rows: Callable[[int], None]
) -> int:
    """Write an export; return the number of its rows.

    Args:
        source: the store to export.
        write: receives the next bytes of the file.
        created_at: the current time, in ISO 8601.
        on_rows: called after each chunk, with the number of rows in it.
    """
    digest = hashlib.sha256()
    encode = json.JSONEncoder(separators=(",", ":")).encode

    def put(lines: str) -> None:
        data = lines.encode("ascii")
        digest.update(data)
        write(data)

    tables = {table: [column.name for column in columns] for table, columns in TABLES.items()}
    header = {"format": FORMAT, "version": VERSION, "created_at": created_at, "tables": tables}
    put(encode(header) + "\n")
    counts = dict.fromkeys(TABLES, 0)
    for table, columns in TABLES.items():
        # The name of the table comes first, so every index is one higher.
        bytes_columns = [index for index, column in enumerate(columns, 1) if column.kind == "bytes"]
        async for rows in source.read(table):
            lines = []
            for row in rows:
                values = [table, *row]
                for index in bytes_columns:
                    if values[index] is not None:
                        values[index] = base64.b64encode(values[index]).decode()
                lines.append(encode(values) + "\n")
            put("".join(lines))
            counts[table] += len(rows)
            on_rows(len(rows))
    write((encode({"rows": counts, "sha256": digest.hexdigest()}) + "\n").encode("ascii"))
    return sum(counts.values())


# ---- reading


class ExportReader:
    """Reads an export. The file may be damaged, or may not be an export.

    Raises:
        ExportFileWrong: the first line is not the header of an export that this release can read.
    """

    def __init__(self, file: BinaryIO, *, chunk: int = CHUNK) -> None:
        self._file = file
        self._chunk = chunk
        self._line = 0
        self._digest = hashlib.sha256()
        header = self._parsed(self._next_line())
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise self._wrong("this is not an export of Taproof")
        version = header.get("version")
        if version != VERSION:
            raise ExportFileWrong(
                f"This export has format version {version!r:.20}, and this release of Taproof reads version {VERSION}. "
                "Import it with the release that wrote it, or with a newer one. Nothing was imported."
            )
        self._read_tables(header.get("tables"))

    def _read_tables(self, tables: object) -> None:
        if not isinstance(tables, dict):
            raise self._wrong("the names of the tables are missing")
        for table in tables:
            if table not in TABLES:
                raise self._wrong(f"there is no table {table!r:.80}")
        for table, columns in TABLES.items():
            if table not in tables:
                raise self._wrong(f"the table {table} is missing")
            if tables[table] != [column.name for column in columns]:
                raise self._wrong(f"the table {table} has different columns in this release of Taproof")

    async def copy_to(
        self, target: Target, check_metadata: Callable[[str, bytes], None], on_chunk: Callable[[], None]
    ) -> dict[str, int]:
        """Copy all rows into the target and commit; return the number of rows of each table.

        Args:
            target: an empty store.
            check_metadata: called with each metadata entry. It raises an exception to refuse the import.
            on_chunk: called after each chunk.

        Raises:
            ExportFileWrong: the file is invalid; the sentence names the line.
        """
        counts = dict.fromkeys(TABLES, 0)
        table, size = "", 0
        rows: list[Row] = []
        lines: list[int] = []
        while (line := self._next_line()).startswith(b"["):
            self._digest.update(line)
            parsed = self._parsed(line)
            name = parsed[0] if parsed and isinstance(parsed[0], str) else ""
            if name not in TABLES:
                raise self._wrong(f"there is no table {name!r:.80}")
            if name != table or len(rows) == self._chunk or size > _CHUNK_BYTES:
                if rows:
                    await target.insert(table, rows, lines)
                    on_chunk()
                table, rows, lines, size = name, [], [], 0
            row = self._row(name, parsed)
            if name == "metadata":
                check_metadata(*row)
            rows.append(row)
            lines.append(self._line)
            size += len(line)
            counts[name] += 1
        self._check_footer(self._parsed(line), counts)
        if rows:
            await target.insert(table, rows, lines)
        await target.commit(counts)
        return counts

    def _next_line(self) -> bytes:
        """Return the next line, including its line end. Add the header to the checksum."""
        self._line += 1
        try:
            line = self._file.readline(_LINE_LIMIT + 1)
        except (EOFError, OSError, ValueError) as error:  # The .gz file is truncated or damaged, or is not a .gz file.
            raise self._wrong(f"the file cannot be read ({error})") from error
        if len(line) > _LINE_LIMIT:
            raise self._wrong("it is longer than any line of an export")
        if not line.endswith(b"\n") and self._line == 1:
            raise self._wrong("this is not an export of Taproof, or only the beginning of one")
        if not line.endswith(b"\n"):
            raise ExportFileWrong(
                f"This export ends in line {self._line}: it was cut off. Nothing was imported. "
                "Copy the file again, or create it again with: taproof export FILE"
            )
        if self._line == 1:
            self._digest.update(line)
        return line

    def _parsed(self, line: bytes) -> Any:
        try:
            return json.loads(line.decode())
        except (ValueError, RecursionError):
            raise self._wrong("it is not JSON") from None

    def _row(self, table: str, parsed: list[Any]) -> Row:
        columns = TABLES[table]
        if len(parsed) != len(columns) + 1:
            raise self._wrong(f"a row of {table} has {len(columns)} values, not {len(parsed) - 1}")
        return [self._value(table, column, value) for column, value in zip(columns, parsed[1:], strict=True)]

    def _value(self, table: str, column: Column, value: Any) -> Any:
        """Return a value in its stored form. `type()` instead of `isinstance()`: true must not count as a number."""
        if value is None and column.may_be_null:
            return None
        if column.kind == "text":
            if type(value) is str and _can_be_stored(value):
                return value
        elif column.kind == "bytes":
            if type(value) is str:
                try:
                    return binascii.a2b_base64(value, strict_mode=True)
                except ValueError:
                    pass
        elif type(value) is int and value in _RANGES[column.kind]:
            return value
        raise self._wrong(f"{table}.{column.name} cannot have this value")

    def _check_footer(self, footer: Any, counts: Mapping[str, int]) -> None:
        if not isinstance(footer, dict) or "sha256" not in footer:
            raise self._wrong("it is neither a row nor the end of an export")
        if footer["sha256"] != self._digest.hexdigest() or footer.get("rows") != counts:
            raise self._wrong("the number of rows or the checksum does not match the lines above: the file was changed")
        try:
            rest = self._file.read(1)
        except (EOFError, OSError, ValueError):
            rest = b"?"
        if rest:
            raise self._wrong("there is data after the end of the export")

    def _wrong(self, problem: str) -> ExportFileWrong:
        return wrong_line(self._line, problem)


def _can_be_stored(text: str) -> bool:
    """Return whether PostgreSQL can store a text: it has no NUL and no lone surrogates, as in `core/names.py`."""
    return "\0" not in text and (text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text))


def check_count(table: str, stored: int, counts: Mapping[str, int]) -> None:
    """Raise ExportFileWrong if the rows of a table were not all stored."""
    if stored != counts[table]:
        raise ExportFileWrong(f"Not all rows of {table} were stored. Nothing was imported. Try again.")


def wrong_line(line: int, problem: str) -> ExportFileWrong:
    """Return the error for a line of the file."""
    return ExportFileWrong(
        f"Line {line} of the export: {problem}. Nothing was imported. Copy the file again, or create it again with: "
        "taproof export FILE"
    )
