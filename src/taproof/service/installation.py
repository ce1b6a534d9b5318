"""What an installation is held to from its first start on: its master key, and whether it is a sandbox."""

from typing import Final

from taproof.core.encryption import Encryptor
from taproof.core.entropy import Entropy
from taproof.core.errors import DecryptionFailed, MasterKeyWrong, TaproofError
from taproof.storage.protocol import Storage

KEY_MARK: Final = "master_key_check"
MODE_MARK: Final = "mode"


class WrongMode(TaproofError):
    """This database belongs to the other mode, sandbox or real."""


async def has_master_key(storage: Storage) -> bool:
    """Tell whether this database was already used with a master key, so that making a new one would be wrong."""
    return await storage.metadata.read_mark(KEY_MARK) is not None


async def check_master_key(storage: Storage, encryptor: Encryptor, entropy: Entropy) -> None:
    """Bind the database to this master key on first use, and hold it to it from then on.

    Of several keys any may be the one. `service/reencryption.py` encrypts the check anew, when all else is.

    Raises:
        MasterKeyWrong: the database was made with another key.
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
    """Keep pretend users out of a real database, and real ones out of a sandbox.

    Raises:
        WrongMode: the database was first used in the other mode.
    """
    mode = b"sandbox" if sandbox else b"real"
    if await storage.metadata.claim_mark(MODE_MARK, mode) != mode:
        raise WrongMode(
            "This database belongs to a real service; a sandbox needs one of its own. Choose another with --database "
            "(TAPROOF_DATABASE_URL), or leave out --sandbox (TAPROOF_SANDBOX)."
            if sandbox
            else "This database was made in sandbox mode; a real service needs one of its own. Choose another with "
            "--database (TAPROOF_DATABASE_URL), or add --sandbox (TAPROOF_SANDBOX) to use it."
        )
