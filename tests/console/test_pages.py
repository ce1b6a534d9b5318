"""Rules for every page. Pages are found through the console's routes, so a new page is included automatically."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from xml.etree.ElementTree import Element

import apsw
import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from tests.console.browsing import Browsing, Shown, text_of
from tests.console.conftest import BASE_URL, Installation, Visitor
from tests.granting import grant

from taproof.console.guard import SECURITY_HEADERS, Guard
from taproof.core.accounts import Actor
from taproof.core.identity import MessengerIdentity
from taproof.core.oidc.clients import ClientChanges
from taproof.http.limits.pages import PageLimit

HOSTILE = '<script>alert("1")</script>&amp;\u202egpj.exe\'"{{7*7}}'
"""A name that would run, break out of an attribute, turn the text around, or be taken for a template."""
USER = MessengerIdentity("1001", f"Ada\n{HOSTILE}\u2066", "a\u2028<b>")
NO_PAGES = re.compile(
    r"/console/?|/console/static/.*|.*\.csv|.*/state|.*/export|.*/live|.*/sign-in/waiting|.*/(invite|join)/accept"
)
"""Addresses that answer with a redirect, a file, a stream or JSON, at least to one who has not begun a sign-in."""


@dataclass
class Place:
    """An installation with one object of each kind, all of them the visitor's."""

    console: Installation
    visitor: Visitor
    file: Path
    ids: dict[str, str]

    def routes(self, method: str) -> list[str]:
        """Return the addresses that accept a method, with the visitor's ids."""
        guard = cast("Guard", cast("PageLimit", self.console.app.app).app)
        app = cast("Starlette", guard.app)
        found = [route for route in app.routes if isinstance(route, Route) and method in (route.methods or ())]
        # A messenger account is nobody's: a stranger may ask to erase it, too, in projects of their own.
        ids = {**self.ids, "messenger_id": USER.messenger_id}
        of_browser = {**ids, "session_id": self.ids["console_session_id"]}
        return [
            route.path.format(**(of_browser if route.path.startswith("/console/account") else ids)) for route in found
        ]

    def pages(self) -> list[str]:
        return [path for path in self.routes("GET") if not NO_PAGES.fullmatch(path)]

    async def rows(self) -> dict[str, list[Any]]:
        """Return the content of the store, except the rows that a visit changes."""
        connection = apsw.Connection(str(self.file))
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        rows = {table: list(connection.execute(f"SELECT * FROM {table}")) for table in tables}  # noqa: S608 — its own names.
        connection.close()
        return rows


@pytest.fixture
async def place(console: Installation, visitor: Visitor, tmp_path: Path) -> Place:
    project, _ = await visitor.create_project(HOSTILE, webhook_url="https://example.com/hook")
    decided = await visitor.start_session(project.id)
    await console.messenger.confirm(decided.deeplink, USER)
    await visitor.start_session(project.id)
    actor = Actor(visitor.developer, "command_line")
    token = await console.services.developers.create_access_token(actor, HOSTILE)
    invited = await console.services.invitations.invite_developer(actor, "invited@example.com")
    sessions = await visitor.sessions("confirmed")
    deliveries = await console.services.deliveries.list_deliveries(
        visitor.developer, project.id, event_type=None, state=None, limit=1, cursor=None
    )
    browsers = await console.services.console_sessions.list_console_sessions(visitor.developer)
    changes = ClientChanges(
        name=HOSTILE,
        redirect_uris=("https://app.example/cb",),
        grant_types=("authorization_code", "refresh_token"),
    )
    client, _ = await console.services.clients.create_client(actor, project.id, changes)
    signed_in = await grant(console.storage, project.id, client.id, USER, console.clock())
    ids = {
        "client_id": client.id,
        "grant_id": signed_in.id,
        "project_id": project.id,
        "session_id": sessions[0].id,
        "delivery_id": deliveries.deliveries[0].record.event_id,
        "token_id": token.token.id,
        "invitation_id": invited.invitation.id,
        "developer_id": visitor.developer.id,
        "console_session_id": browsers[0].id,
    }
    return Place(console, visitor, tmp_path / "taproof.db", ids)


def elements(shown: Shown, *tags: str) -> list[Element]:
    return [element for element in shown.root.iter() if element.tag in tags]


async def every_page(place: Place, anonymous: Browsing) -> list[tuple[str, Shown]]:
    """Open every page as its visitor, and the sign-in pages without a sign-in."""
    shown = []
    for path in place.pages():
        browser = anonymous if "/sign-in" in path or "/invite" in path else place.visitor
        answer = await browser.get(path)
        assert answer.status == 200, (path, answer.status)
        shown.append((path, answer))
    assert len(shown) >= 12, "the pages are no longer found"
    return shown


async def test_frame(place: Place, anonymous: Browsing) -> None:
    """Every page has a language, its own title, one h1, a link past the menu, and marks the current page."""
    titles: Counter[str] = Counter()
    for path, shown in await every_page(place, anonymous):
        assert shown.root.get("lang") == "en", path
        title = text_of(shown.one("./head/title"))
        assert re.fullmatch(r"\S.* · Taproof", title), (path, title)
        titles[title] += not path.endswith("/again")  # The outcome of a try-out, on the page where one starts the next.
        assert shown.heading, path
        assert shown.one(".//a[@class='skip']").get("href") == "#" + str(shown.one(".//main").get("id")), path
        assert shown.all(".//header//form[@action='/console/sign-out']") or "/sign-in" in path or "/invite" in path
    assert titles.most_common(1)[0][1] == 1, titles


async def test_controls_have_names(place: Place, anonymous: Browsing) -> None:
    """Every control has a label, every table a caption and scopes, every image a description, every button a text."""
    for path, shown in await every_page(place, anonymous):
        labelled = {label.get("for") for label in shown.all(".//label")}
        inside = {id(control) for label in shown.all(".//label") for control in label.iter()}
        for control in elements(shown, "input", "select", "textarea"):
            named = control.get("id") in labelled or id(control) in inside or control.get("aria-label")
            assert named or control.get("type") == "hidden", (path, control.attrib)
        for button in elements(shown, "button", "a"):
            assert text_of(button) or button.get("aria-label"), (path, button.attrib)
        for table in shown.all(".//table"):
            assert table.find("caption") is not None, path
            assert all(cell.get("scope") in {"col", "row"} for cell in table.iter("th")), path
        for picture in shown.root.iter("img"):
            assert "alt" in picture.attrib, path


async def test_ids(place: Place, anonymous: Browsing) -> None:
    """Ids are unique on a page, and every reference in an attribute leads to one."""
    for path, shown in await every_page(place, anonymous):
        ids = Counter(element.get("id") for element in shown.root.iter() if element.get("id"))
        assert all(count == 1 for count in ids.values()), (path, ids)
        for element in shown.root.iter():
            named = element.get("aria-describedby", "") + " " + element.get("aria-labelledby", "")
            named += " " + element.get("for", "") + " " + element.get("data-copy", "").removeprefix("#")
            assert set(named.split()) <= set(ids), (path, element.attrib)


async def test_nothing_inline_and_nothing_from_elsewhere(place: Place, anonymous: Browsing) -> None:
    """No page contains a script, a style or an event handler, or loads anything from another site."""
    for path, shown in await every_page(place, anonymous):
        for element in shown.root.iter():
            assert "style" not in element.attrib, (path, element.tag)
            assert not [name for name in element.attrib if name.startswith("on")], (path, element.attrib)
            loads = element.get("src") or (element.get("href") if element.tag == "link" else None)
            assert loads is None or loads.startswith("/console/static/"), (path, loads)
        for script in shown.all(".//script"):
            assert script.get("type") == "module", path
            assert not text_of(script), path
        assert not shown.all(".//style"), path
        for form in shown.all(".//form"):
            assert form.get("method") in {"get", "post"}, path
            assert str(form.get("action")).startswith("/console/"), path


async def test_a_hostile_name_is_text(place: Place, anonymous: Browsing) -> None:
    """Names of projects and users are shown on one line, as typed and escaped, without direction marks."""
    seen = 0
    for path, shown in await every_page(place, anonymous):
        assert not re.search("<script>alert|a[ \u2028]<b>|[\u202a-\u202e]", shown.html), path
        assert "49" not in [text_of(element) for element in shown.root.iter("bdi")], path
        seen += 'alert("1")' in "".join(shown.root.itertext())
    assert seen >= 5, "the name is shown nowhere"


async def test_links_lead_somewhere(place: Place, anonymous: Browsing) -> None:
    """Every link and every form of every page leads to an existing address."""
    get, post = set(place.routes("GET")), set(place.routes("POST"))
    asked: set[str] = set()
    for path, shown in await every_page(place, anonymous):
        browser = anonymous if "/sign-in" in path or "/invite" in path else place.visitor
        for link in shown.all(".//a[@href]"):
            href = link.get("href", "")
            if href.startswith("/console") and href not in asked and ".csv" not in href:
                asked.add(href)
                assert (await browser.get(href)).status in {200, 303}, (path, href)
            else:
                assert href.startswith(("/console", "#", "/docs", "https://t.me/", BASE_URL)), (path, href)
        for form in shown.all(".//form"):
            known = post if form.get("method") == "post" else get
            assert form.get("action") in known, (path, form.attrib)


async def test_nobody_signed_in(place: Place, anonymous: Browsing) -> None:
    """Without a sign-in, every address leads to the sign-in page, and nothing is changed."""
    before = await place.rows()
    for method in ("GET", "POST"):
        for path in place.routes(method):
            if re.match(r"/console/?$|/console/static/|/console/sign-in|/console/invite|/console/join$", path):
                continue
            shown = await (anonymous.get(path) if method == "GET" else anonymous.post(path))
            assert shown.status == 303, (method, path)
            assert shown.location.partition("?")[0] == "/console/sign-in", (method, path)
    assert await place.rows() == before


async def test_requests_from_elsewhere(place: Place) -> None:
    """A form from another site with the visitor's cookie is refused at every address and changes nothing."""
    before = await place.rows()
    for path in place.routes("POST"):
        for headers in (
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
            {"Sec-Fetch-Site": "none"},
            {"Sec-Fetch-Site": "cross-site", "Origin": BASE_URL},
        ):
            assert (await place.visitor.post(path, {"name": "x"}, **headers)).status == 403, (path, headers)
        for origin in (
            "",
            "null",
            "https://evil.example",
            f"{BASE_URL}.evil.example",
            BASE_URL.replace("https", "http"),
        ):
            headers = {"Origin": origin} if origin else {}
            answer = await place.visitor.client.post(path, data={"name": "x"}, headers=headers)
            assert (answer.status_code, "set-cookie" in answer.headers) == (403, False), (path, origin)
    assert await place.rows() == before


async def test_forms_only_by_post(place: Place) -> None:
    """Changes need a POST: opening their address as a link does nothing."""
    for path in set(place.routes("POST")) - set(place.routes("GET")):
        assert (await place.visitor.get(path)).status == 405, path
    assert (await place.visitor.get("/console/account")).status == 200


async def test_a_browser_without_fetch_metadata(place: Place) -> None:
    """A browser without Sec-Fetch-Site may send a form if its Origin is the console."""
    action = f"/console/projects/{place.ids['project_id']}/settings"
    shown = await place.visitor.get(action)
    fields = shown.fields(shown.all(".//main//form[@method='post']")[0].get("action", ""))
    answer = await place.visitor.client.post(
        shown.all(".//main//form[@method='post']")[0].get("action", ""), data=fields, headers={"Origin": BASE_URL}
    )
    assert answer.status_code in {303, 400}, answer.text


async def test_a_stranger(place: Place, stranger: Visitor) -> None:
    """Another developer who knows all ids sees and changes nothing of the visitor's at any address."""
    before = await place.rows()
    for method in ("GET", "POST"):
        for path in place.routes(method):
            if path.endswith("/live"):
                continue  # It has no end to wait for; test_live.py has its own.
            owned = [value for value in place.ids.values() if value in path]
            shown = await (stranger.get(path) if method == "GET" else stranger.post(path, {"confirmation": HOSTILE}))
            if owned or "/team" in path:
                assert shown.status in {400, 403, 404}, (method, path, shown.status)
            for secret in (*place.ids.values(), 'alert("1")', "invited@example.com"):
                there = shown.html if "html" in shown.response.headers.get("content-type", "") else ""
                assert secret not in there, (method, path, secret)
            if "sign-out" in path or path.endswith(("/all", "/end-all")):
                left = await place.rows()
                stranger = await place.console.sign_in(stranger.developer)
                for table, rows in (await place.rows()).items():
                    before[table] += [row for row in rows if row not in left[table]]
    after = await place.rows()
    own = stranger.developer.id
    for table, rows in after.items():
        assert {row for row in rows if own not in row} == {row for row in before[table] if own not in row}, table


@pytest.mark.parametrize(
    "path", ["/console/nothing", "/console/projects/proj_none", "/console/sessions/x", "/console/"]
)
async def test_unknown_addresses(visitor: Visitor, path: str) -> None:
    """An unknown address is answered with a page of the console that leads back."""
    shown = await visitor.get(path)
    if shown.status == 303:
        shown = await visitor.follow(shown)
        assert shown.status == 200
        return
    assert (shown.status, shown.one(".//h1").text) == (404, "Not found")
    assert shown.one(".//main//a").get("href") == "/console"
    assert "ada@example.com" in text_of(shown.one(".//header"))


async def test_no_page_can_be_framed_or_run_a_foreign_script(place: Place, anonymous: Browsing) -> None:
    """Every answer has the headers that keep other sites out: pages, unknown addresses and refused methods."""
    answers = [shown.response for _, shown in await every_page(place, anonymous)]
    answers.append((await anonymous.get("/console/nothing")).response)
    answers.append(await anonymous.client.delete("/console"))
    for answer in answers:
        policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
        assert (policy["default-src"], policy["script-src"], policy["frame-ancestors"]) == (
            "'none'",
            "'self'",
            "'none'",
        )
        assert (policy["form-action"], policy["base-uri"]) == ("'self'", "'none'")
        for name, value in SECURITY_HEADERS:
            assert answer.headers.get_list(name.decode()) == [value.decode()], answer.url
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers.get_list("cache-control") == ["no-store"], answer.url
        assert answer.status_code != 200 or answer.headers["content-type"] == "text/html; charset=utf-8", answer.url


async def test_static_files(place: Place, anonymous: Browsing) -> None:
    """Static files have the right type and are cached for good; their address changes with their content."""
    loaded = set()
    for _, shown in await every_page(place, anonymous):
        loaded |= {str(element.get("src")) for element in shown.all(".//script")}
        loaded |= {str(element.get("href")) for element in shown.all(".//link")}
    for address in loaded:
        assert re.search(r"\?[0-9a-f]{12}$", address), address
        answer = (await anonymous.get(address)).response
        assert answer.status_code == 200, address
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["x-content-type-options"] == "nosniff"
        kinds = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
        assert answer.headers["content-type"].startswith(kinds[re.findall(r"\.\w+(?=\?)", address)[0]])
