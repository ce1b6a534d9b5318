"""A sign-in session from its client's point of view, from creation to the single read of its proof.

`decide.py` is the messenger's side. Source: service-spec.md, States and transitions, Public session endpoints;
contract.md, Session endpoints.
"""

import contextlib
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Final

from taproof.contract.account import Plan
from taproof.contract.session import SignInStatus
from taproof.core.clock import Clock, day_number
from taproof.core.code_challenge import REREAD_WINDOW, challenge_digest, is_code_verifier, is_proven
from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.entropy import Entropy
from taproof.core.errors import (
    BotBroken,
    CodeChallengeRequired,
    CodeVerifierMissing,
    InvalidRequest,
    ProjectNotFound,
    PublicAccessDisabled,
    SessionNotFound,
    StoreUnavailable,
    TaproofError,
)
from taproof.core.identifiers import (
    PROJECT_ID_RULE,
    is_project_id,
    key_hash,
    new_session_id,
    new_session_token,
    session_key,
)
from taproof.core.identity import MessengerIdentity
from taproof.core.match_code import new_match_code
from taproof.core.names import stored_text
from taproof.core.origins import require_allowed_origin
from taproof.core.projects import SERVICE_DEVELOPER, EncryptedWebhookSecrets, SignInProject
from taproof.core.proof import sign_proof, signing_secrets
from taproof.core.request_context import USER_AGENT_LIMIT, RequestContext, Requester, dump_context, origin_domain
from taproof.core.return_code import has_returned
from taproof.core.return_url import require_allowed_return
from taproof.core.service_bot import SERVICE_BOT
from taproof.core.session_state import SESSION_LIFETIME, status_without_code, visible_status
from taproof.core.sessions import HINTS, ConsumedSession, NewSession, PolledSession, SessionKey, known_hint
from taproof.service.sessions.events import SessionEvents
from taproof.service.sessions.results import CreatedSession, VerifyResult
from taproof.service.signals import Signals
from taproof.storage.protocol import Storage

NOBODY_KNOWN: Final = Requester()
_STATUS_ONLY = {status: VerifyResult(status) for status in ("cancelled", "expired", "used")}
_PENDING = {hint: VerifyResult("pending", hint=hint) for hint in HINTS.values()}


class SignInSessions:
    """Creates sign-in sessions and reads them for their client.

    Args:
        encryptor: decrypts webhook secrets and phone numbers.
        link_base: returns the URL to which a session token is appended, such as `https://messenger.example/my_bot`,
            given the username of the project's bot, or None for the service's own bot. Raises MessengerUnavailable
            while the URL is unknown.
        find_place: returns the approximate place of an IP address, such as "Berlin, Germany", or "".
        own_origin: the origin of this service, to which no sign-in may return, unless `to_own_page`.
        signals: tell the other parts of this process of each confirmation, and of each cancellation by an application.
        require_room: raises PlanLimitReached if a developer's plan allows no more sign-ins.
    """

    def __init__(
        self,
        storage: Storage,
        encryptor: Encryptor,
        link_base: Callable[[str | None], str],
        clock: Clock,
        entropy: Entropy,
        *,
        signals: Signals,
        find_place: Callable[[str], str],
        own_origin: str,
        require_room: Callable[[str, Plan], Awaitable[None]] | None,
    ) -> None:
        self._events = SessionEvents(encryptor, entropy)
        self._storage = storage
        self._encryptor = encryptor
        self._link_base = link_base
        self._clock = clock
        self._entropy = entropy
        self._find_place = find_place
        self._own_origin = own_origin
        self._require_room = require_room
        self._signals = signals

    async def create_session(
        self,
        project_id: str,
        *,
        public: bool,
        code_challenge: str | None = None,
        return_url: str | None = None,
        to_own_page: bool = False,
        requester: Requester = NOBODY_KNOWN,
    ) -> CreatedSession:
        """Create a pending session. A call that raises stores nothing.

        Args:
            project_id: the session's project.
            public: the call has no secret key.
            code_challenge: if given (RFC 7636, S256), only the holder of its verifier can read the session.
            return_url: if given, the page to which the messenger leads the user back. It is checked under every policy,
                and has no effect while the project's `same_device` is "off".
            to_own_page: `return_url` is a page of this service that never redirects, so the project need not allow it.
                Clients cannot set this: browsers take the code along to a page to which another page redirects.
            requester: shown to the user. The IP address is not stored.

        Raises:
            InvalidRequest, ReturnUrlNotAllowed: an argument is refused.
            ProjectPaused, SameDeviceRequired, MessengerUnavailable, and the errors of `admit`: there can be no session.
        """
        digest = None if code_challenge is None else challenge_digest(code_challenge)
        if code_challenge is not None and digest is None:
            raise InvalidRequest(
                "code_challenge must be the SHA-256 of your code_verifier in base64url without padding: 43 characters."
            )
        project = await self.admit(project_id, public=public, requester=requester)
        if return_url is not None and not to_own_page:
            require_allowed_return(project, return_url, own_origin=self._own_origin)
        link_base = self._link_base(project.bot_username)
        now = self._clock()
        session_token = new_session_token(now, self._entropy)
        key = SessionKey(day_number(now), key_hash(session_token))
        # A sign-in to the service itself gives access to a developer account: context and match code are always on.
        own = project.developer_id == SERVICE_DEVELOPER
        match_code, choices = new_match_code(self._entropy) if own or project.match_code else (None, ())
        session = NewSession(
            key=key,
            id=new_session_id(now, self._entropy),
            project_id=project_id,
            created_at=now,
            expires_at=now + SESSION_LIFETIME,
            code_challenge=digest,
            bot_id=SERVICE_BOT if project.bot_id is None else project.bot_id,
            context=self._context(requester) if own or project.show_context else None,
            match_code=match_code,
            match_choices=" ".join(choices) or None,
            return_url=return_url,
        )
        policy = await self._storage.sessions.create_session(session, public=public)
        deeplink = f"{link_base}?start={session_token}"
        return CreatedSession(session_token, deeplink, session.expires_at, match_code, policy.required, policy.offered)

    async def admit(self, project_id: str, *, public: bool, requester: Requester) -> SignInProject:
        """Return a project's settings for a new session. The store checks the pause and the public access again.

        Raises:
            InvalidRequest, ProjectNotFound, PublicAccessDisabled, OriginNotAllowed, BotBroken, PlanLimitReached: no
                session may be created.
        """
        _require_project_id(project_id)
        project = await self._storage.projects.read_sign_in_project(project_id)
        if project is None:
            raise ProjectNotFound
        if public:
            if not project.public_access:
                raise PublicAccessDisabled
            require_allowed_origin(project.allowed_origins, requester.origin)
        if project.bot_broken_at is not None:
            raise BotBroken
        if self._require_room is not None and project.is_active:
            await self._require_room(project.developer_id, project.plan)
        return project

    def _context(self, requester: Requester) -> str | None:
        """Return the request context that the prompt shows. It is stored while the session is pending."""
        place = self._find_place(requester.address) if requester.address else ""
        user_agent = stored_text(requester.user_agent[:USER_AGENT_LIMIT])
        domain = origin_domain(requester.origin)
        # A sandboxed frame sends `null`. A server or an app sends no origin, because it has no page.
        hides_page = requester.origin is not None and not domain
        return dump_context(RequestContext(domain, user_agent, stored_text(place), hides_page))

    async def verify_session(
        self,
        project_id: str,
        session_token: str,
        *,
        public: bool,
        code_verifier: object = None,
        return_code: object = None,
    ) -> VerifyResult:
        """Return the status of a session; on the first read of a confirmed session also the identity and proof.

        A session with a code challenge requires its `code_verifier`; others ignore it. A session with a required return
        code is pending without its `return_code`, which may be any value that a client sent.

        Raises:
            InvalidRequest, ProjectNotFound, PublicAccessDisabled, SessionNotFound, CodeVerifierMissing: nothing is
                changed.
        """
        # Like `_poll`, but without another coroutine, because nearly all requests run this code.
        key = session_key(session_token) or _read_key(project_id, session_token)
        session = await self._storage.sessions.poll_session(key)
        if session is None or session.project_id != project_id or (public and not session.public_access):
            raise await self._poll_refusal(project_id, session, public=public)
        if session.code_challenge is not None:
            _require_verifier(session.code_challenge, code_verifier)
        now = self._clock()
        status = visible_status(session.status, session.expires_at, now)
        if status == "expired" and session.status == "pending":
            session, status = await self._expire(key, session, now)
        if session.return_required:
            session, status = await self._after_return(key, session, session_token, return_code)
        if status == "pending":
            return _PENDING[known_hint(session.hint)]
        if status not in {"confirmed", "used"}:
            return _STATUS_ONLY[status]
        consumed = None
        if status == "confirmed":
            await self._check_secrets(key, session, now)
            consumed = await self._storage.sessions.consume_session(key, now)
        may_reread = not session.return_required or has_returned(session.return_hash, return_code)
        if consumed is None and session.code_challenge is not None and may_reread:
            consumed = await self._storage.sessions.reread_session(key, now - REREAD_WINDOW)
        return _STATUS_ONLY["used"] if consumed is None else self.confirmed(consumed, session_token)

    async def withdraw_session(
        self, project_id: str, session_token: str, *, public: bool, code_verifier: object = None
    ) -> tuple[SignInStatus, bool]:
        """Cancel a pending session for its application; return its status, and whether this call has changed it.

        A public caller needs the `code_verifier`. The secret key is enough for a server.

        Raises:
            InvalidRequest, ProjectNotFound, PublicAccessDisabled, SessionNotFound, CodeChallengeRequired,
                CodeVerifierMissing: nothing is changed.
        """
        key, session = await self._poll(project_id, session_token, public=public)
        if public:
            if session.code_challenge is None:
                raise CodeChallengeRequired
            _require_verifier(session.code_challenge, code_verifier)
        if session.status == "pending":
            withdrawn = await self._storage.sessions.withdraw_session(key, self._clock())
            if withdrawn:
                self._signals.decided(key)
                self._signals.prompt_ended()
                return "cancelled", True
            if withdrawn.found is None:
                raise await self._poll_refusal(project_id, None, public=public)
            session = session._replace(status=withdrawn.found.status, expires_at=withdrawn.found.expires_at)
        now = self._clock()
        status = visible_status(session.status, session.expires_at, now)
        if status == "expired" and session.status == "pending":
            session, status = await self._expire(key, session, now)
        if session.return_required and status_without_code(session.status, session.expires_at, now) == "expired":
            status = "expired"
        return status, False

    async def _poll(self, project_id: str, session_token: str, *, public: bool) -> tuple[SessionKey, PolledSession]:
        """Return a project's session with this token, or raise the error of `_poll_refusal`."""
        key = _read_key(project_id, session_token)
        session = await self._storage.sessions.poll_session(key)
        if session is None or session.project_id != project_id or (public and not session.public_access):
            raise await self._poll_refusal(project_id, session, public=public)
        return key, session

    async def accept_return(self, key: SessionKey, session_token: str, return_code: object) -> bool:
        """Confirm a session that requires a return code, if this is its code. Return False if it is not.

        For pages of this service, which know their browser by a cookie instead of a code verifier.
        """
        session = await self._storage.sessions.poll_session(key)
        if session is None or not session.return_required:
            return session is not None
        session, _ = await self._after_return(key, session, session_token, return_code)
        return has_returned(session.return_hash, return_code)

    async def _after_return(
        self, key: SessionKey, session: PolledSession, session_token: str, return_code: object
    ) -> tuple[PolledSession, SignInStatus]:
        """Confirm a session that requires a return code, if this is its code. Return it with the status to answer."""
        if has_returned(session.return_hash, return_code) and session.status == "pending":
            await self._confirm_return(key, session, session_token)
            # The change was not made if the session was decided or the code was replaced meanwhile.
            session = await self._storage.sessions.poll_session(key) or session
        status = visible_status if has_returned(session.return_hash, return_code) else status_without_code
        return session, status(session.status, session.expires_at, self._clock())

    async def _confirm_return(self, key: SessionKey, session: PolledSession, session_token: str) -> None:
        """Confirm a session whose user has returned. Until then, its confirmation is neither counted nor sent."""
        assert session.return_hash is not None  # noqa: S101 — it is that of the code.
        user = await self._storage.sessions.read_returning_user(key, session.return_hash)
        if user is None:
            return
        identity = self._with_phone(user.identity, user.encrypted_phone, user.session_id)
        now = self._clock()
        event = self._events.confirmed(session.project_id, session_token, identity, now)
        if await self._storage.sessions.return_session(key, session.return_hash, user, now, event):
            self._signals.decided(key)
            self._signals.event_recorded()
            self._signals.count_decision("confirmed")

    def _with_phone(
        self, identity: MessengerIdentity, encrypted_phone: bytes | None, session_id: str
    ) -> MessengerIdentity:
        if encrypted_phone is None:
            return identity
        phone = self._encryptor.decrypt(encrypted_phone, associated_data_of("phone", session_id))
        return dataclasses.replace(identity, messenger_phone=phone)

    async def _expire(self, key: SessionKey, session: PolledSession, now: int) -> tuple[PolledSession, SignInStatus]:
        """Expire an overdue session, unless a decision was made in time. Return it with its status."""
        # It has expired even if the store cannot record that (contract.md, Session endpoints).
        with contextlib.suppress(StoreUnavailable):
            await self._storage.sessions.expire_session(key, now, self._events.expired)
        session = await self._storage.sessions.poll_session(key) or session
        return session, visible_status(session.status, session.expires_at, now)

    async def _poll_refusal(self, project_id: str, session: PolledSession | None, *, public: bool) -> TaproofError:
        if session is not None and session.project_id == project_id:
            return PublicAccessDisabled()
        _require_project_id(project_id)
        project = await self._storage.projects.read_project(project_id)
        if project is None:
            return ProjectNotFound()
        return PublicAccessDisabled() if public and not project.public_access else SessionNotFound()

    async def _check_secrets(self, key: SessionKey, polled: PolledSession, now: int) -> None:
        """Decrypt the signing secret and the phone number, before the session is used up for a proof.

        Both are decrypted again from the changed row, because `regenerate` may run in between.
        """
        assert polled.webhook_secrets is not None  # noqa: S101 — the session is confirmed.
        self._open_secret(polled.webhook_secrets, polled.project_id, now)
        if polled.encrypted_phone is not None:
            session = await self._storage.sessions.read_session(key)
            if session is not None:
                self._encryptor.decrypt(polled.encrypted_phone, associated_data_of("phone", session.id))

    async def check_signing_secret(self, project_id: str, now: int) -> None:
        """Decrypt the secret that signs a project's proofs, and raise an error if that fails."""
        webhook_secrets = await self._storage.projects.read_webhook_secrets(project_id)
        if webhook_secrets is None:
            raise ProjectNotFound
        self._open_secret(webhook_secrets, project_id, now)

    def _open_secret(self, webhook_secrets: EncryptedWebhookSecrets, project_id: str, now: int) -> str:
        """Return the secret that signs a project's proofs at `now`."""
        bound = associated_data_of("webhook_secret", project_id)
        return self._encryptor.decrypt(signing_secrets(webhook_secrets, now)[0], bound)

    def confirmed(self, consumed: ConsumedSession, session_token: str) -> VerifyResult:
        """Return the result of a confirmed session from stored values only, so that a second read returns the same."""
        project_id, used_at = consumed.project_id, consumed.used_at
        secret = self._open_secret(consumed.webhook_secrets, project_id, used_at)
        identity = self._with_phone(consumed.identity, consumed.encrypted_phone, consumed.session_id)
        proof = sign_proof(identity, project_id, session_token, secret, used_at)
        return VerifyResult("confirmed", identity, consumed.confirmed_at, proof)


def _read_key(project_id: str, session_token: str) -> SessionKey:
    key = session_key(session_token)
    if key is None:
        _require_project_id(project_id)
        raise InvalidRequest("session_token is not a token of this service. A token has 43 characters; see /docs.")
    return key


def _require_project_id(project_id: str) -> None:
    if not is_project_id(project_id):
        raise InvalidRequest(f"project_id must be a project's id: {PROJECT_ID_RULE}.")


def _require_verifier(digest: bytes, code_verifier: object) -> None:
    """Refuse a caller without this session's code verifier: only the client that created the session has it."""
    if code_verifier is None:
        raise CodeVerifierMissing
    if not is_code_verifier(code_verifier):
        raise InvalidRequest("code_verifier must be 43 to 128 characters of A-Z a-z 0-9 - . _ ~ (RFC 7636).")
    if not is_proven(digest, code_verifier):
        raise SessionNotFound
