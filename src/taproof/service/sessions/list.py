"""Sessions as a developer sees them: in pages, newest first, or one by its id (contract.md, Developer endpoints)."""

import dataclasses
from dataclasses import dataclass

import structlog

from taproof.contract.session import SignInStatus
from taproof.core.accounts import Developer
from taproof.core.clock import Clock
from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.errors import DecryptionFailed, SessionNotFound
from taproof.core.identifiers import session_created_at, session_key
from taproof.core.page_cursor import PageCursor
from taproof.core.sessions import Session
from taproof.service.erasure import checked_messenger_id
from taproof.service.paging import read_cursor, write_cursor
from taproof.service.project_access import read_in_projects
from taproof.storage.protocol import Storage

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SessionPage:
    """One page of sessions. `next_cursor` requests the next page; None on the last page."""

    sessions: list[Session]
    next_cursor: str | None


class SessionReader:
    """Reads the sessions of a developer's projects."""

    def __init__(self, storage: Storage, encryptor: Encryptor, clock: Clock) -> None:
        self._storage = storage
        self._encryptor = encryptor
        self._clock = clock

    async def list_sessions(
        self,
        developer: Developer,
        *,
        project_id: str | None,
        status: SignInStatus | None,
        limit: int,
        cursor: str | None,
        since: int | None = None,
        until: int | None = None,
        messenger_id: str | None = None,
    ) -> SessionPage:
        """Return a page of at most `limit` sessions that meet all conditions.

        Args:
            developer: only sessions of this developer's projects.
            project_id: only sessions of this project.
            status: only sessions in this status.
            limit: the maximum number of sessions on the page.
            cursor: `next_cursor` of the previous page.
            since: only sessions that were created at this time (ms) or later.
            until: only sessions that were created before this time (ms).
            messenger_id: only sessions that this messenger account confirmed.

        Raises:
            InvalidRequest: the project id, the cursor or the messenger id is malformed.
            ProjectNotFound: this developer has no such project.
        """
        before = None if cursor is None else read_cursor(cursor, "sess")
        if messenger_id is not None:
            checked_messenger_id(messenger_id)
        if until is not None:
            # "" sorts before every id, so the page begins with sessions created before `until`.
            end = PageCursor(until, "")
            before = end if before is None else min(before, end)

        async def read(project_ids: list[str]) -> list[Session]:
            return await self._storage.sessions.list_sessions(
                project_ids, status, before, limit + 1, self._clock(), since=since or 0, messenger_id=messenger_id
            )

        found = await read_in_projects(self._storage, developer, project_id, read)
        page = [self._opened(session) for session in found[:limit]]
        return SessionPage(page, write_cursor(page[-1].created_at, page[-1].id) if len(found) > limit else None)

    async def read_session(self, developer: Developer, session_id: str) -> Session:
        """Return one session with its prompt, in the status that a reader sees now.

        Raises:
            SessionNotFound: the session does not belong to this developer, or was erased.
        """
        created_at = session_created_at(session_id)

        async def read(project_ids: list[str]) -> Session | None:
            if created_at is None:
                return None
            now = self._clock()
            found = await self._storage.sessions.read_session_by_id(project_ids, created_at, session_id, now)
            if found is None:
                return None
            # `find_session` omits the prompt, which shows whether there was a match code.
            asked = await self._storage.sessions.read_session(found.key)
            return dataclasses.replace(found, prompt=None if asked is None else asked.prompt)

        found = await read_in_projects(self._storage, developer, None, read)
        if found is None:
            raise SessionNotFound("There is no such session. List yours with GET /api/v1/dev/sessions.")
        return self._opened(found)

    async def read_session_by_token(self, developer: Developer, session_token: str) -> Session:
        """Return the session with this token; see `read_session`."""
        key = session_key(session_token)
        found = None if key is None else await self._storage.sessions.read_session(key)
        # Read the session again by id, which finds only sessions of this developer's projects.
        return await self.read_session(developer, "" if found is None else found.id)

    def _opened(self, session: Session) -> Session:
        """Return a session with its phone number; without the number if it cannot be decrypted."""
        if session.encrypted_phone is None or session.identity is None:
            return session
        try:
            phone = self._encryptor.decrypt(session.encrypted_phone, associated_data_of("phone", session.id))
        except DecryptionFailed:
            # One bad value must not make the whole list fail.
            _log.error(
                "phone_unreadable", session_id=session.id, advice="It was altered, or its master key is missing."
            )
            return session
        return dataclasses.replace(session, identity=dataclasses.replace(session.identity, messenger_phone=phone))
