"""Describe one plain ASGI endpoint in the OpenAPI document. FastAPI describes the others."""

from collections.abc import Sequence
from typing import Any

from taproof.api.openapi.failures import ErrorClass, failures
from taproof.core import errors


def text(description: str, example: str, **limits: Any) -> dict[str, Any]:
    """Return the JSON Schema of a text."""
    return {"type": "string", **limits, "description": description, "examples": [example]}


def post_operation(
    tag: str,
    verb: str,
    summary: str,
    description: str,
    fields: dict[str, Any],
    *,
    required: Sequence[str],
    answer: str,
    failed: Sequence[ErrorClass],
    secured_with: str | None = None,
    headers: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the path item for a POST with a JSON body.

    Args:
        tag: the group on the reference page.
        verb: the operation's id.
        summary: the first sentence of the description, without its period.
        description: the rest of the description.
        fields: the schema of each body field.
        required: the names of the required fields. The example contains only these.
        answer: the name of the response schema.
        failed: its errors, in addition to those of every POST.
        secured_with: the security scheme; None for a public endpoint.
        headers: further response headers.
    """
    schema: dict[str, Any] = {"type": "object", "properties": fields}
    if required:
        schema["required"] = list(required)
    example = {name: fields[name]["examples"][0] for name in required}
    success = {
        "description": "Successful Response",
        "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{answer}"}}},
    }
    return {
        "post": {
            "tags": [tag],
            "summary": summary,
            "description": f"{summary}. {description}",
            "operationId": verb,
            "security": [] if secured_with is None else [{secured_with: []}],
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": schema, "example": example}},
            },
            "responses": {
                "200": success if headers is None else success | {"headers": headers},
                **failures(*failed, errors.PayloadTooLarge, errors.UnsupportedContentEncoding, errors.RateLimited),
            },
        }
    }
