"""Cursors: the position at which a page of a newest-first list ended, as text that the client sends back."""

import base64
import binascii
import re
from typing import Final

from taproof.core.errors import InvalidRequest
from taproof.core.page_cursor import PageCursor

_CURSOR: Final = re.compile(r"([0-9]{1,15})\.([a-z]+_[A-Za-z0-9]{1,40})")


def write_cursor(created_at: int, item_id: str) -> str:
    """Return the cursor of a page whose last item was created at `created_at` (ms)."""
    return base64.urlsafe_b64encode(f"{created_at}.{item_id}".encode()).rstrip(b"=").decode()


def read_cursor(cursor: str, prefix: str) -> PageCursor:
    """Return the position that `cursor` encodes. `prefix` is the prefix of the items' ids, such as "sess".

    Raise InvalidRequest if `cursor` is not that of a page of such items.
    """
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        text = ""
    found = _CURSOR.fullmatch(text)
    if found is None or not found[2].startswith(f"{prefix}_"):
        raise InvalidRequest("cursor must be the next_cursor of the previous page.")
    return PageCursor(int(found[1]), found[2])
