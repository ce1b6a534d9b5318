"""Sessions and their changes of state."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from taproof.core.clock import Clock
from taproof.core.errors import (
    ProjectNotFound,
    ProjectPaused,
    PublicAccessDisabled,
    SameDeviceRequired,
    TaproofError,
)
from taproof.core.identity import MessengerIdentity
from taproof.core.session_state import next_expiry
from taproof.core.sessions import FoundState, Refused, ReturnPolicy
from taproof.storage.rows import Row, Values, identity_values

CREATION_REFUSAL: Final = """CASE WHEN p.id IS NULL THEN 'no_project'
  WHEN p.public_access = 0 AND {public} = 1 THEN 'no_public_access'
  WHEN p.same_device = 'require' AND ({url} IS NULL OR {challenge} IS NULL) THEN 'no_return'
  WHEN p.is_active = 0 THEN 'paused' END"""
"""The reason why a project gets no new session; null if it gets one."""
CREATION_REFUSALS: Final[Mapping[str, type[TaproofError]]] = {
    "no_project": ProjectNotFound,
    "no_public_access": PublicAccessDisabled,
    "no_return": SameDeviceRequired,
    "paused": ProjectPaused,
}
RETURN_URL: Final = "CASE p.same_device WHEN 'off' THEN NULL ELSE {url} END"
CREATE_SESSION: Final = f"""
INSERT INTO sessions (day, token_hash, id, status, created_at, expires_at, code_challenge, bot_id, context, match_code,
  match_choices, return_url, return_required, project_id)
SELECT $1, $2, $3, 'pending', $4, $5, $6, $7, $8, $9, $10, {RETURN_URL.format(url="$11")},
  CASE p.same_device WHEN 'require' THEN 1 ELSE 0 END, p.id
FROM projects p WHERE p.id = $12 AND {CREATION_REFUSAL.format(public="$13", url="$11", challenge="$6")} IS NULL"""
READ_RETURN_POLICY: Final = """
SELECT return_required, return_url IS NOT NULL FROM sessions WHERE day = $1 AND token_hash = $2"""
EXPLAIN_CREATION: Final = f"""
SELECT {CREATION_REFUSAL.format(public="$1", url="$2", challenge="$3")} FROM projects p WHERE p.id = $4"""
POLL_COLUMNS: Final = """s.project_id, p.public_access, s.status, s.expires_at, s.code_challenge, s.encrypted_phone,
  s.hint, s.return_required, s.return_hash, CASE s.status WHEN 'confirmed' THEN p.encrypted_webhook_secret END,
  CASE s.status WHEN 'confirmed' THEN p.encrypted_next_webhook_secret END,
  CASE s.status WHEN 'confirmed' THEN p.next_webhook_secret_at END"""
OF_SESSIONS: Final = "FROM sessions s JOIN projects p ON p.id = s.project_id"
POLL_SESSION: Final = f"SELECT {POLL_COLUMNS} {OF_SESSIONS} WHERE s.day = $1 AND s.token_hash = $2"
SESSION_COLUMNS: Final = """
  s.day, s.token_hash, s.id, s.project_id, p.name, s.status, s.created_at, s.expires_at, s.opened_at, s.opener_id,
  s.confirmed_at, s.cancelled_at, s.used_at, s.messenger_id, s.messenger_name, s.messenger_username, s.encrypted_phone,
  s.reported_at, s.withdrawn"""
PROMPT_COLUMNS: Final = """
  s.bot_id, s.context, s.match_code, s.match_choices, CASE WHEN d.plan <> 'free' THEN p.collect_phone ELSE 0 END,
  p.phone_required, s.return_url, s.return_required, p.texts,
  EXISTS (SELECT 1 FROM blocks b WHERE b.messenger_id = {viewer} AND b.project_id = s.project_id)"""
READ_SESSION: Final = f"""
SELECT {SESSION_COLUMNS}, {PROMPT_COLUMNS.format(viewer="$1")}
{OF_SESSIONS} LEFT JOIN developers d ON d.id = p.developer_id WHERE s.day = $2 AND s.token_hash = $3"""


def find_state(day: str, token_hash: str) -> str:
    """Return the statement that finds why a guarded statement changed nothing, in the same transaction."""
    return f"""
SELECT s.status, s.opener_id, s.expires_at, s.confirmed_at, s.cancelled_at, s.withdrawn {OF_SESSIONS}
WHERE s.day = {day} AND s.token_hash = {token_hash}"""


FIND_STATE: Final = find_state("$1", "$2")
OPEN_SESSION: Final = """
UPDATE sessions SET opened_at = $1, opener_id = $2, hint = $3
WHERE day = $4 AND token_hash = $5 AND status = 'pending' AND opener_id IS NULL AND expires_at > $6
  AND EXISTS (SELECT 1 FROM projects p WHERE p.id = sessions.project_id)
RETURNING project_id"""
SET_HINT: Final = """
UPDATE sessions SET hint = $1
WHERE day = $2 AND token_hash = $3 AND status || '' = 'pending' AND confirmed_at IS NULL
  AND (hint IS NULL OR hint <> $1) RETURNING project_id"""
_COLLECTS: Final = """EXISTS (SELECT 1 FROM projects p JOIN developers d ON d.id = p.developer_id
  WHERE p.id = sessions.project_id AND p.collect_phone = 1 AND d.plan <> 'free')"""
"""Whether the project still collects phone numbers, and its plan still allows it."""
CONFIRM_SESSION: Final = f"""
UPDATE sessions SET status = 'confirmed', confirmed_at = $1, messenger_id = $2, messenger_name = $3,
  messenger_username = $4, encrypted_phone = CASE WHEN $5 IS NOT NULL AND {_COLLECTS} THEN $5 END, context = NULL,
  return_url = NULL
WHERE day = $6 AND token_hash = $7 AND status = 'pending' AND return_required = 0 AND opener_id = $2
  AND expires_at > $8 AND EXISTS (SELECT 1 FROM projects p WHERE p.id = sessions.project_id)
RETURNING project_id, (SELECT p.creator_id FROM projects p WHERE p.id = sessions.project_id), id,
  encrypted_phone IS NOT NULL"""


def await_return(phone: str, exists: str) -> str:
    """Return the statement that lets a session wait for its return code.

    A pending session with `confirmed_at` waits for it: see "returning" in `core/session_state.py`.

    Args:
        phone: the phone number.
        exists: the condition that the session's project exists.
    """
    return f"""
UPDATE sessions SET confirmed_at = $1, expires_at = $2, messenger_id = $3, messenger_name = $4,
  messenger_username = $5, return_hash = $6, encrypted_phone = CASE WHEN {_COLLECTS} THEN {phone} END,
  context = NULL, hint = 'return'
WHERE day = $8 AND token_hash = $9 AND status || '' = 'pending' AND return_required = 1 AND confirmed_at IS NULL
  AND COALESCE(opener_id, '') = $3 AND expires_at > $10 AND {exists}
RETURNING id"""


def renew_return(exists: str) -> str:
    """Return the statement that replaces a return code; `exists` is the condition that the session's project exists."""
    return f"""
UPDATE sessions SET return_hash = $1
WHERE COALESCE(opener_id, '') = $2 AND day = $3 AND token_hash = $4 AND status || '' = 'pending'
  AND confirmed_at IS NOT NULL AND expires_at > $5 AND {exists}
RETURNING id"""


_PROJECT_EXISTS: Final = "EXISTS (SELECT 1 FROM projects p WHERE p.id = sessions.project_id)"
AWAIT_RETURN: Final = await_return("$7", _PROJECT_EXISTS)
RENEW_RETURN: Final = renew_return(_PROJECT_EXISTS)
# PostgreSQL runs this too. `storage/postgres/` explains the `status || ''`.
READ_RETURNING_USER: Final = """
SELECT id, messenger_id, messenger_name, messenger_username, encrypted_phone FROM sessions
WHERE day = $1 AND token_hash = $2 AND status || '' = 'pending' AND return_hash = $3"""
RETURN_SESSION: Final = """
UPDATE sessions SET status = 'confirmed', confirmed_at = $1, return_url = NULL
WHERE return_hash = $2 AND day = $3 AND token_hash = $4 AND status = 'pending' AND expires_at > $5
  AND EXISTS (SELECT 1 FROM projects p WHERE p.id = sessions.project_id)
RETURNING project_id, (SELECT p.creator_id FROM projects p WHERE p.id = sessions.project_id), id, 0"""
OF_RETURN: Final = (
    *("confirmed_at", "messenger_id", "messenger_name", "messenger_username", "encrypted_phone", "return_hash"),
)
"""The columns that Confirm fills although the session stays pending until its return code is used."""
FORGET_RETURN: Final = ", ".join(f"{column} = NULL" for column in ("return_url", *OF_RETURN))
"""The assignments that end a pending session and erase its identity, because nobody signs in without the return code.
"""
FORGET_RETURN_IF_PENDING: Final = "return_url = NULL, " + ", ".join(
    f"{column} = CASE s.status WHEN 'pending' THEN NULL ELSE s.{column} END" for column in OF_RETURN
)
CANCEL_SESSION: Final = f"""
UPDATE sessions SET status = 'cancelled', cancelled_at = $1, context = NULL, {FORGET_RETURN}
WHERE opener_id = $2 AND day = $3 AND token_hash = $4 AND status = 'pending' AND expires_at > $5
  AND EXISTS (SELECT 1 FROM projects p WHERE p.id = sessions.project_id)
RETURNING project_id, id"""
WITHDRAW_SESSION: Final = f"""
UPDATE sessions SET status = 'cancelled', cancelled_at = $1, withdrawn = 1, context = NULL, {FORGET_RETURN}
WHERE day = $2 AND token_hash = $3 AND status = 'pending' AND expires_at > $4
  AND EXISTS (SELECT 1 FROM projects p WHERE p.id = sessions.project_id)
RETURNING project_id"""
CONSUME_SESSION: Final = """
UPDATE sessions SET status = 'used', used_at = $1,
  secrets_version = (SELECT p.secrets_version FROM projects p WHERE p.id = sessions.project_id)
WHERE day = $2 AND token_hash = $3 AND status = 'confirmed'
  AND EXISTS (SELECT 1 FROM projects p WHERE p.id = sessions.project_id)
RETURNING project_id, messenger_id, messenger_name, messenger_username, confirmed_at,
  (SELECT p.encrypted_webhook_secret FROM projects p WHERE p.id = sessions.project_id),
  (SELECT p.encrypted_next_webhook_secret FROM projects p WHERE p.id = sessions.project_id),
  (SELECT p.next_webhook_secret_at FROM projects p WHERE p.id = sessions.project_id), used_at, id, encrypted_phone"""
CONSUMED_COLUMNS: Final = """s.project_id, s.messenger_id, s.messenger_name, s.messenger_username, s.confirmed_at,
  p.encrypted_webhook_secret, p.encrypted_next_webhook_secret, p.next_webhook_secret_at, s.used_at, s.id,
  s.encrypted_phone"""
# Uses `used_at`, which only a used session has, and no status, so that the planner can find the row only by its key.
REREAD_SESSION: Final = f"""
SELECT {CONSUMED_COLUMNS} {OF_SESSIONS}
WHERE s.day = $1 AND s.token_hash = $2 AND s.code_challenge IS NOT NULL AND s.used_at > $3
  AND s.secrets_version = p.secrets_version AND s.reported_at IS NULL"""
# Every assignment sees the old row. `used_at` does not change: it is the time at which an application received the
# proof.
REPORT_SESSION: Final = f"""
UPDATE sessions AS s SET reported_at = $1, context = NULL,
  status = CASE status WHEN 'pending' THEN 'cancelled' ELSE 'used' END,
  cancelled_at = CASE status WHEN 'pending' THEN $1 ELSE cancelled_at END,
  {FORGET_RETURN_IF_PENDING}
WHERE day = $2 AND token_hash = $3 AND opener_id = $4 AND reported_at IS NULL
  AND (status IN ('confirmed', 'used') OR (status = 'pending' AND expires_at > $5))
  AND EXISTS (SELECT 1 FROM projects p WHERE p.id = s.project_id)
RETURNING project_id, id, status, confirmed_at, used_at"""
# After the report, no application may be told that this user signed in, not even if the event is resent. Only an
# attempt in progress may still arrive.
END_CONFIRMED_EVENT: Final = """
UPDATE webhook_events SET state = CASE state WHEN 'delivered' THEN state ELSE 'ended' END, encrypted_body = $1,
  finished_at = COALESCE(finished_at, $2), leased_until = 0,
  interrupted = interrupted + CASE WHEN state = 'due' AND leased_until > 0 THEN 1 ELSE 0 END
WHERE project_id = $3 AND state IN ('due', 'delivered', 'failed', 'ended') AND type = 'auth.confirmed'
  AND created_at = $4 AND session_id = $5 RETURNING id"""
ANY_OVERDUE_SESSION: Final = "SELECT 1 FROM sessions WHERE status = 'pending' AND expires_at <= $1 LIMIT 1"
_EXPIRE: Final = f"UPDATE sessions SET status = 'expired', context = NULL, {FORGET_RETURN}"
_EXPIRED: Final = "RETURNING day, token_hash, id, project_id, created_at, expires_at"
EXPIRE_SESSIONS: Final = f"""{_EXPIRE}
WHERE status = 'pending' AND (day, token_hash) IN
  (SELECT day, token_hash FROM sessions WHERE status = 'pending' AND expires_at <= $1 ORDER BY expires_at LIMIT $2)
{_EXPIRED}"""
EXPIRE_SESSION: Final = f"""{_EXPIRE}
WHERE day = $1 AND token_hash = $2 AND status = 'pending' AND expires_at <= $3 {_EXPIRED}"""
# Read once for each batch of expired sessions, so that a sweep costs the same however many projects there are.
TELL_EXPIRED: Final = """
SELECT id FROM projects
WHERE id IN (SELECT value FROM json_each($1)) AND webhook_url <> '' AND webhook_events LIKE '%auth.expired%'"""


Outcome = Literal[True] | Refused
"""The outcome of a change that is refused in all states but one."""


def return_policy(required: int, has_url: int) -> ReturnPolicy:
    """Return the policy of a row of `READ_RETURN_POLICY`."""
    return ReturnPolicy(bool(required), offered=bool(has_url) and not required)


def refused(rows: Sequence[Row]) -> Refused:
    """Return the refusal with the state in the first row, if there is one."""
    return Refused(FoundState(*rows[0]) if rows else None)


def awaiting_values(identity: MessengerIdentity, now: int, return_hash: bytes, phone: bytes | None) -> Values:
    """Return the values of `AWAIT_RETURN`, without the key and the deadline."""
    return (now, next_expiry("await_return", 0, now), *identity_values(identity), return_hash, phone)


def write_time(clock: Clock | None, now: int) -> int:
    """Return the time that a write compares with deadlines: no reader may see "expired" before a decision."""
    return now if clock is None else max(now, clock())
