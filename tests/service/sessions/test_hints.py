"""Hints stay right when a prompt is shown again, and when another release has written them."""

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.service.callers import never
from tests.service.conftest import acting, key_of
from tests.waiting import until

from taproof.core.identity import MessengerIdentity
from taproof.core.projects import ProjectChanges
from taproof.service.sessions.results import VerifyResult

if TYPE_CHECKING:
    from tests.service.conftest import Node

USER = MessengerIdentity("1001", "Ada", "ada")


@pytest.mark.parametrize("match_code", [False, True])
@pytest.mark.parametrize("again", ["link", "tap"])
async def test_a_prompt_that_is_shown_again_sets_its_hint(node: "Node", again: str, *, match_code: bool) -> None:
    """If the project stops collecting phone numbers, opening the link or tapping shows the prompt and sets its hint."""
    developer, project = await node.owned("pro")
    update = node.projects.update_project
    await update(acting(developer), project.id, ProjectChanges(collect_phone=True, match_code=match_code))
    created = await node.signin.create_session(project.id, public=True)
    token = created.session_token
    seen = await node.signin.open_session(token, "1001")
    choice = seen.choices.index(created.match_code) if created.match_code else None
    assert (await node.signin.confirm_session(token, USER, choice=choice)).outcome == "phone"
    assert (await node.signin.verify_session(project.id, token, public=True)).hint == "phone_asked"
    await update(acting(developer), project.id, ProjectChanges(collect_phone=False))
    if again == "link":
        seen = await node.signin.open_session(token, "1001")
    else:
        seen = await node.signin.continue_without_phone(token, USER)
    assert seen.outcome == "opened"
    shown = await node.signin.verify_session(project.id, token, public=True)
    assert shown.hint == ("choosing" if match_code else "opened")


async def test_a_hint_of_a_later_release_reads_as_waiting(node: "Node") -> None:
    """During a rolling update, two releases share a database: no call fails, and calls still wait."""
    project, _ = await node.project()
    token = await node.opened(project)
    key = key_of(token)
    await node.storage.sessions.set_hint(key, "of_a_later_release")  # type: ignore[arg-type]
    assert await node.signin.verify_session(project.id, token, public=True) == VerifyResult("pending", hint="waiting")
    waiting = node.signin.waiting
    call = asyncio.create_task(waiting.wait(project.id, token, 30, never, public=True, seen_hint="waiting"))
    await until(lambda: call.done() or (key in waiting._waited and waiting._waited[key].places))
    assert not call.done()
    await node.signin.confirm_session(token, USER)
    assert await call == "over"
