"""Measure how fast each page of the developer API and the console is answered, with many stored sessions and users.

Each page is requested over one kept connection, one request at a time, so the figure is the wait of one visitor.
"""

import asyncio
import http.client
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from benchmarks.machine import cpu_seconds, fail, percentile, say
from benchmarks.outcome import PartOutcome, Plan, Table
from benchmarks.parts.speed import STORES, Store
from benchmarks.seed import USERS
from benchmarks.server import DEVELOPER, bench_settings
from benchmarks.serving import Target, running
from benchmarks.stores import Postgres, sqlite_copy

from taproof.core.accounts import Actor
from taproof.core.clock import DAY, iso8601, system_clock
from taproof.runtime.services import open_services
from taproof.service.paging import write_cursor

_API: Final = "/api/v1/dev/sessions"
_CONSOLE: Final = "/console/sessions"
_DEPTHS: Final = (3, 11, 26, 47, 66, 84)
"""The age in days of the pages that are not the first."""
_REQUESTS: Final = 40
"""Requests for each kind of page in one round."""
_BUSIEST: Final = "1000000000"
"""The messenger account with the most sign-ins: see `seed.py`."""
_NOBODY: Final = "999999999"
_FEW: Final = 100
"""More sessions than an account has that is not among those with the most."""
_PENDING: Final = 30

Check = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Page:
    """A kind of page: its title, the addresses to request in turn, and a check of the answer.

    A download takes longer, so it is requested less often, and the aim for pages does not apply to it.
    """

    title: str
    addresses: list[str]
    is_right: Check
    is_download: bool = False

    @property
    def requests(self) -> int:
        """Return the number of requests in one round."""
        return 2 if self.is_download else _REQUESTS


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials of the developer of all projects, for the API and the console."""

    access_token: str
    cookie: str


class Browser:
    """Requests pages from one server, as the developer of all its projects."""

    def __init__(self, port: int, credentials: Credentials) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = {
            "Authorization": f"Bearer {credentials.access_token}",
            "Cookie": f"taproof_session={credentials.cookie}",
        }

    def get(self, address: str) -> tuple[Any, float]:
        """Return an answer, which must be 200, and the milliseconds until all of it arrived; HTML is a string."""
        begun = time.perf_counter()
        self._connection.request("GET", address, headers=self._headers)
        answer = self._connection.getresponse()
        content = answer.read()
        taken = (time.perf_counter() - begun) * 1e3
        if answer.status != 200:
            fail(f"GET {address} was answered {answer.status}: {content[:300].decode(errors='replace')}")
        return content.decode() if address.startswith("/console") else json.loads(content), taken

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def measure_console(plan: Plan, postgres: Postgres) -> PartOutcome:
    """Measure on both stores."""
    outcome = PartOutcome()
    with sqlite_copy(plan.sessions, plan.directory, "console") as url:
        _measure(plan, outcome, "sqlite", url)
    _measure(plan, outcome, "postgres", postgres.database("speed", plan.sessions))
    return outcome


def _measure(plan: Plan, outcome: PartOutcome, store: Store, url: str) -> None:
    credentials = asyncio.run(_credentials(url))
    with running(url) as target:
        browser = Browser(target.port, credentials)
        _make_pending(target)
        pages = _pages(browser)
        times: dict[str, list[float]] = {page.title: [] for page in pages}
        costs: dict[str, list[float]] = {page.title: [] for page in pages}
        for number in range(plan.repeat + 1):
            say(f"console, {STORES[store]}, round {number} of {plan.repeat}")
            _make_pending(target)
            for page in pages:
                before = cpu_seconds(target.pid)
                taken = [_ask(browser, page, number * page.requests + each) for each in range(page.requests)]
                if number:
                    times[page.title] += taken
                    costs[page.title].append((cpu_seconds(target.pid) - before) / page.requests * 1e3)
        browser.close()
    rows = [["page", "median ms", "p99 ms", "worst ms", "server ms"]]
    for title, taken in times.items():
        figures = (statistics.median(taken), percentile(taken, 0.99), max(taken), statistics.median(costs[title]))
        rows.append([title, *(f"{each:.1f}" for each in figures)])
    outcome.values |= {
        f"console.{store}.median": max(statistics.median(times[page.title]) for page in pages if not page.is_download),
        f"console.{store}.worst": max(max(times[page.title]) for page in pages if not page.is_download),
    }
    note = (
        f"{plan.sessions:,} sessions of 90 days, up to {USERS:,} users, in 20 projects of one developer, 50 rows on a "
        "page if nothing else is said. From sending the request until the whole answer is there, over a kept "
        f"connection, {_REQUESTS * plan.repeat} requests of each kind, to different places where there are such. "
        "`server ms` is the server's CPU time for one. An export is a download, not a page: it reads all sessions that "
        f"were opened and never confirmed, in small steps, and was requested {2 * plan.repeat} times."
    )
    outcome.tables.append(Table(f"Pages of sessions and users on {STORES[store]}", rows, note))
    outcome.versions |= target.versions


def _ask(browser: Browser, page: Page, number: int) -> float:
    address = page.addresses[number % len(page.addresses)]
    answer, taken = browser.get(address)
    if not page.is_right(answer):
        fail(f"GET {address} ({page.title}) was answered {str(answer)[:500]}")
    return taken


async def _credentials(url: str) -> Credentials:
    """Create an access token of the developer of all projects, and sign that developer in to the console."""
    async with open_services(bench_settings(url, 1)) as services:
        (developer,) = [each for each in await services.developers.list_developers() if each.email == DEVELOPER]
        created = await services.developers.create_access_token(Actor(developer, "command_line"), "benchmark")
        cookie = await services.console_sessions.create_console_session(
            developer, opened_with=created.token, address="127.0.0.1", user_agent="benchmark"
        )
        return Credentials(created.plaintext, cookie)


def _make_pending(target: Target) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=30)
    for number in range(_PENDING):
        body = json.dumps({"project_id": target.projects[number % len(target.projects)]})
        connection.request("POST", "/api/v1/generate/public", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            fail(f"A session could not be made: {answer.status}")
    connection.close()


def _pages(browser: Browser) -> list[Page]:
    """Return every kind of page, first those of the API, then those of the console."""
    now = system_clock()
    days_ago = {days: iso8601(now - days * DAY) for days in (*_DEPTHS, 1, 40, 50)}
    below = {days: f"until={days_ago[days]}" for days in _DEPTHS}
    # A page deep in the list begins with a cursor, as if a user had walked there.
    cursors = [browser.get(f"{_API}?limit=1&{each}")[0]["next_cursor"] for each in below.values()]
    spread = [browser.get(f"{_API}?limit=200&{each}")[0]["sessions"] for each in below.values()]
    ids = [session["id"] for sessions in spread for session in sessions[::20]]
    # Accounts with high numbers have signed in once or twice: see `seed.py`.
    rare = [max(sessions, key=lambda session: session["messenger_id"])["messenger_id"] for sessions in spread]
    sizes = browser.get("/api/v1/dev/projects")[0]["projects"]
    small = min(sizes, key=lambda project: project["sessions_count"])["id"]
    large = max(sizes, key=lambda project: project["sessions_count"])["id"]
    window = (iso8601(now - 50 * DAY), iso8601(now - 40 * DAY))
    between = f"since={window[0]}&until={window[1]}"
    return [
        Page("first page", [_API], _at_least(50)),
        Page("first page of 200", [f"{_API}?limit=200"], _at_least(200)),
        Page("deep, by cursor", [f"{_API}?cursor={each}" for each in cursors], _at_least(50)),
        Page(
            "deep, by cursor, 200",
            [f"{_API}?limit=200&cursor={each}" for each in cursors],
            _at_least(200),
        ),
        *(
            Page(f"status {status}", [f"{_API}?status={status}"], _at_least(least, status=status))
            for status, least in (("used", 50), ("confirmed", 50), ("cancelled", 50), ("expired", 50), ("pending", 1))
        ),
        *(
            Page(
                f"status {status}, deep",
                [f"{_API}?status={status}&cursor={each}" for each in cursors],
                _at_least(1, status=status),
            )
            for status in ("used", "confirmed")
        ),
        Page(
            "a rare status in a small project, 200",
            [f"{_API}?limit=200&status=confirmed&project_id={small}"],
            _at_least(1, status="confirmed", project_id=small),
        ),
        Page("account with few sessions", [f"{_API}?messenger_id={each}" for each in rare], _at_least(1)),
        Page(
            "account with many sessions",
            [f"{_API}?messenger_id={_BUSIEST}"],
            _at_least(1, messenger_id=_BUSIEST),
        ),
        Page(
            "account with many sessions, deep",
            [f"{_API}?messenger_id={_BUSIEST}&{each}" for each in below.values()],
            _at_least(0, messenger_id=_BUSIEST),
        ),
        Page(
            "account with many sessions, confirmed and never read",
            [f"{_API}?messenger_id={_BUSIEST}&status=confirmed"],
            _at_least(0, messenger_id=_BUSIEST, status="confirmed"),
        ),
        Page("account that nobody has", [f"{_API}?messenger_id={_NOBODY}"], _at_least(0)),
        Page("until a time", [f"{_API}?{each}" for each in below.values()], _at_least(50)),
        Page("10 days, half-way", [f"{_API}?{between}"], _at_least(50, window=window)),
        Page(
            "10 days, half-way, cancelled",
            [f"{_API}?{between}&status=cancelled&limit=200"],
            _at_least(1, window=window, status="cancelled"),
        ),
        Page(
            "10 days, half-way, one account",
            [f"{_API}?{between}&messenger_id={_BUSIEST}"],
            _at_least(0, window=window, messenger_id=_BUSIEST),
        ),
        Page("since an hour ago", [f"{_API}?since={iso8601(now - DAY // 24)}"], _at_least(_PENDING)),
        Page("one session", [f"{_API}/{each}" for each in ids], lambda session: session["id"] in ids),
        Page("console: projects", ["/console/projects"], _shows(small)),
        Page("console: one project", [f"/console/projects/{small}"], _shows(small)),
        Page("console: sessions", [_CONSOLE], _shows("sess_", least=50)),
        Page("console: sessions, deep", [f"{_CONSOLE}?cursor={each}" for each in cursors], _shows("sess_", least=50)),
        Page(
            "console: sessions, deep, used",
            [f"{_CONSOLE}?status=used&cursor={each}" for each in cursors],
            _shows("sess_", least=1),
        ),
        Page("console: sessions of one account", [f"{_CONSOLE}?messenger_id={_BUSIEST}"], _shows(_BUSIEST, least=50)),
        Page("console: one session", [f"{_CONSOLE}/{each}" for each in ids], _shows("sess_")),
        Page("console: analytics, 90 days", ["/console/analytics?days=90"], _shows("<svg")),
        *_user_pages(large, [write_cursor(now - days * DAY, f"user_{_BUSIEST}") for days in _DEPTHS], rare),
        *(
            Page(f"console: {title}", [address], _shows("<h1"))
            for title, address in (
                ("one project's settings", f"/console/projects/{large}/settings"),
                ("members", f"/console/projects/{large}/members"),
                ("webhooks", f"/console/projects/{large}/webhooks"),
                ("OpenID clients", f"/console/projects/{large}/clients"),
                ("try it", f"/console/projects/{large}/try"),
                ("audit log", "/console/audit"),
                ("access tokens", "/console/tokens"),
                ("account", "/console/account"),
            )
        ),
    ]


def _user_pages(project_id: str, cursors: list[str], rare: list[str]) -> list[Page]:
    """Return the pages of the users of a project, and of accounts with few sign-ins."""
    api, console = f"/api/v1/dev/projects/{project_id}/users", f"/console/projects/{project_id}/users"
    return [
        Page("users of a project", [api], _has_users(50)),
        Page("users of a project, 200", [f"{api}?limit=200"], _has_users(200)),
        Page("users of a project, deep, 200", [f"{api}?limit=200&cursor={each}" for each in cursors], _has_users(1)),
        Page(
            "export of an account with few sessions",
            [f"/api/v1/dev/users/{each}" for each in rare],
            lambda answer: 1 <= len(answer["sessions"]) < _FEW,
            is_download=True,
        ),
        Page("console: users", [console], _shows("/users/", least=50)),
        Page("console: users, deep", [f"{console}?cursor={each}" for each in cursors], _shows("/users/")),
        Page("console: the user with the most sign-ins", [f"{console}/{_BUSIEST}"], _shows(_BUSIEST)),
    ]


def _shows(text: str, *, least: int = 1) -> Check:
    """Return a check of a console page: the visitor is signed in, and this text occurs this often."""

    def is_right(answer: Any) -> bool:
        return DEVELOPER in answer and answer.count(text) >= least

    return is_right


def _has_users(least: int) -> Check:
    """Return a check of a page of users: at least this many, the latest sign-in first."""

    def is_right(answer: Any) -> bool:
        times = [user["last_sign_in_at"] for user in answer["users"]]
        return len(times) >= least and times == sorted(times, reverse=True)

    return is_right


def _at_least(least: int, *, window: tuple[str, str] | None = None, **wanted: str) -> Check:
    """Return a check of a page: sessions newest first, at least this many, each with these values and in this time."""

    def is_right(answer: Any) -> bool:
        sessions = answer["sessions"]
        times = [datetime.fromisoformat(session["created_at"]) for session in sessions]
        return (
            len(sessions) >= least
            and times == sorted(times, reverse=True)
            and all(session[name] == value for session in sessions for name, value in wanted.items())
            and (window is None or all(window[0] <= session["created_at"] < window[1] for session in sessions))
        )

    return is_right
