"""The only module that draws randomness. Everywhere else, `entropy` is a parameter."""

import os
from collections.abc import Callable

Entropy = Callable[[int], bytes]
"""Returns the given number of unpredictable bytes."""


def system_entropy(size: int) -> bytes:
    """Return `size` bytes from the operating system's cryptographic generator."""
    return os.urandom(size)
