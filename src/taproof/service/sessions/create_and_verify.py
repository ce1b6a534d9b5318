"""A sign-in as its client sees it: from its creation to the one read of its proof. The messenger's side is `Decisions`.

Source: service-spec.md, States and transitions and Public session endpoints; contract.md, Session endpoints, Messenger.
"""

import dataclasses
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from taproof.core.accounts import Plan
from taproof.core.clock import Clock
from taproof.core.code_challenge import REREAD_WINDOW, challenge_digest, is_code_verifier, is_proven
from taproof.core.encryption import Encryptor
from taproof.core.entropy import Entropy
from taproof.core.errors import (
    BotBroken,
    CodeVerifierMissing,
    InvalidRequest,
    OriginNotAllowed,
    ProjectNotFound,
    ProjectPaused,
    PublicAccessDisabled,
    SessionNotFound,
    TaproofError,
)
from taproof.core.identifiers import is_project_id, new_session_id, new_session_token, session_key
from taproof.core.match_code import new_match_code
from taproof.core.model import (
    SERVICE_BOT,
    SERVICE_DEVELOPER,
    ConsumedSession,
    MessengerIdentity,
    NewSession,
    PolledSession,
    SessionKey,
    SignInProject,
    Status,
)
from taproof.core.names import stored_text
from taproof.core.origins import NotAnOrigin, read_origin
from taproof.core.proof import sign_proof
from taproof.core.request_context import (
    USER_AGENT_LIMIT,
    RequestContext,
    Requester,
    dump_context,
    origin_domain,
)
from taproof.core.session_state import SESSION_LIFETIME, visible_status
from taproof.service.associated_data import phone_associated_data, webhook_secret_associated_data
from taproof.storage.protocol import Storage

NOBODY_KNOWN: Final = Requester()


@dataclass(frozen=True, slots=True)
class CreatedSession:
    """A new pending session; `expires_at` in milliseconds since the epoch, `match_code` what the page has to show."""

    session_token: str
    deeplink: str
    expires_at: int
    match_code: str | None = None


@dataclass(frozen=True, slots=True)
class Verification:
    """The answer to a poll. Everything but `status` is there only when a confirmed session is read for the first time.

    And again, the very same, for who made it with a code challenge, within `core.code_challenge.REREAD_WINDOW`.
    """

    status: Status
    identity: MessengerIdentity | None = None
    confirmed_at: int | None = None
    proof: str | None = None


_SEEN = {status: Verification(status) for status in ("pending", "cancelled", "expired", "used")}


class SignIn:
    """Creates and reads sign-in sessions; `Decisions` shows and decides them.

    Args:
        storage: the store.
        encryptor: opens webhook secrets and phone numbers.
        link_base: returns the address that a session token is appended to, such as `https://t.me/my_bot`; raises
            MessengerUnavailable as long as it is not known.
        clock: returns the time in ms.
        entropy: returns random bytes.
        project_bot_link_base: returns the same for a project's own bot, by its username.
        find_place: returns roughly where an IP address is, such as "Berlin, Germany", or "".
        require_room: raises PlanLimitReached when a developer's plan has no room for another sign-in.
    """

    def __init__(
        self,
        storage: Storage,
        encryptor: Encryptor,
        link_base: Callable[[], str],
        clock: Clock,
        entropy: Entropy,
        *,
        project_bot_link_base: Callable[[str], str] = lambda username: f"https://t.me/{username}",
        find_place: Callable[[str], str] = lambda _address: "",
        require_room: Callable[[str, Plan], Awaitable[None]] | None = None,
    ) -> None:
        self._storage = storage
        self._encryptor = encryptor
        self._clock = clock
        self._entropy = entropy
        self._link_base = link_base
        self._project_bot_link_base = project_bot_link_base
        self._find_place = find_place
        self._require_room = require_room

    async def create_session(
        self,
        project_id: str,
        *,
        public: bool,
        code_challenge: str | None = None,
        requester: Requester = NOBODY_KNOWN,
    ) -> CreatedSession:
        """Start a sign-in (POST generate/public when `public`, else POST generate).

        With a `code_challenge` (RFC 7636, S256) only the holder of its verifier can read what becomes of it.
        `requester`: who asks, for the user to see; the address is not stored.

        Raises:
            InvalidRequest, ProjectNotFound, PublicAccessDisabled, ProjectPaused, OriginNotAllowed, BotBroken,
            PlanLimitReached, MessengerUnavailable: and nothing is stored.
        """
        _require_project_id(project_id)
        digest = None if code_challenge is None else challenge_digest(code_challenge)
        if code_challenge is not None and digest is None:
            raise InvalidRequest(
                "code_challenge must be the SHA-256 of your code_verifier in base64url without padding: 43 characters."
            )
        project = await self._storage.projects.read_sign_in_project(project_id)
        if project is None:
            raise ProjectNotFound
        if public:
            if not project.public_access:
                raise PublicAccessDisabled
            _require_allowed_origin(project, requester.origin)
        if project.bot_broken_at is not None:
            raise BotBroken
        if self._require_room is not None and project.is_active:
            await self._require_room(project.developer_id, project.plan)
        link_base = (
            self._link_base() if project.bot_username is None else self._project_bot_link_base(project.bot_username)
        )
        now = self._clock()
        session_token = new_session_token(now, self._entropy)
        key = session_key(session_token)
        assert key is not None  # noqa: S101 — it was made two lines above.
        # A sign-in to the service itself gives away an account here, so no setting turns its context or code off.
        own = project.developer_id == SERVICE_DEVELOPER
        match_code, choices = new_match_code(self._entropy) if own or project.match_code else (None, ())
        session = NewSession(
            key,
            new_session_id(now, self._entropy),
            project_id,
            now,
            now + SESSION_LIFETIME,
            digest,
            SERVICE_BOT if project.bot_id is None else project.bot_id,
            self._context(requester) if own or project.show_context else None,
            match_code,
            " ".join(choices) or None,
        )
        if not await self._storage.sessions.create_session(session, public=public):
            raise await self._refusal(project_id, ProjectPaused(), public=public)
        deeplink = f"{link_base}?start={session_token}"
        return CreatedSession(session_token, deeplink, session.expires_at, match_code)

    def _context(self, requester: Requester) -> str | None:
        """Return what is kept for the prompt to tell, as long as the session is pending."""
        place = self._find_place(requester.address) if requester.address else ""
        user_agent = stored_text(requester.user_agent[:USER_AGENT_LIMIT])
        domain = origin_domain(requester.origin)
        # A sandboxed frame sends `null`. A server or an app sends no origin at all, and has no page to tell of.
        hides_page = requester.origin is not None and not domain
        return dump_context(RequestContext(domain, user_agent, stored_text(place), hides_page))

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
        session = await self._storage.sessions.poll_session(key)
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
            answer = await self._consume_session(key, session_token, session, now)
        else:
            answer = _SEEN[status]
        if answer.status == "used" and session.code_challenge is not None:
            return await self._reread_session(key, session_token, now)
        return answer

    async def _consume_session(
        self, key: SessionKey, session_token: str, polled: PolledSession, now: int
    ) -> Verification:
        # Secret and phone are opened once before anything is changed: a session must not be used up for a proof that
        # cannot be made. They are opened again from what the statement returns, since `regenerate` may come between.
        webhook_secrets = await self._storage.projects.read_webhook_secrets(polled.project_id)
        if webhook_secrets is None:
            raise ProjectNotFound
        self._encryptor.decrypt(webhook_secrets.at(now)[0], webhook_secret_associated_data(polled.project_id))
        if (
            polled.encrypted_phone is not None
            and (session := await self._storage.sessions.read_session(key)) is not None
        ):
            self._encryptor.decrypt(polled.encrypted_phone, phone_associated_data(session.id))
        consumed = await self._storage.sessions.consume_session(key, now)
        return _SEEN["used"] if consumed is None else self._confirmed(consumed, session_token)

    async def _reread_session(self, key: SessionKey, session_token: str, now: int) -> Verification:
        """Return the confirmed answer of a bound session again, byte for byte, if it was first read a moment ago."""
        consumed = await self._storage.sessions.reread_session(key, now - REREAD_WINDOW)
        return _SEEN["used"] if consumed is None else self._confirmed(consumed, session_token)

    def _confirmed(self, consumed: ConsumedSession, session_token: str) -> Verification:
        """Build the confirmed answer, which depends on nothing but what is stored."""
        project_id, used_at, identity = consumed.project_id, consumed.used_at, consumed.identity
        secret = self._encryptor.decrypt(
            consumed.webhook_secrets.at(used_at)[0], webhook_secret_associated_data(project_id)
        )
        if consumed.encrypted_phone is not None:
            phone = self._encryptor.decrypt(consumed.encrypted_phone, phone_associated_data(consumed.session_id))
            identity = dataclasses.replace(identity, messenger_phone=phone)
        proof = sign_proof(identity, project_id, session_token, secret, used_at)
        return Verification("confirmed", identity, consumed.confirmed_at, proof)

    async def _refusal(self, project_id: str, otherwise: TaproofError, *, public: bool) -> TaproofError:
        project = await self._storage.projects.read_project(project_id)
        if project is None:
            return ProjectNotFound()
        if public and not project.public_access:
            return PublicAccessDisabled()
        return otherwise


def _require_project_id(project_id: str) -> None:
    if not is_project_id(project_id):
        raise InvalidRequest("project_id must be a project's id: proj_ followed by letters and digits.")


def _require_allowed_origin(project: SignInProject, origin: str | None) -> None:
    """Refuse a page of another origin than the project allows. What is no browser sends none, and is let through."""
    if project.allowed_origins and origin is not None and origin not in project.allowed_origins.split():
        raise OriginNotAllowed(_named_refusal(origin))


def _named_refusal(origin: str) -> str | None:
    """Return a sentence that names the page's origin; None for what is none, which is shown to nobody."""
    try:
        is_origin = read_origin(origin) == origin
    except NotAnOrigin:
        is_origin = False
    if not is_origin:
        return None
    return (
        f"Pages of {origin} may not start sign-ins of this project. Its developer can add it to allowed_origins, or "
        "open the page under an origin that is there."
    )


def _require_proof(session: PolledSession, code_verifier: object) -> None:
    """Refuse who did not make this session: the caller has no verifier, or another one."""
    if code_verifier is None:
        raise CodeVerifierMissing
    if not is_code_verifier(code_verifier):
        raise InvalidRequest("code_verifier must be 43 to 128 characters of A-Z a-z 0-9 - . _ ~ (RFC 7636).")
    if not is_proven(session.code_challenge, code_verifier):
        raise SessionNotFound
