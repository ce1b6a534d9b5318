"""Log refused credentials at a limited rate.

No log entry contains the credential or a part of it: it can be a valid one with a typing error.
"""

from typing import Final, Literal

import structlog
from starlette.types import Scope

from taproof.core.clock import MINUTE, Clock
from taproof.core.rate_limit import Gcra

LINES: Final = Gcra(10, MINUTE, 10)
"""The rate limit for log entries: enough to see attempts and their origin, and at most a few megabytes a day."""

CredentialKind = Literal["access_token", "secret_key", "client_secret", "invitation", "messenger_account"]

_log = structlog.get_logger(__name__)


class RefusedCredentials:
    """Logs the credentials that this process refuses."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tat = 0
        self._left_out = 0

    def note(
        self,
        kind: CredentialKind,
        scope: Scope,
        route: str | None = None,
        *,
        client_id: str = "",
        used: str = "",
        expected: str = "",
    ) -> bool:
        """Log a refusal, and return True; if too many were just logged, only count it for the next entry.

        `route` is the route's template; without one, the path is the route. `client_id` is the OpenID Connect client,
        if the store has it: other text of the request may be anything. `used` and `expected` say how this client sent
        its secret, and how it must send it.
        """
        after = LINES.spend(self._tat, self._clock())
        if after is None:
            self._left_out += 1
            return False
        self._tat = after
        client = scope.get("client")
        _log.warning(
            "credentials_refused",
            kind=kind,
            address=client[0] if client else "",
            method=scope["method"],
            route=scope["path"] if route is None else route,
            left_out=self._left_out,
            client_id=client_id,
            used=used,
            expected=expected,
        )
        self._left_out = 0
        return True
