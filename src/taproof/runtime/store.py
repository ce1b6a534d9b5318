"""Opens the store and its master key: the part of the composition root that every command needs.

It is separate from `app.py`, which imports the whole service. That takes seconds, too long for `taproof developers
add`. Each driver is imported when it is used, so that a service on one store does not need the other driver.
"""
# ruff: noqa: PLC0415 — see above.

from collections.abc import Callable

from taproof.config.database_url import database_file, is_postgres, master_key_file
from taproof.config.options import NO_MASTER_KEY
from taproof.config.settings import Settings
from taproof.core.clock import system_clock
from taproof.core.encryption import Encryptor
from taproof.core.entropy import system_entropy
from taproof.core.errors import TaproofError
from taproof.runtime.key_file import KeyFile, read_or_make_master_key
from taproof.service.installation import check_master_key, has_master_key
from taproof.storage.protocol import Storage


class MasterKeyMissing(TaproofError, code="master_key_missing"):
    """There is no master key, and none may be created."""


async def open_storage(database_url: str, *, pgbouncer: bool = False) -> Storage:
    """Open the store and migrate its schema. Raises StoreUnavailable; its sentence gives the reason."""
    if is_postgres(database_url):
        from taproof.storage.postgres.store import PostgresStorage

        return await PostgresStorage.open(database_url, system_clock(), system_clock, pgbouncer=pgbouncer)
    from taproof.storage.sqlite.store import SqliteStorage

    return SqliteStorage.open(database_file(database_url), system_clock(), system_clock)


async def migrate(database_url: str) -> tuple[int, int]:
    """Migrate the schema; return its version before and after."""
    if is_postgres(database_url):
        from taproof.storage.postgres import connection as postgres_connection

        return await postgres_connection.migrate_database(database_url, system_clock())
    from taproof.storage.sqlite import connection as sqlite_connection

    return sqlite_connection.migrate_database(database_file(database_url), system_clock())


async def has_database(database_url: str) -> bool:
    """Return whether there is a Taproof database, of any release, without creating or changing anything."""
    if not is_postgres(database_url):
        return database_file(database_url).exists()
    from taproof.runtime.database_probe import ask_server

    return bool((await ask_server(database_url, system_clock)).schema_version)


async def read_schema_versions(database_url: str) -> tuple[int, int]:
    """Return the schema version of an existing database (0 for another program's), and that of this release."""
    from taproof.storage.migrate import migrations

    if is_postgres(database_url):
        from taproof.runtime.database_probe import ask_server

        return (await ask_server(database_url, system_clock)).schema_version or 0, migrations("postgres")[-1].version
    from taproof.storage.sqlite.backup import open_snapshot, read_schema_version

    with open_snapshot(database_file(database_url), writable=True) as connection:
        return read_schema_version(connection), migrations("sqlite")[-1].version


async def open_encryptor(settings: Settings, storage: Storage) -> Encryptor:
    """Return the encryptor for this store's master key, which must match. It follows changes of a key file."""
    newer: Callable[[], str | None] | None = None
    if settings.master_key is not None:
        key = settings.master_key.get_secret_value()
    elif is_postgres(settings.database_url):
        # The other nodes would not know a file on this node and would create different keys.
        raise MasterKeyMissing(NO_MASTER_KEY)
    else:
        path = master_key_file(settings.database_url)
        key = read_or_make_master_key(path, system_entropy, may_make=not await has_master_key(storage))
        newer = KeyFile(path).newer
    try:
        encryptor = Encryptor(key, newer)
    except ValueError as error:
        raise TaproofError(f"The master key cannot be used: {error}.") from None
    await check_master_key(storage, encryptor, system_entropy)
    return encryptor
