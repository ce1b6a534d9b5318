"""The rights of a credential, which limit those of every credential created with it.

Source: contract.md, Rights of developers. Only `Grant.derive` creates a new grant from an existing one. The store
checks, in the transaction that stores the new credential, that the acting one still exists. The table in
`docs/explanation/rights.md` shows what creates and what ends each right.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from taproof.contract.access_token import AccessScope
from taproof.core.clock import iso8601
from taproof.core.errors import InsufficientScope, InvalidRequest

SCOPES: Final[tuple[AccessScope, ...]] = ("read", "write", "tokens")
"""All scopes, in the order in which they are stored and shown."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The rights of a credential, when they end (ms; None: never), and where they come from.

    `access_token_id` is the access token that the credential is, or with which it was created. `sign_in` is the id of
    the messenger sign-in from which it derives; None if it was created on the command line.
    """

    scopes: tuple[AccessScope, ...] = SCOPES
    expires_at: int | None = None
    access_token_id: str | None = None
    sign_in: str | None = None

    def require(self, scope: AccessScope) -> None:
        """Raise InsufficientScope if the credential does not have `scope`."""
        if scope not in self.scopes:
            raise InsufficientScope(scope)

    def derive(self, scopes: Iterable[AccessScope] | None, expires_at: int | None) -> "Grant":
        """Return the grant of a credential that this one creates; by default, with the same scopes and expiry (ms).

        Raises:
            InvalidRequest: the scopes exceed this grant's or are empty, or the expiry is later than this grant's.
        """
        wanted = self.scopes if scopes is None else tuple(scope for scope in SCOPES if scope in set(scopes))
        if not wanted:
            raise InvalidRequest(f"scopes must name at least one of: {', '.join(self.scopes)}.")
        if excess := [scope for scope in wanted if scope not in self.scopes]:
            raise InvalidRequest(
                f"scopes cannot include {', '.join(excess)}: the credential of this request has only "
                f"{', '.join(self.scopes)}."
            )
        if expires_at is None:
            expires_at = self.expires_at
        elif self.expires_at is not None and expires_at > self.expires_at:
            raise InvalidRequest(
                f"expires_at must not be later than {iso8601(self.expires_at)}, when the credential of this request "
                "expires."
            )
        return Grant(wanted, expires_at, self.access_token_id, self.sign_in)


FULL: Final = Grant()
"""The grant of the operator's command line and of the service itself."""


def scopes_text(scopes: Iterable[AccessScope]) -> str:
    """Return scopes as stored text, separated by commas."""
    return ",".join(scopes)


def read_scopes(text: str) -> tuple[AccessScope, ...]:
    """Return the scopes in a stored text."""
    return tuple(scope for scope in SCOPES if scope in text.split(","))
