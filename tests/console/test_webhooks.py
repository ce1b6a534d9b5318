"""The pages of webhooks: the endpoint, its secret and rotation, the deliveries and each of their attempts."""

import json
import re

import pytest
from tests.console.browsing import Shown
from tests.console.conftest import Installation, Visitor

from taproof.console.webhooks import PAGE
from taproof.contract.delivery import SENTENCES
from taproof.core.clock import HOUR
from taproof.core.projects import Project
from taproof.service.webhooks import WebhookResponse

URL = "https://shop.example/hooks"
SECRET = re.compile(r"\bwhsec_[A-Za-z0-9+/=]{20,}")


def page_of(project: Project) -> str:
    return f"/console/projects/{project.id}/webhooks"


async def decided(visitor: Visitor, console: Installation, project: Project, act: str = "confirm") -> None:
    """Have a sign-in confirmed or cancelled, which records an event."""
    link = (await visitor.start_session(project.id)).deeplink
    await (console.messenger.confirm(link) if act == "confirm" else console.messenger.cancel(link))


async def send(console: Installation, answer: WebhookResponse) -> int:
    """Send each due event, as the worker does, to a receiver that answers with `answer`.

    Return the number of events.
    """
    deliveries = await console.webhooks.claim_deliveries(100)
    for delivery in deliveries:
        await console.webhooks.finish_attempt(delivery, answer)
    return len(deliveries)


async def only_delivery(visitor: Visitor, project: Project) -> Shown:
    """Open the page of the one delivery in a project's list."""
    shown = await visitor.get(page_of(project))
    (link,) = [a.get("href", "") for a in shown.all(".//tbody//th/a")]
    return await visitor.get(link)


# ---- the endpoint


async def test_the_state_of_the_endpoint_in_plain_words(visitor: Visitor, console: Installation) -> None:
    """Each state is named: not tried, failing, working again, turned off after 410, and on again."""
    project, _ = await visitor.create_project(webhook_url=URL)

    async def endpoint() -> str:
        return (await visitor.get(page_of(project))).texts(".//section[@aria-labelledby='endpoint']")[0]

    assert "Untested" in await endpoint()
    await decided(visitor, console, project)
    await send(console, WebhookResponse(0, 500))
    assert f"Failing No attempt to {URL} has succeeded since 2026-11-18 11:06:40 UTC" in await endpoint()
    console.clock.now += HOUR
    await send(console, WebhookResponse(0, 200))
    assert f"Working Events are sent to {URL}" in await endpoint()
    await decided(visitor, console, project)
    await send(console, WebhookResponse(0, 410))
    assert f"Off Nothing has been sent to {URL} since 2026-11-18 12:06:40 UTC." in await endpoint()
    assert "The receiver answered with 410 Gone" in await endpoint()
    await visitor.change(project, webhook_url=URL)
    assert "Working" in await endpoint()


async def test_a_failed_test_alone_is_not_a_working_endpoint(visitor: Visitor, console: Installation) -> None:
    """A failed test is not a failure of the endpoint, but the page must not call the endpoint working or untried."""
    project, _ = await visitor.create_project(webhook_url=URL)
    console.receiver.answer = WebhookResponse(5, 500)
    await console.services.deliveries.send_test(visitor.actor, project.id)
    shown = await visitor.get(page_of(project))
    assert shown.texts(".//section[@aria-labelledby='endpoint']//span") == ["Failing"]
    assert [row[3] for row in shown.rows()] == ["Failed"], "in the word of the filter"
    assert "Failed" in shown.texts(".//option")


# ---- the secret


async def test_the_secret_is_shown_on_demand_and_once(
    visitor: Visitor, console: Installation, capfd: pytest.CaptureFixture[str]
) -> None:
    """The secret is shown only after the button, once, and is in no address, no log and no other page."""
    project, secrets = await visitor.create_project()
    page = page_of(project)
    assert secrets.webhook_secret not in (await visitor.get(page)).html
    answer = await visitor.submit(page, f"{page}/secret")
    shown = await visitor.follow(answer)
    assert SECRET.findall(shown.html) == [secrets.webhook_secret]
    assert "Reloading this page hides it; press Show to see it again." in shown.text
    assert shown.response.headers["cache-control"] == "no-store"
    assert not SECRET.findall((await visitor.get(page)).html)
    assert secrets.webhook_secret not in str(answer.response.headers) + "".join(capfd.readouterr())
    assert shown.all(".//a[@href='/docs#webhooks']")
    told = [(each.subject, each.via) for each in await visitor.log() if each.action == "webhook_secret.revealed"]
    assert told == [(project.id, "console")]


async def test_a_rotation_from_beginning_to_end(visitor: Visitor, console: Installation) -> None:
    """The next secret is shown once, both are on demand during the rotation, and promoting ends it at once."""
    project, secrets = await visitor.create_project()
    page = page_of(project)
    shown = await visitor.follow(await visitor.submit(page, f"{page}/rotate", overlap_hours="48"))
    (following,) = SECRET.findall(shown.html)
    assert "replaces the current one at 2026-11-20 11:06:40 UTC" in shown.text
    found = await console.services.projects.read_webhook_secret(visitor.actor, project.id)
    assert (found.webhook_secret, found.next_webhook_secret) == (secrets.webhook_secret, following)
    assert found.promoted_at == console.clock.now + 48 * HOUR
    plain = await visitor.get(page)
    assert not SECRET.findall(plain.html)
    assert not plain.all(f".//form[@action='{page}/rotate']")
    assert plain.all(f".//details/form[@action='{page}/promote']"), "not at one click"
    both = await visitor.follow(await visitor.submit(page, f"{page}/secret"))
    assert SECRET.findall(both.html) == [secrets.webhook_secret, following]
    over = await visitor.follow(await visitor.submit(page, f"{page}/promote"))
    assert "signed with the new secret only" in over.text
    assert (await console.services.projects.read_webhook_secret(visitor.actor, project.id)).webhook_secret == (
        following
    )
    assert over.all(f".//form[@action='{page}/rotate']")
    assert {entry.action for entry in await visitor.log()} >= {"webhook_secret.rotated", "webhook_secret.promoted"}


async def test_an_impossible_overlap_is_refused(visitor: Visitor, console: Installation, project: Project) -> None:
    """The form names the allowed range and keeps the input; nothing is rotated."""
    page = page_of(project)
    for hours in ("", "0", "169", "1.5", "-1", "x", "٣", "9" * 5000):
        shown = await visitor.submit(page, f"{page}/rotate", overlap_hours=hours)
        assert shown.status == 400, hours
        assert "a whole number of hours, from 1 to 168" in shown.alert
        assert shown.fields(f"{page}/rotate")["overlap_hours"] == hours
    assert await console.services.projects.read_project(visitor.developer, project.id) == project


# ---- deliveries


async def test_a_test_leads_to_its_result(visitor: Visitor, console: Installation) -> None:
    """The button sends one event and opens its page; a failed test says why and is not retried."""
    project, _ = await visitor.create_project(webhook_url=URL)
    page = page_of(project)
    shown = await visitor.follow(await visitor.submit(page, f"{page}/test"))
    assert [request.url for request in console.receiver.sent] == [URL]
    assert shown.heading == "Delivery of webhook.test"
    assert "Delivered" in shown.text
    status = console.receiver.answer.status
    assert shown.texts(".//p[@role='status']") == [f"The receiver accepted the test: HTTP {status}."]
    console.receiver.answer = WebhookResponse(5, 500)
    refused = await visitor.follow(await visitor.submit(page, f"{page}/test"))
    assert refused.alert == "The test failed: the receiver returned HTTP 500."
    assert not refused.all(".//p[@role='status']")
    console.receiver.answer = WebhookResponse(10_000, error="timeout")
    failed = await visitor.follow(await visitor.submit(page, f"{page}/test"))
    assert failed.alert == "The test failed: there was no response."
    assert "Attempt 1: no response" in failed.text
    assert SENTENCES["timeout"] in failed.text
    assert "10 000 ms" in failed.text


async def test_a_test_without_a_url_is_refused(visitor: Visitor, console: Installation) -> None:
    """If the URL was removed in the meantime, nothing is sent and the page says why."""
    project, _ = await visitor.create_project(webhook_url=URL)
    page = page_of(project)
    await visitor.get(page)
    await visitor.change(project, webhook_url="")
    shown = await visitor.post(f"{page}/test")
    assert shown.status == 400
    assert "no webhook URL" in shown.alert
    assert not console.receiver.sent


async def test_the_list_shows_state_attempts_and_the_last_answer(visitor: Visitor, console: Installation) -> None:
    """Each delivery shows its event, its state, the number of attempts and the last answer."""
    project, _ = await visitor.create_project(webhook_url=URL)
    await decided(visitor, console, project)
    await send(console, WebhookResponse(5, 500))
    console.clock.now += HOUR
    await send(console, WebhookResponse(5, 204))
    console.clock.now += 1
    await decided(visitor, console, project, "cancel")
    shown = await visitor.get(page_of(project))
    rows = shown.rows()
    assert [[row[0], *row[3:]] for row in rows] == [
        ["auth.cancelled", "Waiting", "0", "Not sent yet"],
        ["auth.confirmed", "Delivered", "2", "HTTP 204"],
    ]
    assert shown.texts(".//tbody//td/a") == [row[1] for row in rows]
    assert [a.get("href") for a in shown.all(".//tbody//td/a")] == [f"/console/sessions/{row[1]}" for row in rows]


async def test_the_list_can_be_filtered_and_paged(visitor: Visitor, console: Installation) -> None:
    """The filters stay on all pages; every delivery is on exactly one page."""
    project, _ = await visitor.create_project(webhook_url=URL)
    for number in range(PAGE + 3):
        await console.services.deliveries.send_test(visitor.actor, project.id)
        console.clock.now += number
    await decided(visitor, console, project)
    page = page_of(project)
    first = await visitor.get(page, event="webhook.test", status="delivered")
    assert len(first.rows()) == PAGE
    chosen = [option.get("value") for option in first.all(".//option") if "selected" in option.attrib]
    assert chosen == ["webhook.test", "delivered"]
    (older,) = [a.get("href", "") for a in first.all(".//nav[@aria-label='Pages']/a")]
    second = await visitor.get(older)
    assert [row[0] for row in second.rows()] == ["webhook.test"] * 3
    links = [a.get("href") for shown in (first, second) for a in shown.all(".//tbody//th/a")]
    assert len(set(links)) == PAGE + 3
    assert second.texts(".//nav[@aria-label='Pages']/a") == ["Newest"]
    assert [row[0] for row in (await visitor.get(page, status="due")).rows()] == ["auth.confirmed"]
    assert "No delivery matches." in (await visitor.get(page, status="ended")).text


@pytest.mark.parametrize("query", [{"event": "x"}, {"status": "pending"}, {"cursor": "x"}, {"cursor": "<b>"}])
async def test_an_unknown_filter_is_refused(visitor: Visitor, query: dict[str, str], project: Project) -> None:
    """An unknown filter is answered with 400, not with a list that looks filtered."""
    assert (await visitor.get(page_of(project), **query)).status == 400


async def test_a_delivery_shows_every_attempt(visitor: Visitor, console: Installation) -> None:
    """Each attempt has its time, duration, status, reason and answer; the page links to the session."""
    project, _ = await visitor.create_project(webhook_url=URL)
    await decided(visitor, console, project)
    await send(console, WebhookResponse(7, 503, body=b"<script>alert(1)</script> busy"))
    shown = await only_delivery(visitor, project)
    assert "Waiting" in shown.text
    assert "Next attempt" in shown.text
    assert "HTTP 503" in shown.text
    assert SENTENCES["not_accepted"] in shown.text
    assert "<script>alert(1)</script> busy" in shown.text
    assert "<script>alert" not in shown.html
    (session,) = await visitor.sessions()
    assert shown.texts(f".//a[@href='/console/sessions/{session.id}']") == [session.id]
    console.clock.now += HOUR
    await send(console, WebhookResponse(3, error="connection_refused"))
    shown = await only_delivery(visitor, project)
    assert shown.texts(".//li//b") == ["Attempt 2: no response", "Attempt 1: HTTP 503"]
    assert SENTENCES["connection_refused"] in shown.text
    assert shown.texts(".//li/a[@aria-current]/b") == ["Attempt 2: no response"], "the latest, unless one is chosen"
    path = shown.response.url.path
    assert SENTENCES["not_accepted"] in (await visitor.get(path, attempt="1")).text
    for unknown in ("3", "0", "x", "1 "):
        assert (await visitor.get(path, attempt=unknown)).status == 400


async def test_a_delivery_shows_the_request(visitor: Visitor, console: Installation) -> None:
    """The headers are those that the receiver got; the body lacks the session token, which could collect the proof."""
    project, _ = await visitor.create_project(webhook_url=URL)
    started = await visitor.start_session(project.id)
    await console.messenger.confirm(started.deeplink)
    (delivery,) = await console.webhooks.claim_deliveries(100)
    sent = console.webhooks.sign_delivery(delivery)
    await console.webhooks.finish_attempt(delivery, WebhookResponse(5, 200))
    shown = await only_delivery(visitor, project)
    names, values = (shown.texts(f".//dl[@class='headers']//{tag}") for tag in ("dt", "dd"))
    console.clock.now += HOUR
    assert dict(zip(names, values, strict=True))["X-Service-Signature"] == sent.headers["X-Service-Signature"]
    assert set(names) == set(sent.headers)
    body = json.loads(shown.texts(".//pre[@aria-label='Body of the request']")[0])
    assert body == json.loads(sent.body) | {"session_token": "…"}
    assert started.session_token not in shown.html
    assert shown.all(".//a[@href='/docs#webhooks']")


async def test_sending_again(visitor: Visitor, console: Installation) -> None:
    """The button makes the event due at once, and the log records who pressed it."""
    project, _ = await visitor.create_project(webhook_url=URL)
    await decided(visitor, console, project)
    await send(console, WebhookResponse(5, 200))
    assert await send(console, WebhookResponse(5, 200)) == 0
    path = (await only_delivery(visitor, project)).response.url.path
    console.clock.now += 1
    shown = await visitor.follow(await visitor.submit(path, f"{path}/resend"))
    assert "Sending The event is being sent." in shown.text
    assert "Waiting" not in shown.text
    assert "Next attempt" not in shown.text
    assert shown.all(".//noscript/meta[@http-equiv='refresh']")
    assert shown.all(".//*[@data-moving]")
    assert "Projects" in shown.texts(".//a[@aria-current]")
    assert console.receiver.times_recorded == 1
    assert await send(console, WebhookResponse(5, 200)) == 1
    over = await visitor.get(path)
    assert "Delivered The receiver accepted it." in over.text
    assert not over.all(".//meta[@http-equiv='refresh']"), "nothing more is to come"
    newest, *_ = await visitor.log()
    assert (newest.action, newest.via, newest.details) == ("delivery.resent", "console", "{}")
