"""`<taproof-button>` when the network, the tab or the page disappears during a sign-in."""

from itertools import groupby
from typing import Any

import pytest
from aiohttp import web
from playwright.async_api import Page, expect
from tests.chromium import open_chromium
from tests.e2e.conftest import OwnProject, Phone
from tests.sdk_js.conftest import (
    PHONE,
    OpenContext,
    Site,
    Way,
    case,
    decide,
    go,
    heard,
    hurried,
    part,
    shown_link,
    start,
    wait_for,
)
from tests.waiting import until

import taproof

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

COMES_BACK = "() => { document.dispatchEvent(new Event('visibilitychange', { bubbles: true })) }"

HIDES = """() => {
    Object.defineProperty(document, 'hidden', { value: true, configurable: true });
    document.dispatchEvent(new Event('visibilitychange', { bubbles: true }));
}"""

COUNTS_ANSWERS = """() => {
    const read = Response.prototype.json;
    window.answersRead = 0;
    Response.prototype.json = async function () {
        const answer = await read.call(this);
        window.answersRead += 1;
        return answer;
    };
}"""


async def confirmed(page: Page, project: OwnProject) -> None:
    """Wait until the page has a valid proof."""
    detail = await wait_for(page, "confirmed")
    taproof.verify_proof(detail["result"]["proof"], project.webhook_secret, project_id=project.id)


@pytest.mark.parametrize("size", [None, PHONE], ids=["desktop", "phone"])
async def test_reload(
    site: Site, way: Way, open_context: OpenContext, project: OwnProject, phone: Phone, size: dict[str, int] | None
) -> None:
    """A reload continues the same session without another click, and opens nothing by itself."""
    context = await (open_context(size, is_mobile=True) if size else open_context())
    page = await go(context, site.show(f'project-id="{project.id}" submit-url="/auth/taproof"'))
    link = await start(page)
    count = len(context.pages)
    await page.reload()
    assert await shown_link(page) == link
    await expect(part(page, "status")).to_have_text("Waiting for you to confirm…")
    if size:
        await expect(part(page, "code")).to_be_hidden()
    await decide(phone, link)
    await page.wait_for_url("**/welcome?from=shop")
    assert len([call for call in way.calls if "generate" in call["path"]]) == 1
    assert len(context.pages) <= max(count, 2 if size else 1)
    assert await page.evaluate("sessionStorage.length") == 0


async def test_reload_while_the_proof_is_sent(
    site: Site, open_context: OpenContext, project: OwnProject, phone: Phone
) -> None:
    """A reload before the application's server has answered sends the same proof again, and signs in."""
    page = await go(await open_context(), site.show(f'project-id="{project.id}" submit-url="/auth/taproof"'))
    site.answers = [(0, None)]
    await decide(phone, await start(page))
    await until(lambda: len(site.posted) == 1)
    await page.reload()
    await page.wait_for_url("**/welcome?from=shop")
    assert [each["proof"] for each in site.posted] == [site.posted[0]["proof"]] * 2
    assert await page.evaluate("sessionStorage.length") == 0


async def test_phone_out_of_sight(
    site: Site, way: Way, open_context: OpenContext, project: OwnProject, phone: Phone
) -> None:
    """A phone in the messenger polls nothing, because an answer could be lost; it polls on return."""
    page = await go(await open_context(PHONE, is_mobile=True, breaks=True), site.show(f'project-id="{project.id}"'))
    link = await start(page)
    await until(lambda: way.waits() == [25])
    async with page.expect_event("requestfailed", lambda request: "verify" in request.url):
        await page.evaluate(HIDES)
    await page.evaluate("() => { dispatchEvent(new Event('online')) }")
    await decide(phone, link)
    # Here the network could be down for longer than the answer can be read again.
    assert way.waits() == [25]
    assert await heard(page, "confirmed") == []
    await page.evaluate("() => { delete document.hidden }")
    await page.evaluate(COMES_BACK)
    await confirmed(page, project)
    assert way.waits() == [25, 25]


async def test_closed_out_of_sight(site: Site, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """If a sign-in ends while a phone hides the page, the page notices on return."""
    page = await go(await open_context(PHONE, is_mobile=True, breaks=True), site.show(f'project-id="{project.id}"'))
    await start(page)
    await until(lambda: way.waits() == [25])
    await page.evaluate(HIDES)
    await page.evaluate("() => document.querySelector('taproof-button').remove()")
    await until(lambda: page.evaluate("sessionStorage.length === 0"))


async def test_desktop_tab_in_the_background(
    site: Site, open_context: OpenContext, project: OwnProject, phone: Phone
) -> None:
    """In a background tab of a desktop the page keeps polling, and learns that the user has confirmed."""
    page = await go(await open_context(), site.show(f'project-id="{project.id}"'))
    await page.evaluate(HIDES)
    await decide(phone, await start(page))
    await confirmed(page, project)
    assert await page.evaluate("document.hidden")


async def test_confirmed_while_away(site: Site, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """A user who confirms while the page is closed is signed in when it opens again."""
    page = await go(await open_context(), site.show(f'project-id="{project.id}"'))
    link = await start(page)
    await page.goto("about:blank")
    await decide(phone, link)
    await page.goto(f"{site.url}/")
    await confirmed(page, project)


async def test_back_to_the_page_as_it_was_left(site: Site, project: OwnProject, phone: Phone, sandbox: object) -> None:
    """A page restored from bfcache checks the session immediately."""
    async with open_chromium(keeps_pages=True) as browser:
        context = await browser.new_context()
        page = await go(context, site.show(f'project-id="{project.id}"'))
        link = await start(page)
        await page.evaluate("window.kept = true")
        await page.goto(f"{site.url}/welcome")
        await decide(phone, link)
        await page.go_back(wait_until="commit")
        assert await page.evaluate("window.kept")
        await confirmed(page, project)
        await context.close()


async def test_frozen_tab(site: Site, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """A tab that the browser froze with all timers signs in when it is resumed."""
    context = await open_context()
    page = await go(context, site.show(f'project-id="{project.id}"'))
    link = await start(page)
    session = await context.new_cdp_session(page)
    await session.send("Page.setWebLifecycleState", {"state": "frozen"})
    await decide(phone, link)
    await session.send("Page.setWebLifecycleState", {"state": "active"})
    await confirmed(page, project)


@pytest.mark.parametrize("event", ["visibilitychange", "online"])
async def test_call_that_never_ends(
    site: Site, way: Way, open_context: OpenContext, project: OwnProject, phone: Phone, event: str
) -> None:
    """The page does not wait for a call that died while the phone slept: it polls again when it is shown."""
    page = await go(await open_context(), site.show(f'project-id="{project.id}"'))
    way.mode = "pass"
    link = await start(page)
    await until(lambda: way.waits() == [25])
    # From here on nothing is answered, as to a sleeping phone; a hidden page does not even poll.
    way.mode = "hang"
    await page.evaluate("() => { Object.defineProperty(document, 'hidden', { value: true, configurable: true }) }")
    await page.evaluate(COMES_BACK)
    await page.evaluate("() => { delete document.hidden }")
    assert way.waits() == [25]
    await page.evaluate(COMES_BACK)
    await until(lambda: len(way.waits()) == 2)
    await decide(phone, link)
    way.mode = "pass"
    if event == "online":
        await page.evaluate("() => { dispatchEvent(new Event('online')) }")
    else:
        await page.evaluate(COMES_BACK)
    # Long before the 35 seconds after which a call counts as lost.
    await until(lambda: len(way.waits()) == 3)
    await confirmed(page, project)


async def test_offline(site: Site, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """Without a network the panel says so, and continues when it returns."""
    context = await open_context(breaks=True, clock=True)
    page = await go(context, site.show(f'project-id="{project.id}"'))
    link = await start(page)
    await context.set_offline(offline=True)
    await page.evaluate(COMES_BACK)
    async with hurried(page):
        await expect(part(page, "status")).to_have_text("No connection. Trying again…")
    assert (await heard(page, "status"))[-1] == ["status", {"status": "retrying"}]
    await context.set_offline(offline=False)
    async with hurried(page):
        await expect(part(page, "status")).to_have_text("Waiting for you to confirm…")
    await decide(phone, link)
    await confirmed(page, project)


async def test_broken_from_the_start(
    site: Site, way: Way, open_context: OpenContext, project: OwnProject, phone: Phone
) -> None:
    """A proxy's 502 page, dropped connections and rate limits are waited out, before there is a link and after."""
    context = await open_context(breaks=True, clock=True)
    failures: list[str] = []
    for mode in ("html", "drop", "limit"):
        with case(failures, mode):
            page = await go(context, site.show(f'project-id="{project.id}"'))
            way.mode = mode
            await page.get_by_role("button", name="Sign in with Telegram").click()
            async with hurried(page):
                await expect(part(page, "status")).to_have_text("No connection. Trying again…")
            way.mode = "pass"
            async with hurried(page):
                link = await shown_link(page)
                await expect(part(page, "status")).to_have_text("Waiting for you to confirm…")
            way.mode = mode
            await page.evaluate(COMES_BACK)
            async with hurried(page):
                await expect(part(page, "status")).to_have_text("No connection. Trying again…")
            way.mode = "pass"
            await decide(phone, link)
            async with hurried(page):
                await confirmed(page, project)
            await page.close()
    assert not failures, "\n".join(failures)


async def test_retry_after_is_kept(site: Site, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """During the pause of Retry-After, nothing is sent, even if the user leaves and returns."""

    async def refuse(verb: str, body: dict[str, Any]) -> web.Response:
        return web.json_response({"error": "Slow down."}, status=429, headers={"Retry-After": "60"})

    page = await go(await open_context(breaks=True, clock=True), site.show(f'project-id="{project.id}"'))
    way.mode = refuse
    await page.evaluate(COUNTS_ANSWERS)
    await page.get_by_role("button", name="Sign in with Telegram").click()
    # Before the page has read the answer, it does not know that it has to pause.
    await until(lambda: page.evaluate("window.answersRead === 1"))
    for _ in range(10):
        await page.evaluate(COMES_BACK)
    assert len(way.calls) == 1
    await page.clock.fast_forward(60_000)
    await until(lambda: page.evaluate("window.answersRead === 2"))
    assert len(way.calls) == 2
    # Only the user ends it.
    await page.keyboard.press("Escape")
    await wait_for(page, "ended")


async def test_confirmed_during_a_rate_limit(
    site: Site, way: Way, open_context: OpenContext, project: OwnProject, phone: Phone
) -> None:
    """A user who confirms during a rate limit is signed in by the first accepted call."""
    page = await go(
        await open_context(breaks=True, clock=True), site.show(f'project-id="{project.id}" submit-url="/auth/taproof"')
    )
    link = await start(page)
    way.mode = "limit"
    async with page.expect_response(lambda response: response.status == 429):
        await page.evaluate(COMES_BACK)
    await decide(phone, link)
    async with hurried(page):
        async with page.expect_response(lambda response: response.status == 429):
            pass
        way.mode = "pass"
        await page.wait_for_url("**/welcome?from=shop")
    assert len(site.posted) == 1


async def test_lost_answer(site: Site, way: Way, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """A confirmed answer that is cut off is read again by the holder of the verifier."""
    page = await go(await open_context(breaks=True), site.show(f'project-id="{project.id}"'))
    way.mode = "cut"
    await decide(phone, await start(page))
    await confirmed(page, project)
    assert way.mode == "pass", "no answer was cut off"


async def test_service_that_does_not_wait(
    site: Site, way: Way, open_context: OpenContext, project: OwnProject, phone: Phone
) -> None:
    """A service that answers `pending` at once is polled every two seconds, not in a tight loop."""
    way.mode = "deaf"
    context = await open_context()
    page = await context.new_page()
    await page.clock.install()
    await page.goto(site.show(f'project-id="{project.id}"'))
    link = await start(page)
    await until(lambda: len(way.waits()) == 1)
    # From here on the test controls the page's clock.
    await page.clock.pause_at(await page.evaluate("Date.now() / 1000 + 1"))
    seen = len(way.waits())
    asked = []
    for step in range(300):
        await page.clock.run_for(100)
        asked += [step] * (len(way.waits()) - seen)
        seen = len(way.waits())
        if len(asked) > 2:
            break
    first, second, third = asked
    assert min(second - first, third - second) > 15
    await decide(phone, link)
    await page.clock.resume()
    await confirmed(page, project)


async def test_impatient_proxy(
    site: Site, way: Way, open_context: OpenContext, project: OwnProject, phone: Phone
) -> None:
    """Behind a proxy that cuts long calls, the calls become shorter, down to plain polling, and the sign-in works."""
    page = await go(await open_context(breaks=True, clock=True), site.show(f'project-id="{project.id}"'))
    link = await start(page)
    way.let_time_pass = lambda: page.clock.fast_forward(1_200)
    way.mode = "impatient"
    await page.evaluate(COMES_BACK)
    async with hurried(page):
        await until(lambda: 6 in way.waits())
    # On return, the first call may or may not have begun, and is then repeated with the same length.
    assert [wait for wait, _ in groupby(wait for wait in way.waits() if wait)][:3] == [25, 12, 6]
    await decide(phone, link)
    async with hurried(page):
        await confirmed(page, project)


async def test_slow_network(site: Site, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """A second of delay in each direction only slows the sign-in down."""
    context = await open_context(PHONE, is_mobile=True)
    page = await context.new_page()
    session = await context.new_cdp_session(page)
    await session.send("Network.enable")
    slow = {"offline": False, "latency": 1_000, "downloadThroughput": 20_000, "uploadThroughput": 10_000}
    await session.send("Network.emulateNetworkConditions", slow)
    await page.goto(site.show(f'project-id="{project.id}" submit-url="/auth/taproof"'))
    link = await start(page)
    await decide(phone, link)
    await page.wait_for_url("**/welcome?from=shop")
