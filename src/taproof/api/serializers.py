"""Turn service results into developer API responses. Only fields named here are shown."""

from taproof.api import schemas
from taproof.core.clock import iso_date
from taproof.service.analytics import Analytics


def analytics(found: Analytics) -> schemas.AnalyticsAnswer:
    """Return analytics."""
    return schemas.AnalyticsAnswer(
        total_sessions=found.totals["requested"],
        confirmed_sessions=found.totals["confirmed"],
        unique_users=found.unique_users,
        conversion_rate=found.conversion_rate,
        daily=[
            schemas.DayAnswer(
                date=iso_date(day.day), sessions=day.counts["requested"], unique_users=day.unique_users, **day.counts
            )
            for day in found.daily
        ],
        funnel=schemas.FunnelAnswer(**found.totals),
        projects=[schemas.ProjectNameAnswer(id=project_id, name=name) for project_id, name in found.projects],
    )
