"""The application's sign-in endpoint, independent of the framework: it checks a proof and returns the user.

The page's button sends `{"proof": "…"}` as JSON. The answer is `{"location": "/…"}`, the next page, or
`{"error": "…"}`. This module reads and writes no socket, session or setting: the framework's module builds the
`EndpointRequest`, stores the session and sends the `EndpointResponse`.

The next page is `next` in the query string of the endpoint's URL (`submit-url="/auth/taproof?next=/orders"`).
"""

import hashlib
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Final, Self
from urllib.parse import quote, urlencode

from taproof.sdk.guard import SingleUseGuard
from taproof.sdk.proof import Identity, ProofAlreadyUsed, ProofError, verify_proof
from taproof.sdk.strict_json import read_object
from taproof.sdk.webhook_secrets import require_webhook_secrets

CHUNK: Final = 65_536
"""Number of bytes to read at a time."""
_BODY_LIMIT: Final = 32_768
"""In bytes: twice the length of the longest accepted proof."""
_DROPPED_LIMIT: Final = 4_194_304
SESSION_KEY: Final = "taproof"
"""The key of the signed-in user in the framework's session."""
HEADERS: Final = {"Cache-Control": "no-store"}
"""The headers of every answer from the endpoint."""
_HOME: Final = "/"
SIGN_IN_FIRST: Final = "Sign in first."
NAMES: Final = ("TAPROOF_BASE_URL", "TAPROOF_PROJECT_ID", "TAPROOF_WEBHOOK_SECRET")
"""The names of the three settings."""
_BASE_URL: Final = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?")
_PROJECT_ID: Final = re.compile(r"proj_[A-Za-z0-9]+")
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}
# Browsers read a backslash as a slash and drop tabs and line breaks, so "/\t/other.example" also leads to another site.
_OWN_PATH: Final = re.compile(r"/[^\\\x00-\x20\x7f]{0,2047}")
_QUERY_OR_FRAGMENT: Final = re.compile(r"[?#]")
_USED_PROOF: Final = "used_proof"
"""The session key of the SHA-256, in hex, of the session token that started the session."""


class SettingsError(ValueError):
    """A setting is missing or invalid. The message names every such setting and contains no value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaproofSettings:
    """The three settings of an application, with the same names in every framework.

    Attributes:
        base_url: the service's address for browsers: `https://signin.example.com` (`TAPROOF_BASE_URL`).
        project_id: `proj_…` (`TAPROOF_PROJECT_ID`).
        webhook_secrets: `whsec_…`, or several during a rotation, separated by commas (`TAPROOF_WEBHOOK_SECRET`).
    """

    base_url: str
    project_id: str
    webhook_secrets: tuple[str, ...] = field(repr=False)

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """Read the three settings from `os.environ`, Flask's `app.config` or another mapping.

        Raises:
            SettingsError: a setting is missing or invalid. The message names all such settings.
        """
        base_url, project_id, secret = (str(values.get(name) or "").strip() for name in NAMES)
        base_url = base_url.rstrip("/")
        wrong = []
        if _BASE_URL.fullmatch(base_url) is None:
            wrong.append("TAPROOF_BASE_URL must be Taproof's address for browsers, such as https://signin.example.com.")
        if _PROJECT_ID.fullmatch(project_id) is None:
            wrong.append("TAPROOF_PROJECT_ID must be the project's id (proj_…), as shown in Taproof's console.")
        try:
            secrets = require_webhook_secrets(tuple(re.split(r"[\s,]+", secret)))
        except ValueError:
            secrets = ()
            wrong.append("TAPROOF_WEBHOOK_SECRET must be the project's webhook secret (whsec_…).")
        if wrong:
            raise SettingsError(" ".join(wrong))
        return cls(base_url=base_url, project_id=project_id, webhook_secrets=secrets)

    @property
    def for_pages(self) -> dict[str, str]:
        """The values that a template needs for the button, without the secret: base_url, script_url and project_id."""
        return {
            "base_url": self.base_url,
            "script_url": f"{self.base_url}/sdk/taproof.js",
            "project_id": self.project_id,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """The signed-in user, as stored in the framework's session. It never contains the proof or the session token.

    `signed_in_at` is the time of the sign-in, in seconds since the epoch. For the other fields see `taproof.Identity`.
    """

    messenger_id: str
    messenger_name: str
    messenger_username: str
    signed_in_at: int
    messenger_phone: str | None = field(default=None, repr=False)

    @classmethod
    def from_session(cls, value: object) -> Self | None:
        """Return the user from a session's value; None if there is none, or if another release wrote it."""
        names = ("messenger_id", "messenger_name", "messenger_username")
        if not isinstance(value, dict) or not all(isinstance(value.get(name), str) for name in names):
            return None
        if not value["messenger_id"] or type(value.get("signed_in_at")) is not int:
            return None
        phone = value.get("messenger_phone")
        signed_in = {name: value[name] for name in (*names, "signed_in_at")}
        return cls(**signed_in, messenger_phone=phone if isinstance(phone, str) else None)

    def to_session(self) -> dict[str, str | int]:
        """Return the value to store in the session. Any framework can store it as JSON."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Body:
    """Collects a request's body piece by piece, up to a limit.

    It reads and drops the rest, up to 4 MiB: if part of a body is left unread, servers close the connection and the
    answer is lost.
    """

    def __init__(self) -> None:
        self._kept = bytearray()
        self._seen = 0

    def add(self, piece: bytes) -> bool:
        """Add the next piece; an empty one marks the end. Return False if no more is needed."""
        self._kept += piece[: _BODY_LIMIT + 1 - len(self._kept)]
        self._seen += len(piece)
        return piece != b"" and self._seen <= _DROPPED_LIMIT

    def kept(self) -> bytes:
        """Return the body. If it is too long, return its beginning, one byte longer than allowed."""
        return bytes(self._kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointRequest:
    """The parts of a request that the endpoint needs.

    `scheme` and `host` belong to the application's public address, according to the framework: behind a proxy, the
    framework or its server knows which forwarding headers to trust. A missing header is None. The values of a repeated
    header are joined with commas, so that it is refused whichever value a proxy used. `held` is the value under
    `SESSION_KEY` in the user's session; None if there is none.
    """

    content_type: str | None
    fetch_site: str | None
    origin: str | None
    scheme: str
    host: str
    body: bytes = field(default=b"", repr=False)
    next: str | None = None
    held: object = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointResponse:
    """The answer, to send as JSON with `HEADERS`.

    If `session` is not None, the caller must first end the user's session and start a new one with this content.
    Nothing from the previous session must be kept, because another person may have planted it.
    """

    status: int
    content: dict[str, str]
    session: dict[str, Any] | None = None


class SignInEndpoint:
    """Sign-in and sign-out. All processes of the application must share the guard."""

    def __init__(
        self,
        settings: TaproofSettings,
        guard: SingleUseGuard,
        clock: Callable[[], float] = time.time,  # noqa: TID251 — the SDK has no clock module.
    ) -> None:
        self._settings = settings
        self._guard = guard
        self._clock = clock

    def sign_in(self, asked: EndpointRequest) -> EndpointResponse:
        """Check the origin of the request, then the proof. This blocks while the guard does."""
        if refusal := _refusal(asked):
            return refusal
        if len(asked.body) > _BODY_LIMIT:
            return _error(413, "The request body is too large.")
        proof = _proof_of(asked.body)
        if proof is None:
            return _error(400, 'The body must be JSON: {"proof": "…"}, with the proof as a string.')
        now = self._clock()
        leads_on = {"location": own_path(asked.next)}
        settings = self._settings
        verify = partial(verify_proof, proof, settings.webhook_secrets, project_id=settings.project_id, now=now)
        try:
            identity = verify(guard=self._guard)
        except ProofAlreadyUsed as error:
            # The button retries a request if the answer is lost; the session may already have started.
            if _began_with(asked.held, verify()):
                return EndpointResponse(status=200, content=leads_on)
            return _error(401, str(error))
        except ProofError as error:
            return _error(401, str(error))
        signed_in = SignedIn(
            messenger_id=identity.messenger_id,
            messenger_name=identity.messenger_name,
            messenger_username=identity.messenger_username,
            signed_in_at=int(now),
            messenger_phone=identity.messenger_phone,
        )
        session = {SESSION_KEY: signed_in.to_session() | {_USED_PROOF: _digest(identity)}}
        return EndpointResponse(status=200, content=leads_on, session=session)

    def sign_out(self, asked: EndpointRequest) -> EndpointResponse:
        """Check the request, then end the session."""
        return _refusal(asked) or EndpointResponse(status=200, content={"location": _HOME}, session={})


def own_path(path: str | None) -> str:
    """Return the path if it leads to a page of this site, else "/": a sign-in must not redirect to another site.

    The page's router may resolve dots in the path, which can result in "//other.example". Therefore paths with a
    segment "." or "..", or with an empty segment before the last, are refused.
    """
    if path is None or _OWN_PATH.fullmatch(path) is None:
        return _HOME
    _, *segments = _QUERY_OR_FRAGMENT.split(path, maxsplit=1)[0].split("/")
    has_dots = any(segment.lower().replace("%2e", ".") in {".", ".."} for segment in segments)
    return _HOME if has_dots or "" in segments[:-1] else path


def page_address(page: str, path: str, query: str) -> str:
    """Return the URL of the page with the button, with the requested path and query as `?next=`."""
    requested = f"{quote(path)}?{query}" if query else quote(path)
    return f"{page}?{urlencode({'next': requested})}"


def refused_account() -> EndpointResponse:
    """Return the answer for a valid proof from an account that the application refuses."""
    return _error(403, "This account cannot sign in here. Ask the operator of this application.")


def _refusal(asked: EndpointRequest) -> EndpointResponse | None:
    """Refuse requests that were not sent by a page of this application.

    Otherwise another site could sign its visitors in to the attacker's account (login CSRF), or sign them out. A form
    cannot send this content type, and a script on another site needs a preflight, which this endpoint does not answer.
    Scripts cannot set Sec-Fetch-Site or Origin, because browsers set them. If Sec-Fetch-Site is present, only it is
    checked, because it does not depend on the configured address. Browsers omit it on plain HTTP; old ones never send
    it.
    """
    content_type = asked.content_type or ""
    # A comma separates the values of a repeated header. A proxy may have used any of them.
    if "," in content_type or content_type.partition(";")[0].strip().lower() != "application/json":
        return _error(403, "Send JSON, with Content-Type: application/json.")
    if asked.fetch_site is not None:
        is_own = asked.fetch_site == "same-origin"
    else:
        is_own = asked.host != "" and asked.origin == _origin(asked.scheme, asked.host)
    if is_own:
        return None
    return _error(
        403,
        "This request was not sent by a page of this application."
        " Behind a proxy, configure the framework to trust its X-Forwarded-Proto and X-Forwarded-Host.",
    )


def _origin(scheme: str, host: str) -> str:
    """Return an origin as browsers write it: lower case, without the scheme's default port (RFC 6454, 6.2)."""
    scheme, host = scheme.lower(), host.lower()
    return f"{scheme}://{host.removesuffix(_DEFAULT_PORTS.get(scheme, ''))}"


def _began_with(held: object, identity: Identity) -> bool:
    """Return whether a session was started with this proof, for the same user."""
    signed_in = SignedIn.from_session(held)
    return (
        isinstance(held, dict)
        and signed_in is not None
        and signed_in.messenger_id == identity.messenger_id
        and held.get(_USED_PROOF) == _digest(identity)
    )


def _digest(identity: Identity) -> str:
    return hashlib.sha256(identity.session_token.encode()).hexdigest()


def _proof_of(body: bytes) -> str | None:
    try:
        proof = read_object(body).get("proof")
    except (ValueError, RecursionError):
        return None
    return proof if isinstance(proof, str) else None


def _error(status: int, sentence: str) -> EndpointResponse:
    return EndpointResponse(status=status, content={"error": sentence})
