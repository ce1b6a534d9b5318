"""The failures in the OpenAPI document: every answer to a failed request, by name, and what its codes mean."""

from typing import Any, Final

from taproof.core.errors import (
    AccessDenied,
    AccessTokenNotFound,
    AuthorizationPending,
    BotBroken,
    BotTaken,
    BotTokenRefused,
    CodeVerifierMissing,
    DeliveryNotFound,
    ExpiredToken,
    HttpsRequired,
    InsufficientScope,
    InternalError,
    InvalidAccessToken,
    InvalidRequest,
    InvalidSecretKey,
    MessengerUnavailable,
    MethodNotAllowed,
    NoRotation,
    OriginNotAllowed,
    PayloadTooLarge,
    PlanLimitReached,
    ProjectNotFound,
    ProjectPaused,
    PublicAccessDisabled,
    RateLimited,
    RotationUnderWay,
    SessionNotFound,
    SignInNotFound,
    SignInReported,
    StoreUnavailable,
    TaproofError,
    TooManyAccessTokens,
    TooManyProjects,
    WebhookNotSet,
)
from taproof.http.errors import STATUSES

_MEANINGS: Final[dict[type[TaproofError], str]] = {
    InvalidRequest: "The request is not valid; the sentence names what is wrong.",
    ProjectPaused: "The project is paused: its is_active is false.",
    BotBroken: "The messenger refuses the token of the project's bot: its bot_broken_at is set.",
    BotTaken: "The bot with this bot_token serves another project, or is the service's own.",
    BotTokenRefused: "The messenger knows no bot with this bot_token.",
    WebhookNotSet: "The project has no webhook_url.",
    SignInReported: "The user has reported the sign-in, so its auth.confirmed is not sent again.",
    RotationUnderWay: "The webhook secret is being rotated already.",
    NoRotation: "The webhook secret is not being rotated.",
    TooManyAccessTokens: "The developer has 100 access tokens that have not expired.",
    TooManyProjects: "The developer has 1,000 projects.",
    AuthorizationPending: "Nobody has confirmed or cancelled yet: ask again.",
    AccessDenied: "The sign-in was cancelled or reported, or no developer signs in with the account that confirmed.",
    ExpiredToken: "The time of the device_code is over, or it gave its access token already.",
    CodeVerifierMissing: "The session was made with a code_challenge, and there is no code_verifier.",
    HttpsRequired: "The request came over plain HTTP, from another machine.",
    InvalidAccessToken: "The access token is missing, malformed, expired or revoked.",
    InsufficientScope: "The access token does not have the scope that the call needs; WWW-Authenticate names it.",
    InvalidSecretKey: "The secret key is missing, malformed or replaced.",
    PublicAccessDisabled: "Public access is off for this project.",
    ProjectNotFound: "There is no project with this project_id, or it is not yours.",
    SessionNotFound: "There is no session with this session_token or session_id, it is not yours, or the code_verifier "
    "is another one's.",
    SignInNotFound: "The device_code is none of this service's, or long over.",
    AccessTokenNotFound: "There is no access token with this token_id, or it is not yours.",
    DeliveryNotFound: "There is no delivery with this delivery_id, or it is not yours.",
    MethodNotAllowed: "The address does not answer this method.",
    PayloadTooLarge: "The body is larger than 16 KiB.",
    OriginNotAllowed: "The page's origin is not among the project's allowed_origins.",
    PlanLimitReached: "The developer's plan has no room for another project, or for more sign-ins in this month.",
    RateLimited: "Too many calls came from this client address or this developer, or for this session or project, or "
    "too many bot tokens were tried by this developer. Nothing was done, and nothing was used up.",
    InternalError: "A bug in the service.",
    StoreUnavailable: "The store cannot be reached just now.",
    MessengerUnavailable: "The messenger cannot be reached just now: there is no deeplink to show, or a bot_token "
    "cannot be checked.",
}
_FAILURES: Final[dict[str, tuple[type[TaproofError], ...]]] = {
    "BadRequest": (InvalidRequest, HttpsRequired),
    "BadStart": (InvalidRequest, ProjectPaused, OriginNotAllowed, BotBroken, PlanLimitReached, HttpsRequired),
    "BadRead": (InvalidRequest, CodeVerifierMissing, HttpsRequired),
    "BadSend": (InvalidRequest, WebhookNotSet, HttpsRequired),
    "BadResend": (InvalidRequest, WebhookNotSet, SignInReported, HttpsRequired),
    "BadRotation": (InvalidRequest, RotationUnderWay, HttpsRequired),
    "BadPromotion": (InvalidRequest, NoRotation, HttpsRequired),
    "BadProject": (InvalidRequest, BotTokenRefused, BotTaken, PlanLimitReached, TooManyProjects, HttpsRequired),
    "BadProjectChange": (InvalidRequest, BotTokenRefused, BotTaken, HttpsRequired),
    "BadAccessToken": (InvalidRequest, TooManyAccessTokens, HttpsRequired),
    "BadLogin": (
        InvalidRequest,
        AuthorizationPending,
        AccessDenied,
        ExpiredToken,
        TooManyAccessTokens,
        HttpsRequired,
    ),
    "InvalidAccessToken": (InvalidAccessToken,),
    "InsufficientScope": (InsufficientScope,),
    "InvalidSecretKey": (InvalidSecretKey,),
    "PublicAccessDisabled": (PublicAccessDisabled,),
    "ProjectNotFound": (ProjectNotFound,),
    "ProjectOrSessionNotFound": (ProjectNotFound, SessionNotFound),
    "SessionNotFound": (SessionNotFound,),
    "SignInNotFound": (SignInNotFound,),
    "AccessTokenNotFound": (AccessTokenNotFound,),
    "DeliveryNotFound": (DeliveryNotFound,),
    "MethodNotAllowed": (MethodNotAllowed,),
    "PayloadTooLarge": (PayloadTooLarge,),
    "RateLimited": (RateLimited,),
    "InternalError": (InternalError,),
    "StoreUnavailable": (StoreUnavailable,),
    "StoreOrMessengerUnavailable": (StoreUnavailable, MessengerUnavailable),
}
"""The documented answers to failed requests: by name, the errors, of one status, that such an answer may be."""

FAILURE_SCHEMAS: Final[dict[str, Any]] = {
    "Error": {
        "type": "object",
        "description": "Every failed request answers this.",
        "properties": {
            "error": {"type": "string", "minLength": 1, "description": "What is wrong, and what to do about it."}
        },
        "required": ["error"],
        "additionalProperties": False,
    },
}


def failures(*names: str) -> dict[str, Any]:
    """Return the `responses` of an operation that may fail so, in the order of their status."""
    numbered = sorted((str(STATUSES[_FAILURES[name][0]].value), name) for name in names)
    return {status: {"$ref": f"#/components/responses/{name}"} for status, name in numbered}


def failure_responses() -> dict[str, Any]:
    """Return `components.responses`: each of the documented failures."""
    return {name: _failure(errors) for name, errors in _FAILURES.items()}


def _failure(errors: tuple[type[TaproofError], ...]) -> dict[str, Any]:
    status = STATUSES[errors[0]]
    headers: dict[str, Any] = {
        "X-Error-Code": {
            "description": "A stable code of what is wrong.",
            "required": True,
            "schema": {"type": "string", "pattern": "^[a-z_]+$"},
            "example": errors[0].code,
        }
    }
    extra = {
        401: "WWW-Authenticate",
        403: "WWW-Authenticate",
        405: "Allow",
        429: "Retry-After",
        503: "Retry-After",
    }.get(status)
    if extra is not None:
        headers[extra] = {"required": True, "schema": {"type": "string"}}
    return {
        "description": "\n\n".join(f"`{error.code}`: {_MEANINGS[error]}" for error in errors),
        "headers": headers,
        "content": {
            "application/json": {
                "schema": {"$ref": "#/components/schemas/Error"},
                "examples": {error.code: {"value": {"error": error().sentence}} for error in errors},
            }
        },
    }
