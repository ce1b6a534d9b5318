"""A sign-in, from its creation by a client over the decision in the messenger to the one read of its proof.

Source: service-spec.md, States and transitions and Public session endpoints; contract.md, Session endpoints, Messenger.
"""

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from taproof.core.clock import Clock, iso8601
from taproof.core.code_challenge import REREAD_WINDOW, challenge_digest, is_code_verifier, is_proven
from taproof.core.entropy import Entropy
from taproof.core.errors import (
    CodeVerifierMissing,
    InvalidRequest,
    ProjectNotFound,
    ProjectPaused,
    PublicAccessDisabled,
    SessionNotFound,
    TaproofError,
)
from taproof.core.identifiers import is_project_id, new_event_id, new_session_id, new_session_token, session_key
from taproof.core.model import (
    ConsumedSession,
    Event,
    EventType,
    Identity,
    NewSession,
    PolledSession,
    Session,
    SessionKey,
    Status,
)
from taproof.core.names import stored_text
from taproof.core.proof import sign_proof
from taproof.core.sealing import Sealer
from taproof.core.session_state import SESSION_LIFETIME, visible_status
from taproof.service.waiting import Waiting
from taproof.storage.protocol import Storage

Outcome = Literal["opened", "confirmed", "cancelled", "expired", "foreign", "unknown"]
"""What the bot tells a user about a session that they opened or decided.

"opened": it waits for this user's decision. "confirmed" and "cancelled": it was decided, now or before. "expired": its
time is over. "foreign": another account opened it first. "unknown": there is no such session.
"""


@dataclass(frozen=True, slots=True)
class CreatedSession:
    """A new pending session; `expires_at` in milliseconds since the epoch."""

    session_token: str
    deeplink: str
    expires_at: int


@dataclass(frozen=True, slots=True)
class Verification:
    """The answer to a poll. Everything but `status` is there only when a confirmed session is read for the first time.

    And again, the very same, for who made it with a code challenge, within `core.code_challenge.REREAD_WINDOW`.
    """

    status: Status
    identity: Identity | None = None
    confirmed_at: int | None = None
    proof: str | None = None


@dataclass(frozen=True, slots=True)
class SeenSession:
    """What the bot may show a user. `created_at` and `decided_at` in ms; `changed`: this very call decided it.

    `project_name` is exactly what the developer typed: show it through `core.names.isolated_name` only.
    """

    outcome: Outcome
    project_name: str = ""
    created_at: int = 0
    decided_at: int | None = None
    changed: bool = False
    project_id: str = ""
    session_id: str = ""


_SEEN = {status: Verification(status) for status in ("pending", "cancelled", "expired", "used")}
_UNKNOWN = SeenSession("unknown")


class SignIn:
    """Creates, shows, decides and reads sign-in sessions; `waiting` are the calls that wait for a decision.

    Args:
        storage: the store.
        sealer: opens webhook secrets and seals webhook bodies.
        link_base: returns the address that a session token is appended to, such as `https://t.me/my_bot`; raises
            MessengerUnavailable as long as it is not known.
        clock: returns the time in ms.
        entropy: returns random bytes.
        recorded: called after a decision that may have recorded a webhook event, so that it leaves at once.
    """

    def __init__(
        self,
        storage: Storage,
        sealer: Sealer,
        link_base: Callable[[], str],
        clock: Clock,
        entropy: Entropy,
        *,
        recorded: Callable[[], None] = lambda: None,
    ) -> None:
        self.waiting = Waiting(storage, clock)
        self._storage = storage
        self._sealer = sealer
        self._link_base = link_base
        self._clock = clock
        self._entropy = entropy
        self._recorded = recorded

    async def create_session(
        self, project_id: str, *, public: bool, code_challenge: str | None = None
    ) -> CreatedSession:
        """Start a sign-in (POST generate/public when `public`, else POST generate).

        With a `code_challenge` (RFC 7636, S256) only the holder of its verifier can read what becomes of it.

        Raises:
            InvalidRequest, ProjectNotFound, PublicAccessDisabled, ProjectPaused, MessengerUnavailable: and nothing is
                stored.
        """
        _require_project_id(project_id)
        digest = None if code_challenge is None else challenge_digest(code_challenge)
        if code_challenge is not None and digest is None:
            raise InvalidRequest(
                "code_challenge must be the SHA-256 of your code_verifier in base64url without padding: 43 characters."
            )
        link_base = self._link_base()
        now = self._clock()
        session_token = new_session_token(now, self._entropy)
        key = session_key(session_token)
        assert key is not None  # noqa: S101 — it was made two lines above.
        session = NewSession(key, new_session_id(now, self._entropy), project_id, now, now + SESSION_LIFETIME, digest)
        if not await self._storage.create_session(session, public=public):
            raise await self._refusal(project_id, ProjectPaused(), public=public)
        return CreatedSession(session_token, f"{link_base}?start={session_token}", session.expires_at)

    async def verify_session(
        self, project_id: str, session_token: str, *, public: bool, code_verifier: object = None
    ) -> Verification:
        """Return the status of a session; on the first read of a confirmed one also identity and proof.

        A session that was made with a code challenge answers to its `code_verifier` alone; for others it is ignored,
        whatever it is.

        Raises:
            InvalidRequest, ProjectNotFound, PublicAccessDisabled, SessionNotFound, CodeVerifierMissing: and nothing is
                changed.
        """
        key = session_key(session_token)
        if key is None:
            _require_project_id(project_id)
            raise InvalidRequest("session_token is not one that this service gave out: 43 characters, see /docs.")
        session = await self._storage.poll_session(key)
        if session is None or session.project_id != project_id:
            _require_project_id(project_id)
            raise await self._refusal(project_id, SessionNotFound(), public=public)
        if public and not session.public_access:
            raise PublicAccessDisabled
        if session.code_challenge is not None:
            _require_proof(session, code_verifier)
        now = self._clock()
        status = visible_status(session.status, session.expires_at, now)
        if status == "confirmed":
            answer = await self._consume_session(key, session_token, project_id, now)
        else:
            answer = _SEEN[status]
        if answer.status == "used" and session.code_challenge is not None:
            return await self._reread_session(key, session_token, now)
        return answer

    async def _consume_session(self, key: SessionKey, session_token: str, project_id: str, now: int) -> Verification:
        # The secret is opened once before anything is changed: a session must not be used up for a proof that
        # cannot be signed. It is opened again from what the statement returns, since `regenerate` may come between.
        webhook_secrets = await self._storage.read_webhook_secrets(project_id)
        if webhook_secrets is None:
            raise ProjectNotFound
        self._sealer.unseal(webhook_secrets.at(now)[0], webhook_secret_binding(project_id))
        consumed = await self._storage.consume_session(key, now)
        return _SEEN["used"] if consumed is None else self._confirmed(consumed, session_token)

    async def _reread_session(self, key: SessionKey, session_token: str, now: int) -> Verification:
        """Return the confirmed answer of a bound session again, byte for byte, if it was first read a moment ago."""
        consumed = await self._storage.reread_session(key, now - REREAD_WINDOW)
        return _SEEN["used"] if consumed is None else self._confirmed(consumed, session_token)

    def _confirmed(self, consumed: ConsumedSession, session_token: str) -> Verification:
        """Build the confirmed answer, which depends on nothing but what is stored."""
        project_id, used_at = consumed.project_id, consumed.used_at
        secret = self._sealer.unseal(consumed.webhook_secrets.at(used_at)[0], webhook_secret_binding(project_id))
        proof = sign_proof(consumed.identity, project_id, session_token, secret, used_at)
        return Verification("confirmed", consumed.identity, consumed.confirmed_at, proof)

    async def _refusal(self, project_id: str, otherwise: TaproofError, *, public: bool) -> TaproofError:
        project = await self._storage.read_project(project_id)
        if project is None:
            return ProjectNotFound()
        if public and not project.public_access:
            return PublicAccessDisabled()
        return otherwise

    # ---- the messenger's side

    async def open_session(self, session_token: str, opener_id: str) -> SeenSession:
        """A user opened the deeplink. The first account to do so owns the decision. Safe to repeat."""
        key = session_key(session_token)
        if key is None:
            return _UNKNOWN
        now = self._clock()
        await self._storage.open_session(key, opener_id, now)
        return _seen(await self._storage.read_session(key), opener_id, now)

    async def confirm_session(self, session_token: str, identity: Identity) -> SeenSession:
        """The user tapped Confirm. Safe to repeat: only the first decision of the owner counts."""
        identity = Identity(
            identity.messenger_id,
            stored_text(identity.messenger_name),
            stored_text(identity.messenger_username),
        )
        return await self._decide(session_token, identity.messenger_id, identity)

    async def cancel_session(self, session_token: str, opener_id: str) -> SeenSession:
        """The user tapped Cancel. Safe to repeat: only the first decision of the owner counts."""
        return await self._decide(session_token, opener_id, None)

    async def _decide(self, session_token: str, opener_id: str, identity: Identity | None) -> SeenSession:
        key = session_key(session_token)
        session = None if key is None else await self._storage.read_session(key)
        if key is None or session is None:
            return _UNKNOWN
        now = self._clock()
        changed = False
        if _seen(session, opener_id, now).outcome == "opened":
            event = self._event(session, session_token, identity, now)
            if identity is None:
                changed = await self._storage.cancel_session(key, opener_id, now, event)
            else:
                changed = await self._storage.confirm_session(key, identity, now, event)
            if changed:
                self.waiting.wake(key)
                self._recorded()
                return _seen(_decided(session, identity, now), opener_id, now, changed=True)
            session = await self._storage.read_session(key)
        return _seen(session, opener_id, now, changed=changed)

    def _event(self, session: Session, session_token: str, identity: Identity | None, now: int) -> Event:
        """Build the webhook event of a decision, as contract.md, Webhooks, has its body."""
        event_id = new_event_id(now, self._entropy)
        event_type: EventType = "auth.cancelled" if identity is None else "auth.confirmed"
        body: dict[str, Any] = {
            "id": event_id,
            "event": event_type,
            "project_id": session.project_id,
            "session_token": session_token,
        }
        if identity is None:
            body["cancelled_at"] = iso8601(now)
        else:
            body["messenger_id"] = identity.messenger_id
            body["messenger_name"] = identity.messenger_name
            body["messenger_username"] = identity.messenger_username or None
            body["confirmed_at"] = iso8601(now)
        sealed = self._sealer.seal(json.dumps(body, ensure_ascii=False), event_body_binding(event_id), self._entropy)
        return Event(event_id, event_type, session.project_id, sealed, now)


def webhook_secret_binding(project_id: str) -> str:
    """Return what a project's sealed webhook secret is bound to."""
    return f"webhook_secret:{project_id}"


def event_body_binding(event_id: str) -> str:
    """Return what an event's sealed body is bound to."""
    return f"event_body:{event_id}"


def _require_project_id(project_id: str) -> None:
    if not is_project_id(project_id):
        raise InvalidRequest("project_id must be a project's id: proj_ followed by letters and digits.")


def _require_proof(session: PolledSession, code_verifier: object) -> None:
    """Refuse who did not make this session: the caller has no verifier, or another one."""
    if code_verifier is None:
        raise CodeVerifierMissing
    if not is_code_verifier(code_verifier):
        raise InvalidRequest("code_verifier must be 43 to 128 characters of A-Z a-z 0-9 - . _ ~ (RFC 7636).")
    if not is_proven(session.code_challenge, code_verifier):
        raise SessionNotFound


def _decided(session: Session, identity: Identity | None, now: int) -> Session:
    """Return a pending session as the decision that has just been stored left it."""
    if identity is None:
        return dataclasses.replace(session, status="cancelled", cancelled_at=now)
    return dataclasses.replace(session, status="confirmed", confirmed_at=now, identity=identity)


def _seen(session: Session | None, user_id: str, now: int, *, changed: bool = False) -> SeenSession:
    """Tell what `user_id` may know of a session."""
    if session is None:
        return _UNKNOWN
    status = visible_status(session.status, session.expires_at, now)
    outcome: Outcome
    if session.opener_id is not None and session.opener_id != user_id:
        return SeenSession("foreign")
    if status == "pending":
        outcome = "opened" if session.opener_id == user_id else "unknown"
    elif status in {"confirmed", "used"}:
        outcome = "confirmed"
    elif status == "cancelled":
        outcome = "cancelled"
    else:
        outcome = "expired"
    decided_at = session.confirmed_at if session.confirmed_at is not None else session.cancelled_at
    return SeenSession(
        outcome, session.project_name, session.created_at, decided_at, changed, session.project_id, session.id
    )
