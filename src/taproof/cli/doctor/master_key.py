"""Check the master key: the file next to the database, or the key in the settings."""

from taproof.cli.command import open_store
from taproof.cli.doctor.finding import OTHERS, Finding, from_sentences, ok, problem, warning
from taproof.config.database_url import is_postgres, master_key_file
from taproof.config.options import NO_MASTER_KEY, called
from taproof.config.settings import Settings
from taproof.core.encryption import Encryptor
from taproof.core.errors import TaproofError
from taproof.runtime.store import open_encryptor
from taproof.service.installation import has_master_key, is_under_first_key
from taproof.storage.protocol import Storage


async def check_master_key(settings: Settings, *, in_use: bool) -> Finding:
    """Check the key or its file and, if the store exists (`in_use`), that the key matches it."""
    path = None
    if settings.master_key is None:
        if is_postgres(settings.database_url):
            return from_sentences("master key", "problem", NO_MASTER_KEY)
        path = master_key_file(settings.database_url).absolute()
        if path.exists() and path.stat().st_mode & OTHERS:
            return problem("master key", f"other users of this machine can read {path}", f"Run: chmod 600 {path}")
    where = called("master_key") if path is None else str(path)
    if in_use:
        try:
            async with open_store(settings, may_create=True) as storage:
                if await has_master_key(storage):
                    encryptor = await open_encryptor(settings, storage)
                    return await _check_keys(storage, encryptor, where, in_file=path is not None)
        except TaproofError as error:
            return from_sentences("master key", "problem", error.sentence)
    if path is not None and not path.exists():
        return ok("master key", f"{path} will be created when it is first needed")
    return ok("master key", f"{where} will become the key of this database when it is first used")


async def _check_keys(storage: Storage, encryptor: Encryptor, where: str, *, in_file: bool) -> Finding:
    """Check whether there are several keys, as during a rotation. The first one matches the store."""
    count = encryptor.key_count
    if count == 1:
        return ok("master key", f"{where} matches the database")
    detail = f"{where} matches the database and contains {count} keys"
    if in_file:
        advice = "If no rotation is running, run: taproof master-key rotate"
        return warning("master key", f"{detail}: a rotation is running, or was interrupted", advice)
    if await is_under_first_key(storage, encryptor):
        return ok("master key", f"{detail}. To find out whether one is enough, run: taproof master-key reseal")
    advice = "When this key is first on every node, run: taproof master-key reseal"
    return warning("master key", f"{detail}; some values are encrypted under an older key", advice)
