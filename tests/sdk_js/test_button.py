"""`<taproof-button>` in Chromium, on another origin than the service and under a strict Content-Security-Policy.

Every test fails if the browser reports a problem: an error in the console, or a breach of the policy.
"""

import hashlib
import json
from base64 import urlsafe_b64encode

import pytest
from playwright.async_api import expect
from tests.e2e.conftest import OwnProject, Phone, Service
from tests.sdk_js.conftest import (
    PHONE,
    OpenContext,
    Site,
    Way,
    case,
    decide,
    go,
    heard,
    let_expire,
    navigations,
    part,
    pending,
    shown_link,
    start,
    wait_for,
)
from tests.sdk_js.qr import expected_modules

import taproof

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_desktop(site: Site, way: Way, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """One click shows the link; after the tap on the phone the proof is posted and the page is redirected."""
    page = await go(await open_context(), site.show(f'project-id="{project.id}" submit-url="/auth/taproof"'))
    link = await start(page)
    assert link.startswith("http://127.0.0.1")
    await expect(part(page, "status")).to_have_text("Waiting for you to confirm…")
    await part(page, "summary").click()
    await expect(part(page, "command")).to_have_text(f"/start {link.partition('start=')[2]}")
    await decide(phone, link)
    await page.wait_for_url(f"{site.url}/welcome?from=shop")
    [posted] = site.posted
    assert posted.pop("fetch-site") == "same-origin"
    assert list(posted) == ["proof"]
    identity = taproof.verify_proof(posted["proof"], project.webhook_secret, project_id=project.id)
    assert identity.messenger_id == phone.messenger_id
    # Only long calls for the result, one for each hint that it saw, bound to the session's challenge.
    generate, *verifies = way.calls
    assert [call["wait"] for call in verifies] in ([25], [25, 25])
    assert "code_verifier" not in json.dumps(generate)
    digest = hashlib.sha256(verifies[0]["code_verifier"].encode()).digest()
    assert generate["code_challenge"] == urlsafe_b64encode(digest).rstrip(b"=").decode()
    assert generate["code_challenge_method"] == "S256"


async def test_the_code_holds_the_link(site: Site, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """The picture is the QR code of the link next to it, with the light margin that scanners need."""
    way.mode = pending()
    page = await go(await open_context(), site.show(f'project-id="{project.id}"'))
    link = await start(page)
    modules = await part(page, "code").evaluate(
        """(it) => {
            const { data } = it.getContext("2d").getImageData(0, 0, it.width, it.height);
            const side = it.width / 5;
            const dark = (x, y) => (data[((y * 5 + 2) * it.width + x * 5 + 2) * 4] < 128 ? 1 : 0);
            return Array.from({ length: side }, (_, y) => Array.from({ length: side }, (_, x) => dark(x, y)));
        }"""
    )
    assert [row[4:-4] for row in modules[4:-4]] == expected_modules(link)
    edge = modules[:4] + modules[-4:] + [row[:4] + row[-4:] for row in modules]
    assert not any(map(any, edge))


async def test_events(site: Site, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """Events report every step in order, outside of the shadow tree; preventDefault keeps the page in place."""
    page = await go(await open_context(), site.show(f'project-id="{project.id}" submit-url="/auth/taproof"'))
    await page.evaluate("window.stays = true")
    await decide(phone, await start(page))
    await expect(part(page, "panel")).to_be_hidden()
    everything = await heard(page, "status", "confirmed", "signed-in", "ended", "error")
    assert [each[0] for each in everything] == ["status", "status", "status", "confirmed", "signed-in"]
    assert [detail["status"] for name, detail in everything if name == "status"] == ["starting", "pending", "confirmed"]
    result = everything[3][1]["result"]
    assert result["status"] == "confirmed"
    assert result["identity"] == {
        "messengerId": phone.messenger_id,
        "messengerName": "Ada Lovelace",
        "messengerUsername": None,
        "messengerPhone": None,
    }
    assert result["proof"].count(".") == 2
    assert result["confirmedAt"].endswith("Z")
    assert everything[4][1] == {"location": "/welcome?from=shop"}
    assert page.url == f"{site.url}/"
    # The focus has returned to where it was.
    await expect(page.get_by_role("button", name="Sign in with Telegram")).to_be_focused()


async def test_without_submit_url(site: Site, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """Without submit-url the page gets the proof, nothing is posted, and the panel closes."""
    page = await go(await open_context(), site.show(f'project-id="{project.id}"'))
    await decide(phone, await start(page))
    await expect(part(page, "status")).to_have_text("Confirmed")
    await expect(part(page, "panel")).to_be_hidden()
    [[_, detail]] = await heard(page, "confirmed")
    taproof.verify_proof(detail["result"]["proof"], project.webhook_secret, project_id=project.id)
    assert site.posted == []
    assert await page.evaluate("sessionStorage.length") == 0


async def test_nothing_before_the_click(site: Site, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """A page creates no session before the click."""
    page = await go(await open_context(), site.show(f'project-id="{project.id}"'))
    await expect(page.get_by_role("button", name="Sign in with Telegram")).to_be_visible()
    await page.wait_for_load_state("networkidle")
    assert way.calls == []


async def test_phone(site: Site, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """On a phone the click opens the messenger without a QR code, and the page signs in when the user returns."""
    context = await open_context(PHONE, is_mobile=True)
    page = await go(context, site.show(f'project-id="{project.id}" submit-url="/auth/taproof"'))
    async with context.expect_page() as opened:
        link = await start(page)
    messenger = await opened.value
    await expect(messenger.locator("#start")).to_be_visible()
    assert await messenger.evaluate("window.opener") is None
    await expect(part(page, "code")).to_be_hidden()
    await expect(part(page, "link")).to_have_text("Open Telegram")
    await decide(phone, link)
    await page.wait_for_url("**/welcome?from=shop")


async def test_app_first(site: Site, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """On a phone, a t.me link opens as tg:// first; the https link stays there in case that fails."""
    context = await open_context(PHONE, is_mobile=True)
    page = await go(context, site.show(f'project-id="{project.id}"'))
    asked = await navigations(context, page)
    way.mode = pending()
    link = await start(page)
    assert link == way.mode["deeplink"]
    await expect(part(page, "link")).to_be_focused()
    assert await part(page, "link").get_attribute("target") == "_blank"
    assert await part(page, "link").get_attribute("rel") == "noopener"
    assert link.replace("https://t.me/shop_bot?", "tg://resolve?domain=shop_bot&") in asked
    assert page.url == f"{site.url}/"


async def test_cancelled_in_the_messenger(
    site: Site, open_context: OpenContext, project: OwnProject, phone: Phone
) -> None:
    """Cancel in the messenger ends the sign-in, and "Try again", one key press away, starts a new session."""
    page = await go(await open_context(), site.show(f'project-id="{project.id}"'))
    first = await start(page)
    await decide(phone, first, "Cancel")
    await expect(part(page, "status")).to_have_text("Cancelled")
    await expect(part(page, "link")).to_be_hidden()
    assert (await heard(page, "ended")) == [["ended", {"status": "cancelled"}]]
    await expect(part(page, "retry")).to_be_focused()
    await page.keyboard.press("Enter")
    second = await shown_link(page)
    assert second != first
    await decide(phone, second)
    await expect(part(page, "status")).to_have_text("Confirmed")


async def test_moved(site: Site, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """A button that is moved within the page continues its sign-in."""
    page = await go(await open_context(), site.show(f'project-id="{project.id}"'))
    link = await start(page)
    await page.evaluate("document.body.append(document.querySelector('taproof-button'))")
    await decide(phone, link)
    await wait_for(page, "confirmed")


async def test_expired(site: Site, sandbox: Service, open_context: OpenContext, project: OwnProject) -> None:
    """A session that expired after ten minutes says so."""
    page = await go(await open_context(), site.show(f'project-id="{project.id}"'))
    let_expire(sandbox, await start(page))
    await expect(part(page, "status")).to_have_text("This request is no longer valid.")
    assert (await heard(page, "ended")) == [["ended", {"status": "expired"}]]


@pytest.mark.parametrize("hours", [-30_000, 30_000])
async def test_wrong_clock(
    site: Site, open_context: OpenContext, project: OwnProject, phone: Phone, hours: int
) -> None:
    """A computer whose clock is years off can sign in, even across a reload."""
    context = await open_context()
    await context.add_init_script(f"{{ const now = Date.now; Date.now = () => now() + {hours} * 3_600_000; }}")
    page = await go(context, site.show(f'project-id="{project.id}"'))
    link = await start(page)
    await page.reload()
    assert await shown_link(page) == link
    await decide(phone, link)
    await expect(part(page, "status")).to_have_text("Confirmed")


async def test_two_buttons(site: Site, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """Two buttons on a page do not affect each other; after a reload one of them continues."""
    attributes = f'project-id="{project.id}"'
    page = await go(await open_context(), site.show(f'{attributes} label="One"', f'{attributes} label="Two"'))
    await page.get_by_role("button", name="One").click()
    await page.get_by_role("button", name="Close").click()
    await page.get_by_role("button", name="Two").click()
    link = page.locator("taproof-button >> nth=1 >> [part~=link]")
    await expect(link).to_be_visible()
    href = await link.get_attribute("href") or ""
    await page.reload()
    await expect(page.locator("taproof-button dialog[open]")).to_have_count(1)
    await decide(phone, href)
    await wait_for(page, "confirmed")
    assert len(await heard(page, "confirmed")) == 1


async def test_no_code_that_cannot_work(site: Site, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """A phone cannot open a link to this machine, such as the sandbox's, so it gets no QR code."""
    page = await go(await open_context(), site.show(f'project-id="{project.id}"'))
    failures: list[str] = []
    for base, works in (
        ("http://127.0.0.1:4711/sandbox/phone", False),
        ("http://localhost/sandbox/phone", False),
        ("http://[::1]:4711/sandbox/phone", False),
        ("http://shop.localhost:4711/sandbox/phone", False),
        ("http://192.0.2.7:4711/sandbox/phone", True),
        ("https://localhost.example/phone", True),
        ("https://t.me/localhost", True),
    ):
        with case(failures, base):
            way.mode = pending(base)
            assert (await start(page)).startswith(base)
            await expect(part(page, "code")).to_be_visible(visible=works)
            await expect(part(page, "scan")).to_be_visible(visible=works)
        await page.keyboard.press("Escape")
    assert not failures, "\n".join(failures)


async def test_a_blocked_window(site: Site, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """If the browser blocks the messenger's window, one sentence says what to do, until the link is open."""
    way.mode = pending("http://127.0.0.1:9/phone")
    context = await open_context(PHONE, is_mobile=True)
    await context.add_init_script("window.open = () => null")
    page = await go(context, site.show(f'project-id="{project.id}"'))
    await start(page)
    await expect(part(page, "status")).to_have_text("Your browser blocked the new window. Tap Open Telegram.")
    await expect(part(page, "link")).to_be_focused()
    way.mode = {"status": "pending", "hint": "opened"}
    await page.evaluate("dispatchEvent(new Event('online'))")
    await expect(part(page, "status")).to_have_text("Opened in Telegram: confirm there")


async def test_theme(site: Site, open_context: OpenContext, project: OwnProject) -> None:
    """Custom properties and parts change the look from outside."""
    context = await open_context(bypass_csp=True)
    head = '<link rel="stylesheet" href="/theme.css">'
    page = await go(context, site.show(f'project-id="{project.id}" label="Enter"', head=head))
    button = page.get_by_role("button", name="Enter")
    style = await button.evaluate(
        "(it) => { const s = getComputedStyle(it); return [s.backgroundColor, s.borderRadius, s.textTransform] }"
    )
    assert style == ["rgb(20, 90, 20)", "0px", "uppercase"]


async def test_copy(site: Site, open_context: OpenContext, project: OwnProject) -> None:
    """The command can be copied; if a page may not use the clipboard, it is selected instead."""
    context = await open_context()
    await context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = await go(context, site.show(f'project-id="{project.id}"'))
    link = await start(page)
    command = f"/start {link.partition('start=')[2]}"
    await part(page, "summary").click()
    await page.get_by_role("button", name="Copy").click()
    await expect(page.get_by_role("button", name="Copy ✓")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == command
    await page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')) }")
    await page.get_by_role("button", name="Copy").click()
    await expect(page.get_by_role("button", name="Copy ✓")).to_be_visible()
    assert command in await page.evaluate("getSelection().toString()")
