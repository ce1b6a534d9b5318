"""Checks the parameters of authorization requests.

Sources: RFC 6749, section 4.1.1; OpenID Connect Core 1.0, section 3.1.2; RFC 7636; RFC 9126; RFC 9700.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Final, Literal, NamedTuple, Self, get_args

from taproof.core.code_challenge import METHOD, challenge_digest
from taproof.core.oidc.errors import OAuthError

Scope = Literal["openid", "profile", "email", "phone", "groups", "offline_access"]
ResponseMode = Literal["query", "form_post"]

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
RESPONSE_MODES: Final[tuple[ResponseMode, ...]] = get_args(ResponseMode)
REQUEST_URI_PREFIX: Final = "urn:ietf:params:oauth:request_uri:"
VALUE_LIMIT: Final = 4_096
"""The maximum number of characters in a parameter's value. `state` is returned unchanged, so it is limited."""
HINT_LIMIT: Final = 3 * VALUE_LIMIT
"""The maximum number of characters in an id_token_hint: an ID token with all groups of a user and a long name."""
PARAMETER_LIMIT: Final = 64
"""The maximum number of parameters in one request."""

_REPEATABLE: Final = frozenset({"audience", "resource"})
"""Parameters that a request may repeat (RFC 8693, section 2.1; RFC 8707, section 2). Taproof does not use them."""
_NO_CONTROLS: Final = re.compile(r"[^\x00-\x1f\x7f]*")
"""Browsers change control characters in the form of `form_post`, so they would not be returned unchanged."""


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """The checked parameters of an authorization request.

    `code_challenge` is the base64url of a SHA-256 (RFC 7636, S256). `ui_locales` is not checked. `expected_user` is the
    messenger id that an id_token_hint names.
    """

    redirect_uri: str = ""
    response_mode: ResponseMode = "query"
    scopes: tuple[Scope, ...] = ("openid",)
    state: str | None = None
    nonce: str | None = None
    code_challenge: str | None = None
    ui_locales: str = ""
    expected_user: str | None = None

    @property
    def return_address(self) -> "ReturnAddress":
        """The place to which the answer goes."""
        return ReturnAddress(self.redirect_uri, self.response_mode, self.state)

    def dump(self) -> str:
        """Return the stored form. The expected user is stored beside it, for the statement that compares it."""
        return json.dumps({name: value for name, value in asdict(self).items() if value and name != "expected_user"})

    @classmethod
    def load(cls, stored: str) -> Self:
        """Return the request from its stored form. Fields that a newer release stored are ignored."""
        known = json.loads(stored)
        known["scopes"] = tuple(known.get("scopes", ()))
        return cls(**{name: value for name, value in known.items() if name in cls.__slots__})


class ReturnAddress(NamedTuple):
    """The place to which the answer to an authorization request goes.

    `in_fragment` repeats the answer in the fragment, for an application that asked for `response_mode=fragment` and so
    reads nothing else. The answer is always an error, because the mode is not supported.
    """

    redirect_uri: str
    response_mode: ResponseMode = "query"
    state: str | None = None
    in_fragment: bool = False


class RefusedByRedirect(OAuthError):
    """An authorization request that is answered with an error at the client's redirect URI."""

    def __init__(self, error: OAuthError, address: ReturnAddress) -> None:
        super().__init__(error.error, error.description)
        self.address: Final = address


def read_parameters(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the parameters of a request. A parameter without a value counts as omitted (RFC 6749, section 3.1).

    Raises:
        OAuthError: a parameter occurs twice, one is too long, or there are too many.
    """
    found: dict[str, str] = {}
    for number, (name, value) in enumerate(pairs, 1):
        if number > PARAMETER_LIMIT:
            raise OAuthError("invalid_request", f"A request can have at most {PARAMETER_LIMIT} parameters.")
        if not value or name in _REPEATABLE:
            continue
        if len(value) > (limit := HINT_LIMIT if name == "id_token_hint" else VALUE_LIMIT):
            raise OAuthError("invalid_request", f"A parameter can have at most {limit} characters.")
        if name in found:
            raise OAuthError("invalid_request", "A parameter of this request occurs more than once.")
        found[name] = value
    return found


def read_return_address(parameters: Mapping[str, str], redirect_uri: str) -> ReturnAddress:
    """Return the address for the answer. The caller has checked that the redirect URI belongs to the client."""
    mode = parameters.get("response_mode")
    response_mode: ResponseMode = "form_post" if mode == "form_post" else "query"
    return ReturnAddress(redirect_uri, response_mode, parameters.get("state"), in_fragment=mode == "fragment")


def check_request(
    parameters: Mapping[str, str], address: ReturnAddress, *, requires_challenge: bool
) -> AuthorizationRequest:
    """Return the request that these parameters make.

    Args:
        parameters: what the client sent, or pushed before (RFC 9126).
        address: the client's checked redirect URI, and how to answer there.
        requires_challenge: the client has no secret, so it must send a code challenge.

    Raises:
        OAuthError: a parameter is missing, malformed or not supported; the description names it.
    """
    if "request" in parameters:
        raise OAuthError("request_not_supported", "Request objects are not supported. Send plain parameters.")
    if "registration" in parameters:
        raise OAuthError("registration_not_supported", "The parameter registration is not supported.")
    response_type = parameters.get("response_type")
    if response_type is None:
        raise OAuthError("invalid_request", "response_type is missing. Send response_type=code.")
    if response_type != "code":
        raise OAuthError("unsupported_response_type", "Only response_type=code is supported.")
    if parameters.get("response_mode", "query") not in RESPONSE_MODES:
        raise OAuthError("invalid_request", "response_mode must be query or form_post.")
    for name in ("state", "nonce"):
        if _NO_CONTROLS.fullmatch(parameters.get(name, "")) is None:
            raise OAuthError("invalid_request", f"{name} must not contain control characters, such as line breaks.")
    _check_prompt(parameters.get("prompt", ""))
    if "max_age" in parameters and not parameters["max_age"].isdecimal():
        raise OAuthError("invalid_request", "max_age must be a number of seconds.")
    return AuthorizationRequest(
        redirect_uri=address.redirect_uri,
        response_mode=address.response_mode,
        scopes=read_scopes(parameters.get("scope", "")),
        state=address.state,
        nonce=parameters.get("nonce"),
        code_challenge=_read_challenge(parameters, required=requires_challenge),
        ui_locales=parameters.get("ui_locales", "")[:200],
    )


def read_scopes(text: str) -> tuple[Scope, ...]:
    """Return the supported scopes in a scope parameter. Other scopes are ignored (OpenID Connect Core, 3.1.2.1).

    Without the parameter, the scope is `openid`, which gives only the user's id (RFC 6749, section 3.3).

    Raises:
        OAuthError: `openid` is missing among others.
    """
    asked = text.split() or ["openid"]
    if "openid" not in asked:
        raise OAuthError("invalid_scope", "scope must contain openid.")
    return tuple(scope for scope in SCOPES if scope in asked)


def _check_prompt(prompt: str) -> None:
    prompts = prompt.split()
    if "none" in prompts:
        if len(prompts) > 1:
            raise OAuthError("invalid_request", "prompt=none cannot be combined with other values.")
        raise OAuthError("login_required", "Taproof keeps no user session, so each sign-in needs the user.")
    if "create" in prompts:
        raise OAuthError(
            "invalid_request",
            "prompt=create is not supported, because users have their accounts in a messenger. Leave it out: a first "
            "sign-in looks like any other.",
        )


def _read_challenge(parameters: Mapping[str, str], *, required: bool) -> str | None:
    challenge, method = parameters.get("code_challenge"), parameters.get("code_challenge_method")
    if challenge is None:
        if method is not None:
            raise OAuthError("invalid_request", "code_challenge_method was sent without code_challenge.")
        if required:
            raise OAuthError("invalid_request", "A client without a secret must send code_challenge (PKCE, RFC 7636).")
        return None
    # Without a method, RFC 7636 means `plain`, which is refused: it does not protect the verifier.
    if method != METHOD:
        raise OAuthError("invalid_request", f"code_challenge_method must be {METHOD}.")
    if challenge_digest(challenge) is None:
        raise OAuthError("invalid_request", "code_challenge must be the base64url of a SHA-256: 43 characters.")
    return challenge
