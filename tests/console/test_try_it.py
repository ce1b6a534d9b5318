"""Try it: a real sign-in of a project, on its page in the console."""

import asyncio
import json

import pytest
from tests.console.browsing import Shown
from tests.console.conftest import ADA, GRACE, Installation, Visitor
from tests.waiting import until

from taproof import verify_proof
from taproof.core.clock import MINUTE
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import Project
from taproof.service.projects import Rotation

COOKIE = "__Host-taproof_try"


def page_of(project: Project) -> str:
    return f"/console/projects/{project.id}/try"


async def start(visitor: Visitor, project: Project) -> Shown:
    """Press the button; return the page that waits."""
    return await visitor.follow(await visitor.submit(page_of(project), page_of(project)))


def link_in(shown: Shown) -> str:
    (link,) = [a.get("href", "") for a in shown.all(".//main//a") if "?start=" in a.get("href", "")]
    return link


async def state(visitor: Visitor, project: Project, wait: str = "0") -> str:
    shown = await visitor.get(f"{page_of(project)}/state", wait=wait)
    assert shown.status == 200
    status: str = shown.response.json()["status"]
    return status


async def counts(console: Installation, visitor: Visitor, project: Project) -> tuple[int, int]:
    found = await console.services.projects.read_project(visitor.developer, project.id)
    return found.sessions_count, found.confirmed_count


async def test_a_try_is_a_whole_sign_in(visitor: Visitor, console: Installation) -> None:
    """The page leads from the button over the link and its QR code to the identity, the claims and a valid proof."""
    project, secrets = await visitor.create_project("Shop")
    before = await visitor.get(page_of(project))
    assert "This is a real sign-in: it appears" in before.text
    waiting = await start(visitor, project)
    assert waiting.one(".//svg[@class='qr-code']").get("role") == "img"
    assert await state(visitor, project) == "pending"
    assert await counts(console, visitor, project) == (1, 0)
    await console.messenger.confirm(link_in(waiting), ADA)
    assert await state(visitor, project) == "confirmed"
    shown = await visitor.get(page_of(project))
    assert shown.texts(".//h2")[0] == f"Signed in: {ADA.messenger_name}"
    answer = json.loads("".join(shown.one(".//*[@id='try-answer']").itertext()))
    claims = json.loads("".join(shown.one(".//*[@id='try-claims']").itertext()))
    proof = "".join(shown.one(".//*[@id='try-proof']").itertext())
    assert set(answer) == {
        "status",
        "messenger_id",
        "messenger_name",
        "messenger_username",
        "confirmed_at",
        "proof",
    }, "what POST /api/v1/verify answers"
    assert (answer["status"], answer["messenger_id"], answer["proof"]) == ("confirmed", ADA.messenger_id, proof)
    who = verify_proof(proof, secrets.webhook_secret, project_id=project.id, now=console.clock.now / 1000)
    assert claims == {
        "messenger_id": who.messenger_id,
        "messenger_name": who.messenger_name,
        "messenger_username": who.messenger_username,
        "project_id": project.id,
        "session_token": link_in(waiting).partition("?start=")[2],
        "iss": who.issuer,
        "iat": who.issued_at,
        "exp": who.expires_at,
    }
    assert shown.texts(".//dd/span[@class='badge good']") == ["Valid"]
    assert await counts(console, visitor, project) == (1, 1)
    assert shown.response.headers["cache-control"] == "no-store"
    assert secrets.webhook_secret not in shown.html


async def test_the_outcome_is_shown_once(visitor: Visitor, console: Installation, project: Project) -> None:
    """A reload shows the start page without the identity; the session is used, as by any application."""
    await console.messenger.confirm(link_in(await start(visitor, project)))
    assert (await visitor.get(page_of(project))).texts(".//*[@id='try-proof']")[0].startswith("ey")
    again = await visitor.get(page_of(project))
    assert ADA.messenger_name not in again.html
    assert not again.all(".//*[@id='try-proof']")
    (session,) = await visitor.sessions()
    assert session.status == "used"


async def test_direction_marks_in_a_name_are_shown(visitor: Visitor, console: Installation, project: Project) -> None:
    """A user's name is text, and its invisible characters are escaped in the JSON."""
    name = "<script>alert(1)</script>\u202e\U000e0041"
    await console.messenger.confirm(link_in(await start(visitor, project)), MessengerIdentity("77", name, ""))
    shown = await visitor.get(page_of(project))
    assert shown.texts(".//h2")[0] == "Signed in: <script>alert(1)</script>"
    assert "<script>alert" not in shown.html
    assert "\u202e" not in shown.html
    answer = json.loads("".join(shown.one(".//*[@id='try-answer']").itertext()))
    assert answer["messenger_name"] == name
    assert answer["messenger_username"] is None


async def test_the_waiting_page_learns_of_the_decision(
    visitor: Visitor, console: Installation, project: Project
) -> None:
    """A waiting call is answered at the decision; only the page itself uses up the session."""
    link = link_in(await start(visitor, project))
    call = asyncio.create_task(state(visitor, project, wait="25"))
    await until(lambda: console.messenger.signin.waiting.count == 1)
    await console.messenger.confirm(link)
    assert await asyncio.wait_for(call, 60) == "confirmed"
    head = await visitor.client.head(page_of(project))
    assert head.status_code == 200
    assert await state(visitor, project) == "confirmed", "a HEAD has used it up"
    assert (await visitor.get(page_of(project))).texts(".//h2")[0] == f"Signed in: {ADA.messenger_name}"


async def test_cancelled_and_expired_are_shown(visitor: Visitor, console: Installation, project: Project) -> None:
    """Each outcome has its own words and a button to try again."""
    await console.messenger.cancel(link_in(await start(visitor, project)))
    assert await state(visitor, project) == "cancelled"
    shown = await visitor.get(page_of(project))
    assert shown.texts(".//h2") == ["Cancelled"]
    assert shown.texts(f".//form[@action='{page_of(project)}']//button") == ["Try again"]
    await start(visitor, project)
    console.clock.now += 10 * MINUTE
    assert await state(visitor, project) == "expired"
    assert (await visitor.get(page_of(project))).texts(".//h2") == ["Expired"]


async def test_an_invalid_proof_is_reported(
    visitor: Visitor, console: Installation, monkeypatch: pytest.MonkeyPatch, project: Project
) -> None:
    """The signature is really checked with the project's secret: with another secret it is not valid."""
    _, other = await visitor.create_project("Blog")
    await console.messenger.confirm(link_in(await start(visitor, project)))

    async def another(*_: object) -> Rotation:
        return Rotation(other.webhook_secret, None, None)

    monkeypatch.setattr(console.services.projects, "read_webhook_secret", another)
    shown = await visitor.get(page_of(project))
    assert shown.texts(".//dd/span[@class='badge bad']") == ["Not valid"]


async def test_a_new_try_forgets_the_one_before(visitor: Visitor, console: Installation, project: Project) -> None:
    """Going back while a sign-in waits shows the start page, and the button starts a new sign-in."""
    waiting = await start(visitor, project)
    first = link_in(waiting)
    again = waiting.one(f".//a[@href='{page_of(project)}/again']").get("href", "")
    assert (await visitor.get(again)).texts(f".//form[@action='{page_of(project)}']//button") == ["Start a sign-in"]
    assert link_in(await start(visitor, project)) != first
    await console.messenger.confirm(first)
    assert await state(visitor, project) == "pending"


async def test_a_try_is_for_the_one_who_started_it(
    visitor: Visitor, stranger: Visitor, console: Installation, project: Project
) -> None:
    """The cookie can be read only in that console session and for that project; nobody else uses it up."""
    blog, _ = await visitor.create_project("Blog")
    theirs, _ = await stranger.create_project("Theirs")
    link = link_in(await start(visitor, project))
    await console.messenger.confirm(link, GRACE)
    encrypted = visitor.client.cookies[COOKIE]
    assert link.partition("?start=")[2] not in encrypted
    other_browser = await console.sign_in(visitor.developer)
    stranger.client.cookies.set(COOKIE, encrypted)
    other_browser.client.cookies.set(COOKIE, encrypted)
    for someone, page in ((stranger, theirs), (stranger, project), (other_browser, project), (visitor, blog)):
        shown = await someone.get(page_of(page))
        assert shown.status == (404 if (someone, page) == (stranger, project) else 200)
        assert GRACE.messenger_name not in shown.html
        assert not shown.all(".//*[@id='try-proof']")
        if shown.status == 200:
            assert await state(someone, page) == "expired"
    assert (await visitor.get(page_of(project))).texts(".//h2")[0] == f"Signed in: {GRACE.messenger_name}"


async def test_a_paused_project_says_why_it_does_not_work(
    visitor: Visitor, console: Installation, project: Project
) -> None:
    """A paused project has a link to its settings in place of the button; a form that is sent is refused."""
    await visitor.change(project, is_active=False)
    shown = await visitor.get(page_of(project))
    assert "This project is paused" in shown.text
    assert not shown.all(f".//form[@action='{page_of(project)}']")
    assert shown.all(f".//p[@role='alert']//a[@href='/console/projects/{project.id}/settings#danger']")
    sent = await visitor.post(page_of(project))
    assert sent.status == 400
    assert len(sent.all(".//p[@role='alert']")) == 1
    assert await counts(console, visitor, project) == (0, 0)


async def test_public_access_is_not_needed(visitor: Visitor, console: Installation, project: Project) -> None:
    """The server starts the sign-in, so it also works without public access."""
    await visitor.change(project, public_access=False)
    await console.messenger.confirm(link_in(await start(visitor, project)))
    assert (await visitor.get(page_of(project))).texts(".//h2")[0] == f"Signed in: {ADA.messenger_name}"
