"""The session pages: the list with its filters, and one session with its steps in plain words."""

import hashlib
from dataclasses import asdict, dataclass, fields
from typing import Final, NamedTuple, Self, get_args
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from taproof.console.access import Access, Visitor
from taproof.console.forms import read_form
from taproof.console.rendering import PageRenderer
from taproof.contract.session import SignInStatus
from taproof.core.accounts import Developer
from taproof.core.attempt_errors import attempt_sentence
from taproof.core.clock import MINUTE, SECOND, Clock
from taproof.core.errors import InvalidRequest, ProjectNotFound, SessionNotFound
from taproof.core.identifiers import session_created_at
from taproof.core.sessions import Session
from taproof.core.timeline import outcome_sentence, timeline
from taproof.http.instants import read_instant
from taproof.service.deliveries import Deliveries, SeenDelivery
from taproof.service.projects import Projects
from taproof.service.sessions.list import SessionPage, SessionReader

PAGE: Final = 50
STATUS_NAMES: Final[tuple[SignInStatus, ...]] = get_args(SignInStatus)
_NOT_FOUND: Final = (
    "You have no session with that id or token. Paste the whole value: an id is sess_ and 27 letters and digits, a "
    "session token is 43 characters."
)
_LIST: Final = "/console/sessions"
_MINUTES: Final = len("2030-01-01T00:00")


@dataclass(frozen=True, slots=True)
class SessionFilters:
    """The list's filters as typed; "" for a filter that is not set."""

    project_id: str = ""
    status: str = ""
    since: str = ""
    until: str = ""
    messenger_id: str = ""

    @classmethod
    def from_query(cls, query: QueryParams) -> Self:
        """Return the filters from a URL's query string."""
        return cls(**{field.name: query.get(field.name, "").strip() for field in fields(cls)})

    @property
    def period(self) -> str:
        """The times in words; "" if neither is set."""
        since, until = self.since.replace("T", " "), self.until.replace("T", " ")
        if since and until:
            return f"{since} – {until}"
        return f"from {since}" if since else until and f"until {until}"

    def address(self, path: str = _LIST, **more: str) -> str:
        """Return the URL of a page with these filters."""
        query = {name: value for name, value in (asdict(self) | more).items() if value}
        return f"{path}?{urlencode(query)}" if query else path

    async def list_sessions(
        self, sessions: SessionReader, developer: Developer, cursor: str | None = None, *, limit: int = PAGE
    ) -> SessionPage:
        """Return a page of the sessions that match.

        Raise InvalidRequest, which names the filter that is not valid, or ProjectNotFound.
        """
        status = next((each for each in STATUS_NAMES if each == self.status), None)
        if self.status and status is None:
            raise InvalidRequest(f"Choose a status: one of {', '.join(STATUS_NAMES)}.")
        since, until = _instant(self.since, "From"), _instant(self.until, "Until")
        if since is not None and until is not None and since >= until:
            raise InvalidRequest("From must be earlier than Until.")
        return await sessions.list_sessions(
            developer,
            project_id=self.project_id or None,
            status=status,
            limit=limit,
            cursor=cursor,
            since=since,
            until=until,
            messenger_id=self.messenger_id or None,
        )


def _instant(text: str, label: str) -> int | None:
    """Parse a date and time in the format that browsers send: without the seconds if they are 0."""
    if not text:
        return None
    local = text.replace(" ", "T", 1)
    try:
        return read_instant(f"{local}:00Z" if len(local) == _MINUTES else f"{local}Z", label)
    except InvalidRequest:
        raise InvalidRequest(f"{label} must be a date and a time in UTC, such as 2030-01-31 23:59.") from None


_NO_FILTERS: Final = SessionFilters()
_NO_SESSIONS: Final = SessionPage([], None)


class SessionRow(NamedTuple):
    """A row of the session list."""

    session: Session
    state: str
    outcome: str


class Rows(NamedTuple):
    """A page's rows as HTML, the URL of the next page ("" on the last page), and a hash of what both show.

    The hash does not change while only the relative times change.
    """

    html: Markup
    older: str
    version: str


def session_rows(page: SessionPage, now: int) -> list[SessionRow]:
    """Return the list's rows at the time `now`, each with the first sentence of its outcome."""
    return [
        SessionRow(session, _state(session), first.rstrip(".") + ".")
        for session in page.sessions
        for first in [outcome_sentence(session, now).partition(". ")[0]]
    ]


def render_rows(pages: PageRenderer, page: SessionPage, rows: list[SessionRow], filters: SessionFilters) -> Rows:
    """Render the rows, both for the page and for its live updates."""
    context = {"rows": rows, "filtered": filters != _NO_FILTERS}
    older = "" if page.next_cursor is None else filters.address(cursor=page.next_cursor)
    html = pages.fragment("session_rows.html", context)
    version = hashlib.sha256(f"{older}\n{rows!r}".encode()).hexdigest()[:16]
    # The template has already escaped it.
    return Rows(Markup(html), older, version)  # noqa: S704


@dataclass(frozen=True, slots=True)
class SessionPages:
    """Shows the sessions of a developer's projects."""

    access: Access
    pages: PageRenderer
    session_reader: SessionReader
    projects: Projects
    deliveries: Deliveries
    clock: Clock

    def routes(self) -> list[Route]:
        """Return the routes of these pages."""
        return [
            Route(_LIST, self.access.signed_in(self._list, across_projects=True)),
            Route(_LIST, self.access.signed_in(self._find, across_projects=True), methods=["POST"]),
            Route("/console/sessions/{session_id}", self.access.signed_in(self._show, across_projects=True)),
        ]

    async def _list(self, request: Request, visitor: Visitor) -> Response:
        filters = SessionFilters.from_query(request.query_params)
        cursor = request.query_params.get("cursor") or None
        try:
            page = await filters.list_sessions(self.session_reader, visitor.developer, cursor)
        except (InvalidRequest, ProjectNotFound) as error:
            return await self._show_list(request, visitor, filters, error=error.sentence, status=error.status)
        return await self._show_list(request, visitor, filters, page, is_first=cursor is None)

    async def _find(self, request: Request, visitor: Visitor) -> Response:
        """Redirect to the session with the submitted id or token. A POST form keeps the token out of URLs."""
        sought = (await read_form(request))["session"]
        try:
            if session_created_at(sought) is None:
                session = await self.session_reader.read_session_by_token(visitor.developer, sought)
            else:
                session = await self.session_reader.read_session(visitor.developer, sought)
        except SessionNotFound:
            # Do not show the input again: it can be the token of another developer's session.
            return await self._show_list(request, visitor, error=_NOT_FOUND, status=SessionNotFound.status)
        return RedirectResponse(f"{_LIST}/{session.id}", 303)

    async def _show_list(
        self,
        request: Request,
        visitor: Visitor,
        filters: SessionFilters = _NO_FILTERS,
        page: SessionPage = _NO_SESSIONS,
        *,
        is_first: bool = False,
        error: str = "",
        status: int = 200,
    ) -> Response:
        projects = await self.projects.name_projects(visitor.developer)
        rows = render_rows(self.pages, page, session_rows(page, self.clock()), filters)
        context = {
            "filters": filters,
            "error": error,
            "rows": rows,
            "projects": projects,
            "project": next(({"id": id_, "name": name} for id_, name in projects if id_ == filters.project_id), None),
            "statuses": {name: name.capitalize() for name in STATUS_NAMES},
            "is_filtered": filters != _NO_FILTERS,
            "is_first": is_first,
            "newest": filters.address(),
            "live": filters.address(f"{_LIST}/live") if is_first else "",
        }
        return await self.pages.render_choice(request, "sessions.html", context, projects, status=status)

    async def _show(self, request: Request, visitor: Visitor) -> Response:
        session = await self.session_reader.read_session(visitor.developer, request.path_params["session_id"])
        deliveries = await self.deliveries.find_deliveries(visitor.developer, session)
        now = self.clock()
        steps = timeline(session, now)
        context = {
            "session": session,
            "name": _state(session),
            "outcome": outcome_sentence(session, now),
            "steps": list(zip(steps, _since_before([step.at for step in steps]), strict=True)),
            "deliveries": deliveries,
            "attempts": [
                (delivery.record.event_id, attempt, attempt_sentence(attempt.status, attempt.error) is None)
                for delivery in deliveries
                for attempt in delivery.record.attempts
            ],
            "is_moving": _is_moving(session, deliveries, now),
        }
        return self.pages.render(request, "session.html", context)


def _state(session: Session) -> str:
    """Return the session's status, or "reported" if its user reported it."""
    return session.status if session.reported_at is None else "reported"


def _is_moving(session: Session, deliveries: list[SeenDelivery], now: int) -> bool:
    """Return whether a session can change within seconds: by a decision, a verify call, or a webhook attempt."""
    if session.status in {"pending", "confirmed"}:
        return now < session.expires_at
    is_due = any(delivery.sending or delivery.record.state == "due" for delivery in deliveries)
    return is_due and now - (session.confirmed_at or session.cancelled_at or 0) < MINUTE


def _since_before(times: list[int | None]) -> list[str]:
    """Return the time since the step before, in words, for each step; "" for the first and for steps not reached."""
    found, before = [], None
    for at in times:
        found.append("" if at is None or before is None else _later(at - before))
        before = at if at is not None else before
    return found


def _later(milliseconds: int) -> str:
    return f"{duration(milliseconds)} later" if milliseconds >= SECOND // 10 else "immediately"


def duration(milliseconds: int) -> str:
    """Return a duration in at most two units, each with a no-break space: 0.4 s, 12 s, 9 min 58 s."""
    if milliseconds < 10 * SECOND:
        return f"{milliseconds / SECOND:.1f}\N{NO-BREAK SPACE}s"
    minutes, seconds = divmod(milliseconds // SECOND, 60)
    parts = [(minutes, "min"), (seconds, "s")] if minutes < 60 else [(minutes // 60, "h"), (minutes % 60, "min")]
    if not minutes:
        parts = parts[1:]
    return " ".join(f"{count}\N{NO-BREAK SPACE}{unit}" for count, unit in parts)
