"""Signal functions for tests, which do nothing unless a test replaces them."""

from typing import Any

from taproof.service.signals import Signals


def unheard(*_: object) -> None:
    """Ignore a signal."""


def signals(**heard: Any) -> Signals:
    """Return signals that call the functions in `heard`, and ignore the others."""
    return Signals(**{**dict.fromkeys(Signals.__dataclass_fields__, unheard), **heard})
