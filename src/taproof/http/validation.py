"""Turn pydantic's validation errors for a body or a query string into plain sentences."""

import re
from collections.abc import Sequence
from typing import Any, Final

# No digits, so that a phone number or a key sent as a name is not repeated in the error.
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_.-]{1,40}")
_SENTENCES: Final = {
    "missing": "{field} is required.",
    "extra_forbidden": "{field} is not a field of this request.",
    "string_type": "{field} must be a string.",
    "bool_type": "{field} must be true or false.",
    "int_type": "{field} must be a whole number.",
    "list_type": "{field} must be a list of strings.",
}
_MUST_BE: Final = {
    "allowed_origins": 'a list of strings, such as ["https://shop.example.com"]; [] allows any page',
    "return_urls": 'a list of strings, such as ["https://app.example.com/return"]',
    "webhook_events": 'a list of strings, such as ["auth.confirmed"]',
    "texts": 'an object, such as {"default": {"prompt_title": "Members area"}}',
    "bot_token": 'a string: the token from @BotFather, or "" to use the service\'s own bot again',
}
"""The expected values of fields for which the type name is not enough."""


def validation_sentence(errors: Sequence[Any]) -> str:
    """Return a sentence about the first invalid field. It repeats only plain names from the caller's data."""
    error = errors[0]
    kind = error["type"]
    # A list's name is followed by the index of the invalid item.
    names = [part for part in error["loc"] if isinstance(part, str)]
    field = names[-1] if names else ""
    if kind == "string_type" and len(names) < len(error["loc"]):
        kind = "list_type"
    if _PLAIN_NAME.fullmatch(field) is None:
        return "The request has an unknown field. Compare it with /docs."
    if kind == "literal_error":
        return f"{field} must be {error['ctx']['expected'].replace(chr(39), '')}."
    if kind in {"string_type", "list_type", "dict_type"} and field in _MUST_BE:
        return f"{field} must be {_MUST_BE[field]}."
    return _SENTENCES.get(kind, "{field} is not valid. Compare it with /docs.").format(field=field)
