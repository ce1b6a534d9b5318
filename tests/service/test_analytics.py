"""Analytics: windows of UTC days, the funnel, and people who are counted once."""

from typing import TYPE_CHECKING

import pytest
from tests.service.conftest import acting

from taproof.core.clock import DAY
from taproof.core.errors import InvalidRequest, ProjectNotFound
from taproof.service.analytics import Window

if TYPE_CHECKING:
    from tests.service.conftest import Node


@pytest.mark.parametrize("days", [7, 30, 90])
async def test_every_day_of_the_window_is_there_and_today_is_last(node: "Node", days: Window) -> None:
    """Also on the first day of an account, with nothing to count."""
    analytics = await node.analytics.read_analytics(await node.developer(), days=days, project_id=None)
    today = node.clock.now // DAY
    assert [day.day for day in analytics.daily] == list(range(today - days + 1, today + 1))
    assert set(analytics.totals.values()) == {0}
    assert (analytics.unique_users, analytics.conversion_rate, analytics.projects) == (0, 0.0, [])


async def test_the_window_ends_at_utc_midnight(node: "Node") -> None:
    """The first millisecond of the first day is in, the last one of the day before is not; today counts whole."""
    developer = await node.developer()
    project, _ = await node.project(developer)
    today = node.clock.now // DAY
    for instant in ((today - 6) * DAY - 1, (today - 6) * DAY, (today + 1) * DAY - 1):
        node.clock.now = instant
        await node.confirmed(project, f"{instant}")
    analytics = await node.analytics.read_analytics(developer, days=7, project_id=None)
    assert [day.counts["requested"] for day in analytics.daily] == [1, 0, 0, 0, 0, 0, 1]
    assert (analytics.totals["requested"], analytics.unique_users) == (2, 2)


async def test_the_funnel_counts_each_step_on_the_day_of_creation(node: "Node") -> None:
    """`confirmed` counts every session that reached confirmed, also those that were used; no step counts twice.

    A report counts as such, beside the step that its session had reached.
    """
    developer = await node.developer()
    project, _ = await node.project(developer)
    await node.pending(project)
    await node.opened(project)
    cancelled = await node.opened(project)
    await node.signin.cancel_session(cancelled, "1001")
    await node.confirmed(project)
    used = await node.confirmed(project)
    await node.signin.verify_session(project.id, used, public=True)
    await node.signin.report_session(await node.opened(project), "1001")
    await node.signin.report_session(used, "1001")
    node.clock.now += DAY
    await node.housekeeping.sweep()
    for project_id in (None, project.id):
        analytics = await node.analytics.read_analytics(developer, days=7, project_id=project_id)
        expected = {"requested": 6, "opened": 5, "confirmed": 2, "used": 1, "cancelled": 2, "expired": 2, "reported": 2}
        assert analytics.totals == expected
        assert analytics.daily[-2].counts == expected
        assert analytics.daily[-1].counts == dict.fromkeys(expected, 0)
        assert analytics.conversion_rate == 33.3
        assert analytics.projects == [(project.id, "Shop")]


@pytest.mark.parametrize(("requested", "confirmed", "rate"), [(3, 1, 33.3), (3, 2, 66.7), (3, 3, 100.0), (8, 1, 12.5)])
async def test_the_conversion_rate_has_one_decimal(node: "Node", requested: int, confirmed: int, rate: float) -> None:
    """A percentage, rounded."""
    developer = await node.developer()
    project, _ = await node.project(developer)
    for number in range(requested):
        await (node.confirmed(project) if number < confirmed else node.pending(project))
    assert (await node.analytics.read_analytics(developer, days=30, project_id=None)).conversion_rate == rate


async def test_one_person_in_two_projects_is_one_person(node: "Node") -> None:
    """Over all projects once, in each project once, on each day once."""
    developer = await node.developer()
    one, two = (await node.project(developer))[0], (await node.project(developer))[0]
    await node.confirmed(one, "1001")
    await node.confirmed(two, "1001")
    await node.confirmed(two, "1002")
    node.clock.now += DAY
    await node.confirmed(two, "1001")
    everywhere = await node.analytics.read_analytics(developer, days=7, project_id=None)
    assert everywhere.unique_users == 2
    assert [day.unique_users for day in everywhere.daily[-2:]] == [2, 1]
    for project, users, daily in ((one, 1, [1, 0]), (two, 2, [2, 1])):
        analytics = await node.analytics.read_analytics(developer, days=7, project_id=project.id)
        assert analytics.unique_users == users
        assert [day.unique_users for day in analytics.daily[-2:]] == daily


async def test_people_of_before_the_window_are_not_in_it(node: "Node") -> None:
    """Somebody who came before and comes again is in it once."""
    developer = await node.developer()
    project, _ = await node.project(developer)
    await node.confirmed(project, "1001")
    await node.confirmed(project, "1002")
    node.clock.now += 7 * DAY
    await node.confirmed(project, "1001")
    for project_id in (None, project.id):
        week = await node.analytics.read_analytics(developer, days=7, project_id=project_id)
        month = await node.analytics.read_analytics(developer, days=30, project_id=project_id)
        assert (week.unique_users, month.unique_users) == (1, 2)


async def test_foreign_and_malformed_projects_are_refused(node: "Node") -> None:
    """Nobody reads another developer's numbers, nor counts in them."""
    developer = await node.developer()
    foreign, _ = await node.project()
    await node.confirmed(foreign)
    with pytest.raises(ProjectNotFound):
        await node.analytics.read_analytics(developer, days=7, project_id=foreign.id)
    with pytest.raises(InvalidRequest):
        await node.analytics.read_analytics(developer, days=7, project_id="x")
    assert (await node.analytics.read_analytics(developer, days=7, project_id=None)).unique_users == 0


async def test_a_deleted_project_leaves_the_numbers(node: "Node") -> None:
    """Once housekeeping has been there, nothing of it is in any figure."""
    developer = await node.developer()
    kept, deleted = (await node.project(developer))[0], (await node.project(developer))[0]
    await node.confirmed(kept, "1001")
    await node.confirmed(deleted, "1001")
    await node.confirmed(deleted, "1002")
    await node.projects.delete_project(acting(developer), deleted.id)
    while await node.housekeeping.sweep():
        pass
    analytics = await node.analytics.read_analytics(developer, days=7, project_id=None)
    assert (analytics.totals["requested"], analytics.unique_users, analytics.daily[-1].unique_users) == (1, 1, 1)
    assert analytics.projects == [(kept.id, "Shop")]
