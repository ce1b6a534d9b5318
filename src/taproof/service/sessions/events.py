"""The webhook events of sessions, with the bodies that contract.md, Webhooks, and docs/reference/events.md define."""

import json
from functools import partial

from taproof.contract.delivery import EventType
from taproof.core.clock import iso8601
from taproof.core.deliveries import Event
from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.entropy import Entropy
from taproof.core.identifiers import new_event_id
from taproof.core.identity import MessengerIdentity
from taproof.core.sessions import ExpiredSession, Session


class SessionEvents:
    """Makes the events. The store records them with the changes that they describe."""

    def __init__(self, encryptor: Encryptor, entropy: Entropy) -> None:
        self._create = partial(new_event, encryptor, entropy)

    def cancelled(self, session: Session, session_token: str, now: int) -> Event:
        """Return the auth.cancelled event of a session that is cancelled at `now`."""
        named = {"session_token": session_token, "cancelled_at": iso8601(now)}
        return self._create(now, "auth.cancelled", session.project_id, **named)

    def confirmed(
        self, project_id: str, session_token: str, identity: MessengerIdentity, now: int, event_id: str | None = None
    ) -> Event:
        """Return the auth.confirmed event of a session that is confirmed at `now`, with this id or a new one."""
        return self._create(
            now,
            "auth.confirmed",
            project_id,
            event_id=event_id,
            session_token=session_token,
            **identity.to_fields(),
            confirmed_at=iso8601(now),
        )

    def reported(self, session: Session, now: int, *, messenger_id: str | None, was_used: bool) -> Event:
        """Return the auth.reported event. `messenger_id` is None unless the project may know the account already."""
        return self._create(
            now,
            "auth.reported",
            session.project_id,
            session_id=session.id,
            session_token_sha256=session.key.token_hash.hex(),
            messenger_id=messenger_id,
            was_used=was_used,
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


def new_event(
    encryptor: Encryptor,
    entropy: Entropy,
    now: int,
    event_type: EventType,
    project_id: str,
    *,
    event_id: str | None = None,
    **fields: str | bool | None,
) -> Event:
    """Return an event created at this time (ms), with this id or a new one. Its encrypted body has `fields`."""
    event_id = event_id or new_event_id(now, entropy)
    body = event_body(event_id, event_type, project_id, **fields)
    encrypted = encryptor.encrypt(body, associated_data_of("event_body", event_id), entropy)
    return Event(event_id, event_type, project_id, encrypted, now)


def event_body(event_id: str, event_type: EventType, project_id: str, **fields: str | bool | None) -> str:
    """Return the body of an event: JSON with the common fields and `fields`."""
    return json.dumps({"id": event_id, "event": event_type, "project_id": project_id, **fields}, ensure_ascii=False)
