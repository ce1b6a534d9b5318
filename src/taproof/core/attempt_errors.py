"""The error code of an attempt to deliver a webhook, and its sentence for the developer."""

from typing import Final, cast

from taproof.contract.delivery import SENTENCES, AttemptError, ShownError

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
"""The statuses that name another address. The other 3xx statuses, such as 304, are not redirects."""
_OF_A_NEWER_RELEASE: Final = (
    "There was no response, for a reason that only a newer release of this service can name. Check again after the "
    "update."
)


def attempt_sentence(status: int | None, error: str | None) -> str | None:
    """Return the sentence for a failed attempt, from its stored status and error; None if the event was accepted."""
    code = attempt_error(status, error)
    if code is not None:
        return SENTENCES[code]
    return None if error is None else _OF_A_NEWER_RELEASE


def attempt_error(status: int | None, error: str | None) -> ShownError | None:
    """Return the error code of an attempt, from its stored status and error; None if the event was accepted.

    It is also None for an unknown code, which a node of a newer release may have stored.
    """
    if error is not None:
        return cast("AttemptError", error) if error in SENTENCES else None
    if status is None or 200 <= status < 300:
        return None
    if status == 410:
        return "gone"
    return "redirected" if status in _REDIRECTS else "not_accepted"
