"""`<taproof-button>` when the service or the application refuses, or returns something that no page should use."""

import pytest
from playwright.async_api import expect
from tests.e2e.conftest import OwnProject, Phone
from tests.sdk_js.conftest import OpenContext, Site, Way, case, decide, go, heard, hurried, part, start, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

TOKEN = "a-B_" * 10 + "xyz"
CONFIRMED = {
    "session_token": TOKEN,
    "deeplink": f"https://t.me/shop_bot?start={TOKEN}",
    "status": "confirmed",
    "messenger_id": "1",
    "messenger_name": "A",
    "proof": "p",
    "confirmed_at": "t",
}
"""Answers generate and then verify: a user who confirms at once."""


async def test_hostile_link(site: Site, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """A link other than an https sign-in link is never shown nor opened, whatever sent it."""
    page = await go(await open_context(clock=True), site.show(f'project-id="{project.id}"'))
    way.mode = {"session_token": "x", "deeplink": "javascript:alert(1)//?start=x"}
    await page.get_by_role("button", name="Sign in with Telegram").click()
    async with hurried(page):
        await expect(part(page, "status")).to_have_text("No connection. Trying again…")
    await expect(part(page, "link")).to_be_hidden()
    assert await part(page, "link").get_attribute("href") is None


async def test_refusals(site: Site, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """A wrong project, one without public access and a paused one end at once, with the service's sentence and code."""
    context = await open_context(breaks=True)

    async def refused(project_id: str) -> str:
        page = await go(context, site.show(f'project-id="{project_id}"'))
        way.calls.clear()
        await page.get_by_role("button", name="Sign in with Telegram").click()
        await expect(part(page, "status")).to_have_text("Sign-in failed")
        await expect(part(page, "retry")).to_be_focused()
        [[_, error]] = await heard(page, "error")
        assert error["name"] == "SignInError"
        await expect(part(page, "detail")).to_have_text(error["message"])
        assert len(way.calls) == 1
        code: str = error["code"]
        return code

    assert await refused("proj_doesnotexist0000") == "project_not_found"
    project.developer.ask("PATCH", f"/projects/{project.id}", json={"public_access": False})
    assert await refused(project.id) == "public_access_disabled"
    project.developer.ask("PATCH", f"/projects/{project.id}", json={"public_access": True, "is_active": False})
    assert await refused(project.id) == "project_paused"


async def test_insecure_page(site: Site, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """If the browser denies a page cryptography, the panel says why, and nothing is sent."""
    context = await open_context()
    await context.add_init_script("Object.defineProperty(crypto, 'subtle', { value: undefined })")
    page = await go(context, site.show(f'project-id="{project.id}"'))
    await page.get_by_role("button", name="Sign in with Telegram").click()
    await expect(part(page, "detail")).to_contain_text("https")
    [[_, error]] = await heard(page, "error")
    assert error["code"] == "insecure_context"
    assert way.calls == []


async def test_hostile_location(site: Site, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """The page follows a redirect only to its own site, and passes on no address that a router would leave it by."""
    page = await go(await open_context(), site.show(f'project-id="{project.id}" submit-url="/auth/taproof"'))
    way.mode = CONFIRMED
    failures: list[str] = []
    for location in (
        "https://evil.example/",
        "//evil.example/x",
        "/.//evil.example/x",
        "/a/..//evil.example",
        "/%2e//evil.example",
        "/./\\evil.example",
        "javascript:alert(1)",
        "data:text/html,x",
        "http://[",
        None,
        "",
    ):
        with case(failures, location):
            await page.evaluate("window.heard = []")
            site.answers = [(200, {"location": location})]
            await page.get_by_role("button", name="Sign in with Telegram").click()
            assert (await wait_for(page, "error"))["code"] == "submit_failed"
            await expect(part(page, "status")).to_have_text("Sign-in failed")
            assert (page.url, await heard(page, "signed-in")) == (f"{site.url}/", [])
        await page.keyboard.press("Escape")
    assert not failures, "\n".join(failures)


async def test_submit_refused(site: Site, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """The application's refusal of a proof is shown as text, and the proof is not sent again."""
    page = await go(await open_context(breaks=True), site.show(f'project-id="{project.id}" submit-url="/auth/taproof"'))
    site.answers = [(401, {"error": "<b>This account</b> is closed."})]
    await decide(phone, await start(page))
    await expect(part(page, "detail")).to_have_text("<b>This account</b> is closed.")
    await expect(page.locator("taproof-button b")).to_have_count(0)
    assert len(site.posted) == 1
    # It is final: a reload does not send the proof again.
    assert await page.evaluate("sessionStorage.length") == 0


async def test_submit_tried_again(site: Site, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """An error of a proxy in front of the application, as a page or JSON, does not lose the sign-in."""
    context = await open_context(breaks=True, clock=True)
    page = await go(context, site.show(f'project-id="{project.id}" submit-url="/auth/taproof"'))
    await page.evaluate("window.stays = true")
    way.mode = CONFIRMED
    failures: list[str] = []
    for answer in (
        (502, "<h1>Bad Gateway</h1>"),
        (429, {"error": "Slow down."}),
        (502, {"error": "Bad gateway."}),
        (503, {"error": "Starting."}),
        (504, {"error": "Too slow."}),
    ):
        with case(failures, answer):
            await page.evaluate("window.heard = []")
            site.answers, site.posted = [answer], []
            await page.get_by_role("button", name="Sign in with Telegram").click()
            async with hurried(page):
                assert await wait_for(page, "signed-in") == {"location": "/welcome?from=shop"}
            assert len(site.posted) == 2
            await expect(part(page, "panel")).to_be_hidden()
    assert not failures, "\n".join(failures)


async def test_submit_is_not_tried_for_ever(
    site: Site, way: Way, open_context: OpenContext, project: OwnProject
) -> None:
    """Three attempts, with the pauses in Retry-After of up to five seconds; then its sentence is shown."""
    context = await open_context(breaks=True)
    # Timers are recorded, and run a hundred times as fast once the proof is there.
    await context.add_init_script(
        """window.pauses = [];
        const real = setTimeout;
        window.setTimeout = (act, delay) => {
            if (!window.heard?.some(([name]) => name === "confirmed")) return real(act, delay);
            pauses.push(delay);
            return real(act, delay / 100);
        };"""
    )
    failures: list[str] = []
    for retry_after, pauses in (("3", [0, 3_000, 3_000]), ("3600", [0, 5_000, 5_000]), ("soon", [0, 1_000, 2_000])):
        with case(failures, retry_after):
            page = await go(context, site.show(f'project-id="{project.id}" submit-url="/auth/taproof"'))
            site.retry_after, site.posted = retry_after, []
            site.answers = [(503, {"error": f"Away, {attempt}."}) for attempt in (1, 2, 3, 4)]
            way.mode = CONFIRMED
            await page.get_by_role("button", name="Sign in with Telegram").click()
            await expect(part(page, "detail")).to_have_text("Away, 3.")
            assert len(site.posted) == 3
            assert await page.evaluate("pauses") == pauses
            await page.close()
    assert not failures, "\n".join(failures)


async def test_submit_without_a_network(site: Site, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """If the application cannot be reached, one sentence says what to do."""
    context = await open_context(breaks=True, clock=True)
    page = await go(context, site.show(f'project-id="{project.id}" submit-url="/auth/taproof"'))
    await page.route("**/auth/taproof", lambda route: route.abort())
    way.mode = CONFIRMED
    await page.get_by_role("button", name="Sign in with Telegram").click()
    async with hurried(page):
        await expect(part(page, "detail")).to_have_text(
            "This site cannot be reached. Check your connection, then try again."
        )
