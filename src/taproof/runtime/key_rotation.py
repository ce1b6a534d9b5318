"""One master key in place of another, in the key file of a SQLite database, while the service goes on.

    [old]  ->  [new, old]  ->  everything encrypted under the new one  ->  [new]

The file alone says how far a rotation has come, so one that was interrupted anywhere is taken up by the next. Every
process looks at the file before it encrypts or opens anything: from the instant that the new key stands in it that key
encrypts, and whoever meets what it encrypted has it already. The new key is durable before anything is encrypted
under it (`master_key._read`), and the old one leaves the file only after two walks through everything.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import Entropy
from taproof.core.errors import TaproofError
from taproof.runtime.key_file import held_key_file, read_master_keys, write_master_keys
from taproof.service.reencryption import Reencrypted, Reencryptor
from taproof.storage.protocol import Storage

SETTLE_SECONDS: Final = 90.0
"""How long something may be under way that was encrypted, read or derived before a change: a write waits for 5 s, a
worker holds a delivery for 30 s (service/webhooks.py), the messenger is told a bot's new secret within 60 s (bot/)."""

RotationStep = Literal["made", "taken_up", "waiting", "resealed", "removed"]


class StillEncrypting(TaproofError):
    """Something encrypts under the old key all the time.

    See that every process of the service is of this release, and runs on this key file. Then run this again.
    """


@dataclass(frozen=True, slots=True)
class Rotated:
    """A rotation that has come to its end. `taken_up`: another one had begun it."""

    reencrypted: Reencrypted
    taken_up: bool


async def rotate_key_file(
    path: Path,
    storage: Storage,
    encryptor: Encryptor,
    entropy: Entropy,
    *,
    settle_seconds: float,
    told: Callable[[RotationStep, int], None] = lambda *_: None,
) -> Rotated:
    """Put a new key into the file, encrypt everything under it, and take the old one out.

    Args:
        path: the key file.
        storage: its database.
        encryptor: follows the file.
        entropy: returns random bytes.
        settle_seconds: between two walks through the database: `SETTLE_SECONDS`, but in a test.
        told: called at each step, and after each write with the number of values that were encrypted anew so far.

    Raises:
        KeyRotationUnderWay: by another process.
        MasterKeyUnwritable: the file cannot be replaced.
        StillSealing: the file has both keys, and nothing is lost.
        StoreUnavailable: likewise.
    """

    async def settle() -> None:
        told("waiting", round(settle_seconds))
        await asyncio.sleep(settle_seconds)

    with held_key_file(path) as real:
        keys = read_master_keys(real)
        taken_up = len(keys) > 1
        if not taken_up:
            keys = [new_master_key(entropy), *keys]
            write_master_keys(real, keys)
        told("taken_up" if taken_up else "made", 0)
        reencryptor = Reencryptor(storage, encryptor, entropy, told=lambda so_far: told("resealed", so_far))
        reencrypted = await reencryptor.reencrypt(settle)
        if reencrypted.left:
            raise StillEncrypting
        write_master_keys(real, keys[:1])
        told("removed", reencrypted.reencrypted)
    return Rotated(reencrypted, taken_up)
