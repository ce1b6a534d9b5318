"""A sign-in that only this browser can finish: the messenger opens the page again with a return code in its address."""

import json
from typing import Any

import pytest
from playwright.async_api import BrowserContext, Page, expect
from tests.axe import assert_accessible
from tests.sdk_js.conftest import PHONE, OpenContext, Site, Way, go, part, start, wait_for
from tests.sdk_js.stand_in import StandIn
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

STORED = "() => [...Object.values(sessionStorage), ...Object.values(localStorage)].map((each) => JSON.parse(each))"


@pytest.fixture
def service(way: Way) -> StandIn:
    service = StandIn()
    way.mode = service.answer
    return service


@pytest.fixture
def url(site: Site) -> str:
    return site.show('project-id="proj_1" submit-url="/auth/taproof"') + "?shelf=1"


async def begin(context: BrowserContext, url: str) -> Page:
    page = await go(context, url)
    await start(page)
    return page


async def is_clean(page: Page) -> None:
    """Assert that the return code is neither in the address nor in the history, and no secret is stored."""
    assert "taproof_return" not in await page.evaluate("location.href + JSON.stringify(history.state)")
    for stored in await page.evaluate(STORED):
        assert stored.keys() <= {"expiresAt", "used"}


async def test_a_new_tab_finishes(site: Site, service: StandIn, url: str, open_context: OpenContext) -> None:
    """No QR code is shown; the new tab signs in; the first one learns that the result was received.

    Nothing stays stored.
    """
    context = await open_context()
    first = await begin(context, f"{url}#shelf")
    assert service.last.return_url == url
    await expect(part(first, "link")).to_be_visible()
    await expect(part(first, "code")).to_be_hidden()
    back = service.last.confirm()
    await expect(part(first, "status")).to_have_text("Confirmed. To finish, tap the Back button in Telegram")
    second = await go(context, back)
    await second.wait_for_url("**/welcome?from=shop")
    await is_clean(second)
    assert [each["proof"] for each in site.posted] == [service.proof]
    assert await wait_for(first, "ended") == {"status": "used"}
    await expect(part(first, "status")).to_have_text("Signed in in another tab")
    await is_clean(first)
    sign_ins = len(service.sessions)
    await first.get_by_role("button", name="Reload").click()
    await expect(part(first, "panel")).to_be_hidden()
    assert len(service.sessions) == sign_ins
    # Back again, from the messenger: there is nothing to do, and no false alarm.
    third = await go(context, back)
    await expect(part(third, "button")).to_be_visible()
    await expect(part(third, "panel")).to_be_hidden()
    await is_clean(third)
    await third.go_back()
    assert "taproof_return" not in third.url


async def test_a_phone(site: Site, service: StandIn, url: str, open_context: OpenContext) -> None:
    """On a phone, the first tab is hidden and sends no calls; the new one signs in."""
    context = await open_context(PHONE, is_mobile=True)
    await context.route("https://t.me/**", lambda route: route.abort())
    first = await go(context, url)
    await first.evaluate("open = () => {}; Object.defineProperty(document, 'hidden', { value: true })")
    await first.evaluate("document.querySelector('taproof-button').shadowRoot.querySelector('button').click()")
    await until(lambda: service.sessions)
    second = await go(context, service.last.confirm())
    await second.wait_for_url("**/welcome?from=shop")
    assert len(site.posted) == 1


async def test_the_same_tab_finishes(site: Site, service: StandIn, url: str, open_context: OpenContext) -> None:
    """The address may be opened in the waiting tab, which then does not load again, or in one that no longer waits."""
    context = await open_context()
    page = await begin(context, url)
    await page.evaluate("(address) => { location.href = address }", service.last.confirm())
    await page.wait_for_url("**/welcome?from=shop")
    await is_clean(page)
    page = await begin(context, url)
    other = await go(context, url)
    await other.evaluate("(address) => { location.href = address }", service.last.confirm())
    await other.wait_for_url("**/welcome?from=shop")


async def test_another_browser(service: StandIn, url: str, open_context: OpenContext, way: Way) -> None:
    """A browser without the verifier says so and offers the address to open or copy; it sends nothing to anyone."""
    await begin(await open_context(), url)
    back = service.last.confirm()
    permissions = ["clipboard-read", "clipboard-write"]
    context = await open_context(permissions=permissions, bypass_csp=True, reduced_motion="reduce")
    page = await go(context, back)
    await expect(part(page, "status")).to_have_text("This sign-in began in another browser")
    await expect(part(page, "send")).to_contain_text("open this address there")
    await expect(part(page, "command")).to_have_text(back)
    assert await part(page, "link").get_attribute("href") == back
    await expect(part(page, "retry")).to_be_hidden()
    await assert_accessible(page)
    tops = [
        await part(page, each).evaluate("(it) => it.getBoundingClientRect().y")
        for each in ("status", "send", "command", "copy", "link")
    ]
    assert tops == sorted(tops)
    colours = [
        await part(page, each).evaluate("(it) => getComputedStyle(it).backgroundColor")
        for each in ("button", "copy", "link")
    ]
    assert colours[0] == colours[1] != colours[2]
    await expect(part(page, "copy")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Copy ✓")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == back
    assert await wait_for(page, "ended") == {"status": "other_browser"}
    await page.get_by_role("button", name="Close").click()
    assert not any("return_code" in call for call in way.calls)
    assert "taproof_return" not in page.url
    # The next sign-in there is an ordinary one.
    await start(page)
    await expect(part(page, "summary")).to_be_visible()
    await expect(part(page, "command")).to_be_hidden()
    order = await part(page, "panel").evaluate("(it) => [...it.children].map((each) => each.part[0])")
    assert order.index("link") < order.index("status")
    assert await part(page, "link").get_attribute("part") == "link action"


async def test_several_sign_ins(site: Site, service: StandIn, url: str, open_context: OpenContext) -> None:
    """The code is matched with its sign-in among several of this browser, and does not affect the others."""
    context = await open_context()
    pages = [await begin(context, url) for _ in range(3)]
    sessions = list(service.sessions.values())
    second = await go(context, sessions[1].confirm())
    await second.wait_for_url("**/welcome?from=shop")
    assert await wait_for(pages[1], "ended") == {"status": "used"}
    assert [each.status for each in sessions] == ["pending", "used", "pending"]
    for page in (pages[0], pages[2]):
        await expect(part(page, "status")).to_have_text("Waiting for you to confirm…")


async def test_back_after_the_end(service: StandIn, url: str, open_context: OpenContext) -> None:
    """In the browser that began the sign-in, *Back* says how it ended, or nothing, and offers no address."""
    context = await open_context()
    page = await begin(context, url)
    back = service.last.confirm()
    await page.get_by_role("button", name="Close").click()
    await until(lambda: service.last.status == "cancelled")
    assert [each.keys() for each in await page.evaluate(STORED)] == [{"expiresAt"}]
    late = await go(context, back)
    await expect(part(late, "button")).to_be_visible()
    await expect(part(late, "panel")).to_be_hidden()
    # While another sign-in is pending, the code may be that of the ended one.
    await begin(context, url)
    late = await go(context, back)
    assert await wait_for(late, "ended") == {"status": "used"}
    assert service.last.status == "pending"


async def test_back_after_an_abandoned_end(service: StandIn, way: Way, url: str, open_context: OpenContext) -> None:
    """The page of the sign-in was left before it ended."""
    context = await open_context()
    page = await begin(context, url)
    back = service.last.confirm()
    # This call of the page gets no answer.
    await until(lambda: way.calls[-1].get("seen_hint") == "return")
    await page.close()
    service.last.return_code, service.last.status = None, "cancelled"
    late = await go(context, back)
    assert await wait_for(late, "ended") == {"status": "cancelled"}
    await expect(part(late, "help")).to_be_hidden()


async def test_a_foreign_code(site: Site, service: StandIn, url: str, open_context: OpenContext, way: Way) -> None:
    """A code of a sign-in that began elsewhere signs nobody in, and does not affect the sign-ins of this browser."""
    attacker = await begin(await open_context(), url)
    stolen = service.last.confirm()
    context = await open_context()
    victim = await begin(context, url)
    session = service.last
    page = await go(context, stolen)
    await expect(part(page, "status")).to_have_text("This sign-in began in another browser")
    # Not even while it is tried, the tab has the other tab's sign-in as its own.
    assert await page.evaluate("sessionStorage.length") == 0
    way.mode = "hang"
    page = await go(context, stolen)
    await until(lambda: way.calls[-1].get("return_code"))
    assert service.last.challenge not in await page.evaluate("JSON.stringify(sessionStorage)")
    way.mode = service.answer
    await page.get_by_role("button", name="Close").click()
    await wait_for(page, "ended")
    assert await page.evaluate("sessionStorage.length") == 0
    assert not any("cancel" in call["path"] for call in way.calls)
    # Nor in the tab that waits.
    await victim.evaluate("(address) => { location.href = address }", stolen)
    await until(lambda: victim.url == url)
    session.become("opened")
    await expect(part(victim, "status")).to_have_text("Opened in Telegram: confirm there")
    assert site.posted == []
    assert session.status == "pending"
    await expect(part(attacker, "status")).to_have_text("Confirmed. To finish, tap the Back button in Telegram")
    finishing = await go(context, session.confirm())
    await finishing.wait_for_url("**/welcome?from=shop")


async def test_a_reload_keeps_the_code(site: Site, service: StandIn, url: str, open_context: OpenContext) -> None:
    """A reload while the proof is sent reads the same result again, although the address no longer has the code."""
    context = await open_context()
    await begin(context, url)
    site.answers = [(0, None)]
    page = await go(context, service.last.confirm())
    await until(lambda: site.posted)
    await page.reload()
    await page.wait_for_url("**/welcome?from=shop")
    assert len(site.posted) == 2


async def test_closing_while_a_foreign_code_is_tried(
    service: StandIn, url: str, open_context: OpenContext, way: Way
) -> None:
    """Closing the panel cancels the sign-in of this tab, not the one of another tab that the code is tried with."""
    await begin(await open_context(), url)
    stolen = service.last.confirm()
    context = await open_context(breaks=True)
    await begin(context, url)
    other = service.last
    page = await begin(context, url)
    own = service.last
    way.mode = "html"
    await page.goto("about:blank")
    await page.goto(stolen)
    await expect(part(page, "status")).to_have_text("No connection. Trying again…")
    way.mode = service.answer
    await page.get_by_role("button", name="Close").click()
    await until(lambda: own.status == "cancelled")
    assert await page.evaluate("sessionStorage.length") == 0
    assert other.status == "pending"


async def test_a_broken_network_keeps_the_code(
    site: Site, way: Way, service: StandIn, url: str, open_context: OpenContext
) -> None:
    """The code is tried again when the service is back, also after a reload."""
    context = await open_context(breaks=True)
    await begin(context, url)
    back = service.last.confirm()
    way.mode = "html"
    page = await go(context, back)
    await expect(part(page, "status")).to_have_text("No connection. Trying again…")
    await page.reload()
    way.mode = service.answer
    await page.evaluate("dispatchEvent(new Event('online'))")
    await page.wait_for_url("**/welcome?from=shop")


async def test_two_projects(service: StandIn, site: Site, open_context: OpenContext) -> None:
    """With several buttons, the one whose sign-in the code finishes takes it."""
    url = site.show('project-id="proj_1" label="One"', 'project-id="proj_2" label="Two" submit-url="/auth/taproof"')
    context = await open_context()
    page = await go(context, url)
    await page.get_by_role("button", name="Two").click()
    await until(lambda: service.sessions)
    second = await go(context, service.last.confirm())
    await second.wait_for_url("**/welcome?from=shop")


async def test_the_attribute(service: StandIn, site: Site, open_context: OpenContext) -> None:
    """`same-device="require"` shows no QR code, whatever the service answers."""
    service.accepts_return = False
    page = await begin(await open_context(breaks=True), site.show('project-id="proj_1" same-device="require"'))
    await expect(part(page, "link")).to_be_visible()
    await expect(part(page, "code")).to_be_hidden()


@pytest.mark.parametrize(("returns", "shared"), [({}, 0), ({"return_offered": True}, 1)])
async def test_what_other_tabs_can_read(
    service: StandIn, url: str, open_context: OpenContext, returns: dict[str, bool], shared: int
) -> None:
    """Without a return, only the tab stores the sign-in. The next page load or sign-in removes abandoned ones."""
    service.returns = returns
    context = await open_context()
    page = await begin(context, url)
    assert await page.evaluate("[localStorage.length, sessionStorage.length]") == [shared, 1]
    abandon = "localStorage.setItem('taproof:x:y:z', JSON.stringify({ token: 't', expiresAt: Date.now() - 300_001 }))"
    await page.evaluate(abandon)
    late = await go(context, url)
    assert await late.evaluate("localStorage.length") == shared
    await late.evaluate(abandon)
    await start(late)
    assert await late.evaluate("localStorage.length") == 2 * shared


async def test_what_is_stored(service: StandIn, url: str, open_context: OpenContext) -> None:
    """Only this origin stores the sign-in, until its end; an expired one is removed when the next code arrives."""
    context = await open_context()
    page = await begin(context, url)
    stored: list[dict[str, Any]] = await page.evaluate(STORED)
    assert len(stored) == 2
    assert stored[0] == stored[1]
    assert stored[0].keys() == {
        *("token", "deeplink", "appLink", "command", "matchCode", "returnRequired"),
        *("verifier", "challenge", "returns", "expiresAt"),
    }
    await page.evaluate(
        "localStorage.setItem('taproof:x:y:z', JSON.stringify({ token: 't', expiresAt: Date.now() - 300_001 }))"
    )
    await page.evaluate("localStorage.setItem('taproof:x:y:q', '{')")
    await page.evaluate("localStorage.setItem('own', 'kept')")
    await page.goto("about:blank")
    await page.goto(service.last.confirm())
    await page.wait_for_url("**/welcome?from=shop")
    left = dict(await page.evaluate("Object.entries(localStorage)"))
    assert left.pop("own") == "kept"
    [(name, value)] = left.items()
    assert name.endswith(f":proj_1:{stored[0]['challenge']}")
    assert json.loads(value).keys() == {"expiresAt", "used"}
