"""Turn the errors that pydantic finds in a body or a query into plain sentences."""

import re
from collections.abc import Sequence
from typing import Any, Final

# Without digits, so that a phone number or a key in the place of a name is not repeated.
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
    "bot_token": 'a string: the token that @BotFather gave, or "" to go back to the service\'s own bot',
}
"""The expected values of fields, where the name of the type alone does not say enough."""


def validation_sentence(errors: Sequence[Any]) -> str:
    """Return the sentence about the first wrong field. Of the caller's data, it repeats only plain names."""
    error = errors[0]
    kind = error["type"]
    # The name of a list is followed by the index of the wrong item.
    names = [part for part in error["loc"] if isinstance(part, str)]
    field = names[-1] if names else ""
    if kind == "string_type" and len(names) < len(error["loc"]):
        kind = "list_type"
    if _PLAIN_NAME.fullmatch(field) is None:
        return "The request has a field that is not known here. Compare it with /docs."
    if kind == "literal_error":
        return f"{field} must be {error['ctx']['expected'].replace(chr(39), '')}."
    if kind in {"string_type", "list_type"} and field in _MUST_BE:
        return f"{field} must be {_MUST_BE[field]}."
    return _SENTENCES.get(kind, "{field} is not valid. Compare it with /docs.").format(field=field)
