"""The OpenAPI 3.1 document: the developer API as FastAPI describes it, the plain ASGI endpoints written by hand.

Every answer that a route can give is listed, failures too, so that a client, or a fuzzer, can hold it to that.
"""

from importlib.metadata import version
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from taproof.core.errors import (
    AccessTokenNotFound,
    DeliveryNotFound,
    HttpsRequired,
    InternalError,
    InvalidAccessToken,
    InvalidRequest,
    InvalidSecretKey,
    MessengerUnavailable,
    MethodNotAllowed,
    NoRotation,
    PayloadTooLarge,
    ProjectNotFound,
    ProjectPaused,
    PublicAccessDisabled,
    RotationUnderWay,
    SessionNotFound,
    StoreUnavailable,
    TaproofError,
    WebhookNotSet,
)
from taproof.web.errors import STATUSES

_DESCRIPTION: Final = """\
Sign users in with their messenger account.

1. Your client starts a session (`POST /api/v1/generate/public`) and shows the deeplink that it gets.
2. The user opens the link in the messenger and taps Confirm or Cancel.
3. Your client polls `POST /api/v1/verify/public` every 2 seconds, until the status is no longer pending, for at most
   10 minutes; with `wait` in the body, the answer comes the moment that the user taps. The first answer that says
   confirmed carries the user's identity and a signed proof; every later one says used.
4. Your server checks the proof (a JWT, HS256) with the project's webhook secret and starts its own session.

Everything is JSON in UTF-8 over HTTPS. A request body needs `Content-Type: application/json` and is at most 16 KiB.
Times are ISO 8601 in UTC. A failed request answers `{"error": "a sentence that says what to do"}`; the header
`X-Error-Code` has a stable code. The JSON endpoints answer HEAD with 405; /docs, /openapi.json, /healthz, /readyz and
/metrics answer it as GET without the body. Session endpoints ignore unknown fields, the developer API refuses them.
"""
_TAGS: Final = [
    {"name": "Sign-in", "description": "Start a session and read what became of it."},
    {"name": "Account", "description": "Who the access token belongs to."},
    {"name": "Projects", "description": "A project is what sessions are started under, with its own secrets."},
    {"name": "Webhook secret and deliveries", "description": "What was sent to a webhook, again, and for a test."},
    {"name": "Sessions and analytics", "description": "What happened."},
    {"name": "Access tokens", "description": "The Bearer tokens of the developer API."},
    {"name": "Operations", "description": "For those who run the service."},
]
_SECURITY_SCHEMES: Final = {
    "accessToken": {
        "type": "http",
        "scheme": "bearer",
        "description": "A developer's access token, `tap_…`. `taproof developers add EMAIL` prints one.",
    },
    "secretKey": {
        "type": "http",
        "scheme": "bearer",
        "description": "A project's secret key, `sk_…`, shown once when the project is created. Server side only.",
    },
}

_MEANINGS: Final[dict[type[TaproofError], str]] = {
    InvalidRequest: "The request is not valid; the sentence names what is wrong.",
    ProjectPaused: "The project is paused: its is_active is false.",
    WebhookNotSet: "The project has no webhook_url.",
    RotationUnderWay: "The webhook secret is being rotated already.",
    NoRotation: "The webhook secret is not being rotated.",
    HttpsRequired: "The request came over plain HTTP, from another machine.",
    InvalidAccessToken: "The access token is missing, malformed, expired or revoked.",
    InvalidSecretKey: "The secret key is missing, malformed or replaced.",
    PublicAccessDisabled: "Public access is off for this project.",
    ProjectNotFound: "There is no project with this project_id, or it is not yours.",
    SessionNotFound: "The project has no session with this session_token.",
    AccessTokenNotFound: "There is no access token with this token_id, or it is not yours.",
    DeliveryNotFound: "There is no delivery with this delivery_id, or it is not yours.",
    MethodNotAllowed: "The address does not answer this method.",
    PayloadTooLarge: "The body is larger than 16 KiB.",
    InternalError: "A bug in the service.",
    StoreUnavailable: "The store cannot be reached just now.",
    MessengerUnavailable: "The messenger cannot be reached just now, so there is no deeplink to show.",
}
_FAILURES: Final[dict[str, tuple[type[TaproofError], ...]]] = {
    "BadRequest": (InvalidRequest, HttpsRequired),
    "BadStart": (InvalidRequest, ProjectPaused, HttpsRequired),
    "BadSend": (InvalidRequest, WebhookNotSet, HttpsRequired),
    "BadRotation": (InvalidRequest, RotationUnderWay, HttpsRequired),
    "BadPromotion": (InvalidRequest, NoRotation, HttpsRequired),
    "InvalidAccessToken": (InvalidAccessToken,),
    "InvalidSecretKey": (InvalidSecretKey,),
    "PublicAccessDisabled": (PublicAccessDisabled,),
    "ProjectNotFound": (ProjectNotFound,),
    "ProjectOrSessionNotFound": (ProjectNotFound, SessionNotFound),
    "AccessTokenNotFound": (AccessTokenNotFound,),
    "DeliveryNotFound": (DeliveryNotFound,),
    "MethodNotAllowed": (MethodNotAllowed,),
    "PayloadTooLarge": (PayloadTooLarge,),
    "InternalError": (InternalError,),
    "StoreUnavailable": (StoreUnavailable,),
    "StoreOrMessengerUnavailable": (StoreUnavailable, MessengerUnavailable),
}
"""The documented answers to failed requests: by name, the errors, of one status, that such an answer may be."""
_ANYWHERE: Final = ("BadRequest", "MethodNotAllowed", "InternalError")
_SHARED: Final = (*_ANYWHERE, "StoreUnavailable")
_BAD_REQUESTS: Final = {
    "rotate_webhook_secret": "BadRotation",
    "promote_webhook_secret": "BadPromotion",
    "send_webhook_test": "BadSend",
    "resend_delivery": "BadSend",
}
"""Developer endpoints that have a 400 of their own."""
_SIGN_IN_FAILURES: Final = {
    "generate_public": ("BadStart", "PublicAccessDisabled", "ProjectNotFound", "StoreOrMessengerUnavailable"),
    "verify_public": ("BadRequest", "PublicAccessDisabled", "ProjectOrSessionNotFound", "StoreUnavailable"),
    "generate": ("BadStart", "InvalidSecretKey", "ProjectNotFound", "StoreOrMessengerUnavailable"),
    "verify": ("BadRequest", "InvalidSecretKey", "ProjectOrSessionNotFound", "StoreUnavailable"),
}

_PROJECT_ID: Final = {
    "type": "string",
    "pattern": "^proj_[A-Za-z0-9]{16,40}$",
    "description": "The project's id.",
    "examples": ["proj_4KsdT0aQm2vXc81LpZwEyB"],
}
_OPTIONAL_PROJECT_ID: Final = {
    **_PROJECT_ID,
    "description": "May be left out, since the secret key names the project; if sent, it must be that project's.",
}
_SESSION_TOKEN: Final = {
    "type": "string",
    "pattern": "^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$",
    "description": "What generate returned: 43 characters of A-Z a-z 0-9 _ -.",
    "examples": ["UHbqfTr3m0h7xYk2Vw9cLr5sZ8dA1eB4gJ6nP0tQ3vE"],
}
_WAIT: Final = {
    "type": "number",
    "minimum": 0,
    "maximum": 30,
    "description": "Seconds to wait while the session is pending, fractions allowed; left out, nothing waits. The "
    "answer comes as soon as the session leaves pending, else pending when the time is over. While very many wait, "
    "pending may come sooner: then ask again in 2 seconds. Let the client, and proxies, wait longer than this.",
    "examples": [30],
}
_OPTIONAL: Final = (_OPTIONAL_PROJECT_ID, _WAIT)
_TIME: Final = {"type": "string", "format": "date-time", "examples": ["2026-11-20T22:44:03.127Z"]}

_SCHEMAS: Final[dict[str, Any]] = {
    "Error": {
        "type": "object",
        "description": "Every failed request answers this.",
        "properties": {
            "error": {"type": "string", "minLength": 1, "description": "What is wrong, and what to do about it."}
        },
        "required": ["error"],
        "additionalProperties": False,
    },
    "CreatedSession": {
        "type": "object",
        "description": "A new sign-in session.",
        "properties": {
            "session_token": _SESSION_TOKEN,
            "deeplink": {
                "type": "string",
                "description": "Show it to the user, as a link or a QR code. It works for 10 minutes, and once.",
                "examples": ["https://t.me/acme_sign_in_bot?start=UHbqfTr3m0h7xYk2Vw9cLr5sZ8dA1eB4gJ6nP0tQ3vE"],
            },
            "expires_at": {**_TIME, "description": "From then on a pending session is expired."},
        },
        "required": ["session_token", "deeplink", "expires_at"],
    },
    "UndecidedOrOver": {
        "type": "object",
        "description": "pending: ask again in 2 seconds, after a whole `wait` at once. cancelled, expired, used: stop, "
        "and start a new session.",
        "properties": {"status": {"enum": ["pending", "cancelled", "expired", "used"]}},
        "required": ["status"],
        "additionalProperties": False,
    },
    "Confirmed": {
        "type": "object",
        "description": "The one answer that carries identity and proof. Every later one says used.",
        "properties": {
            "status": {"const": "confirmed"},
            "messenger_id": {"type": "string", "examples": ["123456789"]},
            "messenger_name": {"type": "string", "examples": ["Ada Lovelace"]},
            "messenger_username": {
                "type": ["string", "null"],
                "description": 'null when the user has none (in the proof, and in GET /dev/sessions, it is "" then).',
                "examples": ["ada"],
            },
            "confirmed_at": _TIME,
            "proof": {
                "type": "string",
                "description": "A JWT, HS256, valid for 5 minutes. Check it on your server with the webhook secret.",
                "examples": ["eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.…"],
            },
        },
        "required": ["status", "messenger_id", "messenger_name", "messenger_username", "confirmed_at", "proof"],
    },
    "Verification": {
        "description": "The status of a session.",
        "oneOf": [{"$ref": "#/components/schemas/UndecidedOrOver"}, {"$ref": "#/components/schemas/Confirmed"}],
    },
    "Health": {
        "type": "object",
        "properties": {"status": {"const": "ok"}},
        "required": ["status"],
    },
}


def build_openapi(app: FastAPI) -> dict[str, Any]:
    """Return the document of the whole HTTP API, given the developer API's application."""
    document = get_openapi(title="Taproof", version=version("taproof"), description=_DESCRIPTION, routes=app.routes)
    developer_paths = document.pop("paths")
    for operations in developer_paths.values():
        for operation in operations.values():
            _complete(operation)
    document["info"]["license"] = {"name": "Apache License 2.0", "identifier": "Apache-2.0"}
    document["servers"] = [{"url": "/"}]
    document["tags"] = _TAGS
    document["paths"] = _SESSION_PATHS | developer_paths | _OPERATION_PATHS
    components = document["components"]
    for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own error shape, which nothing answers.
        components["schemas"].pop(name, None)
    components["schemas"] |= _SCHEMAS
    components["responses"] = {name: _failure(errors) for name, errors in _FAILURES.items()}
    components["securitySchemes"] = _SECURITY_SCHEMES
    return document


def _complete(operation: dict[str, Any]) -> None:
    """Add to FastAPI's description of a developer endpoint what it does not know."""
    parameters = operation.get("parameters", [])
    bad_request = _BAD_REQUESTS.get(operation["operationId"], "BadRequest")
    failures = [bad_request, "MethodNotAllowed", "InternalError", "StoreUnavailable", "InvalidAccessToken"]
    if "requestBody" in operation:
        failures.append("PayloadTooLarge")
    names = {parameter["name"] for parameter in parameters}
    if "project_id" in names:
        failures.append("ProjectNotFound")
    if "token_id" in names:
        failures.append("AccessTokenNotFound")
    if "delivery_id" in names:
        failures.append("DeliveryNotFound")
    operation["responses"].pop("422", None)
    operation["responses"] |= _failures(*failures)
    operation["security"] = [{"accessToken": []}]
    for parameter in parameters:
        schema = parameter["schema"]
        if "anyOf" in schema:  # A parameter may be left out, but there is no way to send null in a query.
            del parameter["schema"]
            parameter["schema"] = {k: v for k, v in schema.items() if k != "anyOf"} | schema["anyOf"][0]


def _failures(*names: str) -> dict[str, Any]:
    """Return the `responses` of these failures, in the order of their status."""
    numbered = sorted((str(STATUSES[_FAILURES[name][0]].value), name) for name in names)
    return {status: {"$ref": f"#/components/responses/{name}"} for status, name in numbered}


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
    extra = {401: "WWW-Authenticate", 405: "Allow", 503: "Retry-After"}.get(status)
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


def _session_operation(verb: str, summary: str, description: str, fields: dict[str, Any]) -> dict[str, Any]:
    public = verb.endswith("_public")
    example = {name: field["examples"][0] for name, field in fields.items() if field not in _OPTIONAL}
    schema: dict[str, Any] = {"type": "object", "properties": fields}
    if example:
        schema["required"] = list(example)
    answer = "CreatedSession" if verb.startswith("generate") else "Verification"
    return {
        "post": {
            "tags": ["Sign-in"],
            "summary": summary,
            "description": f"{summary}. {description}",
            "operationId": verb,
            "security": [] if public else [{"secretKey": []}],
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": schema, "example": example}},
            },
            "responses": {
                "200": {
                    "description": "Successful Response",
                    "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{answer}"}}},
                },
                **_failures(*_SIGN_IN_FAILURES[verb], "MethodNotAllowed", "PayloadTooLarge", "InternalError"),
            },
        }
    }


_SESSION_PATHS: Final = {
    "/api/v1/generate/public": _session_operation(
        "generate_public",
        "Start a session from a browser or an app",
        "Needs no Authorization header, only the project's id. Answers any origin (CORS).",
        {"project_id": _PROJECT_ID},
    ),
    "/api/v1/verify/public": _session_operation(
        "verify_public",
        "Read a session from a browser or an app",
        "Poll every 2 seconds, until the status is no longer pending; with `wait`, ask again at once. The first answer "
        "that says confirmed is the only one with identity and proof: however many ask at once, one gets it. Answers "
        "any origin (CORS).",
        {"project_id": _PROJECT_ID, "session_token": _SESSION_TOKEN, "wait": _WAIT},
    ),
    "/api/v1/generate": _session_operation(
        "generate",
        "Start a session from your server",
        "As generate/public, with the project's secret key instead of its id; public access may be off. The body `{}` "
        "and its Content-Type are still needed.",
        {"project_id": _OPTIONAL_PROJECT_ID},
    ),
    "/api/v1/verify": _session_operation(
        "verify",
        "Read a session from your server",
        "As verify/public, with the project's secret key; public access may be off.",
        {"session_token": _SESSION_TOKEN, "project_id": _OPTIONAL_PROJECT_ID, "wait": _WAIT},
    ),
}


def _operation(verb: str, summary: str, description: str, content: dict[str, Any], *, store: bool) -> dict[str, Any]:
    return {
        "get": {
            "tags": ["Operations"],
            "summary": summary,
            "description": description,
            "operationId": verb,
            "security": [],
            "responses": {
                "200": {"description": "Successful Response", "content": content},
                **_failures(*(_SHARED if store else _ANYWHERE)),
            },
        }
    }


_HEALTHY: Final = {"application/json": {"schema": {"$ref": "#/components/schemas/Health"}, "example": {"status": "ok"}}}
_OPERATION_PATHS: Final = {
    "/healthz": _operation("healthz", "Alive?", "The process answers.", _HEALTHY, store=False),
    "/readyz": _operation("readyz", "Ready?", "The store answers, so requests may come.", _HEALTHY, store=True),
    "/metrics": _operation(
        "metrics",
        "Metrics",
        "The counters of this process, in Prometheus' text format.",
        {"text/plain": {"schema": {"type": "string"}}},
        store=False,
    ),
}
