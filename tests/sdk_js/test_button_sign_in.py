"""`signIn` and `resume`, as used by a page without a `<taproof-button>`."""

from typing import Any

import pytest
from playwright.async_api import Page
from tests.e2e.conftest import OwnProject, Phone
from tests.sdk_js.conftest import OpenContext, Site, Way, decide

import taproof

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

BEGIN = """async (options) => {
  const { signIn, resume } = await import("/taproof.js");
  window.told = [];
  window.controller = new AbortController();
  const own = {
    ...options,
    signal: controller.signal,
    onLink: (link) => told.push(link),
    onStatus: (status) => told.push(status),
  };
  if (own.storage === "own") {
    const kept = new Map();
    window.kept = kept;
    own.storage = { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value),
      removeItem: (key) => kept.delete(key) };
  }
  if (own.already) controller.abort();
  const going = own.resume ? resume(own) : signIn(own);
  window.result = going && going.catch(({ name, code, status, message }) => ({ name, code, status, message }));
  return going !== null;
}"""


async def empty_page(site: Site, open_context: OpenContext, **options: Any) -> Page:
    page = await (await open_context(**options)).new_page()
    await page.goto(site.show())
    return page


async def link_of(page: Page) -> dict[str, Any]:
    link: dict[str, Any] = await page.evaluate(
        """async () => {
            for (;;) {
                const link = told.find((each) => each.deeplink);
                if (link) return link;
                await new Promise((resolve) => setTimeout(resolve, 50));
            }
        }"""
    )
    return link


async def test_confirmed(site: Site, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """The result has identity, proof and time; the link is passed on once, and each status once."""
    page = await empty_page(site, open_context)
    assert await page.evaluate(BEGIN, {"projectId": project.id, "baseUrl": f"{site.base_url}/"})
    link = await link_of(page)
    await decide(phone, link["deeplink"])
    result = await page.evaluate("window.result")
    proof = taproof.verify_proof(result.pop("proof"), project.webhook_secret, project_id=project.id)
    assert proof.messenger_id == phone.messenger_id
    assert result.pop("confirmedAt").startswith("20")
    assert result == {
        "status": "confirmed",
        "identity": {
            "messengerId": phone.messenger_id,
            "messengerName": "Ada Lovelace",
            "messengerUsername": None,
            "messengerPhone": None,
        },
    }
    assert await page.evaluate("told") == ["starting", "pending", link]
    assert link["appLink"] is None
    assert link["command"] == f"/start {link['deeplink'].partition('=')[2]}"
    assert await page.evaluate("sessionStorage.length") == 0


async def test_match_code(site: Site, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """The page gets the match code, also after a reload; without one the field is missing."""
    page = await empty_page(site, open_context)
    options = {"projectId": project.id, "baseUrl": site.base_url}
    way.match_code = "42"
    await page.evaluate(BEGIN, options)
    link = await link_of(page)
    assert link["matchCode"] == "42"
    await page.reload()
    assert await page.evaluate(BEGIN, options | {"resume": True})
    assert await link_of(page) == link
    await page.evaluate("controller.abort()")
    way.match_code = None
    await page.evaluate(BEGIN, options)
    assert (await link_of(page))["matchCode"] is None


async def test_phone_number(site: Site, way: Way, open_context: OpenContext, project: OwnProject) -> None:
    """The user's phone number is part of the identity if the service sends one."""
    page = await empty_page(site, open_context)
    await page.evaluate(BEGIN, {"projectId": project.id, "baseUrl": site.base_url})
    await link_of(page)
    user = {"messenger_id": "1", "messenger_name": "A", "messenger_username": None, "messenger_phone": "+4915123456789"}
    way.mode = {"status": "confirmed", **user, "proof": "p", "confirmed_at": "t"}
    await page.evaluate("dispatchEvent(new Event('online'))")
    identity = (await page.evaluate("window.result"))["identity"]
    assert identity["messengerPhone"] == "+4915123456789"


@pytest.mark.parametrize("already", [True, False])
async def test_aborted(site: Site, way: Way, open_context: OpenContext, project: OwnProject, *, already: bool) -> None:
    """The signal ends the sign-in immediately, even before it began, and removes it from the storage."""
    page = await empty_page(site, open_context)
    await page.evaluate(BEGIN, {"projectId": project.id, "baseUrl": site.base_url, "already": already})
    if not already:
        await link_of(page)
        assert await page.evaluate("sessionStorage.length") == 1
        await page.evaluate("controller.abort()")
    assert await page.evaluate("window.result") == {"status": "aborted"}
    assert await page.evaluate("sessionStorage.length") == 0
    assert not (already and way.calls)


async def test_refused(site: Site, open_context: OpenContext, project: OwnProject) -> None:
    """A refusal is an error with the service's sentence, code and status."""
    page = await empty_page(site, open_context, breaks=True)
    await page.evaluate(BEGIN, {"projectId": "proj_doesnotexist0000", "baseUrl": site.base_url})
    error = await page.evaluate("window.result")
    assert error.pop("message").startswith("There is no such project.")
    assert error == {"name": "SignInError", "code": "project_not_found", "status": 404}


async def test_not_a_service(site: Site, open_context: OpenContext, project: OwnProject) -> None:
    """A wrong address without a service fails at once, instead of polling for ten minutes."""
    page = await empty_page(site, open_context, breaks=True)
    await page.evaluate(BEGIN, {"projectId": project.id, "baseUrl": site.url})
    error = await page.evaluate("window.result")
    assert (error["name"], error["code"], error["status"]) == ("SignInError", "unexpected_answer", 404)
    assert site.url in error["message"]


async def test_resume(site: Site, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """A stored sign-in is resumed only for its project and service, once at a time, and not after ten minutes."""
    page = await empty_page(site, open_context)
    options = {"projectId": project.id, "baseUrl": site.base_url}
    again = options | {"resume": True}
    assert not await page.evaluate(BEGIN, again)
    await page.evaluate(BEGIN, options)
    link = await link_of(page)
    assert not await page.evaluate(BEGIN, again), "two would wait for one session"
    await page.reload()
    assert not await page.evaluate(BEGIN, again | {"projectId": "proj_other"})
    assert not await page.evaluate(BEGIN, again | {"baseUrl": "https://other.example"})
    assert not await page.evaluate(BEGIN, again | {"storage": None})
    await page.evaluate("() => { const now = Date.now; window.later = now; Date.now = () => now() + 601_000 }")
    assert not await page.evaluate(BEGIN, again)
    await page.evaluate("() => { Date.now = later }")
    assert await page.evaluate(BEGIN, again)
    assert await link_of(page) == link
    await decide(phone, link["deeplink"])
    assert (await page.evaluate("window.result"))["status"] == "confirmed"


async def test_spoilt_storage(site: Site, open_context: OpenContext) -> None:
    """Invalid data in the storage is ignored."""
    page = await empty_page(site, open_context)
    for kept in ("{", "[]", "7", '{"deeplink": "javascript:alert(1)?start=x"}'):
        await page.evaluate("([key, kept]) => sessionStorage.setItem(key, kept)", [f"taproof:{site.base_url}:p", kept])
        assert not await page.evaluate(BEGIN, {"projectId": "p", "baseUrl": site.base_url, "resume": True}), kept


async def test_storage(site: Site, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """A custom storage is used instead; without any, or if the browser refuses it, sign-in works too."""
    page = await empty_page(site, open_context)
    options = {"projectId": project.id, "baseUrl": site.base_url}
    await page.evaluate(BEGIN, options | {"storage": "own"})
    link = await link_of(page)
    kept = await page.evaluate("[...kept]")
    assert [key for key, _ in kept] == [f"taproof:{site.base_url}:{project.id}"]
    assert await page.evaluate("sessionStorage.length") == 0
    await decide(phone, link["deeplink"])
    assert (await page.evaluate("window.result"))["status"] == "confirmed"
    assert await page.evaluate("kept.size") == 0
    await page.evaluate(BEGIN, options | {"storage": None})
    await decide(phone, (await link_of(page))["deeplink"])
    assert (await page.evaluate("window.result"))["status"] == "confirmed"
    await page.evaluate("Object.defineProperty(window, 'sessionStorage', { get() { throw new Error('no') } })")
    await page.evaluate(BEGIN, options)
    await decide(phone, (await link_of(page))["deeplink"])
    assert (await page.evaluate("window.result"))["status"] == "confirmed"


async def test_on_confirmed(site: Site, open_context: OpenContext, project: OwnProject, phone: Phone) -> None:
    """The sign-in stays stored while onConfirmed runs; an exception from it becomes the sign-in's result."""
    page = await empty_page(site, open_context)
    begin = BEGIN.replace(
        "const own = {",
        """const own = {
    onConfirmed: async ({ status }) => {
      await null;
      told.push([status, sessionStorage.length]);
      throw new TypeError("Not taken.");
    },""",
    )
    await page.evaluate(begin, {"projectId": project.id, "baseUrl": site.base_url})
    await decide(phone, (await link_of(page))["deeplink"])
    assert (await page.evaluate("window.result"))["message"] == "Not taken."
    assert (await page.evaluate("told"))[-1] == ["confirmed", 1]
    assert await page.evaluate("sessionStorage.length") == 0
