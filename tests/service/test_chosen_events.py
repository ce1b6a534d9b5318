"""The events that a project chooses: auth.expired and auth.reported."""

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any, get_args

import pytest
from tests.service.conftest import acting, key_of
from tests.service.test_user_control import ADA, control_of

from taproof.contract.project import ProjectEvent
from taproof.core.clock import HOUR, MINUTE, iso8601
from taproof.core.errors import InvalidRequest
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import Project, ProjectChanges
from taproof.service.webhooks import WebhookResponse

if TYPE_CHECKING:
    from tests.service.conftest import Node

URL = "https://example.com/hook"
ALL_EVENTS: tuple[ProjectEvent, ...] = get_args(ProjectEvent)


async def choosing(node: "Node", events: tuple[ProjectEvent, ...] = ALL_EVENTS) -> Project:
    developer, project = await node.owned(webhook_url=URL)
    changes = ProjectChanges(webhook_events=events)
    return await node.projects.update_project(acting(developer), project.id, changes)


async def send_due(node: "Node") -> list[Any]:
    """Deliver the due events; return their bodies."""
    deliveries = await node.webhooks.claim_deliveries(100)
    bodies = [json.loads(node.webhooks.sign_delivery(each).body) for each in deliveries]
    for each in deliveries:
        await node.webhooks.finish_attempt(each, WebhookResponse(5, 200))
    return bodies


def sha256(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


async def test_a_choice_is_stored_in_one_form_or_refused(node: "Node") -> None:
    """In one order and without duplicates; an unknown name is refused by its position, and changes nothing."""
    project = await choosing(node, ("auth.expired",))
    actor = acting(next(each for each in await node.storage.developers.list_developers()))
    unknown = "webhook_events: number {} of the list is unknown. The events are auth."
    refused: list[tuple[list[str], str]] = [
        ([], "webhook_events must name at least one event. To receive none, set webhook_url"),
        (["auth.confirmed", "webhook.test"], unknown.format(2)),
        (["auth.used\u202e"], unknown.format(1)),
        ([""], unknown.format(1)),
    ]
    for given, sentence in refused:
        with pytest.raises(InvalidRequest, match=re.escape(sentence)):
            await node.projects.update_project(actor, project.id, ProjectChanges(webhook_events=tuple(given)))  # type: ignore[arg-type]
        assert (await node.projects.read_project(actor.developer, project.id)).webhook_events == ("auth.expired",)
    stored: list[tuple[list[ProjectEvent], tuple[ProjectEvent, ...]]] = [
        (["auth.confirmed"], ("auth.confirmed",)),
        (["auth.reported", "auth.confirmed"], ("auth.confirmed", "auth.reported")),
        (["auth.expired", "auth.expired", "auth.cancelled"], ("auth.cancelled", "auth.expired")),
        (list(reversed(ALL_EVENTS)), ALL_EVENTS),
    ]
    for chosen, expected in stored:
        changed = await node.projects.update_project(actor, project.id, ProjectChanges(webhook_events=tuple(chosen)))
        assert changed.webhook_events == expected


async def test_each_session_expires_with_one_event(node: "Node") -> None:
    """The event has the exact expiry time of the session, however late the sweep is."""
    project = await choosing(node)
    tokens = [await (node.opened(project) if number % 2 else node.pending(project)) for number in range(8)]
    decided = await node.confirmed(project)
    started = node.clock.now
    node.clock.now += 10 * MINUTE - 1
    await node.housekeeping.sweep()
    assert [each["event"] for each in await send_due(node)] == ["auth.confirmed"]
    node.clock.now += 3 * HOUR
    for _ in range(2):
        await node.housekeeping.sweep()
    bodies = await send_due(node)
    assert len({body["id"] for body in bodies}) == len(bodies) == len(tokens)
    assert not any(token in json.dumps(bodies) for token in (*tokens, decided))
    by_hash = {body["session_token_sha256"]: body for body in bodies}
    for token in tokens:
        session = await node.stored(token)
        assert by_hash[sha256(token)] == {
            "id": by_hash[sha256(token)]["id"],
            "event": "auth.expired",
            "project_id": project.id,
            "session_id": session.id,
            "session_token_sha256": sha256(token),
            "created_at": iso8601(started),
            "expired_at": iso8601(started + 10 * MINUTE),
        }


async def test_a_session_shows_the_event_of_its_end(node: "Node") -> None:
    """The console lists a session's deliveries by the times of its steps."""
    project = await choosing(node)
    developer = next(each for each in await node.storage.developers.list_developers())
    pending, reported = await node.pending(project), await node.confirmed(project)
    await control_of(node).report_sign_in(key_of(reported), ADA)
    node.clock.now += 10 * MINUTE
    await node.housekeeping.sweep()
    for token, types in ((pending, ["auth.expired"]), (reported, ["auth.confirmed", "auth.reported"])):
        session = await node.stored(token)
        found = await node.deliveries.find_deliveries(developer, session)
        assert sorted(each.record.type for each in found) == types


@pytest.mark.parametrize("state", ["pending", "confirmed", "sent", "used"])
async def test_a_report_says_what_a_server_needs(node: "Node", state: str) -> None:
    """The event has the account only if the project may know it already, from a proof or from an earlier event."""
    project = await choosing(node)
    token = await (node.opened(project) if state == "pending" else node.confirmed(project))
    if state == "used":
        assert (await node.signin.verify_session(project.id, token, public=True)).proof
    if state == "sent":
        assert [each["messenger_id"] for each in await send_due(node)] == [ADA]
    node.clock.now += MINUTE
    if state == "pending":
        seen = await node.signin.report_session(token, ADA)
    else:
        seen = await control_of(node).report_sign_in(key_of(token), ADA)
    assert seen.changed
    bodies = {body["event"]: body for body in await send_due(node)}
    session = await node.stored(token)
    assert bodies.keys() == ({"auth.cancelled", "auth.reported"} if state == "pending" else {"auth.reported"})
    assert bodies["auth.reported"] == {
        "id": bodies["auth.reported"]["id"],
        "event": "auth.reported",
        "project_id": project.id,
        "session_id": session.id,
        "session_token_sha256": sha256(token),
        "messenger_id": ADA if state in {"sent", "used"} else None,
        "was_used": state == "used",
        "reported_at": iso8601(node.clock.now),
    }
    assert not (await control_of(node).report_sign_in(key_of(token), ADA)).changed
    assert await send_due(node) == []


async def test_a_report_that_a_confirmation_overtakes_hides_the_account(
    node: "Node", monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a confirmation overtakes a report, the event describes the state in which the report was recorded."""
    project = await choosing(node, ("auth.reported",))
    token = await node.opened(project)
    report_session = node.storage.sessions.report_session

    async def report_late(*values: Any) -> Any:
        monkeypatch.undo()
        assert (await node.signin.confirm_session(token, MessengerIdentity(ADA, "Ada", ""))).outcome == "blocked"
        await node.storage.users.unblock_project(ADA, project.id)
        assert (await node.signin.confirm_session(token, MessengerIdentity(ADA, "Ada", ""))).changed
        return await report_session(*values)

    monkeypatch.setattr(node.storage.sessions, "report_session", report_late)
    assert (await node.signin.report_session(token, ADA)).changed
    (body,) = await send_due(node)
    assert (body["event"], body["messenger_id"], body["was_used"]) == ("auth.reported", None, False)
