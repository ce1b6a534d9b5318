"""Checks in a write that the credential and the sign-in that it depends on still stand."""

import apsw

from taproof.core.accounts import AuditEntry
from taproof.core.errors import AccessDenied
from taproof.core.model import DeveloperSignIn
from taproof.storage.queries import rights as queries
from taproof.storage.rows import access_ended, entry_values
from taproof.storage.sqlite.group_commit import rows


def add_entry(connection: apsw.Connection, entry: AuditEntry | None) -> None:
    """Add an entry to the audit log, in the transaction of the change that it tells of.

    Raises:
        InvalidAccessToken, SignedOut: the credential that acts has ended, so the transaction must not be committed.
    """
    if entry is not None and not rows(connection, queries.ADD_AUDIT_ENTRY, entry_values(entry)):
        raise access_ended(entry)


def require_sign_in(
    connection: apsw.Connection, sign_in: DeveloperSignIn | None, developer_id: str | None = None
) -> None:
    """Refuse what comes of a sign-in that was reported, or that does not sign in the developer who is named.

    Raises:
        AccessDenied: it was reported, is not there any more, or its account signs that developer in no more.
    """
    if sign_in is None:
        return
    if not rows(connection, queries.SIGN_IN_STANDS, sign_in.key):
        raise AccessDenied
    if developer_id is not None and not rows(connection, queries.SIGN_IN_IS_OF_DEVELOPER, (*sign_in.key, developer_id)):
        raise AccessDenied
