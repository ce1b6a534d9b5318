"""Every address that libpq accepts is read as libpq reads it, or refused with what to write instead."""

import asyncio
import contextlib
import ctypes
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from tests.postgres_server import HOST, binaries, execute, fresh_database
from tests.webhooks.receiver import Authority

from taproof.core.errors import StoreUnavailable
from taproof.storage.postgres.address import PARAMETERS, AddressRefused, read_address
from taproof.storage.postgres.connection import NotPostgres, connect, migrate_database
from taproof.storage.postgres.store import PostgresStorage

NOW = 1_795_214_643_127
_SETTINGS = """SELECT current_setting('transaction_isolation'), current_setting('statement_timeout'),
  to_regclass('"Sign Ins".sessions') IS NOT NULL"""
ACCEPTED = {
    # What it is written as: what it is read as.
    "postgres://ada:s3@db/taproof": "postgresql://ada:s3@db:5432/taproof",
    "postgresql://ada:a%40b%2F#?@db:1/Tap%20Roof": "postgresql://ada:a%40b%2F%23%3F@db:1/Tap%20Roof",
    "postgresql://a@one:1,two/taproof?load_balance_hosts=random": "postgresql://a@one:1,two:5432/taproof",
    "postgresql:///taproof?host=one,two&port=1,2&user=ada": "postgresql://ada@one:1,two:2/taproof",
    "postgresql://[::1]:1,[fe80::1%25eth0]/taproof": "postgresql://[::1]:1,[fe80::1%25eth0]:5432/taproof",
    "postgresql:///taproof?host=/run/db": "postgresql://%2Frun%2Fdb:5432/taproof",
    "postgresql://%2Frun%2Fdb/taproof": "postgresql://%2Frun%2Fdb:5432/taproof",
    "postgresql://a:b@/taproof?host=/cloudsql/p:r:i": "postgresql://a:b@%2Fcloudsql%2Fp%3Ar%3Ai:5432/taproof",
    " host = db dbname=taproof password='a b\\'c' user=a\\ b port=": "postgresql://a%20b:a%20b%27c@db:5432/taproof",
    "hostaddr=10.0.0.1 dbname=taproof": "postgresql://10.0.0.1:5432/taproof",
    "postgresql://a%40srv:b@db/taproof?sslmode=require": "postgresql://a%40srv:b@db:5432/taproof?sslmode=require",
    "postgresql://db/taproof?ssl=true": "postgresql://db:5432/taproof?sslmode=require",
    "postgresql://db/x?dbname=taproof&options=endpoint=a": "postgresql://db:5432/taproof?options=endpoint%3Da",
    "postgresql://db/taproof?channel_binding=prefer&gssencmode=prefer&sslcompression=1&sslsni=1&replication=false"
    "&client_encoding=UTF8&sslcertmode=allow&max_protocol_version=3.2&gssdelegation=0": "postgresql://db:5432/taproof",
    "postgresql://db/taproof?passfile=&sslcert=&connect_timeout=": "postgresql://db:5432/taproof",
}
REFUSED = {
    "postgresql://db/taproof?require_auth=scram-sha-256": "set sslmode=verify-full",
    "postgresql://db/taproof?gssencmode=require": "sslmode=verify-full",
    "postgresql://db/taproof?target_session_attrs=standby": "primary, read-write or any",
    "postgresql://db/taproof?SSLMODE=require": "Did you mean sslmode",
    "postgresql://db/taproof?ssl=require": "Did you mean sslmode",
    "postgresql://db/taproof?pgbouncer=true": "not know: pgbouncer. Remove it",
    "postgresql://db/taproof?sslmode=": "must be disable, allow",
    "postgresql://db/taproof?sslmode=require&sslrootcert=system": "needs sslmode=verify-full",
    "postgresql://db/taproof?sslmode=disable&channel_binding=require": "needs TLS",
    "host=/run/db dbname=taproof channel_binding=require": "needs TLS",
    "postgresql://a@srv:b@db/taproof": "Write %40",
    "postgresql://a:100%@db/taproof": "Write %25",
    "postgresql:///taproof": r"host=/var/run/postgresql",
    "postgresql://db": "names no database",
    "postgresql://one,two/taproof?port=1,2,3": "one port, or one for each host",
    "postgresql://db:70000/taproof": "from 1 to 65535",
    "host=db hostaddr=10.0.0.1 dbname=taproof": "Remove hostaddr",
    "host=db dbname='taproof": "single quotes",
    "service=missing": "PGSERVICEFILE",
}


def test_each_form_is_read(subtests: pytest.Subtests) -> None:
    """A parsed address can be written and read again unchanged."""
    for text, url in ACCEPTED.items():
        with subtests.test(text):
            assert read_address(text).url == url
            assert read_address(url).url == url


def test_each_refusal_says_what_to_write(subtests: pytest.Subtests) -> None:
    for text, advice in REFUSED.items():
        with subtests.test(text), pytest.raises(AddressRefused, match=advice):
            read_address(text)


def test_every_parameter_of_libpq_is_known(subtests: pytest.Subtests) -> None:
    """The table has the parameters, and the environment variables, of the newest libpq."""

    class Option(ctypes.Structure):
        _fields_ = [
            (name, ctypes.c_char_p) for name in ("keyword", "variable", "compiled", "value", "label", "shown")
        ] + [("size", ctypes.c_int)]

    libpq = ctypes.CDLL(str(binaries().parent / "lib" / "libpq.so.5"))
    libpq.PQconndefaults.restype = ctypes.POINTER(Option)
    options = libpq.PQconndefaults()
    number = 0
    while (option := options[number]).keyword:
        name, variable = option.keyword.decode(), (option.variable or b"").decode()
        with subtests.test(name):
            assert PARAMETERS[name].variable == variable
        number += 1
    assert number > 40


def test_services_and_the_environment_complete_an_address(tmp_path: Path) -> None:
    """The address has precedence over its service, and the service over the environment.

    Refused variables are named.
    """
    (tmp_path / "services").write_text("[shop]\nhost=db\nuser=ada\npassword=a%b\nsslmode=require\n")
    environment = {
        "PGSERVICEFILE": str(tmp_path / "services"),
        "PGDATABASE": "taproof",
        "PGUSER": "other",
        "PGAPPNAME": "",
        "PGPORT": "6",
    }
    assert read_address("postgresql://?service=shop&sslmode=verify-ca", environment).url == (
        "postgresql://ada:a%25b@db:6/taproof?sslmode=verify-ca"
    )
    with pytest.raises(AddressRefused, match="value of PGREQUIREAUTH"):
        read_address("postgresql://db/taproof", {"PGREQUIREAUTH": "!password"})


async def test_an_address_with_every_harmless_parameter_connects() -> None:
    """Parameters about TCP are set on the socket; the name and the options reach the server."""
    more = (
        "channel_binding=prefer&connect_timeout=10&keepalives=1&keepalives_idle=41&keepalives_interval=7"
        "&keepalives_count=3&tcp_user_timeout=9000&gssencmode=disable&sslmode=prefer&target_session_attrs=read-write"
        "&application_name=shop&options=-c%20search_path%3Dother&sslnegotiation=postgres"
    )
    with fresh_database() as dsn:
        connection = await connect(f"{dsn}?{more}")
        used = connection._transport.get_extra_info("socket")
        values = [
            used.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
        ]
        assert values == [41, 7, 3, 9000]
        assert used.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert await connection.fetchval("SHOW search_path") == "other"
        assert await connection.fetchval("SHOW application_name") == "shop"
        await connection.close()


@contextlib.asynccontextmanager
async def over_tls(dsn: str, context: ssl.SSLContext) -> AsyncIterator[str]:
    """Yield the address of a server with TLS in front of one without."""

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(8)
        writer.write(b"S")
        with contextlib.suppress(OSError):
            await writer.start_tls(context)
            parts = urlsplit(dsn)
            inner, outer = await asyncio.open_connection(parts.hostname, parts.port)
            await asyncio.gather(pipe(reader, outer), pipe(inner, writer))

    server = await asyncio.start_server(serve, HOST, 0)
    port = server.sockets[0].getsockname()[1]
    yield f"postgresql://postgres@localhost:{port}{urlsplit(dsn).path}"
    server.close()


async def test_channel_binding_is_replaced_by_the_check_of_the_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`sslmode=require&channel_binding=require` (Neon) connects to the right server only."""
    trusted = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted.file))
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other")
    asked = "?sslmode=require&channel_binding=require"
    with fresh_database() as dsn:
        async with over_tls(dsn, trusted.server("localhost")) as url:
            for more in (asked, "?sslrootcert=system", "?sslmode=verify-full&sslrootcert=system"):
                connection = await connect(url + more)
                assert await connection.fetchval("SELECT 1") == 1
                await connection.close()
        for impostor in (other.server("localhost"), trusted.server("db.example.com")):
            async with over_tls(dsn, impostor) as url:
                with pytest.raises(StoreUnavailable, match="certificate is not from a CA"):
                    await migrate_database(url + asked, NOW)


async def test_another_product_with_the_protocol_is_refused() -> None:
    """CockroachDB and others accept the connection, and would fail later with obscure errors."""
    with fresh_database() as dsn:
        name = urlsplit(dsn).path[1:]
        says = "CockroachDB CCL v25.1.0 (x86_64-pc-linux-gnu)"
        execute(
            dsn,
            "CREATE SCHEMA fake",
            f"CREATE FUNCTION fake.version() RETURNS text LANGUAGE sql AS $$ SELECT '{says}' $$",
            f'ALTER DATABASE "{name}" SET search_path = fake, public, pg_catalog',
        )
        with pytest.raises(NotPostgres, match="CockroachDB"):
            await migrate_database(dsn, NOW)


async def test_settings_of_the_user_do_not_matter() -> None:
    """Another schema, another isolation level, short timeouts and names in capitals do not matter."""
    with fresh_database() as first:
        name = f"Big Ben {urlsplit(first).path[-8:]}"
        execute(first, f'CREATE DATABASE "{name}" TEMPLATE template0')
        dsn = f"{first.rpartition('/')[0]}/{quote(name)}"
        execute(dsn, 'CREATE SCHEMA "Sign Ins"')
        for setting in (
            'search_path = "Sign Ins"',
            "default_transaction_isolation = serializable",
            "statement_timeout = '1min'",
            "idle_session_timeout = '1h'",
        ):
            execute(first, f'ALTER DATABASE "{name}" SET {setting}')
        try:
            store = await PostgresStorage.open(dsn, NOW)
            assert [tuple(row) for row in await store.database.fetch(_SETTINGS)] == [("read committed", "15s", True)]
            await store.close()
        finally:
            execute(first, f'DROP DATABASE "{name}" WITH (FORCE)')
