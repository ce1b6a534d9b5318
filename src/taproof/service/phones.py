"""Phone numbers as they are stored: in E.164 format (ITU-T), such as +4915123456789."""

import re
from typing import Final

import phonenumbers

from taproof.contract.session import PHONE

_E164: Final = re.compile(PHONE.pattern)


def e164_number(text: str) -> str | None:
    """Return a messenger's phone number in E.164 format; None if it is not a valid number.

    Messengers send the number with its country code, some without the leading plus sign. The first number of a country
    loads its rules from a file, so call this in a thread.
    """
    text = text.strip()
    if not text.isascii() or len(text) > 32:
        return None
    try:
        number = phonenumbers.parse(text if text.startswith("+") else f"+{text}", None)
    except phonenumbers.NumberParseException:
        return None
    if number.extension or not phonenumbers.is_possible_number(number):
        return None
    written = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
    # The library also accepts numbers that are too short or too long for E.164. SDKs refuse a proof with such a number.
    return written if _E164.fullmatch(written) else None
