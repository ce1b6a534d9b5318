"""A database URL with several hosts leads to the primary, and a host that does not respond does not delay that."""

import asyncio
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
from tests.postgres_server import HOST, fresh_database

from taproof.storage.postgres import connection as connection_module
from taproof.storage.postgres.connection import Connection, Hosts, connect, server_urls


@pytest.mark.parametrize(
    ("dsn", "urls"),
    [
        ("postgresql://a:p,q@db/taproof", ["postgresql://a:p,q@db/taproof"]),
        ("postgresql:///taproof?host=/run/db", ["postgresql:///taproof?host=/run/db"]),
        (
            "postgresql://a:p%40@db1:5432,db2/taproof?sslmode=require",
            ["postgresql://a:p%40@db1:5432/taproof?sslmode=require", "postgresql://a:p%40@db2/taproof?sslmode=require"],
        ),
        ("postgresql:///taproof?host=db1,db2", None),
    ],
)
def test_hosts(dsn: str, urls: list[str] | None) -> None:
    if urls is None:
        with pytest.raises(ValueError, match=r"^$"):
            server_urls(dsn)
    else:
        assert server_urls(dsn) == urls


async def test_silent_and_closed_hosts_and_standbys_are_passed_over(
    closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any order, the server that accepts the connection is found; without one, the best reason is given."""
    writers: list[asyncio.StreamWriter] = []
    refused = asyncio.Event()
    open_connection = connection_module._open

    async def open_and_note(url: str, options: dict[str, Any]) -> asyncpg.Connection:
        try:
            return await open_connection(url, options)
        except asyncpg.TargetServerAttributeNotMatched:
            refused.set()
            raise

    monkeypatch.setattr(connection_module, "_open", open_and_note)
    silent = await asyncio.start_server(lambda _, writer: writers.append(writer), HOST, 0)
    hosts = [f"{HOST}:{silent.sockets[0].getsockname()[1]}", f"{HOST}:{closed_port}"]
    with fresh_database() as dsn:
        parts = urlsplit(dsn)
        user, _, host = parts.netloc.rpartition("@")
        for position in range(3):
            several = parts._replace(netloc=f"{user}@{','.join([*hosts[:position], host, *hosts[position:]])}")
            connection = await connect(urlunsplit(several))
            assert isinstance(connection, Connection)
            assert await connection.fetchval("SELECT 1") == 1
            await connection.close()
        standby = urlunsplit(several._replace(query="target_session_attrs=standby"))
        connecting = asyncio.create_task(connect(standby, timeout=60))
        await asyncio.wait_for(refused.wait(), 60)
        silent.close()
        for writer in writers:
            writer.close()
        with pytest.raises(asyncpg.TargetServerAttributeNotMatched):
            await connecting


async def test_late_timeouts_of_a_former_primary_do_not_lead_back_to_it() -> None:
    """Many statements time out on it, some after the first connection to the new primary."""
    with fresh_database() as dsn:
        parts = urlsplit(dsn)
        user, _, host = parts.netloc.rpartition("@")
        hosts = Hosts(urlunsplit(parts._replace(netloc=f"{user}@{host},localhost:{parts.port}")))
        former = await hosts.connect()
        for _ in range(3):
            hosts.try_last(former.url)
            other = await hosts.connect()
            assert urlsplit(other.url).hostname == "localhost"
            await other.close()
        assert urlsplit(former.url).hostname == HOST
        await former.close()
