"""A database URL with several hosts leads to the primary, and a host that does not respond does not delay that."""

import asyncio
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
from tests.postgres_server import HOST, execute, fresh_database
from tests.waiting import until

from taproof.storage.postgres.connection import Connection, Hosts, connect


async def test_silent_and_closed_hosts_and_standbys_are_passed_over(closed_port: int) -> None:
    """In any order, the server that accepts the connection is found; without one, the best reason is given."""
    writers: list[asyncio.StreamWriter] = []
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
        execute(dsn, f'ALTER DATABASE "{parts.path[1:]}" SET default_transaction_read_only = on')
        for writer in writers:
            writer.close()
        writers.clear()
        connecting = asyncio.create_task(connect(urlunsplit(several._replace(query="target_session_attrs=read-write"))))
        await until(lambda: writers)
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
            hosts.try_last(former.host)
            other = await hosts.connect()
            assert other.host[0] == "localhost"
            await other.close()
        assert former.host[0] == HOST
        await former.close()
