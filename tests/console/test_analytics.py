"""The analytics page and its CSV file show the figures of the API, and only to the project's developer."""

import csv
import io
import random
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry
from tests.console.browsing import Shown
from tests.console.conftest import Installation, Visitor

from taproof.api.developer import DeveloperApi
from taproof.core.clock import DAY, MINUTE
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import Project
from taproof.http.limits.rates import RateLimits
from taproof.http.metrics import Metrics
from taproof.service.housekeeping import Housekeeping

PATHS = ["/console/analytics", "/console/analytics.csv"]
DAILY = ("sessions", "opened", "confirmed", "cancelled", "expired", "unique_users", "reported")


@pytest.fixture
async def api(console: Installation, visitor: Visitor) -> AsyncIterator[httpx.AsyncClient]:
    """The developer API of the same installation, called with an access token of `visitor`."""
    asked = console.services
    metrics = Metrics(CollectorRegistry(), "1.2.3")
    limits = RateLimits(metrics, console.clock, generate_address=None, generate_project=None, local_only=True)
    app = DeveloperApi(asked, metrics, limits).build_app()
    created = await asked.developers.create_access_token(visitor.actor, "test")
    headers = {"Authorization": f"Bearer {created.plaintext}"}
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="https://console.example", headers=headers) as client:
        yield client


async def live_through(console: Installation, visitor: Visitor, chance: random.Random, days: int) -> list[str]:
    """Have people sign in at random to three projects over a number of days up to now; return the projects' ids."""
    projects = [(await visitor.create_project(name))[0].id for name in ("Shop", "Blog", "Forum")]
    now = console.clock.now
    for place in range(days):
        console.clock.now = now - (days - 1 - place) * DAY
        for _ in range(chance.randrange(6)):
            project_id = chance.choice(projects)
            started = await visitor.start_session(project_id)
            user = MessengerIdentity(str(chance.randrange(1, 5)), "Somebody", "")
            match chance.randrange(5):
                case 0:
                    pass
                case 1:
                    await console.messenger.open(started.deeplink, user.messenger_id)
                case 2:
                    await console.messenger.cancel(started.deeplink, user.messenger_id)
                case outcome:
                    await console.messenger.confirm(started.deeplink, user)
                    if outcome == 4:
                        await console.messenger.signin.verify_session(project_id, started.session_token, public=True)
            if chance.randrange(4) == 0:
                await console.messenger.signin.report_session(started.session_token, user.messenger_id)
                await console.storage.users.unblock_project(user.messenger_id, project_id)
    console.clock.now = now + 11 * MINUTE
    await Housekeeping(
        console.storage, Encryptor(new_master_key(system_entropy)), console.clock, system_entropy, 90
    ).sweep()
    return projects


def number(text: str) -> int:
    return int(text.replace("\u202f", ""))


def figures_of_page(shown: Shown) -> dict[str, Any]:
    """Return the figures of the page, in the shape of the API's answer."""
    names = shown.texts(".//dl[@class='figures']/div/dt")
    values = [(each.text or "").strip() for each in shown.all(".//dl[@class='figures']/div/dd")]
    figures = dict(zip(names, values, strict=True))
    steps = {row[0]: number(row[1]) for row in shown.rows(".//table[@id='steps']")}
    return {
        "total_sessions": number(figures["Sessions"]),
        "confirmed_sessions": number(figures["Confirmed"]),
        "unique_users": number(figures["Unique users"]),
        "conversion_rate": float(figures["Conversion"].removesuffix("%")),
        "daily": [
            {"date": row[0]} | dict(zip(DAILY, map(number, row[1:]), strict=True))
            for row in shown.rows(".//table[@id='days']")
        ],
        "funnel": {
            name: steps[words]
            for words, name in (
                ("Requested", "requested"),
                ("Opened", "opened"),
                ("Confirmed", "confirmed"),
                ("Used", "used"),
                ("Cancelled", "cancelled"),
                ("Expired", "expired"),
                ("Reported", "reported"),
            )
        },
    }


def figures_of_csv(text: str) -> dict[str, Any]:
    """Return the sums of the file's columns in the shape of the API's answer, without those that cannot be added."""
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    total = {name: sum(int(row[name]) for row in rows) for name in rows[0] if name not in {"date", "unique_users"}}
    return {
        "total_sessions": total["sessions"],
        "confirmed_sessions": total["confirmed"],
        "daily": [{"date": row["date"]} | {name: int(row[name]) for name in DAILY} for row in rows],
        "funnel": {"requested": total["sessions"]}
        | {name: total[name] for name in ("opened", "confirmed", "used", "cancelled", "expired", "reported")},
    }


async def test_page_file_and_api_say_the_same(console: Installation, visitor: Visitor, api: httpx.AsyncClient) -> None:
    """Every figure of the API is shown, for every window, over all projects and for one."""
    chance = random.Random(0)  # noqa: S311 — to be drawn again as it was.
    shop, *_ = await live_through(console, visitor, chance, days=40)
    for days in ("7", "30", "90"):
        for query in ({"days": days}, {"days": days, "project_id": shop}):
            answer = (await api.get("/api/v1/dev/analytics", params=query)).json()
            projects = answer.pop("projects")
            assert answer["total_sessions"] > 0
            shown = await visitor.get(PATHS[0], **query)
            assert figures_of_page(shown) == answer
            figures = figures_of_csv((await visitor.get(PATHS[1], **query)).html)
            assert figures == {name: answer[name] for name in figures}
            options = [(option.get("value"), option.text) for option in shown.all(".//select/option")]
            assert options == [("", "All projects"), *((each["id"], each["name"]) for each in projects)]


async def test_the_file_is_a_csv_file_with_a_safe_name(visitor: Visitor) -> None:
    """The file follows RFC 4180: a header, lines that end in CR LF. Its name holds no text that users chose."""
    project, _ = await visitor.create_project('"; filename="x.exe')
    answer = (await visitor.get(PATHS[1], days="7", project_id=project.id)).response
    assert answer.headers["content-type"] == "text/csv; charset=utf-8; header=present"
    disposition = answer.headers["content-disposition"]
    assert disposition == f'attachment; filename="taproof-analytics-{project.id}-7-days-to-2026-11-18.csv"'
    lines = answer.content.split(b"\r\n")
    assert len(lines) == 1 + 7 + 1
    assert lines[-1] == b""
    assert b"\n" not in b"".join(lines)
    assert lines[0] == b"date,sessions,opened,confirmed,used,cancelled,expired,unique_users,reported"


async def test_links_keep_the_window_and_the_project(visitor: Visitor, project: Project) -> None:
    """A change of the window keeps the project, and the reverse, without JavaScript."""
    shown = await visitor.get(PATHS[0], days="90", project_id=project.id)
    links = {link.get("href"): link.get("aria-current") for link in shown.all(".//nav[@aria-label='Period']/a")}
    assert links == {
        f"/console/analytics?days=7&project_id={project.id}": None,
        f"/console/analytics?days=30&project_id={project.id}": None,
        f"/console/analytics?days=90&project_id={project.id}": "page",
    }
    assert shown.all(f".//a[@href='/console/analytics.csv?days=90&project_id={project.id}']")
    assert shown.fields("/console/analytics") == {"days": "90", "project_id": project.id}
    assert (await visitor.get(PATHS[0])).fields("/console/analytics") == {"days": "30", "project_id": ""}


async def test_figures_are_compared_with_the_period_before(
    console: Installation, visitor: Visitor, project: Project
) -> None:
    """Each figure says how it changed from the period before; distinct users of that period are not known."""
    for started, confirmed in ((5, 5), (4, 1), (3, 2)):  # On the day before both periods, and on the last day of each.
        for number in range(started):
            link = (await visitor.start_session(project.id)).deeplink
            if number < confirmed:
                await console.messenger.confirm(link)
        console.clock.now += 7 * DAY
    console.clock.now -= 7 * DAY
    visitor = await console.sign_in(visitor.developer)
    shown = await visitor.get(PATHS[0], days="7")
    assert shown.texts(".//dl[@class='figures']/div/dd/span") == ["\u221225%", "+100%", "+41.7 points", "no change"]
    assert shown.texts(".//dl[@class='figures']/div[5]/dd") == ["0 no change"]


async def test_wrong_parameters_are_refused(visitor: Visitor) -> None:
    """Wrong parameters are refused with a sentence."""
    period = "Choose a period: 7, 30 or 90 days."
    for name, value, said in (*(("days", days, period) for days in ("8", "x", "٧")), ("project_id", "x", "must be")):
        for path in PATHS:
            shown = await visitor.get(path, **{name: value})
            assert (shown.status, said in shown.text) == (400, True), (path, value)
