"""The pages of sessions in a real browser, kept up to date by the real server."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect
from tests.api.conftest import ManualClock
from tests.console.conftest import SESSION_COOKIE, Installation, Visitor, open_console
from tests.console.test_lists import DISTANCES
from tests.granian_server import serve
from tests.ports import free_port
from tests.waiting import until

from taproof.console.live import StreamLimits
from taproof.core.clock import MINUTE
from taproof.core.identity import MessengerIdentity

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(loop_scope="session")
async def console(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Installation]:
    """A console on the event loop of the browser."""
    async with open_console(tmp_path, clock) as installation:
        yield installation


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(console: Installation) -> Visitor:
    return await console.sign_in(await console.add_developer("ada@example.com", is_owner=True))


@pytest_asyncio.fixture(loop_scope="session")
async def address(console: Installation) -> AsyncIterator[str]:
    """The console on a port of this machine."""
    console.app.live.limits = StreamLimits(look_every=0.05)
    port = free_port()
    stop = await serve(console.app.app, port)
    yield f"http://127.0.0.1:{port}"
    console.app.live.close()
    await stop()


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser, address: str, visitor: Visitor) -> AsyncIterator[Page]:
    """A page of a browser in which `visitor` is signed in; any error of the page fails the test."""
    context = await browser.new_context(base_url=address)
    cookie = visitor.client.cookies[SESSION_COOKIE]
    await context.add_cookies([{"name": "taproof_session", "value": cookie, "url": address}])
    opened = await context.new_page()
    complaints: list[str] = []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on(
        "console", lambda message: complaints.append(message.text) if "Content Security" in message.text else None
    )
    yield opened
    await context.close()
    assert complaints == []


async def test_a_session_arrives_and_is_marked(page: Page, visitor: Visitor, console: Installation) -> None:
    """New rows appear automatically, are marked as new and announced politely; changes appear too."""
    shop, _ = await visitor.create_project("Shop")
    first = await visitor.start_session(shop.id)
    await page.clock.install()
    await page.goto("/console/sessions")
    await expect(page.locator("#live-state")).to_have_text("Live: changes appear automatically.")
    await expect(page.locator("#session-rows tr")).to_have_count(1)
    await expect(page.locator("#session-rows .new")).to_have_count(0)
    console.clock.now += 1
    await visitor.start_session(shop.id)
    console.clock.now += 1
    await visitor.start_session(shop.id)
    await expect(page.locator("#session-rows tr")).to_have_count(3)
    await page.clock.fast_forward(1_500)
    await expect(page.locator("#live-news")).to_have_text(re.compile(r"^[12] new sessions?\.$"))
    await expect(page.locator("#session-rows tr").first.locator(".badge.new")).to_have_text("new")
    await console.messenger.confirm(first.deeplink, MessengerIdentity("7", "<b>Eve</b>", ""))
    await expect(page.locator("#session-rows tr").nth(2)).to_contain_text("<b>Eve</b>")
    await page.clock.fast_forward(1_500)
    # Opened and confirmed in one go, it is said once.
    await expect(page.locator("#live-news")).to_have_text(re.compile(r"(^|, )1 session changed\.$"))


async def test_focus_and_rows_that_stay_are_left_alone(page: Page, visitor: Visitor, console: Installation) -> None:
    """Keyboard focus stays in its row, whether or not the row changes."""
    shop, _ = await visitor.create_project()
    first = await visitor.start_session(shop.id)
    console.clock.now += 1
    await visitor.start_session(shop.id)
    await page.goto("/console/sessions")
    await expect(page.locator("#live-state")).to_contain_text("Live")
    links = page.locator("#session-rows a")
    await links.nth(1).focus()
    await page.evaluate("document.activeElement.closest('tr').wasHere = true")
    console.clock.now += 1
    await visitor.start_session(shop.id)
    await expect(links).to_have_count(3)
    await expect(links.nth(2)).to_be_focused()
    assert await page.evaluate("document.activeElement.closest('tr').wasHere")
    await console.messenger.open(first.deeplink)
    await expect(page.locator("#session-rows tr").nth(2)).to_contain_text("Opened, waiting")
    await expect(links.nth(2)).to_be_focused()
    assert not await page.evaluate("document.activeElement.closest('tr').wasHere")


async def test_updates_can_be_paused(page: Page, visitor: Visitor, console: Installation) -> None:
    """A button pauses the updates (WCAG 2.2.2) and frees the place; resuming catches up."""
    shop, _ = await visitor.create_project()
    await page.goto("/console/sessions")
    await expect(page.locator("#live-state")).to_contain_text("Live")
    await page.get_by_role("button", name="Pause updates").click()
    await expect(page.locator("#live-state")).to_have_text("Paused.")
    await until(lambda: not console.app.live.count)
    await visitor.start_session(shop.id)
    await expect(page.locator("#session-rows tr[data-session]")).to_have_count(0)
    await page.get_by_role("button", name="Resume updates").click()
    await expect(page.locator("#session-rows tr[data-session]")).to_have_count(1)


async def test_the_next_page_begins_where_the_list_ends(page: Page, visitor: Visitor, console: Installation) -> None:
    """Rows that leave the first page are on the next one; its link appears when it is needed."""
    shop, _ = await visitor.create_project()
    await page.goto("/console/sessions")
    await expect(page.locator("#live-state")).to_contain_text("Live")
    await expect(page.locator("#older")).to_be_hidden()
    for _ in range(53):
        await visitor.start_session(shop.id)
        console.clock.now += 1
    await expect(page.locator("#session-rows tr[data-session]")).to_have_count(50)
    await expect(page.locator("#older")).to_be_visible()
    every = [session.id for session in await visitor.sessions()]
    # The page has had 50 rows since before the last of them arrived.
    await expect(page.locator("#session-rows tr").last).to_have_attribute("data-session", every[49])
    await page.locator("#older").click()
    await expect(page.locator("#session-rows tr")).to_have_count(3)
    rows = page.locator("#session-rows tr")
    assert [await rows.nth(place).get_attribute("data-session") for place in range(3)] == every[50:]
    await expect(page.locator("#live-state")).to_have_count(0)


async def test_the_page_says_when_it_is_not_live(page: Page, visitor: Visitor, console: Installation) -> None:
    """Without a place, the page says so and can be reloaded; a signed-out visitor is told so."""
    console.app.live.limits = StreamLimits(process=0)
    await page.goto("/console/sessions")
    await expect(page.locator("#live-state")).to_have_text("Live updates are off. Reload the page to see changes.")
    await expect(page.locator("#live-news")).to_have_text("Live updates are off. Reload the page to see changes.")
    console.app.live.limits = StreamLimits(look_every=0.05)
    await page.get_by_role("link", name="Reload").click()
    await expect(page.locator("#live-state")).to_contain_text("Live:")
    await console.services.console_sessions.delete_console_sessions(visitor.actor)
    await expect(page.locator("#live-state")).to_have_text("You are signed out. Reload the page to sign in again.")
    await expect(page.locator("#live-pause")).to_be_hidden()


async def test_a_hidden_page_holds_no_stream(page: Page, visitor: Visitor, console: Installation) -> None:
    """A hidden page closes its stream, because a browser opens only six connections to a server."""
    await page.goto("/console/sessions")
    await expect(page.locator("#live-state")).to_contain_text("Live")
    await page.evaluate(
        "Object.defineProperty(document, 'visibilityState', {value: 'hidden', configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    await until(lambda: not console.app.live.count)
    shop, _ = await visitor.create_project()
    await visitor.start_session(shop.id)
    await page.evaluate("delete document.visibilityState; document.dispatchEvent(new Event('visibilitychange'))")
    await expect(page.locator("#session-rows tr[data-session]")).to_have_count(1)


async def test_the_page_of_a_session_follows_it(page: Page, visitor: Visitor, console: Installation) -> None:
    """Changes of a pending session appear and are announced until nothing more can happen."""
    shop, _ = await visitor.create_project()
    await page.clock.install()
    started = await visitor.start_session(shop.id)
    await page.goto("/console/sessions")
    await page.locator("#session-rows a").click()
    await expect(page.locator(".lead")).to_contain_text("Waiting for the user to open the link.")
    await page.get_by_role("link", name=shop.id).focus()
    await console.messenger.open(started.deeplink)
    await page.clock.fast_forward(2_000)
    await expect(page.locator(".lead")).to_contain_text("Opened, waiting")
    await expect(page.locator("#moving-state")).to_contain_text("Opened, waiting")
    await expect(page.get_by_role("link", name=shop.id)).to_be_focused()
    await console.messenger.confirm(started.deeplink)
    await page.clock.fast_forward(2_000)
    await expect(page.locator("#steps")).to_contain_text("The user tapped Confirm.")
    console.clock.now += MINUTE
    await console.messenger.signin.verify_session(shop.id, started.session_token, public=True)
    await page.clock.fast_forward(2_000)
    await expect(page.locator(".lead")).to_contain_text("Your application received the result.")
    await expect(page.get_by_role("button", name="Stop updating")).to_be_hidden()
    # A button stops the updates of a session's page (WCAG 2.2.2).
    await visitor.start_session(shop.id)
    await page.goto("/console/sessions")
    await page.locator("#session-rows a").first.click()
    await page.get_by_role("button", name="Stop updating").click()
    await expect(page.locator("#moving-state")).to_have_text("Updates stopped. Reload the page to see changes.")


async def test_on_a_phone_nothing_is_cut_off(page: Page, visitor: Visitor, console: Installation) -> None:
    """At 320 px every cell is visible below its column's name, and the charts use the available width."""
    shop, _ = await visitor.create_project("W" * 100)
    await visitor.confirm(shop.id, MessengerIdentity("9" * 20, "W" * 200, "w" * 60))
    await page.set_viewport_size({"width": 320, "height": 640})
    await page.goto("/console/sessions")
    session = await page.locator("#session-rows a").get_attribute("href")
    for path in (
        "/console/sessions",
        str(session),
        "/console/audit",
        "/console/analytics",
        "/console/analytics?days=90",
    ):
        await page.goto(path)
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            where = (path, scheme)
            assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), where
            for table in await page.locator("table.cards").all():
                assert await table.evaluate("(it) => it.parentElement.scrollWidth <= it.parentElement.clientWidth"), (
                    where
                )
                assert await table.evaluate(
                    "(it) => [...it.querySelectorAll('time')].every((time) => time.getClientRects().length === 1)"
                ), where
    await page.goto("/console/sessions")
    # A screen reader still has a table, with the names of its columns.
    names = ["Started", "Project", "Status", "User", "What happened"]
    assert await page.get_by_role("columnheader").all_text_contents() == names
    assert await page.get_by_role("table").get_by_role("row").count() == 2
    named = await page.get_by_role("cell").evaluate_all("(cells) => cells.map((cell) => cell.dataset.label)")
    assert named == ["Project", None, "User", None], "a state and a sentence need no name"
    await page.goto("/console/analytics?days=90")
    for chart in await page.locator("svg.chart[role=img]").all():
        box = await chart.bounding_box()
        assert box is not None
        assert 200 < box["width"] <= 320


async def test_an_open_page_keeps_its_times_correct(page: Page) -> None:
    """The script changes relative times by the rules of the service, and leaves dates alone."""
    await page.goto("/console/projects")
    found = await page.evaluate(
        """(distances) => {
          const now = Number(document.body.dataset.now);
          const times = distances.map((distance) => {
            const time = document.createElement("time");
            time.className = "ago";
            time.textContent = "as before";
            // Half a second more, so that the test itself does not reach the next unit.
            time.dateTime = new Date(now + distance + Math.sign(distance) * 500).toISOString();
            document.querySelector("main").append(time);
            return time;
          });
          document.dispatchEvent(new Event("visibilitychange"));
          return times.map((time) => time.textContent);
        }""",
        list(DISTANCES),
    )
    dates = {"19 Oct 2026", "18 Nov 2027"}
    assert [text.replace("\xa0", " ") for text in found] == [
        "as before" if words in dates else words for words in DISTANCES.values()
    ]


async def test_a_row_is_a_link_and_a_filter_closes(page: Page, visitor: Visitor) -> None:
    """A click anywhere in a row opens its page. Escape closes an open filter and returns the focus to it."""
    await visitor.create_project("Shop")
    await page.goto("/console/sessions")
    filter_ = page.locator(".filter > details").first
    await filter_.locator("summary").click()
    await page.get_by_label("Project", exact=True).focus()
    await page.keyboard.press("Escape")
    assert await filter_.get_attribute("open") is None
    assert await page.evaluate("document.activeElement.tagName") == "SUMMARY"
    await page.goto("/console/projects")
    # `force`: the row's link is above the cell that is clicked.
    await page.locator("tbody tr td").last.click(force=True)
    await expect(page.locator("h1")).to_have_text("Shop")
