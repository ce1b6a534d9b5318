"""The login endpoints in the OpenAPI document, written by hand: they are plain ASGI, in `login_api.py`."""

from typing import Any, Final

from taproof.api.login import INTERVAL, TOKEN_DAYS, TOKEN_NAME, WAIT_LIMIT
from taproof.api.openapi.failures import failures

LOGIN_TAG: Final = {
    "name": "Login",
    "description": "Get an access token with the messenger, from a terminal: what `taproof login` does.",
}
_DEVICE_CODE: Final = {
    "type": "string",
    "minLength": 1,
    "description": "Opaque. Whoever has it gets the access token: keep it to the program that asked for it.",
    "examples": ["AdmAcTPpQZ0hM5qzBf8kXw2vLr7sYd1eJ4gN6oP9tUa3bCiV"],
}
_TOKEN_NAME: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": 100,
    "description": f"What the access token is called in the list of tokens. Left out: {TOKEN_NAME}.",
    "examples": [TOKEN_NAME],
}
_WAIT: Final = {
    "type": "number",
    "minimum": 0,
    "maximum": WAIT_LIMIT,
    "description": "Seconds to wait while nobody has confirmed, fractions allowed; left out, nothing waits. While very "
    "many wait, the answer may come sooner: then ask again after `interval`.",
    "examples": [WAIT_LIMIT],
}

LOGIN_SCHEMAS: Final[dict[str, Any]] = {
    "StartedLogin": {
        "type": "object",
        "description": "A sign-in that waits for a developer.",
        "properties": {
            "device_code": _DEVICE_CODE,
            "verification_uri_complete": {
                "type": "string",
                "description": "Show it to the developer, as a link or a QR code.",
                "examples": ["https://t.me/acme_sign_in_bot?start=UHbqfTr3m0h7xYk2Vw9cLr5sZ8dA1eB4gJ6nP0tQ3vE"],
            },
            "match_code": {
                "type": "string",
                "description": "Show it beside the link: the developer picks it out of three in the messenger. Another "
                "one cancels the sign-in.",
                "examples": ["42"],
            },
            "expires_in": {
                "type": "integer",
                "minimum": 0,
                "description": "Seconds until the sign-in is over.",
                "examples": [600],
            },
            "interval": {
                "type": "integer",
                "description": "Seconds to let pass between two calls that do not wait.",
                "examples": [INTERVAL],
            },
        },
        "required": ["device_code", "verification_uri_complete", "match_code", "expires_in", "interval"],
    },
    "FinishedLogin": {
        "type": "object",
        "description": "The one answer with the access token.",
        "properties": {
            "access_token": {
                "type": "string",
                "pattern": "^tap_",
                "description": f"Shown this once. It is valid for {TOKEN_DAYS} days, unless it is revoked before.",
                "examples": ["tap_…"],
            },
            "expires_in": {
                "type": "integer",
                "description": "Seconds that the access token is valid.",
                "examples": [TOKEN_DAYS * 86_400],
            },
            "token_id": {
                "type": "string",
                "description": "To revoke it: DELETE /api/v1/dev/tokens/:id.",
                "examples": ["tok_4KsdT0aQm2vXc81LpZwEyB"],
            },
            "email": {"type": "string", "description": "Whose it is.", "examples": ["ada@example.com"]},
        },
        "required": ["access_token", "expires_in", "token_id", "email"],
    },
}


def _operation(
    verb: str, description: str, fields: dict[str, Any], required: list[str], answer: str, *failed: str
) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": fields}
    if required:
        schema["required"] = required
    example = {name: fields[name]["examples"][0] for name in required}
    summary, _, rest = description.partition(". ")
    return {
        "post": {
            "tags": [LOGIN_TAG["name"]],
            "summary": summary,
            "description": f"{summary}. {rest}",
            "operationId": verb,
            "security": [],
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": schema, "example": example}},
            },
            "responses": {
                "200": {
                    "description": "Successful Response",
                    "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{answer}"}}},
                },
                **failures(*failed, "MethodNotAllowed", "PayloadTooLarge", "RateLimited", "InternalError"),
            },
        }
    }


LOGIN_PATHS: Final = {
    "/api/v1/login": _operation(
        "start_login",
        "Start a login from a terminal. Needs no Authorization header. Show verification_uri_complete and match_code, "
        "then ask login/token. The terms are those of RFC 8628; bodies are JSON, as everywhere here. The body is `{}`.",
        {},
        [],
        "StartedLogin",
        "BadRequest",
        "StoreOrMessengerUnavailable",
    ),
    "/api/v1/login/token": _operation(
        "create_login_token",
        "Get the access token of a login. With `wait`, ask again at once after authorization_pending; else after "
        "`interval`. The first call after the tap makes the token, for the developer whose messenger "
        f"account confirmed, and is the only one that gets it. The token expires after {TOKEN_DAYS} days.",
        {"device_code": _DEVICE_CODE, "name": _TOKEN_NAME, "wait": _WAIT},
        ["device_code"],
        "FinishedLogin",
        "BadLogin",
        "SignInNotFound",
        "StoreUnavailable",
    ),
}
