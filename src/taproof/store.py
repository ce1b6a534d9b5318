"""Opens the store and its master key: the part of the composition root that every command needs.

It stands apart from `app.py` because that imports the whole service, which takes seconds; `taproof developers add`
should not.
"""

from pathlib import Path

from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.errors import TaproofError
from taproof.core.sealing import Sealer
from taproof.master_key import read_or_make_master_key
from taproof.service.installation import check_master_key, has_master_key
from taproof.settings import Settings, database_file
from taproof.storage.protocol import Storage
from taproof.storage.sqlite import SqliteStorage
from taproof.storage.sqlite_file import migrate_file


async def open_storage(database_url: str) -> Storage:
    """Open the store, bringing its schema up to date. Raises StoreUnavailable with a sentence that says why not."""
    return SqliteStorage.open(database_file(database_url), system_clock(), system_clock)


async def migrate(database_url: str) -> tuple[int, int]:
    """Bring the schema up to date; return its version before and after."""
    return migrate_file(database_file(database_url), system_clock())


def master_key_file(database_url: str) -> Path:
    """Return where the master key lies when TAPROOF_MASTER_KEY is not set."""
    path = database_file(database_url)
    return path.with_name(f"{path.name}.key")


async def open_sealer(settings: Settings, storage: Storage) -> Sealer:
    """Return the sealer for this store's master key; raises MasterKeyWrong when it is not the store's."""
    if settings.master_key is not None:
        key = settings.master_key.get_secret_value()
    else:
        path = master_key_file(settings.database_url)
        key = read_or_make_master_key(path, system_entropy, may_make=not await has_master_key(storage))
    try:
        sealer = Sealer(key)
    except ValueError as error:
        raise TaproofError(f"The master key cannot be used: {error}.") from None
    await check_master_key(storage, sealer, system_entropy)
    return sealer
