"""Conformance: the stored parts of a prompt, and a project's settings for new sessions."""

from typing import Any

from tests.databases import expired_event
from tests.storage.seed import Seed, present

from taproof.core.projects import ProjectChanges, SignInProject
from taproof.core.sessions import PromptDetails
from taproof.storage.protocol import Storage


async def test_read_sign_in_project_says_what_a_new_session_needs(storage: Storage, seed: Seed) -> None:
    """Flags come back as booleans; the plan is the developer's; an unknown project is None, also with a NUL."""
    ada = await seed.developer(plan="pro")
    project = await seed.project(ada)
    read = storage.projects.read_sign_in_project
    first = present(await read(project.id))
    assert isinstance(first, SignInProject)
    assert first == (ada.id, "pro", True, True, True, False, "", None, None, None, False, "off", "")
    origins = ("https://shop.example", "https://www.shop.example")
    returns = ("https://app.example/return", "https://app.example/back?x=1")
    flags = {"is_active": False, "public_access": False, "show_context": False, "match_code": True}
    for changes, expected in (
        (ProjectChanges(**flags, allowed_origins=origins), flags | {"allowed_origins": " ".join(origins)}),  # type: ignore[arg-type]
        (
            ProjectChanges(allowed_origins=(), same_device="offer", return_urls=returns),
            flags | {"allowed_origins": "", "same_device": "offer", "return_urls": " ".join(returns)},
        ),
        (ProjectChanges(collect_phone=True), {"requires_phone": True}),
        (ProjectChanges(phone_required=False), {"requires_phone": False}),
        (ProjectChanges(phone_required=True), {"requires_phone": True}),
    ):
        await storage.projects.update_project(ada.id, project.id, changes, seed.now)
        found = present(await read(project.id))
        assert {name: getattr(found, name) for name in expected} == expected
    await storage.plans.update_plan(ada.id, "free", entry=seed.entry(ada.id))
    assert await read(project.id) == found._replace(plan="free", requires_phone=False)
    assert [await read(unknown) for unknown in ("proj_unknown", f"{project.id}\0")] == [None, None]


async def test_read_session_alone_tells_what_the_bot_needs(storage: Storage, seed: Seed) -> None:
    """Bot, context and match codes are from the session; phone settings and texts are from the project."""
    ada = await seed.developer(plan="pro")
    project = await seed.project(ada)
    shown: dict[str, Any] = {
        "bot_id": 123456789012,
        "context": '{"domain":"x"}',
        "match_code": "42",
        "match_choices": "17 42 88",
    }
    new = await seed.session(project, **shown)
    await seed.update(project, collect_phone=True, phone_required=False, texts={"ru": {"expired": "Поздно"}})
    session = present(await storage.sessions.read_session(new.key))
    expected = PromptDetails(
        **shown,
        collect_phone=True,
        phone_required=False,
        texts='{"ru": {"expired": "Поздно"}}',
    )
    assert session.prompt == expected
    (listed,) = await storage.sessions.list_sessions([project.id], None, None, 5, seed.now)
    assert listed.prompt is None


async def test_the_context_goes_when_the_session_leaves_pending(storage: Storage, seed: Seed) -> None:
    """It is stored no longer than it can be shown."""
    project = await seed.project()
    confirmed = await seed.confirmed(project, context="{}")
    cancelled, expired = [await seed.opened(project, context="{}") for _ in range(2)]
    assert await storage.sessions.cancel_session(cancelled.key, "1001", seed.now, seed.event(project))
    assert await storage.sessions.expire_sessions(expired.expires_at, 10, expired_event) == 1
    for new, status in ((confirmed, "confirmed"), (cancelled, "cancelled"), (expired, "expired")):
        session = present(await storage.sessions.read_session(new.key))
        assert (session.status, present(session.prompt).context) == (status, None)
