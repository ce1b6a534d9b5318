"""Analytics: windows of UTC days, the funnel, and distinct users."""

from typing import TYPE_CHECKING

from taproof.core.clock import DAY
from taproof.service.analytics import conversion_rate

if TYPE_CHECKING:
    from tests.service.conftest import Node


async def test_the_window_ends_at_utc_midnight(node: "Node") -> None:
    """The window includes the first millisecond of its first day and nothing earlier, and all of today."""
    developer, project = await node.owned()
    today = node.clock.now // DAY
    for instant in ((today - 6) * DAY - 1, (today - 6) * DAY, (today + 1) * DAY - 1):
        node.clock.now = instant
        await node.confirmed(project, f"{instant}")
    analytics = await node.analytics.read_analytics(developer, days=7, project_id=None)
    assert [day.counts["requested"] for day in analytics.daily] == [1, 0, 0, 0, 0, 0, 1]
    assert (analytics.totals["requested"], analytics.unique_users) == (2, 2)


async def test_the_funnel_counts_each_step_on_the_day_of_creation(node: "Node") -> None:
    """`confirmed` counts every session that reached confirmed, including used ones; no step counts twice.

    A report is counted in addition to the step that its session had reached.
    """
    developer, project = await node.owned()
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


def test_the_conversion_rate_has_one_decimal() -> None:
    """The rate is a percentage, rounded to one decimal."""
    cases = {(3, 1): 33.3, (3, 2): 66.7, (3, 3): 100.0, (8, 1): 12.5, (0, 0): 0.0}
    for (requested, confirmed), rate in cases.items():
        assert conversion_rate({"requested": requested, "confirmed": confirmed}) == rate


async def test_one_person_in_two_projects_is_one_person(node: "Node") -> None:
    """A person counts once in the total, once in each project, and once on each day."""
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
