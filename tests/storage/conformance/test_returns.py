"""Conformance: sessions that are confirmed only with a return code."""

from dataclasses import astuple, replace

import pytest
from tests.databases import expired_event
from tests.storage.seed import Seed, at_once, present

from taproof.core.clock import MINUTE
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import Project
from taproof.core.return_code import RETURN_LIFETIME
from taproof.core.sessions import FoundState, NewSession, Refused, ReturningUser, Session
from taproof.storage.protocol import Storage
from taproof.storage.queries.encrypted_values import Replacement

USER = "1001"
CODE, OTHER_CODE = b"c" * 32, b"d" * 32


async def opened(storage: Storage, seed: Seed, project: Project, *, required: bool = True) -> NewSession:
    await seed.update(project, same_device="require" if required else "offer", allowed_origins=("https://a.example",))
    new = seed.new_session(project)._replace(code_challenge=CODE, return_url="https://a.example/", context="{}")
    assert await storage.sessions.create_session(new, public=True) == (required, not required)
    assert await storage.sessions.open_session(new.key, USER, seed.now)
    return new


async def returning(storage: Storage, seed: Seed, project: Project) -> NewSession:
    new = await opened(storage, seed, project)
    assert await storage.sessions.await_return(new.key, seed.identity(USER), seed.now, CODE, None)
    return new


async def session_of(storage: Storage, new: NewSession) -> Session:
    return present(await storage.sessions.read_session(new.key))


async def page_of(storage: Storage, new: NewSession) -> str | None:
    details = (await session_of(storage, new)).prompt
    assert details is not None
    return details.return_url


async def test_await_return_keeps_a_session_pending_without_an_identity(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """No reader sees the account, and nothing is counted or sent; the five minutes start.

    A second call changes nothing.
    """
    project = await seed.project(webhook_url="https://example.com/")
    new = await opened(storage, seed, project)
    now = seed.now + 7 * MINUTE
    assert not await storage.sessions.await_return(new.key, seed.identity("1002"), now, CODE)
    assert await storage.sessions.await_return(new.key, seed.identity(USER), now, CODE)
    assert not await storage.sessions.await_return(new.key, seed.identity(USER), now + 1, OTHER_CODE)
    seen = await session_of(other_node, new)
    assert (seen.status, seen.expires_at) == ("pending", now + RETURN_LIFETIME)
    assert (seen.identity, seen.confirmed_at, seen.encrypted_phone) == (None, None, None)
    assert seen.prompt is not None
    assert (seen.prompt.is_returning, seen.prompt.context) == (True, None)
    (listed,) = await storage.sessions.list_sessions([project.id], None, None, 5, now)
    assert listed == replace(seen, prompt=None)
    assert await storage.sessions.list_sign_ins(USER, 0, 5, now) == []
    (counts,) = await storage.counts.read_daily_counts([project.id], 0)
    assert (counts.confirmed, counts.unique_users) == (0, 0)
    assert await storage.deliveries.claim_deliveries(now, now + 1, 5) == []


async def test_await_return_is_only_for_sessions_that_require_it(storage: Storage, seed: Seed) -> None:
    """`confirm_session` is only for other sessions, so no path confirms without the code."""
    project = await seed.project()
    required, offered = [await opened(storage, seed, project, required=each) for each in (True, False)]
    assert not await storage.sessions.confirm_session(required.key, seed.identity(USER), seed.now, seed.event(project))
    assert not await storage.sessions.await_return(offered.key, seed.identity(USER), seed.now, CODE)
    assert await page_of(storage, offered) == "https://a.example/"
    assert await storage.sessions.confirm_session(offered.key, seed.identity(USER), seed.now, seed.event(project))
    assert await page_of(storage, offered) is None


async def test_await_return_stores_a_phone_number_only_if_the_project_collects_it(storage: Storage, seed: Seed) -> None:
    """The rule is the same as for `confirm_session`."""
    for collects in (False, True):
        project = await seed.project(collect_phone=collects)
        new = await opened(storage, seed, project)
        assert await storage.sessions.await_return(new.key, seed.identity(USER), seed.now, CODE, b"encrypted")
        user = present(await storage.sessions.read_returning_user(new.key, CODE))
        assert user.encrypted_phone == (b"encrypted" if collects else None)


async def test_renew_return_replaces_the_code_and_not_the_deadline(storage: Storage, seed: Seed) -> None:
    """Only the owner can renew it, while the session waits for its code."""
    project = await seed.project()
    new = await opened(storage, seed, project)
    assert not await storage.sessions.renew_return(new.key, USER, seed.now, OTHER_CODE)
    assert await storage.sessions.await_return(new.key, seed.identity(USER), seed.now, CODE)
    expiry = seed.now + RETURN_LIFETIME
    for user, now in (("1002", seed.now), (USER, expiry)):
        refused = await storage.sessions.renew_return(new.key, user, now, OTHER_CODE)
        assert refused == Refused(FoundState("pending", USER, expiry, seed.now, None, 0))
    assert await storage.sessions.renew_return(new.key, USER, expiry - 1, OTHER_CODE) is True
    assert (await session_of(storage, new)).expires_at == expiry
    assert await storage.sessions.read_returning_user(new.key, CODE) is None
    assert await storage.sessions.read_returning_user(new.key, OTHER_CODE) is not None


async def test_read_returning_user_asks_for_the_code(storage: Storage, seed: Seed) -> None:
    """Without the right hash, nobody learns who confirmed; afterwards `read_session` names them."""
    project = await seed.project(collect_phone=True)
    new = await opened(storage, seed, project)
    identity = MessengerIdentity(USER, "Зоя 👩‍💻", "")
    assert await storage.sessions.await_return(new.key, identity, seed.now, CODE, b"encrypted")
    user = await storage.sessions.read_returning_user(new.key, CODE)
    assert user == ReturningUser(new.id, identity, b"encrypted")
    assert await storage.sessions.read_returning_user(new.key, OTHER_CODE) is None
    assert await storage.sessions.return_session(new.key, CODE, user, seed.now, seed.event(project))
    assert await storage.sessions.read_returning_user(new.key, CODE) is None


async def test_return_session_confirms_once(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Of twelve calls on two nodes, one succeeds: one count, one user, one event, and the session can be consumed."""
    project = await seed.project(webhook_url="https://example.com/")
    new = await returning(storage, seed, project)
    user = present(await storage.sessions.read_returning_user(new.key, CODE))
    assert not await storage.sessions.return_session(new.key, OTHER_CODE, user, seed.now, seed.event(project))
    assert await storage.sessions.consume_session(new.key, seed.now) is None
    now = seed.now + RETURN_LIFETIME - 1
    won = await at_once(
        *(12, lambda node, _: node.sessions.return_session(new.key, CODE, user, now, seed.event(project))),
        *(storage, other_node),
    )
    assert won.count(True) == 1
    seen = await session_of(storage, new)
    assert (seen.status, seen.confirmed_at, seen.identity) == ("confirmed", now, seed.identity(USER))
    assert await page_of(storage, new) is None
    (counts,) = await storage.counts.read_daily_counts([project.id], 0)
    assert (counts.confirmed, counts.unique_users, counts.latest_users) == (1, 1, 1)
    assert len(await storage.deliveries.claim_deliveries(now, now + 1, 5)) == 1
    consumed = present(await storage.sessions.consume_session(new.key, now))
    assert (consumed.identity, consumed.confirmed_at) == (seed.identity(USER), now)
    polled = present(await storage.sessions.poll_session(new.key))
    assert (polled.return_required, polled.return_hash) == (True, CODE)


async def test_return_session_keeps_a_phone_number_that_was_encrypted_again(storage: Storage, seed: Seed) -> None:
    """The master key may rotate between `read_returning_user` and `return_session`."""
    project = await seed.project(collect_phone=True)
    new = await opened(storage, seed, project)
    assert await storage.sessions.await_return(new.key, seed.identity(USER), seed.now, CODE, b"old key")
    user = present(await storage.sessions.read_returning_user(new.key, CODE))
    replaced = Replacement(new.key, b"old key", b"new key")
    assert await storage.encrypted_values.replace_encrypted_values("phone", [replaced]) == 1
    assert await storage.sessions.return_session(new.key, CODE, user, seed.now, seed.event(project))
    consumed = present(await storage.sessions.consume_session(new.key, seed.now))
    assert (consumed.identity, consumed.encrypted_phone) == (seed.identity(USER), b"new key")


@pytest.mark.parametrize("end", ["cancelled", "withdrawn", "reported", "expired"])
async def test_the_identity_goes_if_the_user_does_not_return(storage: Storage, seed: Seed, end: str) -> None:
    """Cancel, "This wasn't me" and the expiry erase everything that Confirm stored, and the code stops working."""
    project = await seed.project(collect_phone=True)
    new = await opened(storage, seed, project)
    assert await storage.sessions.await_return(new.key, seed.identity(USER), seed.now, CODE, b"encrypted")
    user = present(await storage.sessions.read_returning_user(new.key, CODE))
    now = seed.now + 1
    if end == "cancelled":
        assert await storage.sessions.cancel_session(new.key, USER, now, seed.event(project, "auth.cancelled"))
    elif end == "withdrawn":
        assert await storage.sessions.withdraw_session(new.key, now)
    elif end == "reported":
        assert await seed.report(new.key, USER, now) == "cancelled"
    else:
        now = seed.now + RETURN_LIFETIME
        assert not await storage.sessions.return_session(new.key, CODE, user, now, seed.event(project))
        assert await storage.sessions.expire_sessions(now, 5, expired_event) == 1
    seen = await session_of(storage, new)
    assert seen.status == ("expired" if end == "expired" else "cancelled")
    assert (seen.identity, seen.confirmed_at, seen.encrypted_phone) == (None, None, None)
    assert await page_of(storage, new) is None
    polled = present(await storage.sessions.poll_session(new.key))
    assert (polled.encrypted_phone, polled.return_hash) == (None, None)
    assert not await storage.sessions.return_session(new.key, CODE, user, seed.now, seed.event(project))
    (counts,) = await storage.counts.read_daily_counts([project.id], 0)
    assert astuple(counts)[4:8] == ((0, 0, 0, 1) if end == "expired" else (0, 0, 1, 0))
    assert await storage.sessions.list_sign_ins(USER, 0, 5, now) == []


async def test_lists_know_the_deadline_of_each_session(storage: Storage, seed: Seed) -> None:
    """A session that waits for its code may expire before or after others of its age."""
    project = await seed.project()
    soon = await returning(storage, seed, project)
    late = await opened(storage, seed, project)
    now = late.expires_at - 1
    assert await storage.sessions.await_return(late.key, seed.identity(USER), now, CODE)
    plain = await opened(storage, seed, project, required=False)
    for instant, pending in (
        (seed.now, {soon.id, late.id, plain.id}),
        (seed.now + RETURN_LIFETIME, {late.id, plain.id}),
        (plain.expires_at, {late.id}),
        (now + RETURN_LIFETIME - 1, {late.id}),
        (now + RETURN_LIFETIME, set()),
    ):
        expired = {soon.id, late.id, plain.id} - pending
        for status, expected in (("pending", pending), ("expired", expired)):
            listed = await storage.sessions.list_sessions([project.id], status, None, 5, instant)  # type: ignore[arg-type]
            assert {each.id for each in listed} == expected, (status, instant - seed.now)
