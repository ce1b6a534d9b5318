"""Build the OpenAPI 3.1 document. FastAPI describes the developer API; this package describes everything else.

The document lists every response of a route, failures included, so that a client or a fuzzer can check against it.
"""

import copy
from importlib.metadata import version
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from taproof.api.openapi.failures import FAILURE_SCHEMAS, ErrorClass, failures, share_failures
from taproof.api.openapi.login import LOGIN_PATHS, LOGIN_SCHEMAS, LOGIN_TAG
from taproof.api.openapi.sign_in import SIGN_IN_PATHS, SIGN_IN_SCHEMAS
from taproof.api.openapi.webhooks import WEBHOOK_SCHEMAS, WEBHOOKS
from taproof.core import errors

_DESCRIPTION: Final = """\
Sign users in with their messenger account.

1. Your client starts a session (`POST /api/v1/generate/public`) and shows the deeplink.
2. The user opens the link in the messenger and taps Confirm or Cancel.
3. Your client polls `POST /api/v1/verify/public` every 2 seconds until the status is no longer pending, for at most
   10 minutes. With `wait` in the body, the call returns as soon as the user taps. The first confirmed response
   contains the user's identity and a signed proof. Later calls return the status `used`.
4. Your server checks the proof (a JWT, HS256) with the project's webhook secret and starts its own session.

With `hints`, a pending response also says what the session waits for. If the user closes the sign-in or starts again,
`POST /api/v1/cancel/public` cancels the session.

In a Telegram Mini App, `POST /api/v1/mini-app/public` takes the place of steps 1 to 3.

Everything is JSON in UTF-8 over HTTPS. A request body needs `Content-Type: application/json` and is at most 16 KiB.
Times are ISO 8601 in UTC. A failed request returns `{"error": "one sentence for a person"}`; the header
`X-Error-Code` has a stable code. The JSON endpoints answer HEAD with 405; /docs, /openapi.json, /healthz, /readyz and
/metrics support HEAD. Session endpoints ignore unknown fields; the developer API refuses them.
"""
_TAGS: Final = [
    {"name": "Sign-in", "description": "Start a session and read its status."},
    {"name": "Account", "description": "The account that the access token belongs to."},
    {"name": "Projects", "description": "Each session belongs to a project. Each project has its own secrets."},
    {
        "name": "Members",
        "description": "The developers who share a project. A member's role decides which calls they may make.",
    },
    {"name": "Users", "description": "The people who signed in to your projects, and the data about them."},
    {
        "name": "OpenID Connect clients",
        "description": "The applications that sign a project's users in with OpenID Connect.",
    },
    {
        "name": "Webhook secret and deliveries",
        "description": "Rotate the secret, list and resend deliveries, and send a test.",
    },
    {"name": "Sessions and analytics", "description": "Session lists and statistics."},
    {"name": "Access tokens", "description": "The Bearer tokens of the developer API."},
    {"name": "Audit log", "description": "The log of changes to your account and projects."},
    LOGIN_TAG,
    {"name": "Operations", "description": "Health checks and metrics for the service's operator."},
]
_SECURITY_SCHEMES: Final = {
    "accessToken": {
        "type": "http",
        "scheme": "bearer",
        "description": "A developer's access token, `tap_…`. `taproof developers add EMAIL` prints one. It has one or "
        "more scopes. `read`: every GET except the webhook secret. `write`: change projects, and read or replace "
        "their secrets. `tokens`: create and revoke access tokens, and change members. A call without the required "
        "scope fails with 403 `insufficient_scope`.",
    },
    "secretKey": {
        "type": "http",
        "scheme": "bearer",
        "description": "A project's secret key, `sk_…`, shown once, when the project is created. Only for servers.",
    },
}

_ERRORS: Final[dict[str, tuple[ErrorClass, ...]]] = {
    **dict.fromkeys(
        (
            *("delete_project", "regenerate_secrets", "read_webhook_secret", "erase_user"),
            *("update_client", "delete_client", "regenerate_client_secret", "delete_member_invitation"),
        ),
        (errors.InsufficientRole,),
    ),
    "export_user": (errors.InsufficientRole, errors.ProjectNotFound),
    "update_member": (errors.InsufficientRole, errors.LastOwner),
    "delete_member": (errors.InsufficientRole, errors.LastOwner),
    "create_member_invitation": (errors.InsufficientRole, errors.TooManyMembers),
    "accept_member_invitation": (
        errors.AlreadyMember,
        errors.TooManyMembers,
        errors.TooManyProjects,
        errors.InvitationNotFound,
    ),
    "create_project": (
        errors.BotTokenRefused,
        errors.BotTaken,
        errors.PlanLimitReached,
        errors.TooManyProjects,
        errors.MessengerUnavailable,
    ),
    "update_project": (
        errors.InsufficientRole,
        errors.BotTokenRefused,
        errors.BotTaken,
        errors.MessengerUnavailable,
    ),
    "create_client": (errors.InsufficientRole, errors.TooManyClients),
    "create_access_token": (errors.TooManyAccessTokens,),
    "rotate_webhook_secret": (errors.InsufficientRole, errors.RotationUnderWay),
    "promote_webhook_secret": (errors.InsufficientRole, errors.NoRotation),
    "send_webhook_test": (errors.InsufficientRole, errors.WebhookNotSet),
    "resend_delivery": (errors.InsufficientRole, errors.WebhookNotSet, errors.SignInReported),
}
"""The errors of developer endpoints, in addition to those of all of them and of their parameters."""
_NOT_FOUND: Final = {
    "project_id": errors.ProjectNotFound,
    "client_id": errors.ClientNotFound,
    "grant_id": errors.GrantNotFound,
    "developer_id": errors.MemberNotFound,
    "invitation_id": errors.InvitationNotFound,
    "token_id": errors.AccessTokenNotFound,
    "session_id": errors.SessionNotFound,
    "delivery_id": errors.DeliveryNotFound,
}
"""The error of each parameter that names something."""


def build_openapi(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document for the whole HTTP API. `app` is the developer API."""
    document = get_openapi(title="Taproof", version=version("taproof"), description=_DESCRIPTION, routes=app.routes)
    developer_paths = document.pop("paths")
    for operations in developer_paths.values():
        for operation in operations.values():
            _complete(operation)
    document["info"]["license"] = {"name": "Apache License 2.0", "identifier": "Apache-2.0"}
    document["servers"] = [{"url": "/"}]
    document["tags"] = _TAGS
    document["paths"] = copy.deepcopy(SIGN_IN_PATHS | developer_paths | LOGIN_PATHS | _OPERATION_PATHS)
    document["webhooks"] = WEBHOOKS
    components = document["components"]
    for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own error shape, which no endpoint uses.
        components["schemas"].pop(name, None)
    components["schemas"] |= FAILURE_SCHEMAS | SIGN_IN_SCHEMAS | LOGIN_SCHEMAS | WEBHOOK_SCHEMAS | _SCHEMAS
    components["responses"] = share_failures(document["paths"])
    components["securitySchemes"] = _SECURITY_SCHEMES
    return document


def _complete(operation: dict[str, Any]) -> None:
    """Add the failures and the credential to FastAPI's description of a developer endpoint."""
    parameters = operation.get("parameters", [])
    possible = [errors.RateLimited, errors.StoreUnavailable, errors.InvalidAccessToken]
    if operation["operationId"] != "read_account":
        possible.append(errors.InsufficientScope)
    if "requestBody" in operation:
        possible += [errors.PayloadTooLarge, errors.UnsupportedContentEncoding]
    possible += [_NOT_FOUND[each["name"]] for each in parameters if each["name"] in _NOT_FOUND]
    operation["responses"].pop("422", None)
    operation["responses"] |= failures(*possible, *_ERRORS.get(operation["operationId"], ()))
    operation["security"] = [{"accessToken": []}]
    for parameter in parameters:
        schema = parameter["schema"]
        if "anyOf" in schema:  # An optional parameter can be omitted, but a query string cannot contain null.
            del parameter["schema"]
            parameter["schema"] = {k: v for k, v in schema.items() if k != "anyOf"} | schema["anyOf"][0]


def _operation(
    verb: str, summary: str, description: str, content: dict[str, Any], *possible: ErrorClass
) -> dict[str, Any]:
    """Return the description of an operation; `possible` are errors in addition to those of every operation."""
    return {
        "get": {
            "tags": ["Operations"],
            "summary": summary,
            "description": description,
            "operationId": verb,
            "security": [],
            "responses": {
                "200": {"description": "Successful Response", "content": content},
                **failures(*possible),
            },
        }
    }


_SCHEMAS: Final[dict[str, Any]] = {
    "Health": {
        "type": "object",
        "properties": {"status": {"const": "ok"}},
        "required": ["status"],
    },
}
_HEALTHY: Final = {"application/json": {"schema": {"$ref": "#/components/schemas/Health"}, "example": {"status": "ok"}}}
_OPERATION_PATHS: Final = {
    "/healthz": _operation("healthz", "Liveness", "The process is running.", _HEALTHY),
    "/readyz": _operation(
        "readyz",
        "Readiness",
        "The store answers and the bot's username is known, so sign-ins can start. A node without the API needs only "
        "the store. Otherwise the error has one sentence for each missing part.",
        _HEALTHY,
        errors.NotReady,
    ),
    "/metrics": _operation(
        "metrics",
        "Metrics",
        "The metrics of this node in the Prometheus text format, or in OpenMetrics to a client that accepts it.",
        {
            "text/plain": {"schema": {"type": "string"}},
            "application/openmetrics-text": {"schema": {"type": "string"}},
        },
    ),
}
