"""Relays in two browsers, with the real service: a false page shows a link that the attacker's browser started.

The victim opens the link on their own device, taps Confirm, and taps *Back to …*, which opens the real site in the
victim's browser. The attacker's browser waits for the proof.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import BrowserContext, Page, expect
from tests.chromium import open_profile
from tests.e2e.conftest import OwnProject, Phone, Service, make_phone
from tests.sdk_js.conftest import OpenContext, Site, go, heard, part, serve, start, wait_for
from tests.waiting import until

import taproof

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

RELAYS = 20
OTHER_BROWSER = "This sign-in began in another browser"


@pytest.fixture
def guarded(project: OwnProject, site: Site) -> OwnProject:
    """Return a project whose sign-ins only the browser that began them can finish."""
    set_policy(project, site, "require")
    return project


def set_policy(project: OwnProject, site: Site, policy: str) -> None:
    changes = {"allowed_origins": [site.url], "same_device": policy}
    assert project.developer.ask("PATCH", f"/projects/{project.id}", json=changes)["same_device"] == policy


async def confirm(phone: Phone, link: str) -> str | None:
    """Open a link, tap Confirm; return the address of the button that leads back, if the messenger shows one."""
    await asyncio.to_thread(phone.sign_in, {"deeplink": link})
    messages: list[dict[str, Any]] = await until(lambda: asyncio.to_thread(decided, phone))
    urls = [each["url"] for row in messages[-1]["inline_keyboard"] or [] for each in row if "url" in each]
    return urls[0] if urls else None


def decided(phone: Phone) -> list[dict[str, Any]] | None:
    answer = phone.client.get(f"/sandbox/users/{phone.messenger_id}/messages")
    messages: list[dict[str, Any]] = answer.json()["messages"]
    return messages if "Confirm" not in str(messages[-1]["inline_keyboard"]) else None


class Evil:
    """An attacker's site. It records the requests that it receives, and can show any link or page in a frame."""

    url = ""

    def __init__(self) -> None:
        self.requests: list[str] = []

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(f"{request.path_qs} {dict(request.headers)} {await request.text()}")
        return web.Response(text="<title>Shop</title><link rel=icon href=data:,>", content_type="text/html")


@pytest_asyncio.fixture(loop_scope="session")
async def evil() -> AsyncIterator[Evil]:
    evil = Evil()
    runner, evil.url = await serve(evil.answer)
    yield evil
    await runner.cleanup()


async def relay(page: Page, site: Site, context: BrowserContext, phone: Phone) -> None:
    """Start a sign-in in the attacker's page, and let the victim do everything that the false page says."""
    back = await confirm(phone, await start(page))
    if back is not None:
        victim = await go(context, back)
        await expect(part(victim, "status")).to_have_text(OTHER_BROWSER)
        assert "taproof_return" not in victim.url
        await victim.close()


async def test_no_relay_gets_a_proof(
    site: Site, open_context: OpenContext, guarded: OwnProject, phone: Phone, client: httpx.Client
) -> None:
    """With `require`, none of 20 relays gets a proof or an identity, and the victim's browser signs nobody in."""
    url = site.show(f'project-id="{guarded.id}" submit-url="/auth/taproof"')
    attacker, victims = await open_context(), await open_context()
    for _ in range(RELAYS):
        page = await go(attacker, url)
        await relay(page, site, victims, phone)
        await expect(part(page, "code")).to_be_hidden()
        # The attacker has the token and the verifier, and can ask at any time and guess codes.
        kept = await page.evaluate("JSON.parse(Object.values(sessionStorage)[0])")
        body = {"project_id": guarded.id, "session_token": kept["token"], "code_verifier": kept["verifier"]}
        for guess in ({}, {"return_code": "A" * 32}):
            answer = await asyncio.to_thread(client.post, "/api/v1/verify/public", json=body | guess)
            assert answer.json() == {"status": "pending"}
        assert await heard(page, "confirmed", "signed-in", "error") == []
        await page.close()
    assert site.posted == []
    sessions = guarded.developer.ask("GET", f"/sessions?project_id={guarded.id}")["sessions"]
    assert len(sessions) == RELAYS
    assert {(each["messenger_id"], each["confirmed_at"]) for each in sessions} == {("", None)}


@pytest.mark.parametrize("policy", ["off", "offer"])
async def test_the_same_relay_without_the_policy(
    site: Site, open_context: OpenContext, project: OwnProject, phone: Phone, policy: str
) -> None:
    """With `off` and `offer`, the same relay gets a proof, so the test above can be trusted."""
    set_policy(project, site, policy)
    page = await go(await open_context(), site.show(f'project-id="{project.id}"'))
    assert (await confirm(phone, await start(page)) is None) is (policy == "off")
    await wait_for(page, "confirmed")


@pytest.mark.parametrize("policy", ["off", "offer", "require"])
async def test_the_users_own_browser_signs_in(
    site: Site, open_context: OpenContext, project: OwnProject, phone: Phone, policy: str
) -> None:
    """Under every policy, the user who began the sign-in gets in once, in the original tab or in the new one."""
    set_policy(project, site, policy)
    context = await open_context()
    page = await go(context, site.show(f'project-id="{project.id}" submit-url="/auth/taproof"'))
    back = await confirm(phone, await start(page))
    if policy == "require":
        await expect(part(page, "status")).to_contain_text("Confirmed. To finish")
        assert back
        new = await go(context, back)
        await new.wait_for_url("**/welcome?from=shop")
        assert await wait_for(page, "ended") == {"status": "used"}
    else:
        await page.wait_for_url("**/welcome?from=shop")
    if back:
        # The button is still in the chat: nothing happens, and there is no false alarm.
        late = await go(context, back)
        await expect(part(late, "button")).to_be_visible()
        await expect(part(late, "panel")).to_be_hidden()
        assert "taproof_return" not in late.url
    [posted] = site.posted
    identity = taproof.verify_proof(posted["proof"], project.webhook_secret, project_id=project.id)
    assert identity.messenger_id == phone.messenger_id


async def test_a_false_page_cannot_start(
    site: Site, evil: Evil, open_context: OpenContext, guarded: OwnProject
) -> None:
    """The button on a page of another origin starts nothing."""
    page = await go(await open_context(breaks=True), evil.url)
    script = f"{site.base_url}/sdk/taproof.js"
    error = await page.evaluate(
        """async ([script, projectId]) => {
            const { signIn } = await import(script);
            return signIn({ projectId }).catch(({ code }) => code);
        }""",
        [script, guarded.id],
    )
    assert error in {"origin_not_allowed", "same_device_required"}


async def test_another_origin_reads_nothing(
    site: Site, evil: Evil, open_context: OpenContext, guarded: OwnProject, phone: Phone, sandbox: Service
) -> None:
    """A page of another origin that opens, frames or is linked from the returned page sees no code and no verifier."""
    context = await open_context(breaks=True, bypass_csp=True)
    page = await go(context, site.show(f'project-id="{guarded.id}"'))
    back = await confirm(phone, await start(page))
    assert back
    code = back.partition("=")[2].rpartition("=")[2]
    verifier = await page.evaluate("JSON.parse(Object.values(localStorage)[0]).verifier")
    spy = await go(context, evil.url)
    # As if the messenger had opened the page from here: a window that this page holds, and a frame.
    found = await spy.evaluate(
        """async (back) => {
            addEventListener("message", ({ data }) => found.push(data));
            const found = [], held = open(back);
            const frame = Object.assign(document.createElement("iframe"), { src: back });
            document.body.append(frame);
            await new Promise((resolve) => { frame.onload = resolve });
            const reads = [
                (it) => it.location.href, (it) => it.location.hash, (it) => it.history.length, (it) => it.localStorage,
                (it) => it.document.body.innerHTML, (it) => it.name,
            ];
            for (const it of [held, frame.contentWindow]) {
                for (const read of reads) {
                    try { found.push(read(it)) } catch (error) { found.push(error.name) }
                }
            }
            return [...found, { ...localStorage }, document.referrer];
        }""",
        # Not the valid code, which the browser that began the sign-in would use in the opened window.
        back[:-1] + ("A" if back[-1] != "A" else "B"),
    )
    assert found == [*["SecurityError"] * 12, {}, ""]
    assert verifier not in str(found)
    # The real page, with the code, links to the attacker's.
    service, own = site.base_url, site.url
    finished = await go(context, back)
    await wait_for(finished, "confirmed")
    await finished.evaluate("(url) => fetch(`${url}/pixel`, { mode: 'no-cors' })", evil.url)
    await finished.evaluate("(url) => { location.href = url }", f"{evil.url}/out")
    await finished.wait_for_url(f"{evil.url}/out")
    assert len(evil.requests) >= 3
    assert f"'Referer': '{own}/'" in evil.requests[-1]
    await finished.go_back(wait_until="commit")
    assert code not in finished.url
    for seen in (*evil.requests, sandbox.log(), service):
        assert code not in seen
        assert verifier not in seen


async def test_a_code_works_once_and_for_one_browser(
    site: Site, open_context: OpenContext, guarded: OwnProject, client: httpx.Client
) -> None:
    """A guessed code, that of another session, and a code that is used a second time give nothing."""
    url = site.show(f'project-id="{guarded.id}"')
    context, other = await open_context(), await open_context()
    phones = [make_phone(client, name) for name in ("Ada", "Grace")]
    page, foreign = await go(context, url), await go(other, url)
    back = await confirm(phones[0], await start(page))
    stolen = await confirm(phones[1], await start(foreign))
    assert back
    assert stolen
    for wrong in (stolen, f"{url}#taproof_return={'A' * 32}"):
        late = await go(context, wrong)
        await expect(part(late, "status")).to_have_text(OTHER_BROWSER)
        assert await heard(late, "confirmed") == []
    right = await go(context, back)
    assert (await wait_for(right, "confirmed"))["result"]["identity"]["messengerId"] == phones[0].messenger_id
    for browser in (context, other):
        late = await go(browser, back)
        await late.wait_for_load_state("networkidle")
        assert await heard(late, "confirmed") == []


async def test_the_browsers_history(site: Site, guarded: OwnProject, phone: Phone, tmp_path: Path) -> None:
    """The tab's history has no code.

    The browser's list of visited addresses has it, but neither the token nor the verifier.
    """
    async with open_profile(tmp_path / "profile") as context:
        page = await go(context, site.show(f'project-id="{guarded.id}"'))
        back = await confirm(phone, await start(page))
        assert back
        finished = await go(context, back)
        await wait_for(finished, "confirmed")
        await finished.goto(f"{site.url}/welcome")
        await finished.go_back(wait_until="commit")
        assert finished.url == f"{site.url}/"
    store = apsw.Connection(str(tmp_path / "profile/Default/History"))
    visited = {url for (url,) in store.execute("SELECT url FROM urls")}
    store.close()
    assert visited == {f"{site.url}/", f"{site.url}/welcome", back}
