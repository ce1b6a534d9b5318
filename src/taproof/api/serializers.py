"""Turn service results into developer API responses. Only fields named here are shown."""

from taproof.api import schemas
from taproof.core.attempt_errors import attempt_error, attempt_sentence
from taproof.core.clock import iso8601, iso_date
from taproof.core.deliveries import Attempt
from taproof.service.analytics import Analytics
from taproof.service.deliveries import SeenDelivery


def delivery(found: SeenDelivery) -> schemas.DeliveryAnswer:
    """Return a delivery."""
    record = found.record
    waits = record.state == "due" and not found.sending
    return schemas.DeliveryAnswer(
        id=record.event_id,
        event=record.type,
        project_id=record.project_id,
        session_id=record.session_id,
        status=record.state,
        created_at=iso8601(record.created_at),
        next_attempt_at=iso8601(record.due_at) if waits else None,
        sending=found.sending,
        finished_at=None if record.finished_at is None else iso8601(record.finished_at),
        interrupted_attempts=record.interrupted,
        attempts=[_attempt(*each) for each in zip(record.attempts, found.answers, strict=True)],
    )


def _attempt(found: Attempt, answer: str | None) -> schemas.AttemptAnswer:
    return schemas.AttemptAnswer(
        number=found.number,
        started_at=iso8601(found.started_at),
        duration_ms=found.duration,
        status=found.status,
        error=attempt_sentence(found.status, found.error),
        error_code=attempt_error(found.status, found.error),
        answer=answer,
    )


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
