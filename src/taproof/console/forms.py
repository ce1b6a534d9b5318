"""Read form fields."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request

from taproof.core.errors import InvalidRequest, SignedOut, TaproofError
from taproof.http.body import body_headers, read_body

_FIELDS: Final = 50


class Form(dict[str, str]):
    """A form's fields, trimmed; a field that was not sent is ""."""

    def __missing__(self, name: str) -> str:
        """Return "" for a missing field: browsers do not send unchecked boxes."""
        return ""

    def is_checked(self, name: str) -> bool:
        """Return whether a box was checked."""
        return self[name] != ""


async def read_form(request: Request) -> Form:
    """Return the fields of an `application/x-www-form-urlencoded` body.

    Raise SignedOut if the visitor was signed out while the form was arriving, InvalidRequest if the body is no form in
    UTF-8, and the errors of `body_headers` and `read_body`.
    """
    content_type, length = body_headers(request.scope["headers"])
    if content_type.partition(b";")[0].strip().lower() != b"application/x-www-form-urlencoded":
        raise InvalidRequest("Send the form from its page in the console.")
    body = await read_body(request.receive, length)
    is_signed_in = getattr(request.state, "is_signed_in", None)  # Set by `Access.signed_in`.
    if is_signed_in is not None and not await is_signed_in():
        raise SignedOut
    try:
        fields = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_FIELDS, encoding="utf-8"
        )
    except ValueError:
        raise InvalidRequest("The form cannot be read. Its text is not UTF-8, or it has too many fields.") from None
    return Form((name, value.strip()) for name, value in fields)


def in_words(error: TaproofError, labels: Mapping[str, str]) -> str:
    """Return an API error's sentence with the form's label of the field that it begins with."""
    for field, label in labels.items():
        if error.sentence.startswith(field):
            return label + error.sentence.removeprefix(field)
    return error.sentence
