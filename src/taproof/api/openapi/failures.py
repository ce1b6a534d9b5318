"""Describe the responses to failed requests in the OpenAPI document."""

from typing import Any, Final

from taproof.core import errors

_BAD_REQUEST_ERRORS: Final[dict[str, tuple[type[errors.TaproofError], ...]]] = {
    "BadRequest": (),
    "BadStart": (
        errors.ProjectPaused,
        errors.OriginNotAllowed,
        errors.ReturnUrlNotAllowed,
        errors.SameDeviceRequired,
        errors.BotBroken,
        errors.PlanLimitReached,
    ),
    "BadMiniApp": (
        errors.ProjectPaused,
        errors.OriginNotAllowed,
        errors.BotBroken,
        errors.PlanLimitReached,
        errors.ProjectBotNeeded,
        errors.PhoneNeeded,
        errors.InitDataInvalid,
        errors.InitDataExpired,
        errors.InitDataUsed,
        errors.SignInBlocked,
    ),
    "BadRead": (errors.CodeVerifierMissing,),
    "BadCancel": (errors.CodeChallengeRequired, errors.CodeVerifierMissing),
    "BadRole": (errors.InsufficientRole,),
    "BadSend": (errors.InsufficientRole, errors.WebhookNotSet),
    "BadResend": (errors.InsufficientRole, errors.WebhookNotSet, errors.SignInReported),
    "BadRotation": (errors.InsufficientRole, errors.RotationUnderWay),
    "BadPromotion": (errors.InsufficientRole, errors.NoRotation),
    "BadProject": (errors.BotTokenRefused, errors.BotTaken, errors.PlanLimitReached, errors.TooManyProjects),
    "BadClient": (errors.InsufficientRole, errors.TooManyClients),
    "BadProjectChange": (errors.InsufficientRole, errors.BotTokenRefused, errors.BotTaken),
    "BadMember": (errors.InsufficientRole, errors.LastOwner),
    "BadMemberInvitation": (errors.InsufficientRole, errors.TooManyMembers),
    "BadAcceptance": (errors.AlreadyMember, errors.TooManyMembers, errors.TooManyProjects),
    "BadAccessToken": (errors.TooManyAccessTokens,),
    "BadLogin": (
        errors.AuthorizationPending,
        errors.AccessDenied,
        errors.ExpiredToken,
        errors.TooManyAccessTokens,
    ),
}
"""The errors of each 400 response, in addition to those that every 400 response has."""
_SINGLE: Final[tuple[type[errors.TaproofError], ...]] = (
    errors.InvalidAccessToken,
    errors.InsufficientScope,
    errors.InvalidSecretKey,
    errors.PublicAccessDisabled,
    errors.ProjectNotFound,
    errors.SessionNotFound,
    errors.SignInNotFound,
    errors.AccessTokenNotFound,
    errors.DeliveryNotFound,
    errors.InvitationNotFound,
    errors.MethodNotAllowed,
    errors.PayloadTooLarge,
    errors.UnsupportedContentEncoding,
    errors.RateLimited,
    errors.InternalError,
    errors.StoreUnavailable,
    errors.NotReady,
)
"""The errors that have their own response, named after the error class."""
_FAILURES: Final[dict[str, tuple[type[errors.TaproofError], ...]]] = {
    **{
        name: (errors.InvalidRequest, *each, errors.HttpsRequired, errors.HostRequired)
        for name, each in _BAD_REQUEST_ERRORS.items()
    },
    **{error.__name__: (error,) for error in _SINGLE},
    "ProjectOrClientNotFound": (errors.ProjectNotFound, errors.ClientNotFound),
    "ProjectOrMemberNotFound": (errors.ProjectNotFound, errors.MemberNotFound),
    "ProjectOrInvitationNotFound": (errors.ProjectNotFound, errors.InvitationNotFound),
    "ProjectOrSessionNotFound": (errors.ProjectNotFound, errors.SessionNotFound),
    "StoreOrMessengerUnavailable": (errors.StoreUnavailable, errors.MessengerUnavailable),
}
"""The possible errors of each documented failure response, keyed by name. All errors of a response share a status."""

FAILURE_SCHEMAS: Final[dict[str, Any]] = {
    "Error": {
        "type": "object",
        "description": "The body of every failed request.",
        "properties": {"error": {"type": "string", "minLength": 1, "description": "The problem, and how to solve it."}},
        "required": ["error"],
        "additionalProperties": False,
    },
}


def failures(*names: str) -> dict[str, Any]:
    """Return an operation's `responses` entries for these failures, ordered by status."""
    numbered = sorted((str(_FAILURES[name][0].status), name) for name in names)
    return {status: {"$ref": f"#/components/responses/{name}"} for status, name in numbered}


def failure_responses() -> dict[str, Any]:
    """Return `components.responses`: all documented failures."""
    return {name: _failure(possible) for name, possible in _FAILURES.items()}


def _failure(possible: tuple[type[errors.TaproofError], ...]) -> dict[str, Any]:
    headers: dict[str, Any] = {
        "X-Error-Code": {
            "description": "A stable error code.",
            "required": True,
            "schema": {"type": "string", "pattern": "^[a-z_]+$"},
            "example": possible[0].code,
        }
    }
    extra = {
        401: "WWW-Authenticate",
        403: "WWW-Authenticate",
        405: "Allow",
        415: "Accept-Encoding",
        429: "Retry-After",
        503: "Retry-After",
    }.get(possible[0].status)
    if extra is not None:
        headers[extra] = {"required": True, "schema": {"type": "string"}}
    return {
        "description": "\n\n".join(f"`{error.code}`: {error.meaning}" for error in possible),
        "headers": headers,
        "content": {
            "application/json": {
                "schema": {"$ref": "#/components/schemas/Error"},
                "examples": {error.code: {"value": {"error": error.sentence}} for error in possible},
            }
        },
    }
