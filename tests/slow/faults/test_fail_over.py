"""No answer reports a state that a fail-over to a synchronous standby reverses (decision 0014)."""

import asyncio
import dataclasses
from collections.abc import Iterator

import asyncpg
import pytest
from tests.faults.place import Place, make_place
from tests.postgres_server import execute
from tests.slow.faults.standby import Cluster, cluster_with_standby
from tests.whole_sign_in import WholeSignIn

from taproof.core.clock import system_clock
from taproof.core.errors import StoreUnavailable
from taproof.core.identifiers import session_key
from taproof.core.identity import MessengerIdentity
from taproof.runtime.database_probe import ask_server
from taproof.sdk.code_challenge import code_challenge, new_code_verifier
from taproof.storage.postgres import database
from taproof.storage.postgres.connection import connect

USER = "1001"
ADA = MessengerIdentity(USER, "Ada", "ada")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with cluster_with_standby() as cluster:
        execute(cluster.primary.dsn(), "CREATE DATABASE taproof TEMPLATE template0")
        yield cluster


@pytest.fixture
async def place(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(database, "_COMMAND_PATIENCE", 1.0)
    return await make_place(cluster.dsn("taproof"))


async def confirmed(node: WholeSignIn, project_id: str) -> tuple[str, str]:
    """Return a confirmed session's token and its verifier."""
    verifier = new_code_verifier()
    created = await node.create_session(project_id, public=True, code_challenge=code_challenge(verifier))
    await node.open_session(created.session_token, USER)
    assert (await node.confirm_session(created.session_token, ADA)).changed
    return created.session_token, verifier


async def answer_of(node: WholeSignIn, project_id: str, token: str, verifier: str | None = None) -> str | None:
    """Return the status that `verify` answers, with "+" if there is a proof; None if it answers 503."""
    try:
        seen = await node.verify_session(project_id, token, public=True, code_verifier=verifier)
    except StoreUnavailable:
        return None
    return f"{seen.status}{'+' if seen.proof else ''}"


async def next_answer(node: WholeSignIn, project_id: str, token: str, verifier: str) -> str:
    """Return the first answer that is not 503."""
    async with asyncio.timeout(60):
        while True:
            if found := await answer_of(node, project_id, token, verifier):
                return found
            await asyncio.sleep(0.05)


async def test_a_standby_that_hangs(cluster: Cluster, place: Place) -> None:
    """A write that waits for the standby is neither acknowledged nor visible.

    After the fail-over, each session has one proof.
    """
    async with place.sign_in() as node, place.sign_in() as other:
        token, verifier = await confirmed(node, place.project_id)
        waiting = await node.create_session(place.project_id, public=True)
        await node.open_session(waiting.session_token, USER)
        cluster.hang()
        for _ in range(2):
            assert await answer_of(node, place.project_id, token, verifier) is None
            assert await answer_of(other, place.project_id, token, verifier) is None
            with pytest.raises(StoreUnavailable):
                await node.confirm_session(waiting.session_token, ADA)
        # What does not depend on these changes still works.
        assert (await other.verify_session(place.project_id, waiting.session_token, public=True)).status == "pending"
        await asyncio.to_thread(cluster.fail_over)
        assert await next_answer(node, place.project_id, token, verifier) == "confirmed+"
        first = await node.verify_session(place.project_id, token, public=True, code_verifier=verifier)
        again = await other.verify_session(place.project_id, token, public=True, code_verifier=verifier)
        assert first.proof == again.proof
        seen = await other.verify_session(place.project_id, waiting.session_token, public=True)
        assert seen.status == "pending"


async def test_a_primary_that_crashes_while_its_standby_hangs(cluster: Cluster, place: Place) -> None:
    """The restarted primary shows changes that no standby has: no answer reports them until the standby has them."""
    async with place.sign_in() as node:
        token, verifier = await confirmed(node, place.project_id)
        cluster.hang()
        assert await answer_of(node, place.project_id, token, verifier) is None
        cluster.primary.kill()
        cluster.primary.start()
        status = "SELECT status FROM sessions WHERE status = 'used'"
        assert execute(cluster.primary.dsn("taproof"), status) == "used\n"
        for _ in range(3):
            assert await answer_of(node, place.project_id, token, verifier) is None
        key = session_key(token)
        assert key is not None
        # A caller that read `confirmed` before the crash may only learn now that the session is used.
        with pytest.raises(StoreUnavailable):
            await node.storage.sessions.consume_session(key, system_clock())
        cluster.resume()
        assert await next_answer(node, place.project_id, token, verifier) == "confirmed+"


async def test_a_primary_that_does_not_know_its_successor(cluster: Cluster, place: Place) -> None:
    """The primary answers "pending", but neither "not found" nor "expired", because the new primary may differ."""
    old_place = dataclasses.replace(place, url=cluster.primary.dsn("taproof"))
    new_place = dataclasses.replace(place, url=cluster.standby_dsn("taproof"))
    async with old_place.sign_in() as old:
        expired = (await old.create_session(place.project_id, public=True)).session_token
        execute(old_place.url, "UPDATE sessions SET expires_at = created_at")
        waiting = (await old.create_session(place.project_id, public=True)).session_token
        await asyncio.to_thread(cluster.promote)
        async with new_place.sign_in() as new:
            unknown = (await new.create_session(place.project_id, public=True)).session_token
            for token in (expired, unknown):
                assert await answer_of(old, place.project_id, token) is None
                with pytest.raises(StoreUnavailable):
                    await old.open_session(token, USER)
            assert await answer_of(old, place.project_id, waiting) == "pending"
            assert await answer_of(new, place.project_id, expired) == "expired"


async def test_a_former_primary_that_still_accepts_connections(cluster: Cluster, place: Place) -> None:
    """A node that knows both hosts goes to the other one once writes hang, although the former primary is first."""
    async with place.sign_in() as node:
        await asyncio.to_thread(cluster.promote)
        with pytest.raises(StoreUnavailable):
            await node.create_session(place.project_id, public=True)
        created = await node.create_session(place.project_id, public=True)
        assert execute(cluster.standby_dsn("taproof"), "SELECT COUNT(*) FROM sessions") == "1\n"
        await node.open_session(created.session_token, USER)
        assert (await node.confirm_session(created.session_token, ADA)).changed


async def test_a_read_only_database_is_not_ready(cluster: Cluster, place: Place) -> None:
    one_host = dataclasses.replace(place, url=cluster.primary.dsn("taproof"))
    async with one_host.sign_in() as node:
        await node.storage.ping()
        execute(cluster.primary.dsn(), "ALTER DATABASE taproof SET default_transaction_read_only = on")
        sessions = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'taproof'"
        execute(cluster.primary.dsn(), sessions)
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await node.storage.ping()


async def test_a_primary_that_hangs_while_nobody_calls(
    cluster: Cluster, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node notices it by itself. Its next call goes to the new primary, without waiting for a timeout."""
    monkeypatch.setattr(database, "_COMMAND_PATIENCE", 600.0)
    monkeypatch.setattr(database, "_CHECK_EVERY", 0.1)
    monkeypatch.setattr(database, "_CHECK_PATIENCE", 1.0)
    async with place.sign_in() as node:
        pool = node.storage.database._pool  # type: ignore[attr-defined]
        before = pool._generation
        cluster.hang_primary()
        await asyncio.to_thread(cluster.promote)
        async with asyncio.timeout(60):
            while pool._generation == before:  # noqa: ASYNC110 — the pool tells nobody.
                await asyncio.sleep(0.05)
            await node.create_session(place.project_id, public=True)
        cluster.resume()


async def test_the_doctor_names_the_risk(cluster: Cluster) -> None:
    """The doctor counts the standbys of a real primary and knows whether commits wait for them."""
    dsn = cluster.dsn("taproof")

    async def durability() -> tuple[bool, int]:
        found = await ask_server(dsn, system_clock)
        return found.waits_for_standbys, found.standbys

    assert await durability() == (True, 1)
    execute(cluster.primary.dsn(), "ALTER SYSTEM RESET synchronous_standby_names")
    execute(cluster.primary.dsn(), "SELECT pg_reload_conf()")
    async with asyncio.timeout(60):
        while await durability() != (False, 1):  # noqa: ASYNC110 — only asking again can tell.
            await asyncio.sleep(0.05)


async def test_nothing_cancels_a_wait_for_the_standby(cluster: Cluster) -> None:
    """A timeout, a cancelled task and the server's own statement_timeout leave the change invisible."""
    dsn = cluster.primary.dsn("taproof")
    execute(dsn, "CREATE TABLE notes (number INTEGER)")
    cluster.hang()

    waits = "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"

    async def until_both_wait(condition: str) -> None:
        async with asyncio.timeout(60):
            while execute(dsn, f"{waits} AND {condition}") != "2\n":
                assert execute(dsn, "SELECT COUNT(*) FROM notes") == "0\n"
                await asyncio.sleep(0.05)

    connections = [await connect(dsn, command_timeout=None) for _ in range(2)]
    for connection in connections:
        await connection.execute("SET statement_timeout = '1s'; BEGIN; INSERT INTO notes VALUES (1)")
    timed, cancelled = (
        asyncio.create_task(connection.execute("COMMIT", timeout=limit))
        for connection, limit in zip(connections, (2, None), strict=True)
    )
    await until_both_wait("TRUE")
    cancelled.cancel()
    with pytest.raises((asyncio.CancelledError, asyncpg.ConnectionDoesNotExistError)):
        await cancelled
    with pytest.raises(TimeoutError):
        await timed
    for connection in connections:
        await connection.close(timeout=60)  # It first waits for a request to cancel, if one is sent.
    await until_both_wait("clock_timestamp() - query_start > INTERVAL '2s'")
    assert execute(dsn, "SELECT COUNT(*) FROM notes") == "0\n"
