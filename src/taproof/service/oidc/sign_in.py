"""A sign-in through the OpenID provider, from the user's browser.

The page is bound to one browser by a cookie. Its session has a code challenge whose verifier never leaves the service,
so neither the verify endpoints nor a person who photographs the QR code can read the result.
"""

import base64
import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from taproof.contract.client import GrantType
from taproof.core.clock import Clock
from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.entropy import Entropy
from taproof.core.errors import SessionNotFound
from taproof.core.identifiers import new_id, random_base64url, session_key
from taproof.core.oidc.clients import SignInClient
from taproof.core.oidc.model import AUTHORIZATION_LIFETIME, CODE_LIFETIME, Authorization, NewAuthorization, NewCode
from taproof.core.oidc.redirect_uris import matches
from taproof.core.oidc.requests import AuthorizationRequest
from taproof.core.request_context import Requester
from taproof.core.return_url import has_openable_pages
from taproof.core.session_state import visible_status
from taproof.core.sessions import Hint, PolledSession, Session, SessionKey
from taproof.service.sessions.create_and_verify import SignInSessions
from taproof.service.sessions.wait import UntilGone, Waiting
from taproof.service.signals import Signals
from taproof.storage.protocol import Storage

_PENDING: Final[dict[Hint | None, "PageState"]] = {"return": "returning", "unreachable": "unreachable"}
"""The states of pages whose session is pending. For the other hints, it is "waiting"."""
LIVE: Final[frozenset["PageState"]] = frozenset({"waiting", *_PENDING.values()})
"""The states in which the sign-in can go on."""

PageState = Literal[
    "waiting",
    "unreachable",
    "returning",
    "confirmed",
    "other_account",
    "not_allowed",
    "returned",
    "cancelled",
    "expired",
    "finished",
    "device_done",
]
"""The state of a sign-in page.

"unreachable": as "waiting", but the user has blocked the bot. "returning": the user confirmed, and the messenger must
lead them back to this browser; also if it has, but the process ended before it created the code. "confirmed":
`finish_sign_in` gives the code. "other_account": another account confirmed than the expected one, so there is no code.
"not_allowed": the account that confirmed is in none of the client's allowed groups. "returned": the messenger has led
them back, and only the page there gets the code (`finish_return`). Two pages with one code would make the application
use it twice. "cancelled": the user refused. "expired": the session is over, and another one may be started.
"finished": the application has the code, or the user went back without signing in. "device_done": the device gets its
tokens.
"""


class _Opened(NamedTuple):
    """The token, link and code verifier of a sign-in's session. They are stored encrypted."""

    session_token: str
    deeplink: str
    code_verifier: str


class BegunSignIn(NamedTuple):
    """A new sign-in. `browser_secret` is for the cookie that binds it to the browser."""

    id: str
    browser_secret: str


@dataclass(frozen=True, slots=True)
class SeenSignIn:
    """A sign-in as its browser sees it.

    `session_expires_at` is in ms. `deeplink` and `match_code` are None unless the session is pending. `hint` says what
    a sign-in in the state "waiting" waits for. `return_required`: it must end in the browser in which it began.
    `messenger_id` is the account in the state "not_allowed", otherwise None.
    """

    authorization: Authorization
    client: SignInClient
    request: AuthorizationRequest
    state: PageState
    can_start_again: bool
    session_expires_at: int
    deeplink: str | None = None
    match_code: str | None = None
    hint: Hint = "waiting"
    return_required: bool = False
    messenger_id: str | None = None


class OidcSignIns:
    """Serves the sign-in page.

    Args:
        storage: the store.
        encryptor: encrypts links and verifiers.
        sessions: create and cancel sessions, and accept return codes.
        clock: returns the time in ms.
        entropy: returns random bytes.
        waiting: the calls that wait for a decision.
        base_url: the service's address, at which the pages are.
        signals: count each session that is cancelled because its user goes back.
    """

    def __init__(
        self,
        storage: Storage,
        encryptor: Encryptor,
        sessions: SignInSessions,
        clock: Clock,
        entropy: Entropy,
        *,
        signals: Signals,
        waiting: Waiting,
        base_url: str,
    ) -> None:
        self._storage = storage
        self._encryptor = encryptor
        self._sessions = sessions
        self._waiting = waiting
        self._base_url = base_url
        self._signals = signals
        self._clock = clock
        self._entropy = entropy

    async def begin_sign_in(
        self, client: SignInClient, request: AuthorizationRequest, requester: Requester
    ) -> BegunSignIn:
        """Start a sign-in with its first session.

        Raises:
            ProjectNotFound, ProjectPaused, SameDeviceRequired, BotBroken, PlanLimitReached, MessengerUnavailable:
                nothing is stored.
        """
        authorization_id = new_id("auth", self._entropy)
        secret = random_base64url(self._entropy)
        session, encrypted = await self._create_session(
            authorization_id, client.client.project_id, requester, returns=True
        )
        now = self._clock()
        await self._storage.authorizations.create_authorization(
            NewAuthorization(
                id=authorization_id,
                client_id=client.client.id,
                project_id=client.client.project_id,
                request=request.dump(),
                created_at=now,
                expires_at=now + AUTHORIZATION_LIFETIME,
                browser_hash=browser_hash(secret),
                session=session,
                encrypted_session=encrypted,
                expected_user=request.expected_user,
            )
        )
        return BegunSignIn(authorization_id, secret)

    async def read_sign_in(self, authorization_id: str, browser_secret: str) -> SeenSignIn | None:
        """Return a sign-in.

        Return None if it does not exist or was begun by another browser, or if its client has lost the redirect URI or
        the grant meanwhile.
        """
        found = await self._storage.authorizations.read_authorization(authorization_id)
        if found is None or found.browser_hash is None or found.session is None:
            return None
        if not hmac.compare_digest(found.browser_hash, browser_hash(browser_secret)):
            return None
        client = await self._storage.oidc_clients.read_client(found.client_id)
        session = await self._storage.sessions.read_session(found.session)
        polled = await self._storage.sessions.poll_session(found.session)
        if client is None or session is None or polled is None:
            return None
        grant: GrantType = "authorization_code" if found.user_code is None else "device_code"
        if not client.can_finish(grant, found.created_at):
            return None
        request = AuthorizationRequest.load(found.request)
        if request.redirect_uri and not matches(client.client.redirect_uris, request.redirect_uri):
            return None
        now = self._clock()
        state = _page_state(found, polled, now)
        messenger_id = None
        if state in {"confirmed", "returning", "device_done"} and session.identity is not None:
            messenger_id = session.identity.messenger_id
        if state in {"confirmed", "returning"} and _is_unexpected(found, session):
            state = "other_account"
        elif messenger_id is not None and not client.client.groups.admits(messenger_id):
            state = "not_allowed"
        deeplink = match_code = None
        if state in LIVE and polled.status == "pending":
            deeplink = self._opened(found).deeplink
            match_code = session.prompt.match_code if session.prompt is not None else None
        return SeenSignIn(
            authorization=found,
            client=client,
            request=request,
            state=state,
            can_start_again=state == "expired" and found.expires_at > now and client.has_access,
            session_expires_at=min(polled.expires_at, found.expires_at),
            deeplink=deeplink,
            match_code=match_code,
            hint=polled.hint or "waiting",
            return_required=polled.return_required,
            messenger_id=messenger_id if state == "not_allowed" else None,
        )

    async def is_finished_elsewhere(self, authorization_id: str) -> bool:
        """Return whether a sign-in is confirmed, and does not need to return to the browser in which it began."""
        found = await self._storage.authorizations.read_authorization(authorization_id)
        if found is None or found.session is None or found.ended_at is not None:
            return False
        polled = await self._storage.sessions.poll_session(found.session)
        if polled is None or polled.return_required:
            return False
        session = await self._storage.sessions.read_session(found.session)
        client = await self._storage.oidc_clients.read_client(found.client_id)
        if session is None or client is None or session.identity is None or _is_unexpected(found, session):
            return False
        if not client.client.groups.admits(session.identity.messenger_id):
            return False
        return _page_state(found, polled, self._clock()) in {"confirmed", "finished"}

    async def wait_for_change(self, seen: SeenSignIn, seconds: float, until_gone: UntilGone) -> None:
        """Wait for at most `seconds` while the sign-in and its hint stay as they are."""
        if seen.deeplink is None:
            return
        opened = self._opened(seen.authorization)
        await self._waiting.wait(
            seen.client.client.project_id,
            opened.session_token,
            seconds,
            until_gone,
            public=False,
            code_verifier=opened.code_verifier,
            seen_hint=seen.hint,
        )

    async def finish_return(self, seen: SeenSignIn, browser_secret: str, return_code: str) -> str | None:
        """Return the authorization code to the page to which the messenger has led the user; None if there is none.

        If the sign-in must end in the browser in which it began, this confirms it, with its return code.
        """
        found = seen.authorization
        if found.session is None or found.user_code is not None:
            return None
        session_token = self._opened(found).session_token
        if not await self._sessions.accept_return(found.session, session_token, return_code):
            return None
        return await self.finish_sign_in(seen, browser_secret)

    async def finish_sign_in(self, seen: SeenSignIn, browser_secret: str) -> str | None:
        """Return the authorization code of a confirmed sign-in; None if there is none.

        The code derives from the browser's secret. So the browser gets the same code again if the response was lost,
        and the stored hash is of no use to anybody else.
        """
        found = seen.authorization
        assert found.session is not None  # noqa: S101 — `read_sign_in` returns no other.
        code = _derive_code(browser_secret, found.id, found.session)
        now = self._clock()
        new = NewCode(code_hash(code), now + CODE_LIFETIME)
        if await self._storage.authorizations.finish_authorization(found.id, found.session, now, new):
            return code
        current = await self._storage.authorizations.read_authorization_by_code(new.code_hash)
        return code if current is not None and _can_send_code(current, now) else None

    async def start_again(self, seen: SeenSignIn, requester: Requester) -> bool:
        """Give a sign-in another session. Return False, and create none, if its session is not over.

        Raises:
            ProjectNotFound, ProjectPaused, SameDeviceRequired, BotBroken, PlanLimitReached, MessengerUnavailable:
                nothing is changed.
        """
        if not seen.can_start_again:
            return False
        await self.start_session(seen.authorization, requester)
        return True

    async def start_session(self, found: Authorization, requester: Requester) -> None:
        """Create the first or the next session of a sign-in. If another call was faster, its session stays.

        A device's sign-in has no page to return to.
        """
        session, encrypted = await self._create_session(
            found.id, found.project_id, requester, returns=found.user_code is None
        )
        await self._storage.authorizations.replace_session(found.id, found.session, session, encrypted, self._clock())

    async def leave_sign_in(self, seen: SeenSignIn) -> bool:
        """End a sign-in whose user goes back without signing in. Return False if it was over before.

        If its session is open, it is cancelled, and the messenger says so. If this process ends in between, the session
        expires.
        """
        if not await self._storage.authorizations.end_authorization(seen.authorization.id, self._clock()):
            return False
        session_token = self._opened(seen.authorization).session_token
        _, is_withdrawn = await self._sessions.withdraw_session(
            seen.client.client.project_id, session_token, public=False
        )
        if is_withdrawn:
            self._signals.count_decision("withdrawn")
        return True

    async def _create_session(
        self, authorization_id: str, project_id: str, requester: Requester, *, returns: bool
    ) -> tuple[SessionKey, bytes]:
        """Create a session; return its key, and the rest in encrypted form.

        If `returns`, it returns to this sign-in, unless the messenger does not open pages of this service.
        """
        returns = returns and has_openable_pages(self._base_url)
        verifier = random_base64url(self._entropy)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        created = await self._sessions.create_session(
            project_id,
            public=False,
            code_challenge=challenge,
            return_url=f"{self._base_url}/oidc/authorize/{authorization_id}/return" if returns else None,
            to_own_page=returns,
            requester=requester,
        )
        key = session_key(created.session_token)
        if key is None:
            raise SessionNotFound
        text = json.dumps(_Opened(created.session_token, created.deeplink, verifier))
        return key, self._encryptor.encrypt(text, associated_data_of("oidc_session", authorization_id), self._entropy)

    def _opened(self, found: Authorization) -> _Opened:
        """Return the decrypted parts of the current session, which `_create_session` encrypted."""
        assert found.encrypted_session is not None  # noqa: S101 — it is stored together with the session.
        data = associated_data_of("oidc_session", found.id)
        return _Opened(*json.loads(self._encryptor.decrypt(found.encrypted_session, data)))


def browser_hash(browser_secret: str) -> bytes:
    """Return the stored form of the secret in a browser's cookie."""
    return hashlib.sha256(browser_secret.encode()).digest()


def code_hash(code: str) -> bytes:
    """Return the stored form of an authorization code."""
    return hashlib.sha256(code.encode()).digest()


def _derive_code(browser_secret: str, authorization_id: str, session: SessionKey) -> str:
    message = b"code " + authorization_id.encode() + session.token_hash
    digest = hmac.digest(browser_secret.encode(), message, "sha256")
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _can_send_code(found: Authorization, now: int) -> bool:
    return found.code_expires_at is not None and found.code_expires_at > now and found.redeemed_at is None


def _is_unexpected(found: Authorization, session: Session) -> bool:
    """Return whether another account than the expected one has confirmed."""
    identity = session.identity
    return found.expected_user is not None and identity is not None and identity.messenger_id != found.expected_user


def _page_state(found: Authorization, session: PolledSession, now: int) -> PageState:
    if found.ended_at is not None:
        return "finished"
    if found.code_expires_at is not None:
        if not _can_send_code(found, now):
            return "finished"
        return "returned" if session.return_required else "confirmed"
    if found.redeemed_at is not None:
        return "device_done"
    if found.expires_at <= now:
        return "expired"
    status = visible_status(session.status, session.expires_at, now)
    if status == "pending":
        return _PENDING.get(session.hint, "waiting")
    if status == "confirmed":
        if found.user_code is not None:
            return "device_done"
        # Without a code, `finish_return` has not created it yet.
        return "returning" if session.return_required else "confirmed"
    # A used session without a code was reported by its user.
    return "expired" if status == "expired" else "cancelled"
