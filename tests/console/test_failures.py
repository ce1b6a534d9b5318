"""Failures are shown as a page of the console, never as the server's own plain 500."""

from typing import Any

import pytest
from tests.console.browsing import Shown
from tests.console.conftest import Installation, Visitor

from taproof.console.guard import SECURITY_HEADERS
from taproof.console.rendering import PageRenderer
from taproof.core.errors import InvalidRequest, StoreUnavailable
from taproof.core.projects import Project
from taproof.http.errors import NO_PAGE

SECRET = "con_of_somebody"


def fail_with(error: Exception) -> Any:
    async def fail(*_: object, **__: object) -> None:
        raise error

    return fail


class AwayPart:
    """A part of a store; each of its methods fails."""

    def __init__(self, fail: Any) -> None:
        self._fail = fail

    def __getattr__(self, _name: str) -> Any:
        return self._fail


def store_away(console: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every method of the store and of its parts fail."""
    fail = fail_with(StoreUnavailable("disk " + SECRET))
    for name in dir(console.storage):
        if not name.startswith("_") and name != "close":
            part = getattr(console.storage, name)
            monkeypatch.setattr(console.storage, name, fail if callable(part) else AwayPart(fail))


@pytest.mark.parametrize("path", ["/console/projects", "/console/nowhere", "/console/sign-in", "/console/audit"])
async def test_an_unavailable_store_is_reported_on_a_page(
    visitor: Visitor, console: Installation, monkeypatch: pytest.MonkeyPatch, capsys: Any, path: str
) -> None:
    """The page has status 503 and Retry-After, as in the API, and the console's headers; no bug is logged."""
    with monkeypatch.context() as away:
        store_away(console, away)
        shown = await visitor.get(path)
    assert (shown.status, shown.heading) == (503, "Something went wrong")
    assert shown.response.headers["retry-after"] == "1"
    assert SECRET not in shown.html
    assert not shown.all(".//nav"), "nobody could say who asks"
    for name, value in SECURITY_HEADERS:
        assert shown.response.headers.get_list(name.decode()) == [value.decode()]
    assert capsys.readouterr() == ("", "")
    assert (await visitor.get("/console/projects")).status == 200


async def test_not_found_says_who_is_signed_in(
    console: Installation, visitor: Visitor, stranger: Visitor, project: Project
) -> None:
    """The page about another developer's object says so; the page about an unknown address does not."""
    theirs = await stranger.get(f"/console/projects/{project.id}")
    assert theirs.status == 404
    assert "It may belong to another developer. You are signed in as grace@example.com." in theirs.text
    nowhere = await stranger.get("/console/nowhere")
    assert (nowhere.status, "another developer" in nowhere.text) == (404, False)


async def test_a_bug_is_a_page_and_one_line(
    visitor: Visitor, console: Installation, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Neither the page nor the log contains anything of the error's message."""
    monkeypatch.setattr(console.storage.projects, "name_projects", fail_with(RuntimeError(SECRET)))
    shown = await visitor.get("/console/projects")
    assert (shown.status, shown.heading) == (500, "Something went wrong")
    output = "".join(capsys.readouterr())
    assert output.count("internal_error") == 1
    assert SECRET not in shown.html + output


@pytest.mark.parametrize("error", [RuntimeError(SECRET), StoreUnavailable(SECRET), InvalidRequest("\ud800" + SECRET)])
async def test_a_failure_page_that_fails_is_still_answered(
    visitor: Visitor, console: Installation, monkeypatch: pytest.MonkeyPatch, capsys: Any, error: Exception
) -> None:
    """No exception reaches the server, which would log its message.

    The answer is the API's, with the console's headers.

    But for the policy: that of an answer which is no page allows nothing at all.
    """

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(console.storage.projects, "list_projects", fail_with(error))
    monkeypatch.setattr(PageRenderer, "render", fail)
    answer = await visitor.client.get("/console/projects")
    assert answer.status_code == 500
    assert set(answer.json()) == {"error"}
    for name, value in dict([*SECURITY_HEADERS, *NO_PAGE]).items():
        assert answer.headers.get_list(name.decode()) == [value.decode()]
    assert SECRET not in answer.text + "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("path", "host"),
    [
        ("/console/%ff", b"console.example"),
        ("/console/%ed%a0%80", b"console.example"),
        ("/console//%5b", b"console.example"),
        ("/console/nowhere?%ff", b"console.example"),
        ("/console/nowhere", b"["),
        ("/console/nowhere", b"[::1"),
        ("/console/nowhere", b"a:99999999"),
        ("/console/nowhere", b"\xff"),
        ("/console/nowhere", b""),
    ],
)
async def test_odd_addresses_are_not_found(visitor: Visitor, path: str, host: bytes) -> None:
    """The page can be made for any path and any Host header."""
    request = visitor.client.build_request("GET", path, headers=[(b"host", host)])
    shown = Shown(await visitor.client.send(request))
    assert (shown.status, shown.heading) == (404, "Not found")
