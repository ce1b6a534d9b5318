"""What a store keeps of a session for its prompt, and what a project says about a new one."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.databases import expired_event

from taproof.core.projects import ProjectChanges, SignInProject
from taproof.core.sessions import NewPhone, PromptDetails
from taproof.storage.protocol import Storage

if TYPE_CHECKING:
    from tests.storage.seed import Seed


async def test_read_sign_in_project_says_what_a_new_session_needs(storage: Storage, seed: "Seed") -> None:
    """Flags come back as booleans; the plan is the developer's; an unknown project is None, also with a NUL."""
    ada = await seed.developer(plan="pro")
    project = await seed.project(ada)
    expected = (ada.id, "pro", True, True, True, False, "", None, None, None, False, "off", "")
    found = await storage.projects.read_sign_in_project(project.id)
    assert isinstance(found, SignInProject)
    assert found == expected
    origins = ("https://shop.example", "https://www.shop.example")
    changes = ProjectChanges(
        is_active=False, public_access=False, show_context=False, match_code=True, allowed_origins=origins
    )
    await storage.projects.update_project(ada.id, project.id, changes, seed.now)
    changed = await storage.projects.read_sign_in_project(project.id)
    assert changed == (ada.id, "pro", False, False, False, True, " ".join(origins), None, None, None, False, "off", "")
    returns = ("https://app.example/return", "https://app.example/back?x=1")
    changes = ProjectChanges(allowed_origins=(), same_device="offer", return_urls=returns)
    await storage.projects.update_project(ada.id, project.id, changes, seed.now)
    changed = await storage.projects.read_sign_in_project(project.id)
    assert changed is not None
    assert (changed.allowed_origins, changed.same_device, changed.return_urls) == ("", "offer", " ".join(returns))
    await storage.projects.update_project(
        ada.id, project.id, ProjectChanges(allowed_origins=origins, same_device="off", return_urls=()), seed.now
    )
    for changes, requires_phone in (
        (ProjectChanges(collect_phone=True), True),
        (ProjectChanges(phone_required=False), False),
        (ProjectChanges(phone_required=True), True),
    ):
        await storage.projects.update_project(ada.id, project.id, changes, seed.now)
        found = await storage.projects.read_sign_in_project(project.id)
        assert found is not None
        assert found.requires_phone is requires_phone
    await storage.plans.update_plan(ada.id, "free", entry=seed.entry(ada.id))
    free = await storage.projects.read_sign_in_project(project.id)
    assert free == (ada.id, "free", False, False, False, True, " ".join(origins), None, None, None, False, "off", "")
    assert await storage.projects.read_sign_in_project("proj_unknown") is None
    assert await storage.projects.read_sign_in_project(f"{project.id}\0") is None


async def test_read_session_alone_tells_what_the_bot_needs(storage: Storage, seed: "Seed") -> None:
    """Bot, context and match codes are those of the session; phone settings and texts are the project's."""
    ada = await seed.developer(plan="pro")
    project = await seed.project(ada)
    new = replace(
        seed.new_session(project),
        bot_id=123456789012,
        context='{"domain":"x"}',
        match_code="42",
        match_choices="17 42 88",
    )
    assert await storage.sessions.create_session(new, public=True)
    await storage.projects.update_project(
        ada.id,
        project.id,
        ProjectChanges(collect_phone=True, phone_required=False, texts={"ru": {"expired": "Поздно"}}),
        seed.now,
    )
    session = await storage.sessions.read_session(new.key)
    assert session is not None
    expected = PromptDetails(
        *(123456789012, '{"domain":"x"}', "42", "17 42 88"),
        collect_phone=True,
        phone_required=False,
        texts='{"ru": {"expired": "Поздно"}}',
    )
    assert session.prompt == expected
    (listed,) = await storage.sessions.list_sessions([project.id], None, None, 5, seed.now)
    assert listed.prompt is None


@pytest.mark.parametrize("end", ["confirmed", "cancelled", "expired"])
async def test_the_context_goes_when_the_session_leaves_pending(storage: Storage, seed: "Seed", end: str) -> None:
    """It is stored no longer than it can be shown."""
    project = await seed.project()
    new = replace(seed.new_session(project), context="{}")
    assert await storage.sessions.create_session(new, public=True)
    await storage.sessions.open_session(new.key, "1001", seed.now)
    if end == "confirmed":
        assert await storage.sessions.confirm_session(new.key, seed.identity("1001"), seed.now, seed.event(project))
    elif end == "cancelled":
        assert await storage.sessions.cancel_session(new.key, "1001", seed.now, seed.event(project))
    else:
        assert await storage.sessions.expire_sessions(new.expires_at, 10, expired_event) == 1
    session = await storage.sessions.read_session(new.key)
    assert session is not None
    assert session.prompt is not None
    assert (session.status, session.prompt.context) == (end, None)


async def test_consume_and_reread_bring_the_phone(storage: Storage, seed: "Seed") -> None:
    """The one reader gets the encrypted number with the id that it is bound to, and so does who reads again."""
    project = await seed.project(collect_phone=True)
    new = replace(seed.new_session(project), code_challenge=b"c" * 32)
    assert await storage.sessions.create_session(new, public=True)
    await storage.sessions.open_session(new.key, "1001", seed.now)
    phone = NewPhone(b"encrypted", b"body")
    await storage.sessions.confirm_session(new.key, seed.identity("1001"), seed.now, seed.event(project), phone)
    consumed = await storage.sessions.consume_session(new.key, seed.now)
    assert consumed is not None
    assert (consumed.session_id, consumed.encrypted_phone) == (new.id, b"encrypted")
    assert await storage.sessions.reread_session(new.key, seed.now - 1) == consumed
