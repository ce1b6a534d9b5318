"""Rotates the master key in the key file of a SQLite database while the service runs.

    [old]  ->  [new, old]  ->  everything encrypted under the new key  ->  [new]

Only the file records the progress of a rotation, so the next command continues an interrupted one. Every process
checks the file before it encrypts or decrypts. So the new key is used as soon as it is in the file, and every process
can decrypt what it encrypts. The new key is durable before anything is encrypted under it (`key_file._read`). The old
one is removed only after two passes over all encrypted values.
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
"""The longest use of a value that was encrypted, read or derived before a change, with a margin: a write waits for 5 s,
a worker holds a delivery for 30 s (service/webhooks.py), and the messenger learns a bot's new secret within 60 s."""

RotationStep = Literal["made", "taken_up", "waiting", "resealed", "removed"]


class StillEncrypting(TaproofError, code="still_encrypting"):
    """Other processes still encrypt under the old key."""

    sentence = (
        "Something still encrypts under the old key. Make sure that every process of the service runs this release and "
        "uses this key file. Then run this command again."
    )


@dataclass(frozen=True, slots=True)
class Rotated:
    """A completed rotation. `taken_up` is true if it continued an interrupted one."""

    reencrypted: Reencrypted
    taken_up: bool


async def rotate_key_file(
    path: Path,
    storage: Storage,
    encryptor: Encryptor,
    entropy: Entropy,
    *,
    settle_seconds: float,
    on_progress: Callable[[RotationStep, int], None],
) -> Rotated:
    """Add a new key to the file, encrypt all values under it, and remove the old key.

    The encryptor must follow the file. `on_progress` is called at each step, and after each write with the number of
    values encrypted so far. After StillEncrypting or StoreUnavailable, the file has both keys, and nothing is lost.
    """

    async def settle() -> None:
        on_progress("waiting", round(settle_seconds))
        await asyncio.sleep(settle_seconds)

    with held_key_file(path) as real:
        keys = read_master_keys(real)
        taken_up = len(keys) > 1
        if not taken_up:
            keys = [new_master_key(entropy), *keys]
            write_master_keys(real, keys)
        on_progress("taken_up" if taken_up else "made", 0)
        reencryptor = Reencryptor(
            storage, encryptor, entropy, on_progress=lambda so_far: on_progress("resealed", so_far)
        )
        reencrypted = await reencryptor.reencrypt(settle)
        if reencrypted.left:
            raise StillEncrypting
        write_master_keys(real, keys[:1])
        on_progress("removed", reencrypted.reencrypted)
    return Rotated(reencrypted, taken_up)
