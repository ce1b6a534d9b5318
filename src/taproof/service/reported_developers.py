"""What a developer's "This wasn't me" ends, when it is said of a sign-in to the service itself.

Of any other sign-in the application is told, and ends what it has opened. Here the service is that application: what
came of the sign-in is a session of the console, or an access token, and whatever was made with these.
"""

import json
from collections import defaultdict
from typing import Final

from taproof.core.accounts import AuditEntry
from taproof.core.clock import MINUTE, Clock
from taproof.core.entropy import Entropy
from taproof.core.model import SERVICE_DEVELOPER, PageCursor, Session
from taproof.service.audit import service_entry
from taproof.storage.protocol import Storage

_MESSENGER: Final = "messenger"
_CLOCKS_APART: Final = MINUTE
"""How much (ms) the node that gave out a token may be behind the one that took the tap on Confirm."""
_PAGE: Final = 500


class ReportedDevelopers:
    """Ends what came of sign-ins that developers report.

    Whoever turns a sign-in into something looks for a report once that is stored, and takes it back
    (`SealedSignIn.still_stands`); a report is stored before this looks for what to end. So one always sees the other.
    """

    def __init__(self, storage: Storage, clock: Clock, entropy: Entropy) -> None:
        self._storage = storage
        self._clock = clock
        self._entropy = entropy

    async def end_access(self, session: Session, messenger_id: str) -> bool | None:
        """Sign the developer of a messenger account out everywhere, and revoke the access tokens that came since.

        Since `session` was confirmed, that is: which must be reported already. Doing it again ends what is left.

        Returns:
            Whether that account signs a developer in; None when the session is none of the service's own projects, or
            was never confirmed.
        """
        if session.confirmed_at is None:
            return None
        project = await self._storage.read_sign_in_project(session.project_id)
        if project is None or project.developer_id != SERVICE_DEVELOPER:
            return None
        developer = await self._storage.read_developer_by_messenger_id(messenger_id)
        if developer is None:
            return False
        now, told = self._clock(), {"reported_sign_in": session.id}
        entry = service_entry(
            developer.id, "console.signed_out_everywhere", now, self._entropy, subject=developer.id, details=told
        )
        # Before the tokens, so that no browser makes another one while they are looked for.
        await self._storage.delete_console_sessions(developer.id, entry=entry)
        came = await self._came_since(developer.id, session.confirmed_at - _CLOCKS_APART)
        for token in await self._storage.list_access_tokens(developer.id):
            if token.id in came:
                details = {"name": token.name, "preview": token.preview, **told}
                entry = service_entry(
                    developer.id, "access_token.revoked", now, self._entropy, subject=token.id, details=details
                )
                await self._storage.delete_access_token(developer.id, token.id, entry=entry)
        return True

    async def _came_since(self, developer_id: str, since: int) -> set[str]:
        """Return the ids of what the messenger let in since then, and of what was made with that in turn.

        Not by time alone: what the operator made, or a token from before, is not the intruder's.
        """
        made_with: defaultdict[str, list[str]] = defaultdict(list)
        before: PageCursor | None = None
        while page := await self._storage.list_audit_entries(developer_id, before, _PAGE):
            for entry in page:
                if entry.created_at >= since and (source := _source(entry)) is not None:
                    made_with[source].append(entry.subject)
            before = PageCursor(page[-1].created_at, page[-1].id)
            if before.created_at < since:
                break
        found: set[str] = set()
        sources = [_MESSENGER]
        while sources:
            made = made_with.pop(sources.pop(), [])
            found.update(made)
            sources += made
        return found


def _source(entry: AuditEntry) -> str | None:
    """Return with what a console session or an access token was made, None when the entry tells of something else."""
    if entry.action == "console.signed_in":
        source: str | None = json.loads(entry.details).get("access_token_id")
        return source or _MESSENGER
    if entry.action == "access_token.created":
        return _MESSENGER if entry.via == "login" else entry.via_id
    return None
