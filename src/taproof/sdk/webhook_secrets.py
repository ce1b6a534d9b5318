"""Checks the webhook secrets that an application passes."""

import re
from collections.abc import Sequence
from typing import Final

WRONG_SETTING: Final = "The secret must be the project's webhook secret: the whole whsec_… string and nothing else."
_WEBHOOK_SECRET: Final = re.compile(r"whsec_[A-Za-z0-9+/_=-]+")


def require_webhook_secrets(secret: str | Sequence[str]) -> tuple[str, ...]:
    """Return the webhook secrets in `secret`, one or several. The ValueError of an invalid one does not contain it."""
    secrets = (secret,) if isinstance(secret, str) else tuple(secret) if isinstance(secret, Sequence) else ()
    if not secrets:
        raise ValueError("Pass at least one webhook secret (whsec_…).")
    for candidate in secrets:
        if isinstance(candidate, str) and candidate.startswith("sk_"):
            raise ValueError("This is the secret key (sk_…). It signs nothing: pass the webhook secret (whsec_…).")
        if not isinstance(candidate, str) or _WEBHOOK_SECRET.fullmatch(candidate) is None:
            raise ValueError(WRONG_SETTING)
    return secrets
