"""The position in a list that is read page by page."""

from typing import NamedTuple


class PageCursor(NamedTuple):
    """The position of a page's last item in a list, newest first. The next page starts strictly after it."""

    created_at: int
    id: str
