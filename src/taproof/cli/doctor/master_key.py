"""The doctor's look at the master key: the file beside the database, or the key that was given."""

from taproof.cli.doctor.finding import OTHERS, Finding, from_sentences
from taproof.config.database_url import is_postgres, master_key_file
from taproof.config.options import NO_MASTER_KEY, called
from taproof.config.settings import Settings
from taproof.core.encryption import Encryptor
from taproof.core.errors import TaproofError
from taproof.runtime.store import open_encryptor, open_storage
from taproof.service.installation import has_master_key, is_under_first_key
from taproof.storage.protocol import Storage


async def check_master_key(settings: Settings, *, in_use: bool) -> Finding:
    """Look at the key, or its file, and hold it to the store if there is one (`in_use`)."""
    path = None
    if settings.master_key is None:
        if is_postgres(settings.database_url):
            return from_sentences("master key", "problem", NO_MASTER_KEY)
        path = master_key_file(settings.database_url).absolute()
        if path.exists() and path.stat().st_mode & OTHERS:
            detail = f"{path} can be read by other users of this machine"
            return Finding("master key", "problem", detail, f"Run: chmod 600 {path}")
    where = called("master_key") if path is None else str(path)
    if in_use:
        try:
            storage = await open_storage(settings.database_url, pgbouncer=settings.pgbouncer)
            try:
                if await has_master_key(storage):
                    encryptor = await open_encryptor(settings, storage)
                    return await _fitting(storage, encryptor, where, in_file=path is not None)
            finally:
                await storage.close()
        except TaproofError as error:
            return from_sentences("master key", "problem", error.sentence)
    if path is not None and not path.exists():
        return Finding("master key", "ok", f"{path} will be made when it is first needed")
    return Finding("master key", "ok", f"{where} will be the key of this database from its first use on")


async def _fitting(storage: Storage, encryptor: Encryptor, where: str, *, in_file: bool) -> Finding:
    """Tell of a key that fits the database, and of others behind it, which a rotation leaves behind or is about."""
    count = encryptor.key_count
    if count == 1:
        return Finding("master key", "ok", f"{where} fits the database")
    detail = f"{where} fits the database and holds {count} keys"
    if in_file:
        return Finding(
            "master key",
            "warning",
            f"{detail}: a rotation is under way, or was interrupted",
            "If none is under way, run: taproof master-key rotate",
        )
    if await is_under_first_key(storage, encryptor):
        return Finding(
            "master key",
            "ok",
            f"{detail}; all was encrypted under the first. taproof master-key reseal tells when it can be the only one",
        )
    return Finding(
        "master key",
        "warning",
        f"{detail}; there are values that are encrypted under an older one",
        "When every node has this key first, run: taproof master-key reseal",
    )
