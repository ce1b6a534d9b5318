"""The webhook events of sessions, with the bodies that contract.md, Webhooks, and docs/reference/events.md define."""

from functools import partial

from taproof.core.clock import iso8601
from taproof.core.deliveries import Event
from taproof.core.encryption import Encryptor
from taproof.core.entropy import Entropy
from taproof.core.model import ExpiredSession, MessengerIdentity, Session
from taproof.service.webhooks import new_event


class SessionEvents:
    """Makes the events. The store records them with the changes that they describe."""

    def __init__(self, encryptor: Encryptor, entropy: Entropy) -> None:
        self._create = partial(new_event, encryptor, entropy)

    def cancelled(self, session: Session, session_token: str, now: int) -> Event:
        """Return the auth.cancelled event of a session that is cancelled at `now`."""
        named = {"session_token": session_token, "cancelled_at": iso8601(now)}
        return self._create(now, "auth.cancelled", session.project_id, **named)

    def confirmed(self, project_id: str, session_token: str, identity: MessengerIdentity, now: int) -> Event:
        """Return the auth.confirmed event of a session that is confirmed at `now`."""
        phone = {} if identity.messenger_phone is None else {"messenger_phone": identity.messenger_phone}
        return self._create(
            now,
            "auth.confirmed",
            project_id,
            session_token=session_token,
            messenger_id=identity.messenger_id,
            messenger_name=identity.messenger_name,
            messenger_username=identity.messenger_username or None,
            **phone,
            confirmed_at=iso8601(now),
        )

    def reported(self, session: Session, now: int, *, was_shown: bool) -> Event:
        """Return the auth.reported event of a session.

        After the report, a project must not learn the account. So the event names it only if the project may know it
        already (`was_shown`).
        """
        return self._create(
            now,
            "auth.reported",
            session.project_id,
            session_id=session.id,
            session_token_sha256=session.key.token_hash.hex(),
            messenger_id=session.identity.messenger_id if was_shown and session.identity else None,
            was_used=session.status == "used",
            reported_at=iso8601(now),
        )

    def expired(self, session: ExpiredSession) -> Event:
        """Return the auth.expired event of a session. It is created at the end of the session, however late it is."""
        return self._create(
            session.expires_at,
            "auth.expired",
            session.project_id,
            session_id=session.id,
            session_token_sha256=session.key.token_hash.hex(),
            created_at=iso8601(session.created_at),
            expired_at=iso8601(session.expires_at),
        )
