"""Conformance: invitations, and what becomes of whoever takes them up."""

import asyncio
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.databases import NOW

from taproof.core.model import Developer, InvitationOutcome
from taproof.storage.protocol import Storage

if TYPE_CHECKING:
    from tests.storage.conftest import Seed

IDLE_SINCE = NOW - 1
ROUNDS = 5
"""Times that a race is run: either of two callers may be ahead."""


def newcomer(seed: "Seed", email: str, messenger_id: str, *, is_owner: bool = False) -> Developer:
    return Developer(seed.name("dev"), email, "pro", seed.now, is_owner, messenger_id, "Ada 🦋 L.")


async def test_create_invitation_keeps_every_field(storage: Storage, seed: "Seed") -> None:
    """For a new developer and for one who is there; a code leads to one invitation."""
    ada = await seed.developer("Ada@Example.com")
    for invitation, code_hash in (
        await seed.invitation(),
        await seed.invitation("Bob+ü@Example.com", is_owner=True),
        await seed.invitation(developer=ada),
    ):
        assert await storage.read_invitation(code_hash, seed.now) == invitation
        with pytest.raises(Exception, match=r"(?i)unique|constraint"):
            await storage.create_invitation(replace(invitation, id="inv_other"), code_hash)


async def test_read_invitation_ends_with_its_time(storage: Storage, seed: "Seed") -> None:
    """To the millisecond; an unknown code finds nothing."""
    invitation, code_hash = await seed.invitation("bob@example.com", expires_at=seed.now + 5)
    assert await storage.read_invitation(code_hash, seed.now + 4) == invitation
    assert await storage.read_invitation(code_hash, seed.now + 5) is None
    assert await storage.read_invitation(b"?" * 32, seed.now) is None


async def test_list_invitations_is_newest_first(storage: Storage, seed: "Seed") -> None:
    """Equal times are told apart by id; those for the first developer and those that are outdated are not listed."""
    ada = await seed.developer()
    first, _ = await seed.invitation("a@example.com")
    second, _ = await seed.invitation(developer=ada)
    late, _ = await seed.invitation("b@example.com", created_at=seed.now + 1)
    outdated, _ = await seed.invitation("c@example.com", created_at=seed.now + 2, expires_at=seed.now + 5)
    await seed.invitation(created_at=seed.now + 3)
    assert await storage.list_invitations(seed.now + 4) == [outdated, late, second, first]
    assert await storage.list_invitations(seed.now + 5) == [late, second, first]


async def test_delete_invitation_revokes_it(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """Nobody can take it up any more, through any node; twice it is revoked once."""
    kept, kept_hash = await seed.invitation("a@example.com")
    invitation, code_hash = await seed.invitation("b@example.com")
    assert await storage.delete_invitation(invitation.id)
    assert not await other_node.delete_invitation(invitation.id)
    assert await other_node.read_invitation(code_hash, seed.now) is None
    bob = newcomer(seed, "b@example.com", "7")
    assert await other_node.accept_invitation(code_hash, bob, seed.now) == "gone"
    assert await storage.list_developers() == []
    assert await storage.read_invitation(kept_hash, seed.now) == kept


# ---- taking one up


async def test_accept_invitation_makes_the_first_developer(storage: Storage, seed: "Seed") -> None:
    """With every field, found by address and messenger account; the code works once."""
    _, code_hash = await seed.invitation(is_owner=True)
    ada = newcomer(seed, "Ada@Example.com", "1001", is_owner=True)
    assert await storage.accept_invitation(code_hash, ada, seed.now) == "accepted"
    assert await storage.list_developers() == [ada]
    assert await storage.read_developer("ADA@example.com") == ada
    assert await storage.read_developer_by_messenger_id("1001") == ada
    assert await storage.read_invitation(code_hash, seed.now) is None
    bob = newcomer(seed, "bob@example.com", "1002")
    assert await storage.accept_invitation(code_hash, bob, seed.now) == "gone"
    assert await storage.list_developers() == [ada]


async def test_accept_invitation_after_its_time_is_too_late(storage: Storage, seed: "Seed") -> None:
    """To the millisecond, whether or not anybody has erased it; an unknown code is the same."""
    _, code_hash = await seed.invitation("ada@example.com", expires_at=seed.now + 5)
    ada = newcomer(seed, "ada@example.com", "1001")
    assert await storage.accept_invitation(code_hash, ada, seed.now + 5) == "gone"
    assert await storage.accept_invitation(b"?" * 32, ada, seed.now) == "gone"
    assert await storage.list_developers() == []
    assert await storage.accept_invitation(code_hash, ada, seed.now + 4) == "accepted"


async def test_accept_invitation_that_cannot_be_taken_up_leaves_all_as_it_was(storage: Storage, seed: "Seed") -> None:
    """A taken address or account, or one for the first developer who comes second: it can be tried again otherwise."""
    bob = replace(await seed.developer("Bob@Example.com"), messenger_id="1001")
    assert await storage.accept_invitation((await seed.invitation(developer=bob))[1], bob, seed.now) == "accepted"
    before = await storage.list_developers()
    first, first_hash = await seed.invitation()
    other, other_hash = await seed.invitation("ada@example.com")

    async def accept(code_hash: bytes, email: str, messenger_id: str) -> InvitationOutcome:
        return await storage.accept_invitation(code_hash, newcomer(seed, email, messenger_id), seed.now)

    assert await accept(first_hash, "ada@example.com", "1002") == "not_first"
    assert await accept(other_hash, "bOB@example.com", "1002") == "email_taken"
    assert await accept(other_hash, "ada@example.com", "1001") == "identity_taken"
    assert await storage.list_developers() == before
    assert await storage.read_invitation(first_hash, seed.now) == first
    assert await storage.read_invitation(other_hash, seed.now) == other
    assert await accept(other_hash, "ada@example.com", "1002") == "accepted"


async def test_accept_invitation_binds_an_account_to_a_developer(storage: Storage, seed: "Seed") -> None:
    """All else of the developer stays; the account before finds nobody, and its browsers are signed out."""
    ada, bob = await seed.developer("Ada@Example.com", plan="business"), await seed.developer()
    seen: list[object] = []
    for messenger_id, messenger_name in (("1001", "Ada"), ("1002", "Ada L.")):
        sessions = [await seed.console_session(each) for each in (ada, ada, bob)]
        _, code_hash = await seed.invitation(developer=ada)
        bound = replace(ada, messenger_id=messenger_id, messenger_name=messenger_name)
        assert await storage.accept_invitation(code_hash, bound, seed.now) == "accepted"
        assert await storage.read_developer("ada@example.com") == bound
        assert await storage.read_developer_by_messenger_id(messenger_id) == bound
        assert await storage.read_invitation(code_hash, seed.now) is None
        sessions.append(await seed.console_session(ada))  # Whose sign-in had begun before, and ends only now.
        seen = [await storage.read_console_session(each, seed.now, IDLE_SINCE) for _, each in sessions]
        assert seen == [None, None, (sessions[2][0], bob), None]
        assert await storage.list_console_sessions(ada.id, seed.now, IDLE_SINCE) == []
        ada = bound
    assert await storage.read_developer_by_messenger_id("1001") is None


async def test_accept_invitation_with_the_account_that_is_bound_signs_nobody_out(
    storage: Storage, seed: "Seed"
) -> None:
    """It is the same person: the name is as the messenger has it now."""
    ada = await seed.developer()
    for name in ("Ada", "Ada Lovelace"):
        _, code_hash = await seed.invitation(developer=ada)
        bound = replace(ada, messenger_id="1001", messenger_name=name)
        assert await storage.accept_invitation(code_hash, bound, seed.now) == "accepted"
        session, cookie_hash = await seed.console_session(bound)
    _, code_hash = await seed.invitation(developer=ada)
    assert await storage.accept_invitation(code_hash, bound, seed.now) == "accepted"
    assert await storage.read_console_session(cookie_hash, seed.now, IDLE_SINCE) == (session, bound)


async def test_accept_invitation_does_not_take_anothers_account(storage: Storage, seed: "Seed") -> None:
    """Binding an account that signs in somebody else is refused, and signs nobody out."""
    ada, bob = await seed.developer(), await seed.developer()
    owner = replace(ada, messenger_id="1001")
    assert await storage.accept_invitation((await seed.invitation(developer=ada))[1], owner, seed.now) == "accepted"
    session, cookie_hash = await seed.console_session(bob)
    invitation, code_hash = await seed.invitation(developer=bob)
    taken = replace(bob, messenger_id="1001")
    assert await storage.accept_invitation(code_hash, taken, seed.now) == "identity_taken"
    assert await storage.read_developer_by_messenger_id("1001") == owner
    assert await storage.read_console_session(cookie_hash, seed.now, IDLE_SINCE) == (session, bob)
    assert await storage.read_invitation(code_hash, seed.now) == invitation


# ---- at the same instant, on two nodes


async def race(
    nodes: tuple[Storage, Storage], seed: "Seed", attempts: list[tuple[bytes, Developer]]
) -> list[InvitationOutcome]:
    """Take up invitations at once on two nodes, each with an entry for the audit log of `dev_log`."""
    return await asyncio.gather(
        *(
            node.accept_invitation(code_hash, developer, seed.now, entry=seed.entry("dev_log"))
            for node, (code_hash, developer) in zip(itertools.cycle(nodes), attempts, strict=False)
        )
    )


async def test_accept_invitation_is_for_one_of_all_who_have_the_code(
    storage: Storage, other_node: Storage, seed: "Seed"
) -> None:
    """Different people with one link at once: one becomes a developer, to the others the link is gone."""
    for turn in range(ROUNDS):
        _, code_hash = await seed.invitation(f"ada{turn}@example.com")
        people = [newcomer(seed, f"p{turn}.{number}@example.com", f"{turn} {number}") for number in range(6)]
        outcomes = await race((storage, other_node), seed, [(code_hash, each) for each in people])
        assert sorted(outcomes) == ["accepted", *["gone"] * 5]
        winner = people[outcomes.index("accepted")]
        assert [await storage.read_developer(each.email) for each in people if each != winner] == [None] * 5
        assert await storage.read_developer(winner.email) == winner
        assert await storage.read_invitation(code_hash, seed.now) is None
        assert len(await storage.list_audit_entries("dev_log", None, 99)) == turn + 1


async def test_accept_invitation_has_one_first_developer(storage: Storage, other_node: Storage, seed: "Seed") -> None:
    """Each start of an empty installation prints a link: of those who open two of them at once one is the first."""
    attempts = []
    for number in range(8):
        _, code_hash = await seed.invitation(is_owner=True)
        attempts.append((code_hash, newcomer(seed, f"p{number}@example.com", f"{number}", is_owner=True)))
    outcomes = await race((storage, other_node), seed, attempts)
    assert sorted(outcomes) == ["accepted", *["not_first"] * 7]
    assert await storage.list_developers() == [attempts[outcomes.index("accepted")][1]]
    left = [await storage.read_invitation(code_hash, seed.now) for code_hash, _ in attempts]
    assert [each is None for each in left] == [outcome == "accepted" for outcome in outcomes]
    assert len(await storage.list_audit_entries("dev_log", None, 99)) == 1


async def test_accept_invitation_gives_an_account_to_one_developer(
    storage: Storage, other_node: Storage, seed: "Seed"
) -> None:
    """One messenger account takes up several links at once, for new developers and for one who is there."""
    for turn in range(ROUNDS):
        ada = await seed.developer()
        attempts = [((await seed.invitation(developer=ada))[1], replace(ada, messenger_id=f"{turn}"))]
        for number in range(5):
            email = f"p{turn}.{number}@example.com"
            attempts.append(((await seed.invitation(email))[1], newcomer(seed, email, f"{turn}")))
        order = attempts[turn:] + attempts[:turn]
        outcomes = await race((storage, other_node), seed, order)
        assert sorted(outcomes) == ["accepted", *["identity_taken"] * 5]
        winner = order[outcomes.index("accepted")][1]
        assert await storage.read_developer_by_messenger_id(f"{turn}") == winner
        others = [each.id for _, each in order if each.id not in {winner.id, ada.id}]
        assert not {each.id for each in await storage.list_developers()}.intersection(others)
        assert len(await storage.list_audit_entries("dev_log", None, 99)) == turn + 1


async def test_accept_invitation_gives_an_address_to_one_developer(
    storage: Storage, other_node: Storage, seed: "Seed"
) -> None:
    """Two links for one address, and the operator who adds it on the command line, all at once: one account."""
    for turn in range(ROUNDS):
        email = f"ada{turn}@example.com"
        links = [(await seed.invitation(email))[1] for _ in range(4)]
        attempts = [(each, newcomer(seed, email, f"{turn} {number}")) for number, each in enumerate(links)]
        added, outcomes = await asyncio.gather(
            storage.create_developer(newcomer(seed, email.upper(), f"{turn} cli")),
            race((other_node, storage), seed, attempts),
        )
        assert [added, *(outcome == "accepted" for outcome in outcomes)].count(True) == 1
        assert set(outcomes) <= {"accepted", "email_taken"}
        assert len(await storage.list_developers()) == turn + 1
