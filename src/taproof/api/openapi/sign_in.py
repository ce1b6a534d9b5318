"""Describe the sign-in endpoints in the OpenAPI document. FastAPI cannot do this, because they are plain ASGI."""

from typing import Any, Final, get_args

from taproof.api.models import answer_model, text_schema
from taproof.api.openapi.failures import ErrorClass
from taproof.api.openapi.operation import post_operation, text
from taproof.contract import project as contract
from taproof.contract import session as contract_session
from taproof.contract.session import SignInStatus
from taproof.core import errors
from taproof.core.code_challenge import CHALLENGE_PATTERN, METHOD, VERIFIER_PATTERN
from taproof.core.mini_apps import INIT_DATA_LIMIT
from taproof.core.return_code import RETURN_CODE_PATTERN
from taproof.core.return_url import RETURN_URL_LENGTH
from taproof.core.sessions import Hint

_START_ERRORS: Final = (
    errors.ProjectPaused,
    errors.OriginNotAllowed,
    errors.ReturnUrlNotAllowed,
    errors.SameDeviceRequired,
    errors.BotBroken,
    errors.PlanLimitReached,
    errors.ProjectNotFound,
    errors.StoreUnavailable,
    errors.MessengerUnavailable,
)
_MINI_APP_ERRORS: Final = (
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
    errors.ProjectNotFound,
    errors.StoreUnavailable,
)
_READ_ERRORS: Final = (errors.ProjectNotFound, errors.SessionNotFound, errors.StoreUnavailable)
_ERRORS: Final[dict[str, tuple[ErrorClass, ...]]] = {
    "generate_public": _START_ERRORS,
    "generate": _START_ERRORS,
    "verify_public": (errors.CodeVerifierMissing, *_READ_ERRORS),
    "verify": (errors.CodeVerifierMissing, *_READ_ERRORS),
    "cancel_public": (errors.CodeChallengeRequired, errors.CodeVerifierMissing, *_READ_ERRORS),
    "cancel": _READ_ERRORS,
    "mini_app_public": _MINI_APP_ERRORS,
    "mini_app": _MINI_APP_ERRORS,
}
"""The errors of each endpoint, without those of its credential."""

PROJECT_ID: Final = text_schema(contract.PROJECT_ID)
_OPTIONAL_PROJECT_ID: Final = {
    **PROJECT_ID,
    "description": "Not needed, because the secret key identifies the project; if sent, it must be that project's id.",
}
SESSION_TOKEN: Final = text(
    "The session token that generate returned: 43 characters of A-Z a-z 0-9 _ -.",
    "UHbqfTr3m0h7xYk2Vw9cLr5sZ8dA1eB4gJ6nP0tQ3vE",
    pattern="^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$",
)
_WAIT: Final = {
    "type": "number",
    "minimum": 0,
    "maximum": 30,
    "description": "Seconds to wait while the session is pending; fractions are allowed. Default: 0. The call returns "
    "when the status changes or the time is up. Under high load it can return pending early: call again in 2 seconds. "
    "Set client and proxy timeouts higher than this.",
    "examples": [30],
}
_HINTS: Final = {
    "type": "boolean",
    "description": "If true, a pending response also has `hint`: what the session waits for. Default: false.",
}
_SEEN_HINT: Final = text(
    "With `hints` and `wait`: the hint that you know. The call then also returns when the hint is another one.",
    "waiting",
)
_CODE_CHALLENGE: Final = text(
    "Binds the session to this client (RFC 7636): BASE64URL(SHA-256(code_verifier)). verify then "
    "requires the code_verifier, so that a copied link or QR code is useless.",
    "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    pattern=CHALLENGE_PATTERN,
)
_CODE_CHALLENGE_METHOD: Final = {"const": METHOD, "description": "The only method, and the default."}
_CODE_VERIFIER: Final = text(
    "The verifier of the session's code_challenge. Required if the session has one; otherwise ignored. "
    "For 60 seconds after the first confirmed response, a call with it returns that response again, in case it was "
    "lost.",
    "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
    pattern=VERIFIER_PATTERN,
)
_REQUIRED_VERIFIER: Final = {**_CODE_VERIFIER, "description": "The verifier of the session's code_challenge."}
_RETURN_URL: Final = text(
    "The page to which the messenger leads the user back after Confirm: https://, or http:// to this "
    "machine, without a fragment. It must be exactly one of the project's return_urls, or, if there are none, a page "
    "of one of its allowed_origins. It has an effect only if the project's same_device is offer or require.",
    "https://shop.example/sign-in",
    maxLength=RETURN_URL_LENGTH,
)
_RETURN_CODE: Final = text(
    "The value of taproof_return in the fragment with which the messenger opened the return_url. If the "
    "project's same_device is require, the session stays pending without it, for at most five minutes after Confirm. "
    "Then it expires. A wrong code counts as none.",
    "3q2-7wAAESIzRFVmd4iZqrvM3e7_ABEi",
    pattern=RETURN_CODE_PATTERN,
)
_INIT_DATA: Final = text(
    "`Telegram.WebApp.initData`, unchanged. It can be used once, within five minutes after the user "
    "opened the Mini App.",
    "user=%7B%22id%22%3A123456789%2C…%7D&chat_type=private&auth_date=1795214643&signature=…&hash=…",
    minLength=1,
    maxLength=INIT_DATA_LIMIT,
)
_REQUIRED: Final = (PROJECT_ID, SESSION_TOKEN, _REQUIRED_VERIFIER, _INIT_DATA)
_READING: Final = {
    "wait": _WAIT,
    "hints": _HINTS,
    "seen_hint": _SEEN_HINT,
    "code_verifier": _CODE_VERIFIER,
    "return_code": _RETURN_CODE,
}
_BINDING: Final = {
    "code_challenge": _CODE_CHALLENGE,
    "code_challenge_method": _CODE_CHALLENGE_METHOD,
    "return_url": _RETURN_URL,
}
PHONE: Final = text_schema(contract_session.PHONE)
TIME: Final = {"type": "string", "format": "date-time", "examples": ["2026-11-20T22:44:03.127Z"]}

SIGN_IN_SCHEMAS: Final[dict[str, Any]] = {
    "CreatedSession": {
        "type": "object",
        "description": "A new sign-in session.",
        "properties": {
            "session_token": SESSION_TOKEN,
            "deeplink": text(
                "Show it to the user, as a link or a QR code. It works once, within 10 minutes.",
                "https://t.me/acme_sign_in_bot?start=UHbqfTr3m0h7xYk2Vw9cLr5sZ8dA1eB4gJ6nP0tQ3vE",
            ),
            "expires_at": {**TIME, "description": "The time at which a pending session expires."},
            "match_code": text(
                "Only if the project's match_code is on. Show it on the same page as the deeplink. In "
                "the messenger, the user chooses it from three codes; a wrong choice cancels the sign-in.",
                "42",
            ),
            "return_required": {
                "const": True,
                "description": "Only if the project's same_device is require. The sign-in ends on this device, so show "
                "the deeplink as a link and not as a QR code.",
            },
            "return_offered": {
                "const": True,
                "description": "Only if the project's same_device is offer and return_url was sent. After Confirm, the "
                "messenger opens that page, maybe in a new tab, with a return code that the result does not need.",
            },
        },
        "required": ["session_token", "deeplink", "expires_at"],
        # Never has both of the last two properties.
        "examples": [
            {
                "session_token": SESSION_TOKEN["examples"][0],
                "deeplink": f"https://t.me/acme_sign_in_bot?start={SESSION_TOKEN['examples'][0]}",
                "expires_at": TIME["examples"][0],
                "match_code": "42",
                "return_required": True,
            }
        ],
    },
    "UndecidedOrOver": {
        "type": "object",
        "description": "pending: call again in 2 seconds, or immediately after a full `wait`. cancelled, expired, "
        "used: stop and start a new session.",
        "properties": {
            "status": {"enum": ["pending", "cancelled", "expired", "used"]},
            "hint": {
                "enum": list(get_args(Hint)),
                "description": "Only with `hints`, while pending. waiting: nobody has opened the link. opened: the "
                "user may confirm. choosing: the user may choose the match code. phone_asked: the user confirmed, and "
                "was asked for their phone number. return: the user confirmed, and the return code is missing. "
                "unreachable: the user has blocked the bot. Treat an unknown hint as waiting.",
            },
        },
        "required": ["status"],
        "additionalProperties": False,
    },
    "Confirmed": answer_model("Confirmed", contract_session.ConfirmedSession).model_json_schema(),
    "Cancellation": {
        "type": "object",
        "description": "The session's status. cancelled: this call, an earlier one or the user has cancelled it. Any "
        "other status: the session was decided or expired before, and nothing has changed.",
        "properties": {"status": {"enum": list(get_args(SignInStatus))}},
        "required": ["status"],
        "additionalProperties": False,
    },
    "Verification": {
        "description": "The status of a session.",
        "oneOf": [{"$ref": "#/components/schemas/UndecidedOrOver"}, {"$ref": "#/components/schemas/Confirmed"}],
    },
}


_RATE_LIMIT_FIELDS: Final[dict[str, Any]] = {
    "RateLimit-Policy": {
        "description": "The limit for this caller: a number of calls (q) in a number of seconds (w). Also sent with "
        "429. Omitted if there is no limit. See draft-ietf-httpapi-ratelimit-headers.",
        "required": False,
        "schema": {"type": "string"},
        "example": '"address";q=60;w=60',
    },
    "RateLimit": {
        "description": "The number of calls left (r), and the seconds until one more call is allowed (t).",
        "required": False,
        "schema": {"type": "string"},
        "example": '"address";r=59;t=1',
    },
}


_ANSWERS: Final = {
    "generate": "CreatedSession",
    "verify": "Verification",
    "cancel": "Cancellation",
    "mini_app": "Confirmed",
}


def _operation(verb: str, summary: str, description: str, fields: dict[str, Any]) -> dict[str, Any]:
    answer = _ANSWERS[verb.removesuffix("_public")]
    is_public = verb.endswith("_public")
    return post_operation(
        "Sign-in",
        verb,
        summary,
        description,
        fields,
        required=[name for name, field in fields.items() if field in _REQUIRED],
        answer=answer,
        failed=(errors.PublicAccessDisabled if is_public else errors.InvalidSecretKey, *_ERRORS[verb]),
        secured_with=None if is_public else "secretKey",
        headers=_RATE_LIMIT_FIELDS if answer in {"CreatedSession", "Confirmed"} else None,
    )


SIGN_IN_PATHS: Final = {
    "/api/v1/generate/public": _operation(
        "generate_public",
        "Start a session from a browser or an app",
        "Needs no Authorization header, only the project's id. Accepts any origin (CORS).",
        {"project_id": PROJECT_ID, **_BINDING},
    ),
    "/api/v1/verify/public": _operation(
        "verify_public",
        "Read a session from a browser or an app",
        "Poll every 2 seconds until the status is no longer pending; with `wait`, call again immediately. Only the "
        "first confirmed response has the user's identity and proof: if several calls run concurrently, only one gets "
        "it. Accepts any origin (CORS).",
        {"project_id": PROJECT_ID, "session_token": SESSION_TOKEN, **_READING},
    ),
    "/api/v1/generate": _operation(
        "generate",
        "Start a session from your server",
        "Like generate/public, but with the project's secret key instead of its id; public access can be off. The body "
        "must be at least `{}`, with its Content-Type.",
        {"project_id": _OPTIONAL_PROJECT_ID, **_BINDING},
    ),
    "/api/v1/verify": _operation(
        "verify",
        "Read a session from your server",
        "Like verify/public, but with the project's secret key; public access can be off.",
        {"session_token": SESSION_TOKEN, "project_id": _OPTIONAL_PROJECT_ID, **_READING},
    ),
    "/api/v1/cancel/public": _operation(
        "cancel_public",
        "Cancel a session from a browser or an app",
        "Call it when the user closes the sign-in or starts again. The message in the messenger then says that the "
        "request was cancelled. Only a session with a `code_challenge` can be cancelled here. No webhook event is "
        "sent, because auth.cancelled means that the user cancelled. Accepts any origin (CORS).",
        {"project_id": PROJECT_ID, "session_token": SESSION_TOKEN, "code_verifier": _REQUIRED_VERIFIER},
    ),
    "/api/v1/cancel": _operation(
        "cancel",
        "Cancel a session from your server",
        "Like cancel/public, but with the project's secret key, for sessions with or without a `code_challenge`; "
        "public access can be off.",
        {"session_token": SESSION_TOKEN, "project_id": _OPTIONAL_PROJECT_ID},
    ),
    "/api/v1/mini-app/public": _operation(
        "mini_app_public",
        "Sign in the user of a Telegram Mini App",
        "The data that Telegram signed for the project's bot takes the place of Confirm. The response is that of "
        "verify for a confirmed session. Accepts any origin (CORS).",
        {"project_id": PROJECT_ID, "init_data": _INIT_DATA},
    ),
    "/api/v1/mini-app": _operation(
        "mini_app",
        "Sign in the user of a Telegram Mini App from your server",
        "Like mini-app/public, but with the project's secret key; public access can be off.",
        {"project_id": _OPTIONAL_PROJECT_ID, "init_data": _INIT_DATA},
    ),
}
