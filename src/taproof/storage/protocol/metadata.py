"""The interface of `store.metadata`."""

from typing import Protocol


class MetadataStorage(Protocol):
    """An installation's named values."""

    async def read_mark(self, name: str) -> bytes | None:
        """Return the value stored under `name`; None if there is none."""

    async def claim_mark(self, name: str, value: bytes) -> bytes:
        """Store `value` under `name` unless a value exists; return the stored value."""

    async def set_mark(self, name: str, value: bytes, *, instead_of: bytes | None = None) -> bool:
        """Store `value` under `name`; with `instead_of`, only if that is the stored value. Return whether it was."""
