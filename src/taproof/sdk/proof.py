"""Checking a proof on the application's own server (service-spec.md, Proof; RFC 7519; RFC 8725)."""

import base64
import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import jwt

from taproof.sdk.guard import SingleUseGuard
from taproof.sdk.strict_json import is_phone, is_text, read_object
from taproof.sdk.webhook_secrets import require_webhook_secrets

_ISSUER: Final = "taproof"
_JWS: Final = jwt.PyJWS(algorithms=["HS256"])
_ALGORITHMS: Final = ["HS256"]
"""Fixed here and never read from the proof: its header is the attacker's to write (RFC 8725, 3.1)."""
_LONGEST_PROOF: Final = 16_384
_COMPACT_FORM: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
_LATEST: Final = 2**53
"""Seconds: far beyond any date, and a number that arithmetic with a float leeway still holds."""
_FUTURE_TOLERANCE: Final = 60
"""Seconds that `iat` may lie ahead: the two servers' clocks never agree exactly."""
_NAMES: Final = ("messenger_name", "messenger_username")
_IDENTIFIERS: Final = ("messenger_id", "project_id", "session_token")
_PHONE: Final = "messenger_phone"
_TIMES: Final = ("iat", "exp")


class ProofError(Exception):
    """The proof does not show who the user is: do not sign them in. No message holds the proof or a secret."""


class ProofMalformed(ProofError):
    """It is not a Taproof proof: not a JWT, another issuer, or a claim that is missing or of the wrong type."""


class ProofSignatureInvalid(ProofError):
    """It was not signed with HS256 and any of the secrets given: forged, altered, or signed before a rotation."""


class ProofWrongProject(ProofError):
    """It was signed for another project."""


class ProofExpired(ProofError):
    """Its five minutes are over."""


class ProofNotYetValid(ProofError):
    """It was issued in the future: one of the two servers' clocks is wrong."""


class ProofAlreadyUsed(ProofError):
    """It holds, but the guard has seen it before: somebody has copied it, or the user has sent it twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who signed in: the claims of a proof that holds (service-spec.md, Proof).

    Attributes:
        messenger_id: the user's account in the messenger, digits; the one thing that never changes, so the key to
            store a user under.
        messenger_name: the display name that the user chose. Anybody may choose any: escape it, trust it in nothing.
        messenger_username: the user's handle, without "@"; "" when there is none. It may pass to somebody else.
        messenger_phone: the user's phone number as the messenger knows it, such as "+4915123456789" (E.164); None
            unless the project collects it and the user gave it. Left out of `repr`, to keep it out of logs.
        project_id: the project that the sign-in was made for.
        session_token: the one sign-in that this proof stands for. Left out of `repr`, to keep it out of logs.
        issuer: always "taproof" (the claim `iss`).
        issued_at: when the proof was issued, in seconds since the epoch (the claim `iat`).
        expires_at: when it ends, in seconds since the epoch (the claim `exp`).
    """

    messenger_id: str
    messenger_name: str
    messenger_username: str
    messenger_phone: str | None = field(default=None, repr=False)
    project_id: str
    session_token: str = field(repr=False)
    issuer: str
    issued_at: int
    expires_at: int


def verify_proof(
    proof: str,
    secret: str | Sequence[str],
    *,
    project_id: str | None = None,
    leeway: float = 0,
    guard: SingleUseGuard | None = None,
    now: float | None = None,
) -> Identity:
    """Check a proof and return who it speaks of. Nothing is asked of the service: the check is local.

    Two things stay with the caller. A proof holds for five minutes, so one that was copied could be sent again: give
    a `guard`, the same for all of your servers together. And a proof made for another application must not open yours:
    give `project_id`, above all when `secret` holds the secrets of several projects.

    Args:
        proof: the JWT that the client read from the verify endpoint. It may be anything: it comes from outside.
        secret: the project's webhook secret, the whole `whsec_…` string. Several are tried in turn, for a rotation.
        project_id: the only project whose proofs are accepted; None accepts any that the secret has signed.
        leeway: seconds that a proof is accepted beyond its end, for a clock that runs ahead.
        guard: takes each proof only once, such as a `SqliteGuard`. It is asked last, about proofs that hold otherwise.
        now: the time in seconds since the epoch; the machine's clock unless given, as a test would.

    Raises:
        ProofMalformed, ProofSignatureInvalid, ProofWrongProject, ProofExpired, ProofNotYetValid, ProofAlreadyUsed:
            each a ProofError.
        ValueError: `secret` is not a webhook secret. A mistake in the application's settings, so not a ProofError.
    """
    secrets = require_webhook_secrets(secret)
    if not isinstance(proof, str) or len(proof) > _LONGEST_PROOF or _COMPACT_FORM.fullmatch(proof) is None:
        raise ProofMalformed("The proof is not a JWT. Send the value of `proof` from the verify answer, unchanged.")
    claims = _signed_claims(proof, secrets)
    _require_form(claims)
    if project_id is not None and claims["project_id"] != project_id:
        raise ProofWrongProject("The proof was made for another project than this application's.")
    instant = time.time() if now is None else now  # noqa: TID251 — the SDK stands alone; `now` is the way in for tests.
    # Written so that a leeway of NaN refuses: every comparison with it is false.
    if not instant < claims["exp"] + leeway:
        raise ProofExpired("The proof has expired. Start a new sign-in; a proof holds for five minutes.")
    if not claims["iat"] <= instant + _FUTURE_TOLERANCE + leeway:
        raise ProofNotYetValid("The proof was issued in the future. Compare this server's clock with the service's.")
    # Remembered for as long as it would be accepted, so with the leeway; within what a guard can store.
    remember_until = math.ceil(min(claims["exp"] + leeway, _LATEST))
    if guard is not None and not guard.take(claims["session_token"], remember_until):
        raise ProofAlreadyUsed("The proof was used before. Start a new sign-in; a proof signs in once.")
    return Identity(
        messenger_id=claims["messenger_id"],
        messenger_name=claims["messenger_name"],
        messenger_username=claims["messenger_username"],
        messenger_phone=claims.get(_PHONE),
        project_id=claims["project_id"],
        session_token=claims["session_token"],
        issuer=_ISSUER,
        issued_at=claims["iat"],
        expires_at=claims["exp"],
    )


def _signed_claims(proof: str, secrets: tuple[str, ...]) -> dict[str, Any]:
    """Return the payload if any of the secrets signed it. Who issued it, for whom and when is not looked at yet."""
    for secret in secrets:
        try:
            _require_one_spelling(proof)
            # Of PyJWT only the signature: its checks of claims go by the machine's clock and differ by its version.
            return read_object(_JWS.decode(proof, secret, _ALGORITHMS))
        except jwt.InvalidSignatureError:
            continue
        except jwt.InvalidAlgorithmError:
            # `from None` here and below: PyJWT's error may quote the proof.
            raise ProofSignatureInvalid("The proof is not signed with HS256.") from None
        except (jwt.InvalidTokenError, ValueError, RecursionError):
            raise ProofMalformed("The proof is not a JWT that Taproof makes.") from None
    raise ProofSignatureInvalid("The proof's signature fits no secret given. Use the project's current webhook secret.")


def _require_one_spelling(proof: str) -> None:
    """Raise ValueError unless each part can be read in one way only, and the header asks for nothing undone here."""
    parts = proof.split(".")
    decoded = [base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in parts]
    if [base64.urlsafe_b64encode(each).rstrip(b"=").decode() for each in decoded] != parts:
        raise ValueError("The last character of a part has bits that nothing reads.")
    header = read_object(decoded[0])
    if "crit" in header or "b64" in header or not is_text(header.get("kid", "")):
        raise ValueError("The header asks for an extension, or its kid is no string.")


def _require_form(claims: dict[str, Any]) -> None:
    """Raise ProofMalformed unless all eight claims are there, each of its exact type, and Taproof issued them.

    The phone number may be missing, and is checked no less where it is there.
    """
    for name in (*_NAMES, *_IDENTIFIERS):
        if not is_text(claims.get(name)):
            raise ProofMalformed(f"The proof's claim {name} must be there, as a string.")
    for name in _IDENTIFIERS:
        if not claims[name]:
            raise ProofMalformed(f"The proof's claim {name} must not be empty.")
    if _PHONE in claims and not is_phone(claims[_PHONE]):
        raise ProofMalformed(f"The proof's claim {_PHONE} must be a phone number like +4915123456789.")
    for name in _TIMES:
        # `type`, since a JSON true is an int to isinstance.
        if type(claims.get(name)) is not int or not 0 <= claims[name] <= _LATEST:
            raise ProofMalformed(f"The proof's claim {name} must be there, as whole seconds since the epoch.")
    if claims.get("iss") != _ISSUER:
        raise ProofMalformed("The proof was not issued by Taproof: its claim iss is another.")
