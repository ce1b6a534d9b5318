"""The developer's list of sessions, page by page."""

import base64
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taproof.core.errors import InvalidRequest, ProjectNotFound
from taproof.service.paging import read_cursor

if TYPE_CHECKING:
    from tests.service.conftest import Node


def encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


async def test_pages_lead_through_all_of_a_developers_projects(node: "Node") -> None:
    """Newest first over all projects; the last page has no cursor, also when it is exactly full."""
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


async def test_filters_keep_to_project_and_status(node: "Node") -> None:
    """As a reader sees it: a session is expired from the instant on."""
    developer = await node.developer()
    one, two = (await node.project(developer))[0], (await node.project(developer))[0]
    await node.pending(one)
    await node.confirmed(two)

    async def count(project_id: str | None, status: str | None) -> int:
        page = await node.session_reader.list_sessions(
            developer,
            project_id=project_id,
            status=status,  # type: ignore[arg-type]
            limit=50,
            cursor=None,
        )
        return len(page.sessions)

    assert [await count(each, None) for each in (None, one.id, two.id)] == [2, 1, 1]
    assert [await count(None, status) for status in ("pending", "confirmed", "expired", "used")] == [1, 1, 0, 0]
    node.clock.now += 600_000
    assert [await count(None, status) for status in ("pending", "confirmed", "expired", "used")] == [0, 1, 1, 0]
    assert await count(two.id, "expired") == 0


async def test_a_developer_without_projects_has_an_empty_list(node: "Node") -> None:
    """No error, no cursor."""
    page = await node.session_reader.list_sessions(
        await node.developer(), project_id=None, status=None, limit=50, cursor=None
    )
    assert (page.sessions, page.next_cursor) == ([], None)


async def test_foreign_and_malformed_projects_are_refused(node: "Node") -> None:
    """404 for another developer's, 400 for what is no id."""
    developer = await node.developer()
    foreign, _ = await node.project()
    for project_id in (foreign.id, "proj_" + "0" * 22):
        with pytest.raises(ProjectNotFound):
            await node.session_reader.list_sessions(developer, project_id=project_id, status=None, limit=1, cursor=None)
    for project_id in ("", "x", "proj_\ud800"):
        with pytest.raises(InvalidRequest, match=r"^project_id "):
            await node.session_reader.list_sessions(developer, project_id=project_id, status=None, limit=1, cursor=None)


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "=",
        "====",
        "é",
        "\ud800",
        "\0",
        encoded("1"),
        encoded("sess_1"),
        encoded("1.proj_1"),
        encoded("1.evt_1"),
        encoded("1.sess_"),
        encoded("1.sess_\0"),
        encoded("1.sess_1\n"),
        encoded(".sess_1"),
        encoded("-1.sess_1"),
        encoded("1e5.sess_1"),
        encoded("١.sess_1"),
        encoded("9" * 16 + ".sess_1"),
        encoded("9" * 5_000 + ".sess_1"),
        encoded("1.sess_1") + "!",
        "A" * 1_000_000,
    ],
)
async def test_garbage_for_a_cursor_is_an_invalid_request(node: "Node", cursor: str) -> None:
    """The sentence names the field."""
    developer = await node.developer()
    with pytest.raises(InvalidRequest, match=r"^cursor "):
        await node.session_reader.list_sessions(developer, project_id=None, status=None, limit=1, cursor=cursor)


@given(st.text() | st.binary().map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_no_cursor_makes_the_parser_fail(cursor: str) -> None:
    """Any text is a cursor or an invalid request."""
    try:
        created_at, session_id = read_cursor(cursor, "sess")
    except InvalidRequest:
        return
    assert 0 <= created_at < 10**15
    assert session_id.startswith("sess_")
