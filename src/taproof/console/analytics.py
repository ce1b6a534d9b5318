"""The analytics page and its CSV file: the figures of `GET /api/v1/dev/analytics` as charts and tables."""

import csv
import io
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from taproof.console.access import Access, Visitor
from taproof.console.charts import daily_chart, percent
from taproof.console.rendering import PageRenderer, number
from taproof.core.clock import iso_date
from taproof.core.errors import InvalidRequest
from taproof.service.analytics import COUNTS, Analytics, AnalyticsReader, Window, conversion_rate

WINDOWS: Final[dict[str, Window]] = {"7": 7, "30": 30, "90": 90}
_USUAL: Final = "30"
_FIRST: Final = tuple(name for name in COUNTS if name != "reported")
_FIELDS: Final = ("date", "sessions", *_FIRST[1:], "unique_users", "reported")
"""The columns of the file. Add new columns at the end, because readers can refer to columns by position."""


_FUNNEL: Final = (("requested", "Requested"), ("opened", "Opened"), ("confirmed", "Confirmed"), ("used", "Used"))
"""The steps of a successful sign-in: the name of each count and its label."""


@dataclass(frozen=True, slots=True)
class AnalyticsPages:
    """Shows the outcomes of recent sessions."""

    access: Access
    pages: PageRenderer
    analytics: AnalyticsReader

    def routes(self) -> list[Route]:
        """Return the routes of these pages."""
        return [
            Route("/console/analytics", self.access.signed_in(self._show, across_projects=True)),
            Route("/console/analytics.csv", self.access.signed_in(self._download, across_projects=True)),
        ]

    async def _show(self, request: Request, visitor: Visitor) -> Response:
        days, project_id = _asked(request)
        analytics = await self.analytics.read_analytics(visitor.developer, days=days, project_id=project_id)
        project = next(({"id": id_, "name": name} for id_, name in analytics.projects if id_ == project_id), None)
        chosen = {"project_id": project_id} if project_id else {}
        return await self.pages.render_choice(
            request,
            "analytics.html",
            {
                "analytics": analytics,
                "days": days,
                "project_id": project_id,
                "project": project,
                "windows": [(each, urlencode({"days": each} | chosen)) for each in WINDOWS.values()],
                "csv": urlencode({"days": days} | chosen),
                "daily_chart": daily_chart(analytics),
                "figures": _figures(analytics),
                "steps": _steps(analytics),
                "dates": [(iso_date(day.day), day) for day in analytics.daily],
            },
            analytics.projects,
        )

    async def _download(self, request: Request, visitor: Visitor) -> Response:
        days, project_id = _asked(request)
        analytics = await self.analytics.read_analytics(visitor.developer, days=days, project_id=project_id)
        # Contains only letters, digits, "-" and "_", because the service refuses other project ids.
        parts = ["taproof-analytics", project_id, f"{days}-days-to-{iso_date(analytics.daily[-1].day)}"]
        name = "-".join(part for part in parts if part)
        headers = {"content-disposition": f'attachment; filename="{name}.csv"'}
        return Response(as_csv(analytics), media_type="text/csv; charset=utf-8; header=present", headers=headers)


def as_csv(analytics: Analytics) -> str:
    """Return a CSV file (RFC 4180) with one row per day and no totals row, so that columns can be added up.

    Unique users cannot be added up: a user who signs in on two days counts once in the whole window. No cell contains
    text from users, so no cell can be a spreadsheet formula.
    """
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(_FIELDS)
    for day in analytics.daily:
        counts = [day.counts[name] for name in _FIRST]
        rows.writerow([iso_date(day.day), *counts, day.unique_users, day.counts["reported"]])
    return text.getvalue()


def _asked(request: Request) -> tuple[Window, str | None]:
    days = request.query_params.get("days") or _USUAL
    if days not in WINDOWS:
        raise InvalidRequest("Choose a period: 7, 30 or 90 days.")
    return WINDOWS[days], request.query_params.get("project_id") or None


def _steps(analytics: Analytics) -> list[tuple[str, int, str]]:
    """Return a sign-in's steps and outcomes, each with its label, its sessions, and its share of all sessions."""
    named = (*_FUNNEL, ("cancelled", "Cancelled"), ("expired", "Expired"), ("reported", "Reported"))
    requested = analytics.totals["requested"]
    counted = [(words, analytics.totals[name]) for name, words in named]
    return [(words, count, percent(100 * count / requested if requested else 0.0)) for words, count in counted]


def _figures(analytics: Analytics) -> list[tuple[str, str, str]]:
    """Return each figure's label, its value, and how it changed from the period before.

    Distinct users are counted up to now, so their number in the period before is not known.
    """
    now, before = analytics.totals, analytics.before
    rate, rate_before = analytics.conversion_rate, conversion_rate(before)
    points = f"{rate - rate_before:+.1f} points".replace("-", "\N{MINUS SIGN}") if before["requested"] else ""
    return [
        ("Sessions", number(now["requested"]), change(now["requested"], before["requested"])),
        ("Confirmed", number(now["confirmed"]), change(now["confirmed"], before["confirmed"])),
        ("Conversion", percent(rate), points),
        ("Unique users", number(analytics.unique_users), ""),
        ("Reported", number(now["reported"]), change(now["reported"], before["reported"])),
    ]


def change(now: int, before: int) -> str:
    """Return the change of a count since the previous period, in percent, or a text if there is none to compare."""
    if now == before:
        return "no change"
    if not before:
        return "none before"
    return f"{round(100 * (now - before) / before):+,}%".replace("-", "\N{MINUS SIGN}")
