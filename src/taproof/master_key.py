"""The master key file: made once, beside the database, readable by its owner only."""

import contextlib
import os
from pathlib import Path

from taproof.core.entropy import Entropy
from taproof.core.errors import MasterKeyWrong, TaproofError
from taproof.core.sealing import new_master_key


class MasterKeyUnreadable(TaproofError):
    """The master key file cannot be read or made."""


def read_or_make_master_key(path: Path, entropy: Entropy, *, may_make: bool) -> str:
    """Return the key that the file holds, making the file (mode 0600) when there is none and that is allowed.

    The key is written whole under another name first and then linked into place, which fails if the place is taken:
    of two processes that start at once one key wins, and no half-written key is ever read.

    Raises:
        MasterKeyWrong: the file is missing although the database was already used with a key.
        MasterKeyUnreadable: the file cannot be read or written; the sentence says why.
    """
    try:
        if not path.exists():
            if not may_make:
                raise MasterKeyWrong(
                    f"This database was made with a master key that is neither in TAPROOF_MASTER_KEY nor in the file "
                    f"{path}, which is missing. Put back the key file that belongs to this database, or set "
                    "TAPROOF_MASTER_KEY to that key."
                )
            _make(path, new_master_key(entropy), entropy(8).hex())
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise MasterKeyUnreadable(
            f"The master key file {path} cannot be read or made: {error}. Check its owner and mode, or set "
            "TAPROOF_MASTER_KEY."
        ) from error


def _make(path: Path, key: str, unique: str) -> None:
    draft = path.with_name(f".{path.name}.{unique}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(key + "\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink()
    directory = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
