"""The effect of a project's settings on a new session: match code, origins, context, its own bot."""

from typing import TYPE_CHECKING

import pytest
from tests.service.conftest import acting

from taproof.core.errors import BotBroken, OriginNotAllowed
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import ProjectChanges
from taproof.core.request_context import NOTHING_KNOWN, Requester, load_context
from taproof.core.sessions import PromptDetails
from taproof.service.sessions.seen import SeenSession
from taproof.storage.sqlite.store import SqliteStorage

if TYPE_CHECKING:
    from tests.service.conftest import Node

BROWSER = "Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0.0.0"


async def prompt_of(node: "Node", session_token: str) -> PromptDetails:
    session = await node.stored(session_token)
    assert session.prompt is not None
    return session.prompt


async def test_no_match_code_unless_the_project_has_them(node: "Node") -> None:
    """The answer has a code only where the page is prepared to show one."""
    developer, project = await node.owned()
    created = await node.signin.create_session(project.id, public=True)
    assert created.match_code is None
    assert await prompt_of(node, created.session_token) == PromptDetails()
    await node.projects.update_project(acting(developer), project.id, ProjectChanges(match_code=True))
    created = await node.signin.create_session(project.id, public=True)
    details = await prompt_of(node, created.session_token)
    assert created.match_code == details.match_code
    choices = (details.match_choices or "").split()
    assert len(set(choices)) == 3
    assert created.match_code in choices
    assert all(choice.isdecimal() and len(choice) == 2 for choice in choices)


async def test_listed_origins_apps_and_servers_start_sign_ins(node: "Node") -> None:
    """Listed origins may start sign-ins, and others may not.

    A mobile app sends no Origin, and the secret key needs none.
    """
    _, project = await node.owned(allowed_origins=("https://shop.example",))
    with pytest.raises(OriginNotAllowed):
        await node.signin.create_session(project.id, public=True, requester=Requester("https://evil.example"))
    assert await node.storage.counts.read_daily_counts([project.id], 0) == []
    assert await node.signin.create_session(project.id, public=True, requester=Requester("https://shop.example"))
    assert await node.signin.create_session(project.id, public=True)
    assert await node.signin.create_session(project.id, public=False)


async def test_where_a_request_came_from_is_kept_for_the_prompt(node: "Node") -> None:
    """Domain, browser and location are shortened and stored; the address itself is not."""
    node.signin._find_place = {"203.0.113.9": "Berlin, Germany"}.__getitem__
    _, project = await node.owned()
    requester = Requester("https://shop.example", f"{BROWSER}\0" + "x" * 1000, "203.0.113.9")
    created = await node.signin.create_session(project.id, public=True, requester=requester)
    context = load_context((await prompt_of(node, created.session_token)).context)
    assert (context.domain, context.place) == ("shop.example", "Berlin, Germany")
    assert context.user_agent.startswith(BROWSER)
    assert len(context.user_agent) <= 300
    assert "\0" not in context.user_agent
    dump = "\n".join(repr(row) for row in node.storage.database.reader.execute("SELECT * FROM sessions"))
    assert "203.0.113" not in dump
    seen = await node.signin.open_session(created.session_token, "1001")
    assert seen.context == context
    decided = await node.signin.cancel_session(created.session_token, "1001")
    assert decided.outcome == "cancelled"
    assert (await prompt_of(node, created.session_token)).context is None


async def test_a_project_may_keep_nothing(node: "Node") -> None:
    """With show_context off, nothing is stored or shown."""
    _, project = await node.owned(show_context=False)
    requester = Requester("https://shop.example", BROWSER, "203.0.113.9")
    created = await node.signin.create_session(project.id, public=True, requester=requester)
    assert (await prompt_of(node, created.session_token)).context is None
    assert (await node.signin.open_session(created.session_token, "1001")).context == NOTHING_KNOWN


async def with_project_bot(node: "Node", broken_at: int | None = None) -> str:
    """Return a project with a bot of its own, set as the driver would."""
    project, _ = await node.project()
    assert isinstance(node.storage, SqliteStorage)
    await node.storage.database.change(
        "UPDATE projects SET bot_id = $1, bot_username = $2, bot_broken_at = $3 WHERE id = $4 RETURNING id",
        *(4242, "shop_bot", broken_at, project.id),
    )
    return project.id


async def test_a_broken_bot_starts_nothing(node: "Node") -> None:
    """A project with a broken bot starts no sign-in in another bot, which would ask in a stranger's name."""
    project_id = await with_project_bot(node, broken_at=node.clock.now)
    for public in (True, False):
        with pytest.raises(BotBroken):
            await node.signin.create_session(project_id, public=public)
    assert await node.storage.counts.read_daily_counts([project_id], 0) == []


async def test_a_session_belongs_to_the_bot_of_its_link(node: "Node") -> None:
    """A bot's owner can read its messages, so no bot shows or decides a session of another one."""
    created = await node.signin.create_session(await with_project_bot(node), public=True)
    token = created.session_token
    assert created.deeplink == f"https://t.me/shop_bot?start={token}"
    ada = MessengerIdentity("1001", "Ada", "")
    for other in (0, 4243):
        assert (await node.signin.open_session(token, "1001", other)).outcome == "unknown"
    assert (await node.signin.open_session(token, "1001", 4242)).outcome == "opened"
    for other in (0, 4243):
        for seen in (
            await node.signin.confirm_session(token, ada, other),
            await node.signin.cancel_session(token, "1001", other),
            await node.signin.continue_without_phone(token, ada, other),
        ):
            assert seen == SeenSession("unknown")
    assert (await node.signin.report_session(token, "1001", 4243)).outcome == "unknown"
    assert (await node.signin.confirm_session(token, ada, 4242)).changed
    of_the_service = await node.pending((await node.project())[0])
    assert (await node.signin.open_session(of_the_service, "1001", 4242)).outcome == "unknown"
    assert (await node.signin.open_session(of_the_service, "1001")).outcome == "opened"
