"""Describe the login endpoints in the OpenAPI document. FastAPI cannot do this, because they are plain ASGI."""

from typing import Final

from pydantic import TypeAdapter

from taproof.api.login import TOKEN_DAYS, TOKEN_NAME, WAIT_LIMIT, DeviceCode, FinishedLogin, StartedLogin
from taproof.api.openapi.operation import post_operation, text
from taproof.core import errors

LOGIN_TAG: Final = {
    "name": "Login",
    "description": "Get an access token from a terminal by signing in with the messenger, as `taproof login` does.",
}
_TOKEN_NAME: Final = text(
    f"The name of the access token in the list of tokens. Default: {TOKEN_NAME}.",
    TOKEN_NAME,
    minLength=1,
    maxLength=100,
)
_WAIT: Final = {
    "type": "number",
    "minimum": 0,
    "maximum": WAIT_LIMIT,
    "description": "Seconds to wait while the sign-in is pending; fractions are allowed. Default: 0. Under high load "
    "the call can return early: call again after `interval`.",
    "examples": [WAIT_LIMIT],
}

LOGIN_SCHEMAS: Final = {model.__name__: model.model_json_schema() for model in (StartedLogin, FinishedLogin)}


LOGIN_PATHS: Final = {
    "/api/v1/login": post_operation(
        LOGIN_TAG["name"],
        "start_login",
        "Start a login from a terminal",
        "Needs no Authorization header. Show verification_uri_complete and match_code, then call login/token. The "
        "terms are those of RFC 8628, but bodies are JSON, as in the rest of this API. Send `{}` as the body.",
        {},
        required=(),
        answer="StartedLogin",
        failed=(errors.StoreUnavailable, errors.MessengerUnavailable),
    ),
    "/api/v1/login/token": post_operation(
        LOGIN_TAG["name"],
        "create_login_token",
        "Get the access token of a login",
        "After authorization_pending, call again: with `wait` immediately, otherwise after `interval`. The first call "
        "after the confirmation creates the token for the developer with that messenger account, and only that call "
        f"returns it. The token expires after {TOKEN_DAYS} days.",
        {"device_code": TypeAdapter(DeviceCode).json_schema(), "name": _TOKEN_NAME, "wait": _WAIT},
        required=["device_code"],
        answer="FinishedLogin",
        failed=(
            errors.AuthorizationPending,
            errors.AccessDenied,
            errors.ExpiredToken,
            errors.TooManyAccessTokens,
            errors.SignInNotFound,
            errors.StoreUnavailable,
        ),
    ),
}
