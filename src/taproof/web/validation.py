"""Says in plain words what is wrong with a body or a query, from what pydantic found."""

import re
from collections.abc import Sequence
from typing import Any, Final

# Without digits: a phone number or a key that was put in the place of a name is not repeated.
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_.-]{1,40}")
_SENTENCES: Final = {
    "missing": "{field} is required.",
    "extra_forbidden": "{field} is not a field of this request.",
    "string_type": "{field} must be a string.",
    "bool_type": "{field} must be true or false.",
    "int_type": "{field} must be a whole number.",
}


def validation_sentence(errors: Sequence[Any]) -> str:
    """Return the sentence about the first wrong field. What the caller sent is never repeated, but for plain names."""
    error = errors[0]
    field = str(error["loc"][-1]) if error["loc"] else ""
    if _PLAIN_NAME.fullmatch(field) is None:
        return "The request has a field that is not known here. Compare it with /docs."
    if error["type"] == "literal_error":
        return f"{field} must be {error['ctx']['expected'].replace(chr(39), '')}."
    return _SENTENCES.get(error["type"], "{field} is not valid. Compare it with /docs.").format(field=field)
