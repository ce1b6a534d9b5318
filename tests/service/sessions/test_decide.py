"""A sign-in as the messenger sees it: who may decide, until when, and the answers to old prompts."""

from typing import TYPE_CHECKING

from tests.service.conftest import acting

from taproof.core.identity import MessengerIdentity
from taproof.core.projects import ProjectChanges
from taproof.service.sessions.seen import SeenSession

if TYPE_CHECKING:
    from tests.service.conftest import Node

UNKNOWN = SeenSession("unknown")
FOREIGN = SeenSession("foreign")
ADA = MessengerIdentity("1001", "Ada", "ada")
BOB = MessengerIdentity("1002", "Bob", "")


async def test_unknown_payloads_are_unknown(node: "Node") -> None:
    """Every payload of /start or of a button has an outcome to show."""
    for token in ("", "x", "A" * 43, "A" * 42 + "B", "\ud800", "A" * 1_000):
        assert await node.signin.open_session(token, "1001") == UNKNOWN
        assert await node.signin.confirm_session(token, ADA) == UNKNOWN
        assert await node.signin.cancel_session(token, "1001") == UNKNOWN


async def test_the_first_opener_owns_the_decision(node: "Node") -> None:
    """Another account that opens the link or taps a button is refused, learns nothing and changes nothing."""
    project, _ = await node.project()
    token = await node.opened(project)
    assert await node.signin.open_session(token, "1002") == FOREIGN
    assert await node.signin.confirm_session(token, BOB) == FOREIGN
    assert await node.signin.cancel_session(token, "1002") == FOREIGN
    assert (await node.signin.confirm_session(token, ADA)).changed
    assert await node.signin.open_session(token, "1002") == FOREIGN
    answer = await node.signin.verify_session(project.id, token, public=True)
    assert answer.identity == ADA


async def test_opening_again_asks_again(node: "Node") -> None:
    """The same account may open its link twice: nothing changes, not even the time of the first opening."""
    project, _ = await node.project()
    token = await node.opened(project)
    created = node.clock.now
    node.clock.now += 1_000
    seen = await node.signin.open_session(token, "1001")
    assert (seen.outcome, seen.project_name, seen.created_at) == ("opened", "Shop", created)
    assert (await node.storage.counts.read_daily_counts([project.id], 0))[0].opened == 1


async def test_a_tap_counts_until_the_instant_of_expiry(node: "Node") -> None:
    """A tap exactly at that instant or later neither confirms nor cancels."""
    project, _ = await node.project()
    for offset, expected in ((599_999, ["confirmed", "cancelled", "opened"]), (600_000, ["expired"] * 3)):
        to_confirm, to_cancel = await node.opened(project), await node.opened(project)
        to_open = await node.pending(project)
        node.clock.now += offset
        confirmed = await node.signin.confirm_session(to_confirm, ADA)
        cancelled = await node.signin.cancel_session(to_cancel, "1001")
        opened = await node.signin.open_session(to_open, "1001")
        assert [seen.outcome for seen in (confirmed, cancelled, opened)] == expected
        assert confirmed.changed == cancelled.changed == (offset < 600_000)


async def test_a_second_tap_says_what_became_of_it(node: "Node") -> None:
    """Only the first decision counts; later taps and openings show it with its time."""
    project, _ = await node.project()
    first, second = await node.opened(project), await node.opened(project)
    node.clock.now += 5_000
    decided = node.clock.now
    await node.signin.confirm_session(first, ADA)
    await node.signin.cancel_session(second, "1001")
    for used in (False, True):
        node.clock.now += 60_000 * 20
        if used:
            await node.signin.verify_session(project.id, first, public=True)
        for token, outcome in ((first, "confirmed"), (second, "cancelled")):
            for seen in (
                await node.signin.confirm_session(token, ADA),
                await node.signin.cancel_session(token, "1001"),
                await node.signin.open_session(token, "1001"),
            ):
                assert (seen.outcome, seen.decided_at, seen.changed) == (outcome, decided, False)


async def test_hostile_names_are_stored_without_what_no_store_bears(node: "Node") -> None:
    """NUL and lone surrogates are removed; the rest of the name reaches the application unchanged."""
    project, _ = await node.project(webhook_url="https://example.com/")
    token = await node.opened(project)
    hostile = MessengerIdentity("1001", "A\0d\ud800a <b>'\"\\ \u202e👩\u200d💻", "a\0\udfffda")
    assert (await node.signin.confirm_session(token, hostile)).changed
    answer = await node.signin.verify_session(project.id, token, public=True)
    assert answer.identity == MessengerIdentity("1001", "Ada <b>'\"\\ \u202e👩\u200d💻", "ada")


async def test_the_prompt_names_the_project_as_it_is_called_now(node: "Node") -> None:
    """If the project is renamed before the link is opened, the prompt shows the new name."""
    developer, project = await node.owned()
    token = await node.pending(project)
    await node.projects.update_project(acting(developer), project.id, ProjectChanges(name="New name"))
    assert (await node.signin.open_session(token, "1001")).project_name == "New name"
