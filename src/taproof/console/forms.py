"""Reads what a form sends."""

from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request

from taproof.core.errors import InvalidRequest, SignedOut
from taproof.http.body.read import body_headers, read_body

_FIELDS: Final = 50


class Form(dict[str, str]):
    """The fields of a form, trimmed; one that was not sent is ""."""

    def __missing__(self, name: str) -> str:
        """Return what a browser sends for nothing: an unchecked box is not sent at all."""
        return ""

    def is_checked(self, name: str) -> bool:
        """Tell whether a box was checked."""
        return self[name] != ""


async def read_form(request: Request) -> Form:
    """Return the fields of an `application/x-www-form-urlencoded` body.

    Raises:
        InvalidRequest: it is no form, not UTF-8, cut short, or not here after ten seconds.
        PayloadTooLarge: more than 16 KiB.
        SignedOut: who sent it was signed in when it began to arrive, and is so no longer.
    """
    content_type, length = body_headers(request.scope["headers"])
    if content_type.partition(b";")[0].strip().lower() != b"application/x-www-form-urlencoded":
        raise InvalidRequest("Send the form from its page in the console.")
    body = await read_body(request.receive, length)
    is_signed_in = getattr(request.state, "is_signed_in", None)  # As `Access.signed_in` has it.
    if is_signed_in is not None and not await is_signed_in():
        raise SignedOut
    try:
        fields = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_FIELDS, encoding="utf-8"
        )
    except ValueError:
        raise InvalidRequest("The form cannot be read: its text is not UTF-8, or it has too many fields.") from None
    return Form((name, value.strip()) for name, value in fields)
