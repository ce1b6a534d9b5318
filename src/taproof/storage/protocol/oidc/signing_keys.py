"""The interface of `store.signing_keys`."""

from collections.abc import Sequence
from typing import Protocol

from taproof.core.accounts import AuditEntry
from taproof.core.oidc.model import SigningKey


class SigningKeyStorage(Protocol):
    """The keys that sign ID tokens."""

    async def list_signing_keys(self) -> list[SigningKey]:
        """Return all keys, ordered by algorithm and generation."""

    async def create_signing_key(self, key: SigningKey) -> bool:
        """Store a key. Return False if its algorithm has a key of this generation: another node was faster."""

    async def advance_signing_key(self, kid: str, signs_from: int) -> bool:
        """Make a key sign from an earlier time on. Return False if it already signs from then or earlier."""

    async def replace_signing_keys(self, keys: Sequence[SigningKey], entries: Sequence[AuditEntry]) -> None:
        """Erase all keys, store these instead and add `entries` to the audit log, in one transaction.

        Each key gets the generation after the last one of its algorithm. A key that another node stores at the same
        time may stay: it is as new as these.
        """

    async def purge_signing_keys(self, replaced_before: int, limit: int) -> int:
        """Erase at most `limit` keys whose successors have signed since `replaced_before` (ms)."""
