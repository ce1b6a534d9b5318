"""The results of creating and of verifying a session."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from taproof.contract.session import SignInStatus
from taproof.core.clock import iso8601
from taproof.core.identity import MessengerIdentity
from taproof.core.sessions import Hint


class CreatedSession(NamedTuple):
    """A new pending session. `expires_at` is in ms since the epoch. The page must show a `match_code`.

    `return_required`: it must be verified with its return code. `return_offered`: only the messenger leads the user
    back.
    """

    session_token: str
    deeplink: str
    expires_at: int
    match_code: str | None = None
    return_required: bool = False
    return_offered: bool = False


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """The status of a session; on the first read of a confirmed session also the identity, time and proof.

    A pending session has a `hint`. The holder of the code verifier can read the same result again within
    `core.code_challenge.REREAD_WINDOW`.
    """

    status: SignInStatus
    identity: MessengerIdentity | None = None
    confirmed_at: int | None = None
    proof: str | None = None
    hint: Hint | None = None

    def to_answer(self) -> dict[str, Any]:
        """Return the response of verify: only the status, or also everything that was confirmed."""
        if self.identity is None or self.confirmed_at is None:
            return {"status": self.status}
        return {
            "status": self.status,
            **self.identity.to_fields(),
            "confirmed_at": iso8601(self.confirmed_at),
            "proof": self.proof,
        }
