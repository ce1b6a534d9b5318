"""Describe the responses to failed requests in the OpenAPI document."""

from typing import Any, Final

from taproof.core import errors

ErrorClass = type[errors.TaproofError]
_ALWAYS: Final = (errors.HttpsRequired, errors.HostRequired, errors.MethodNotAllowed, errors.InternalError)
FAILURE_SCHEMAS: Final[dict[str, Any]] = {
    "Error": {
        "type": "object",
        "description": "The body of every failed request.",
        "properties": {"error": {"type": "string", "minLength": 1, "description": "The problem, and how to solve it."}},
        "required": ["error"],
        "additionalProperties": False,
    },
}


def failures(*possible: ErrorClass) -> dict[str, Any]:
    """Return an operation's `responses` entries for these errors and those of every operation, ordered by status."""
    all_possible: list[ErrorClass] = [errors.InvalidRequest, *possible, *_ALWAYS]
    by_status: dict[int, list[ErrorClass]] = {}
    for error in all_possible:
        by_status.setdefault(error.status, []).append(error)
    return {str(status): _failure(found) for status, found in sorted(by_status.items())}


def share_failures(paths: dict[str, Any]) -> dict[str, Any]:
    """Replace the failures in all operations by references; return `components.responses`, to which they lead."""
    shared: dict[str, Any] = {}
    for operation in (each for operations in paths.values() for each in operations.values()):
        for status, response in operation["responses"].items():
            if "X-Error-Code" in response.get("headers", {}):
                name = "_or_".join(response["content"]["application/json"]["examples"])
                shared[name] = response
                operation["responses"][status] = {"$ref": f"#/components/responses/{name}"}
    return shared


def _failure(possible: list[ErrorClass]) -> dict[str, Any]:
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
