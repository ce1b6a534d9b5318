"""The developer's list of sessions, page by page."""

import base64
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taproof.core.errors import InvalidRequest
from taproof.service.paging import read_cursor

if TYPE_CHECKING:
    from tests.service.conftest import Node


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


async def test_pages_lead_through_all_of_a_developers_projects(node: "Node") -> None:
    """Sessions are newest first over all projects; the last page has no cursor, even when it is exactly full."""
    developer = await node.developer()
    projects = [(await node.project(developer))[0] for _ in range(2)]
    foreign, _ = await node.project()
    await node.pending(foreign)
    for number in range(10):
        node.clock.now += number % 2
        await node.pending(projects[number % 2])
    for limit, pages in ((1, 10), (3, 4), (5, 2), (10, 1), (200, 1)):
        found, cursor, count = [], None, 0
        while True:
            page = await node.session_reader.list_sessions(
                developer, project_id=None, status=None, limit=limit, cursor=cursor
            )
            found += page.sessions
            count += 1
            cursor = page.next_cursor
            if cursor is None:
                break
        assert count == pages
        assert [session.created_at for session in found] == sorted((s.created_at for s in found), reverse=True)
        assert len({session.id for session in found}) == len(found) == 10


def test_garbage_for_a_cursor_is_an_invalid_request(subtests: pytest.Subtests) -> None:
    """Invalid cursors and those of another list are refused; the sentence names the field."""
    for cursor in (
        *("", "x", "=", "====", "é", "\ud800", "\0", encoded("1.sess_1") + "!", "A" * 1_000_000),
        *map(encoded, ("1", "sess_1", "1.proj_1", "1.evt_1", "1.sess_", "1.sess_\0", "1.sess_1\n", ".sess_1")),
        *map(encoded, ("-1.sess_1", "1e5.sess_1", "١.sess_1", "9" * 16 + ".sess_1", "9" * 5_000 + ".sess_1")),
    ):
        with subtests.test(cursor=cursor[:40]), pytest.raises(InvalidRequest, match=r"^cursor "):
            read_cursor(cursor, "sess")


@given(st.text() | st.binary().map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_no_cursor_makes_the_parser_fail(cursor: str) -> None:
    """Any text is either a cursor or an invalid request."""
    try:
        created_at, session_id = read_cursor(cursor, "sess")
    except InvalidRequest:
        return
    assert 0 <= created_at < 10**15
    assert session_id.startswith("sess_")
