"""Users list, report, block and unblock, through the service's bot and a project's own bot."""

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from tests.databases import every_driver
from tests.giving_bots import give_bot
from tests.service.callers import open_callers, running
from tests.service.conftest import key_of

from taproof.core.clock import MINUTE
from taproof.core.identity import MessengerIdentity
from taproof.core.project_bots import ProjectBot
from taproof.core.projects import NamedProject, Project
from taproof.sdk.code_challenge import code_challenge, new_code_verifier
from taproof.service.user_control import LOOK_BACK, SHOWN, UserControl

if TYPE_CHECKING:
    from tests.service.conftest import Node

OWN_BOT = 7_000_000_002
OTHER_BOT = 7_000_000_003
ADA = "1001"


def control_of(node: "Node") -> UserControl:
    return UserControl(node.storage, node.signin, node.clock)


async def give_project_bot(node: "Node", project: Project, bot_id: int = OWN_BOT) -> None:
    bot = ProjectBot(project.id, bot_id, f"bot_{bot_id}", b"encrypted")
    assert await give_bot(node.storage, project.developer_id, project.id, bot) == "set"


def named(project: Project) -> NamedProject:
    return NamedProject(project.id, project.name)


# ---- looking back


async def test_list_is_of_30_days_newest_first_and_bounded(node: "Node") -> None:
    """The list has at most `SHOWN` sign-ins; one exactly 30 days old is included, one a millisecond older is not."""
    project, _ = await node.project()
    old = await node.confirmed(project)
    node.clock.now += 1
    tokens = [await node.confirmed(project)]
    node.clock.now += LOOK_BACK
    control = control_of(node)
    assert [each.key for each in await control.list_sign_ins(ADA)] == [key_of(tokens[0])]
    assert key_of(old) not in [each.key for each in await control.list_sign_ins(ADA)]
    for _ in range(SHOWN):
        node.clock.now += MINUTE
        tokens.append(await node.confirmed(project))
    found = await control.list_sign_ins(ADA)
    assert [each.key for each in found] == [key_of(token) for token in reversed(tokens[1:])]
    assert found[0].confirmed_at == node.clock.now
    assert await control.list_sign_ins("2002") == []


async def test_projects_to_block_are_those_signed_in_to_and_not_blocked(node: "Node") -> None:
    """Each project is listed once, the latest first, however often the user signed in to it."""
    shop, blog = (await node.project())[0], (await node.project())[0]
    await node.project()
    for project in (shop, blog, shop, shop):
        await node.confirmed(project)
        node.clock.now += MINUTE
    control = control_of(node)
    assert await control.list_blockable(ADA) == [named(shop), named(blog)]
    assert await control.block_project(ADA, shop.id) == named(shop)
    assert await control.list_blockable(ADA) == [named(blog)]
    assert await control.list_blocks(ADA) == [named(shop)]
    assert await control.list_blockable("2002") == []
    assert await control.unblock_project(ADA, shop.id) == named(shop)
    assert await control.list_blocks(ADA) == []


# ---- a project's own bot


async def test_project_bot_shows_its_own_project_only(node: "Node") -> None:
    """A project bot also shows earlier sign-ins of its project; the service's own bot shows everything."""
    shop, blog = (await node.project())[0], (await node.project())[0]
    of_shop, of_blog = await node.confirmed(shop), await node.confirmed(blog)
    await give_project_bot(node, shop)
    control = control_of(node)
    for project in (shop, blog):
        await control.block_project(ADA, project.id)
    assert [each.key for each in await control.list_sign_ins(ADA, OWN_BOT)] == [key_of(of_shop)]
    assert {each.key for each in await control.list_sign_ins(ADA)} == {key_of(of_shop), key_of(of_blog)}
    assert await control.list_blocks(ADA, OWN_BOT) == [named(shop)]
    assert set(await control.list_blocks(ADA)) == {named(shop), named(blog)}
    await control.unblock_project(ADA, shop.id)
    assert await control.list_blockable(ADA, OWN_BOT) == [named(shop)]


async def test_another_bot_shows_and_changes_nothing(node: "Node") -> None:
    """Another project's bot, or one that was just removed and still receives updates, shows and changes nothing."""
    shop, blog = (await node.project())[0], (await node.project())[0]
    of_blog = await node.confirmed(blog)
    await give_project_bot(node, shop)
    control = control_of(node)
    for bot in (OWN_BOT, OTHER_BOT):
        assert await control.list_sign_ins(ADA, bot) == []
        assert await control.list_blockable(ADA, bot) == []
        assert await control.block_project(ADA, blog.id, bot) is None
        assert not await node.storage.users.is_blocked(ADA, blog.id)
        await control.block_project(ADA, blog.id)
        assert await control.list_blocks(ADA, bot) == []
        assert await control.unblock_project(ADA, blog.id, bot) is None
        assert await control.unblock_project(ADA, blog.id) == named(blog)
        seen = await control.report_sign_in(key_of(of_blog), ADA, bot)
        assert (seen.outcome, seen.project_name) == ("unknown", "")
    assert (await node.stored(of_blog)).reported_at is None


async def test_project_bot_reports_what_it_shows(node: "Node") -> None:
    """A project bot can report a sign-in of its project, whichever bot confirmed it."""
    shop, _ = await node.project()
    before = await node.confirmed(shop)
    await give_project_bot(node, shop)
    assert (await control_of(node).report_sign_in(key_of(before), ADA, OWN_BOT)).outcome == "reported"
    assert (await node.stored(before)).reported_at is not None


async def test_service_bot_reports_what_an_project_bot_signed_in(node: "Node") -> None:
    """A user who no longer trusts the project's bot can report in the service's bot."""
    shop, _ = await node.project()
    await give_project_bot(node, shop)
    token = await node.pending(shop)
    assert (await node.signin.open_session(token, ADA, OWN_BOT)).outcome == "opened"
    seen = await node.signin.report_session(token, ADA)
    assert (seen.outcome, (await node.stored(token)).status) == ("reported", "cancelled")


# ---- reports and readers at the same instant


@every_driver
@pytest.mark.parametrize("bound", [False, True])
async def test_of_a_report_and_readers_at_once_none_gets_the_proof_after_the_report(
    node: "Node",
    other_node: "Node",
    bound: bool,  # noqa: FBT001 — drawn by pytest.
) -> None:
    """On two nodes, either a reader was first and the report says so, or no reader ever gets the proof.

    Once the report is answered, nobody gets the proof again, even with a code challenge. The event says "used" exactly
    if a reader got the proof.
    """
    _, project = await node.owned(webhook_url="https://example.com/", webhook_events=("auth.reported",))
    verifier = new_code_verifier()
    tokens = []
    for _ in range(40):
        challenge = code_challenge(verifier) if bound else None
        created = await node.signin.create_session(project.id, public=True, code_challenge=challenge)
        tokens.append(created.session_token)
        await node.signin.open_session(created.session_token, ADA)
        assert (await node.signin.confirm_session(created.session_token, MessengerIdentity(ADA, "Ada", ""))).changed
    control = control_of(other_node)

    async def read(reader: "Node", token: str) -> str | None:
        return (await reader.signin.verify_session(project.id, token, public=True, code_verifier=verifier)).proof

    async def race(number: int, token: str) -> bool:
        report = control.report_sign_in(key_of(token), ADA)
        # Now the report is begun first, now the readers.
        early = asyncio.create_task(report) if number % 2 else None
        readers = [asyncio.create_task(read(reader, token)) for reader in (node, other_node)]
        seen = await (early or report)
        proofs = {proof for proof in await asyncio.gather(*readers) if proof is not None}
        assert len(proofs) <= 1
        assert (seen.outcome, seen.changed) == ("reported", True)
        assert not proofs or seen.was_used
        session = await node.stored(token)
        assert (session.status, session.used_at is not None) == ("used", seen.was_used)
        assert [await read(reader, token) for reader in (node, other_node)] == [None, None]
        return bool(proofs)

    read_first = await asyncio.gather(*(race(number, token) for number, token in enumerate(tokens)))
    (row,) = await node.storage.counts.read_daily_counts([project.id], 0)
    assert (row.confirmed, row.reported, row.cancelled) == (40, 40, 0)
    assert row.used == sum(read_first)
    told = [json.loads(node.webhooks.sign_delivery(each).body) for each in await node.webhooks.claim_deliveries(100)]
    assert {body["session_token_sha256"]: body["was_used"] for body in told} == {
        key_of(token).token_hash.hex(): was_read for token, was_read in zip(tokens, read_first, strict=True)
    }


@every_driver
async def test_waiting_call_hears_of_a_report_as_of_a_cancellation(node: "Node", other_node: "Node") -> None:
    """A report of a prompt on another node ends the client's wait immediately."""
    project, _ = await node.project()
    token = await node.opened(project)
    async with open_callers(node) as callers, running(node):
        call = await callers.start(project, token)
        assert (await other_node.signin.report_session(token, ADA)).changed
        assert await callers.end_of(call) == "over"
    assert (await node.signin.verify_session(project.id, token, public=True)).status == "cancelled"
