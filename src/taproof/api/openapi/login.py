"""Describe the login endpoints in the OpenAPI document. FastAPI cannot, because they are plain ASGI."""

from typing import Any, Final

from pydantic import TypeAdapter

from taproof.api.login import TOKEN_DAYS, TOKEN_NAME, WAIT_LIMIT, DeviceCode, FinishedLogin, StartedLogin
from taproof.api.openapi.failures import failures

LOGIN_TAG: Final = {
    "name": "Login",
    "description": "Get an access token with the messenger, from a terminal: what `taproof login` does.",
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

LOGIN_SCHEMAS: Final = {model.__name__: model.model_json_schema() for model in (StartedLogin, FinishedLogin)}


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
        {"device_code": TypeAdapter(DeviceCode).json_schema(), "name": _TOKEN_NAME, "wait": _WAIT},
        ["device_code"],
        "FinishedLogin",
        "BadLogin",
        "SignInNotFound",
        "StoreUnavailable",
    ),
}
