"""Bind an installation to its master key and its mode on the first start, and read the marks that processes share."""

import json
from typing import Final

from taproof.core.encryption import Encryptor
from taproof.core.entropy import Entropy
from taproof.core.errors import DecryptionFailed, MasterKeyWrong, TaproofError
from taproof.core.service_bot import ServiceBot
from taproof.storage.protocol import Storage

KEY_MARK: Final = "master_key_check"
MODE_MARK: Final = "mode"
BACKUP_MARK: Final = "last_backup"
"""The time at which the last backup was begun, in ISO 8601."""
SERVICE_BOT_MARK: Final = "service_bot"
"""The account of the service's own bot, in JSON."""


class WrongMode(TaproofError, code="wrong_mode"):
    """This database belongs to the other mode, sandbox or real."""


async def has_master_key(storage: Storage) -> bool:
    """Return whether this database was already used with a master key. If so, do not create a new key."""
    return await storage.metadata.read_mark(KEY_MARK) is not None


async def check_master_key(storage: Storage, encryptor: Encryptor, entropy: Entropy) -> None:
    """Bind the database to this master key on first use, and raise MasterKeyWrong for another one from then on.

    With several keys, any of them may be the right one. `service/reencryption.py` re-encrypts the check value last.
    """
    check = await storage.metadata.claim_mark(KEY_MARK, encryptor.encrypt(KEY_MARK, KEY_MARK, entropy))
    try:
        encryptor.decrypt(check, KEY_MARK)
    except DecryptionFailed:
        raise MasterKeyWrong from None


async def is_under_first_key(storage: Storage, encryptor: Encryptor) -> bool:
    """Return whether all values are encrypted under the first key. Re-encryption replaces the check value last."""
    check = await storage.metadata.read_mark(KEY_MARK)
    return check is None or encryptor.is_current(check)


async def check_mode(storage: Storage, *, sandbox: bool) -> None:
    """Raise WrongMode for a database of the other mode, so that simulated and real users stay apart."""
    mode = b"sandbox" if sandbox else b"real"
    if await storage.metadata.claim_mark(MODE_MARK, mode) != mode:
        raise WrongMode(
            "This database belongs to a real service; a sandbox needs its own. Choose another one with --database "
            "(TAPROOF_DATABASE_URL), or omit --sandbox (TAPROOF_SANDBOX)."
            if sandbox
            else "This database was created in sandbox mode; a real service needs its own. Choose another one with "
            "--database (TAPROOF_DATABASE_URL), or add --sandbox (TAPROOF_SANDBOX) to use it."
        )


async def read_service_bot(storage: Storage) -> ServiceBot | None:
    """Return what `Bots.record_service_bot` stored; None before the first time."""
    found = await storage.metadata.read_mark(SERVICE_BOT_MARK)
    return None if found is None else ServiceBot(**json.loads(found))
