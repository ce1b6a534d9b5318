"""Test the parts that all lists of the console share: breadcrumbs, filter chips, linked rows, relative times."""

import threading
from typing import Any

import pytest
from tests.console.browsing import Shown, text_of
from tests.console.conftest import ADA, GRACE, Installation, Visitor

from taproof.console.rendering import PageRenderer, relative_time
from taproof.core.clock import DAY, HOUR, MINUTE, SECOND
from taproof.core.projects import Project

NOW = 1_795_003_200_000
"""2026-11-18T12:00:00Z."""
DISTANCES = {
    0: "now",
    -4 * SECOND: "now",
    -12 * SECOND: "12 s ago",
    -59 * MINUTE: "59 min ago",
    -HOUR: "1 h ago",
    -23 * HOUR: "23 h ago",
    -DAY: "1 day ago",
    -29 * DAY: "29 days ago",
    -30 * DAY: "19 Oct 2026",
    5 * MINUTE: "in 5 min",
    2 * DAY: "in 2 days",
    7 * DAY - MINUTE: "in 7 days",
    DAY + HOUR: "in 1 day",
    DAY - MINUTE: "in 1 day",
    HOUR - 10 * SECOND: "in 1 h",
    30 * DAY - MINUTE: "in 30 days",
    365 * DAY: "18 Nov 2027",
}


def test_relative_times() -> None:
    """A time is in its largest unit, before and after now, and a date from 30 days on. Only the future is rounded."""
    words = {distance: relative_time(NOW + distance, NOW).replace("\xa0", " ") for distance in DISTANCES}
    assert words == DISTANCES


def trail(shown: Shown) -> list[tuple[str, str]]:
    """Return the labels and paths of the links that lead to a page."""
    links = shown.all(".//nav[@aria-label='Breadcrumb']//a")
    return [(text_of(link), link.get("href", "")) for link in links]


async def test_the_way_to_a_page(visitor: Visitor, console: Installation, project: Project) -> None:
    """A page below another one has the links that lead to it; the pages of a project have its tabs as well."""
    await visitor.confirm(project.id)
    listed = await visitor.get("/console/sessions")
    session = listed.one(".//tbody//th/a").get("href", "")
    own = f"/console/projects/{project.id}"
    projects, sessions = ("Projects", "/console/projects"), ("Sessions", "/console/sessions")
    cases = {
        "/console/projects": [],
        "/console/sessions": [],
        session: [sessions],
        own: [projects],
        f"{own}/members": [projects, ("Shop", own)],
        f"{own}/users": [projects, ("Shop", own)],
        f"{own}/users/{ADA.messenger_id}": [projects, ("Shop", own), ("Users", f"{own}/users")],
        f"/console/sessions?project_id={project.id}": [projects, ("Shop", own)],
    }
    found = {path: trail(await visitor.get(path)) for path in cases}
    assert found == cases
    current = {path: (await visitor.get(path)).texts(".//a[@aria-current]") for path in cases}
    assert current[f"{own}/users/{ADA.messenger_id}"] == ["Projects", "Users"]
    assert current[f"/console/sessions?project_id={project.id}"] == ["Projects", "Sessions"]
    assert current["/console/sessions"] == ["Sessions"]


async def test_a_filter_is_a_chip(visitor: Visitor, project: Project) -> None:
    """A chip shows what is chosen in words; its cross removes this filter and keeps the others."""
    path = "/console/sessions"
    shown = await visitor.get(path)
    assert shown.texts(".//summary") == ["Project", "Status", "Time", "Messenger id"]
    assert not shown.all(".//a[@class='chip remove']")
    chosen = {"project_id": project.id, "status": "used", "since": "2026-11-18T10:00"}
    shown = await visitor.get(path, **chosen)
    assert shown.texts(".//summary") == ["Project: Shop", "Status: Used", "Time: from 2026-11-18 10:00", "Messenger id"]
    removed = [link.get("href", "") for link in shown.all(".//a[@class='chip remove']")]
    assert removed[1] == f"{path}?project_id={project.id}&since=2026-11-18T10%3A00"
    assert ["status=used" in link for link in removed] == [True, False, True]
    assert shown.one(".//a[@class='clear']").get("href") == path
    audit = await visitor.get("/console/audit", project_id=project.id)
    assert audit.texts(".//summary") == ["Project: Shop"]
    assert (await visitor.get("/console/audit", project_id="")).texts(".//summary") == ["Project"]


async def test_users_are_filtered_by_id(visitor: Visitor, console: Installation, project: Project) -> None:
    """The filter finds one user of the project; a wrong id is kept and gets a sentence, above all users."""
    for who in (ADA, GRACE):
        await visitor.confirm(project.id, who)
    users = f"/console/projects/{project.id}/users"
    shown = await visitor.get(users, messenger_id=ADA.messenger_id)
    assert [row[1] for row in shown.rows()] == [ADA.messenger_id]
    none = await visitor.get(users, messenger_id="9")
    assert "No user matches" in none.text
    wrong = await visitor.get(users, messenger_id="ada")
    assert wrong.status == 400
    assert wrong.alert.startswith("A messenger id has only digits")
    assert sorted(row[1] for row in wrong.rows()) == sorted([ADA.messenger_id, GRACE.messenger_id])
    assert wrong.texts(".//summary") == ["Messenger id"]
    assert wrong.fields(users)["messenger_id"] == "ada"


async def test_a_choice_of_very_many_projects_is_rendered_beside_the_loop(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A developer may be a member of 2,000 projects, and rendering their names takes tens of milliseconds."""
    threads: list[bool] = []
    render = PageRenderer.render

    def noting(*values: Any, **named: Any) -> Any:
        threads.append(threading.current_thread() is threading.main_thread())
        return render(*values, **named)

    monkeypatch.setattr(PageRenderer, "render", noting)
    for count, on_loop in ((1, True), (101, False)):
        for number in range(count):
            await visitor.create_project(f"Shop {number}")
        threads.clear()
        for path in ("sessions", "analytics", "audit"):
            assert "Shop 0" in (await visitor.get(f"/console/{path}")).html
        assert threads == [on_loop] * 3
