"""The messenger's prompt for a developer who signs in needs a match code and shows the origin of the request."""

import re
from collections.abc import Awaitable, Callable

import pytest
from tests.console.browsing import Browsing, Shown
from tests.console.conftest import ADA, BASE_URL, Installation, Visitor

from taproof.core.projects import SERVICE_DEVELOPER, ProjectChanges
from taproof.core.request_context import RequestContext
from taproof.service.console.sign_in import CONSOLE, INVITATION, Purpose

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
PLACE = "Berlin, Germany"
WAITING = "/console/sign-in/waiting"
CONTEXT = RequestContext(BASE_URL.removeprefix("https://"), FIREFOX, PLACE)

Start = Callable[[Installation, Browsing], Awaitable[Shown]]


async def sign_in(_: Installation, browser: Browsing) -> Shown:
    return await browser.follow(await browser.submit("/console/sign-in", "/console/sign-in"))


async def accept_invitation(console: Installation, browser: Browsing) -> Shown:
    code = await console.services.invitations.invite_first()
    assert code is not None
    await browser.submit("/console/invite", "/console/invite", code=code)
    fields = {"email": "ada@example.com"}
    return await browser.follow(await browser.submit("/console/invite/accept", "/console/invite/accept", **fields))


@pytest.fixture
def browser(console: Installation, anonymous: Browsing) -> Browsing:
    """A Firefox, at an address whose place is known."""
    console.places["127.0.0.1"] = PLACE
    anonymous.client.headers["User-Agent"] = FIREFOX
    return anonymous


async def fresh(console: Installation) -> Browsing:
    """Return another browser of the same kind."""
    browser = await console.browser()
    browser.client.headers["User-Agent"] = FIREFOX
    return browser


@pytest.mark.parametrize("start", [sign_in, accept_invitation])
async def test_the_prompt_shows_page_browser_and_place(console: Installation, browser: Browsing, start: Start) -> None:
    """The prompt shows the console's own address as the page, regardless of the Origin header."""
    browser.client.headers["Origin"] = "https://bank.example"
    seen = await console.messenger.open((await start(console, browser)).deeplink)
    assert seen.context == CONTEXT


@pytest.mark.parametrize("start", [sign_in, accept_invitation])
async def test_a_plain_confirm_signs_nobody_in(console: Installation, browser: Browsing, start: Start) -> None:
    """The page shows one of the three numbers; a plain Confirm, as in an older prompt, cancels."""
    waiting = await start(console, browser)
    shown = re.search(r'class="match-code">(\d\d)<', waiting.html)
    link = waiting.deeplink
    seen = await console.messenger.open(link)
    assert len(seen.choices) == 3
    assert shown is not None
    assert shown[1] in seen.choices
    token = link.partition("?start=")[2]
    assert (await console.messenger.signin.confirm_session(token, ADA)).outcome == "mismatched"
    refused = await browser.get(WAITING)
    assert refused.status == 400
    assert "a number other than the one shown here" in refused.text


@pytest.mark.parametrize(("start", "purpose"), [(sign_in, CONSOLE), (accept_invitation, INVITATION)])
async def test_match_codes_cannot_be_turned_off(
    console: Installation, browser: Browsing, start: Start, purpose: Purpose
) -> None:
    """Match codes are required even if the stored project of the console does not ask for them."""
    await start(console, browser)
    mark = await console.storage.metadata.read_mark(purpose.mark)
    assert mark is not None
    off = ProjectChanges(show_context=False, match_code=False)
    assert await console.storage.projects.update_project(SERVICE_DEVELOPER, mark.decode(), off, 1) is not None
    again = await start(console, await fresh(console))
    seen = await console.messenger.open(again.deeplink)
    assert (len(seen.choices), seen.context) == (3, CONTEXT)


async def test_try_it_shows_the_same_prompt(console: Installation, visitor: Visitor) -> None:
    """The prompt of "Try it" has the same lines as that of the developer's users."""
    console.places["127.0.0.1"] = PLACE
    visitor.client.headers["User-Agent"] = FIREFOX
    project, _ = await visitor.create_project()
    page = f"/console/projects/{project.id}/try"
    waiting = await visitor.follow(await visitor.submit(page, page))
    assert (await console.messenger.open(waiting.deeplink)).context == CONTEXT
