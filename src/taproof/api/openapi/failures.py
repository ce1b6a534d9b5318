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
    numbered = sorted((str(_FAILURES[name][0].status), name) for name in names)
    return {status: {"$ref": f"#/components/responses/{name}"} for status, name in numbered}


def failure_responses() -> dict[str, Any]:
    """Return `components.responses`: each of the documented failures."""
    return {name: _failure(errors) for name, errors in _FAILURES.items()}


def _failure(errors: tuple[type[TaproofError], ...]) -> dict[str, Any]:
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
    }.get(errors[0].status)
    if extra is not None:
        headers[extra] = {"required": True, "schema": {"type": "string"}}
    return {
        "description": "\n\n".join(f"`{error.code}`: {error.meaning}" for error in errors),
        "headers": headers,
        "content": {
            "application/json": {
                "schema": {"$ref": "#/components/schemas/Error"},
                "examples": {error.code: {"value": {"error": error.sentence}} for error in errors},
            }
        },
    }
