"""Conformance: invitations, and the outcomes of accepting them."""

import asyncio
import itertools
from dataclasses import replace

import pytest
from tests.databases import NOW
from tests.storage.seed import Seed, run

from taproof.core.accounts import Developer, Invitation, InvitationOutcome
from taproof.storage.protocol import Storage

IDLE_SINCE = NOW - 1
ROUNDS = 5
"""The number of repetitions of a race, in which either of two callers may be first."""


def newcomer(seed: Seed, email: str, messenger_id: str, *, is_owner: bool = False) -> Developer:
    return Developer(seed.name("dev"), email, "pro", seed.now, is_owner, messenger_id, "Ada 🦋 L.")


async def test_create_invitation_keeps_every_field(storage: Storage, seed: Seed) -> None:
    """Fields are kept for a new developer and for an existing one. A code belongs to one invitation."""
    ada = await seed.developer("Ada@Example.com")
    for invitation, code_hash in (
        await seed.invitation(),
        await seed.invitation("Bob+ü@Example.com", is_owner=True),
        await seed.invitation(developer=ada),
    ):
        assert await storage.developers.read_invitation(code_hash, seed.now) == invitation
        with pytest.raises(Exception, match=r"(?i)unique|constraint"):
            await storage.developers.create_invitation(replace(invitation, id="inv_other"), code_hash)


async def test_read_invitation_ends_with_its_time(storage: Storage, seed: Seed) -> None:
    """The expiry is exact to the millisecond, also for acceptance. An unknown code finds nothing."""
    invitation, code_hash = await seed.invitation("ada@example.com", expires_at=seed.now + 5)
    ada, accept = newcomer(seed, "ada@example.com", "1001"), storage.developers.accept_invitation
    assert await storage.developers.read_invitation(code_hash, seed.now + 4) == invitation
    assert await storage.developers.read_invitation(code_hash, seed.now + 5) is None
    assert await storage.developers.read_invitation(b"?" * 32, seed.now) is None
    assert await accept(code_hash, ada, seed.now + 5) == "gone"
    assert await accept(b"?" * 32, ada, seed.now) == "gone"
    assert await storage.developers.list_developers() == []
    assert await accept(code_hash, ada, seed.now + 4) == "accepted"


async def test_list_invitations_is_newest_first(storage: Storage, seed: Seed) -> None:
    """Equal times are ordered by id. Expired invitations and those for the first developer are not listed."""
    ada = await seed.developer()
    first, _ = await seed.invitation("a@example.com")
    second, _ = await seed.invitation(developer=ada)
    late, _ = await seed.invitation("b@example.com", created_at=seed.now + 1)
    outdated, _ = await seed.invitation("c@example.com", created_at=seed.now + 2, expires_at=seed.now + 5)
    await seed.invitation(created_at=seed.now + 3)
    assert await storage.developers.list_invitations(seed.now + 4) == [outdated, late, second, first]
    assert await storage.developers.list_invitations(seed.now + 5) == [late, second, first]


async def test_delete_invitation_revokes_it(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """A revoked invitation cannot be accepted on any node, or revoked again."""
    kept, kept_hash = await seed.invitation("a@example.com")
    invitation, code_hash = await seed.invitation("b@example.com")
    assert await storage.developers.delete_invitation(invitation.id)
    assert not await other_node.developers.delete_invitation(invitation.id)
    assert await other_node.developers.read_invitation(code_hash, seed.now) is None
    bob = newcomer(seed, "b@example.com", "7")
    assert await other_node.developers.accept_invitation(code_hash, bob, seed.now) == "gone"
    assert await storage.developers.list_developers() == []
    assert await storage.developers.read_invitation(kept_hash, seed.now) == kept


async def test_create_invitation_replaces_those_for_the_same_developer(storage: Storage, seed: Seed) -> None:
    """Only the latest invitation of a developer works. Those of others do not change."""
    ada, bob = await seed.developer("Ada@Example.com"), await seed.developer()
    others = [await seed.invitation(developer=bob), await seed.invitation("eve@example.com"), await seed.invitation()]
    _, old_hash = await seed.invitation(developer=ada)
    new, new_hash = await seed.invitation(developer=ada)
    assert await storage.developers.read_invitation(old_hash, seed.now) is None
    bound = replace(ada, messenger_id="1001")
    assert await storage.developers.accept_invitation(old_hash, bound, seed.now) == "gone"
    assert await storage.developers.read_invitation(new_hash, seed.now) == new
    for invitation, code_hash in others:
        assert await storage.developers.read_invitation(code_hash, seed.now) == invitation


async def test_create_invitation_replaces_those_for_the_same_address(storage: Storage, seed: Seed) -> None:
    """Addresses are compared without case. Several invitations for the first developer can exist."""
    _, old_hash = await seed.invitation("Bob@Example.com", is_owner=True)
    new, _ = await seed.invitation("bOB@example.com")
    assert await storage.developers.read_invitation(old_hash, seed.now) is None
    assert await storage.developers.list_invitations(seed.now) == [new]
    firsts = [await seed.invitation() for _ in range(2)]
    assert [await storage.developers.read_invitation(each, seed.now) for _, each in firsts] == [
        each for each, _ in firsts
    ]
    assert await storage.developers.list_invitations(seed.now) == [new]


async def test_create_invitation_at_once_leaves_one(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """If two nodes invite one developer at once, only one invitation remains."""
    for _ in range(ROUNDS):
        ada = await seed.developer()
        made = [
            Invitation(seed.name("inv"), ada.email, "free", False, ada.id, "", seed.now, seed.now + 1)  # noqa: FBT003
            for _ in range(6)
        ]
        nodes = itertools.cycle((storage, other_node))
        await asyncio.gather(*(next(nodes).developers.create_invitation(each, each.id.encode()) for each in made))
        left = [await storage.developers.read_invitation(each.id.encode(), seed.now) for each in made]
        assert len([each for each in left if each is not None]) == 1


async def test_create_invitation_beside_one_that_is_taken_up(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """In either order, there is no deadlock, and the accepted invitation is gone."""
    for turn in range(ROUNDS):
        ada = await seed.developer()
        _, code_hash = await seed.invitation(developer=ada)
        new = Invitation(seed.name("inv"), ada.email, "free", False, ada.id, "", seed.now, seed.now + 1)  # noqa: FBT003
        bound = replace(ada, messenger_id=f"{turn}")
        async with asyncio.timeout(60):
            outcome, _ = await asyncio.gather(
                storage.developers.accept_invitation(code_hash, bound, seed.now),
                other_node.developers.create_invitation(new, new.id.encode()),
            )
        assert outcome in {"accepted", "gone"}
        assert await storage.developers.read_invitation(code_hash, seed.now) is None


async def imported(storage: Storage, *invitations: Invitation) -> None:
    """Store several invitations at once, as an import may do."""
    for each in invitations:
        await storage.developers.create_invitation(
            replace(each, email=f"{each.id}@x", developer_id=None), each.id.encode()
        )
        developer = "NULL" if each.developer_id is None else f"'{each.developer_id}'"
        await run(
            storage,
            f"UPDATE invitations SET email = '{each.email}', developer_id = {developer} "  # noqa: S608
            f"WHERE id = '{each.id}'",
        )


async def test_accept_invitation_ends_all_others_for_the_same(storage: Storage, seed: Seed) -> None:
    """Other invitations for the developer or the address are gone, and so are those for the first developer."""
    bob, eve = await seed.developer(), await seed.developer()
    until = seed.now + 9

    def invitation(email: str, developer: Developer | None = None) -> Invitation:
        developer_id = developer.id if developer else None
        return Invitation(seed.name("inv"), email, "free", False, developer_id, "", seed.now, until)  # noqa: FBT003

    to_bind = [invitation(bob.email, bob) for _ in range(3)]
    new = [invitation("Ada@Example.com"), invitation("ada@example.COM")]
    kept = [invitation(eve.email, eve), invitation("cleo@example.com")]
    await imported(storage, *to_bind, *new, *kept)
    _, first_hash = await seed.invitation()

    async def left(*invitations: Invitation) -> list[Invitation | None]:
        return [await storage.developers.read_invitation(each.id.encode(), seed.now) for each in invitations]

    bound = replace(bob, messenger_id="1001")
    assert await storage.developers.accept_invitation(to_bind[1].id.encode(), bound, seed.now) == "accepted"
    assert await left(*to_bind) == [None] * 3
    assert await left(*new, *kept) == [*new, *kept]
    assert await storage.developers.read_invitation(first_hash, seed.now) is None
    ada = newcomer(seed, "ada@example.com", "1002")
    assert await storage.developers.accept_invitation(new[0].id.encode(), ada, seed.now) == "accepted"
    assert await left(*new) == [None] * 2
    assert await left(*kept) == kept


async def test_accept_invitation_makes_the_first_developer(storage: Storage, seed: Seed) -> None:
    """The developer has every field and is found by address and account. The code works once."""
    _, code_hash = await seed.invitation(is_owner=True)
    ada = newcomer(seed, "Ada@Example.com", "1001", is_owner=True)
    assert await storage.developers.accept_invitation(code_hash, ada, seed.now) == "accepted"
    assert await storage.developers.list_developers() == [ada]
    assert await storage.developers.read_developer("ADA@example.com") == ada
    assert await storage.developers.read_developer_by_messenger_id("1001") == ada
    assert await storage.developers.read_invitation(code_hash, seed.now) is None
    bob = newcomer(seed, "bob@example.com", "1002")
    assert await storage.developers.accept_invitation(code_hash, bob, seed.now) == "gone"
    assert await storage.developers.list_developers() == [ada]


async def test_accept_invitation_that_cannot_be_taken_up_leaves_all_as_it_was(storage: Storage, seed: Seed) -> None:
    """After "email_taken", "identity_taken" or "not_first", the invitation can be tried again; nobody is signed out."""
    accept = storage.developers.accept_invitation
    bob = replace(await seed.developer("Bob@Example.com"), messenger_id="1001")
    cleo = await seed.developer()
    assert await accept((await seed.invitation(developer=bob))[1], bob, seed.now) == "accepted"
    session, cookie_hash = await seed.console_session(cleo)
    before = await storage.developers.list_developers()
    first, other, binding = (
        await seed.invitation(),
        await seed.invitation("ada@example.com"),
        await seed.invitation(developer=cleo),
    )
    for (invitation, code_hash), developer, outcome in (
        (first, newcomer(seed, "ada@example.com", "1002"), "not_first"),
        (other, newcomer(seed, "bOB@example.com", "1002"), "email_taken"),
        (other, newcomer(seed, "ada@example.com", "1001"), "identity_taken"),
        (binding, replace(cleo, messenger_id="1001"), "identity_taken"),
    ):
        assert await accept(code_hash, developer, seed.now) == outcome
        assert await storage.developers.list_developers() == before
        assert await storage.developers.read_invitation(code_hash, seed.now) == invitation
    assert await storage.credentials.read_console_session(cookie_hash, seed.now, IDLE_SINCE) == (session, cleo)
    assert await accept(other[1], newcomer(seed, "ada@example.com", "1002"), seed.now) == "accepted"


async def test_accept_invitation_binds_an_account_to_a_developer(storage: Storage, seed: Seed) -> None:
    """Only the account changes. The old account signs nobody in, and its console sessions end."""
    ada, bob = await seed.developer("Ada@Example.com", plan="business"), await seed.developer()
    seen: list[object] = []
    for messenger_id, messenger_name in (("1001", "Ada"), ("1002", "Ada L.")):
        sessions = [await seed.console_session(each) for each in (ada, ada, bob)]
        _, code_hash = await seed.invitation(developer=ada)
        bound = replace(ada, messenger_id=messenger_id, messenger_name=messenger_name)
        assert await storage.developers.accept_invitation(code_hash, bound, seed.now) == "accepted"
        assert await storage.developers.read_developer("ada@example.com") == bound
        assert await storage.developers.read_developer_by_messenger_id(messenger_id) == bound
        assert await storage.developers.read_invitation(code_hash, seed.now) is None
        sessions.append(await seed.console_session(ada))  # Whose sign-in had begun before, and ends only now.
        seen = [await storage.credentials.read_console_session(each, seed.now, IDLE_SINCE) for _, each in sessions]
        assert seen == [None, None, (sessions[2][0], bob), None]
        assert await storage.credentials.list_console_sessions(ada.id, seed.now, IDLE_SINCE) == []
        ada = bound
    assert await storage.developers.read_developer_by_messenger_id("1001") is None


async def test_accept_invitation_with_the_account_that_is_bound_signs_nobody_out(storage: Storage, seed: Seed) -> None:
    """The same account is linked again: only the name is updated."""
    ada = await seed.developer()
    for name in ("Ada", "Ada Lovelace"):
        _, code_hash = await seed.invitation(developer=ada)
        bound = replace(ada, messenger_id="1001", messenger_name=name)
        assert await storage.developers.accept_invitation(code_hash, bound, seed.now) == "accepted"
        session, cookie_hash = await seed.console_session(bound)
    _, code_hash = await seed.invitation(developer=ada)
    assert await storage.developers.accept_invitation(code_hash, bound, seed.now) == "accepted"
    assert await storage.credentials.read_console_session(cookie_hash, seed.now, IDLE_SINCE) == (session, bound)


async def race(
    nodes: tuple[Storage, Storage], seed: Seed, attempts: list[tuple[bytes, Developer]]
) -> list[InvitationOutcome]:
    """Accept invitations at once on two nodes, each with an entry for the audit log of `dev_log`."""
    return await asyncio.gather(
        *(
            node.developers.accept_invitation(code_hash, developer, seed.now, entry=seed.entry("dev_log"))
            for node, (code_hash, developer) in zip(itertools.cycle(nodes), attempts, strict=False)
        )
    )


async def test_accept_invitation_is_for_one_of_all_who_have_the_code(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """Of several people with one code, one becomes a developer, and the others get "gone"."""
    for turn in range(ROUNDS):
        _, code_hash = await seed.invitation(f"ada{turn}@example.com")
        people = [newcomer(seed, f"p{turn}.{number}@example.com", f"{turn} {number}") for number in range(6)]
        outcomes = await race((storage, other_node), seed, [(code_hash, each) for each in people])
        assert sorted(outcomes) == ["accepted", *["gone"] * 5]
        winner = people[outcomes.index("accepted")]
        assert [await storage.developers.read_developer(each.email) for each in people if each != winner] == [None] * 5
        assert await storage.developers.read_developer(winner.email) == winner
        assert await storage.developers.read_invitation(code_hash, seed.now) is None
        assert len(await storage.audit.list_audit_entries("dev_log", None, 99)) == turn + 1


async def test_accept_invitation_has_one_first_developer(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Of several invitations for the first developer, one is accepted, and the others end."""
    attempts = []
    for number in range(8):
        _, code_hash = await seed.invitation(is_owner=True)
        attempts.append((code_hash, newcomer(seed, f"p{number}@example.com", f"{number}", is_owner=True)))
    outcomes = await race((storage, other_node), seed, attempts)
    assert sorted(outcomes) == ["accepted", *["gone"] * 7]
    assert await storage.developers.list_developers() == [attempts[outcomes.index("accepted")][1]]
    assert [await storage.developers.read_invitation(code_hash, seed.now) for code_hash, _ in attempts] == [None] * 8
    assert len(await storage.audit.list_audit_entries("dev_log", None, 99)) == 1


async def test_accept_invitation_gives_an_account_to_one_developer(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """One messenger account accepts several invitations at once, for new developers and an existing one."""
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
        assert await storage.developers.read_developer_by_messenger_id(f"{turn}") == winner
        others = [each.id for _, each in order if each.id not in {winner.id, ada.id}]
        assert not {each.id for each in await storage.developers.list_developers()}.intersection(others)
        assert len(await storage.audit.list_audit_entries("dev_log", None, 99)) == turn + 1


async def test_accept_invitation_gives_an_address_to_one_developer(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """Several people accept an address while the operator adds it: one developer is created."""
    for turn in range(ROUNDS):
        email = f"ada{turn}@example.com"
        _, code_hash = await seed.invitation(email)
        attempts = [(code_hash, newcomer(seed, email, f"{turn} {number}")) for number in range(4)]
        added, outcomes = await asyncio.gather(
            storage.developers.create_developer(newcomer(seed, email.upper(), f"{turn} cli")),
            race((other_node, storage), seed, attempts),
        )
        assert [added, *(outcome == "accepted" for outcome in outcomes)].count(True) == 1
        assert set(outcomes) <= {"accepted", "email_taken", "gone"}
        assert len(await storage.developers.list_developers()) == turn + 1
