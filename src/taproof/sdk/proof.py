"""Checks proofs on the application's own server (service-spec.md, Proof; RFC 7519; RFC 8725)."""

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
"""Fixed here and never read from the proof: an attacker can write its header (RFC 8725, 3.1)."""
_LONGEST_PROOF: Final = 16_384
_COMPACT_FORM: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
_LATEST: Final = 2**53
"""In seconds: far beyond any date, and exact as a float, because the leeway can be a float."""
_FUTURE_TOLERANCE: Final = 60
"""Seconds that `iat` may be in the future: the clocks of two servers never agree exactly."""
_NAMES: Final = ("messenger_name", "messenger_username")
_IDENTIFIERS: Final = ("messenger_id", "project_id", "session_token")
_PHONE: Final = "messenger_phone"
_TIMES: Final = ("iat", "exp")


class ProofError(Exception):
    """The proof is not accepted: do not sign the user in. No message contains the proof or a secret."""


class ProofMalformed(ProofError):
    """It is not a Taproof proof: not a JWT, another issuer, or a claim that is missing or of the wrong type."""


class ProofSignatureInvalid(ProofError):
    """The proof was not signed with HS256 and a given secret: it is forged, altered, or from before a rotation."""


class ProofWrongProject(ProofError):
    """The proof was signed for another project."""


class ProofExpired(ProofError):
    """The proof is more than five minutes old."""


class ProofNotYetValid(ProofError):
    """The proof was issued in the future: one of the two servers' clocks is wrong."""


class ProofAlreadyUsed(ProofError):
    """The proof is valid, but the guard has seen it before: somebody copied it, or the user sent it twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The user who signed in: the claims of a valid proof (service-spec.md, Proof).

    Attributes:
        messenger_id: the id of the user's messenger account, in digits. Only this never changes: use it as the key.
        messenger_name: the display name that the user chose. Anybody can choose any name: escape it, do not trust it.
        messenger_username: the user's handle, without "@"; "" if there is none. Another person can take it over.
        messenger_phone: the user's phone number as the messenger knows it, such as "+4915123456789" (E.164); None
            unless the project collects it and the user shared it. Omitted from `repr`, to keep it out of logs.
        project_id: the project of the sign-in.
        session_token: the session token of the sign-in. Omitted from `repr`, to keep it out of logs.
        issuer: always "taproof" (the claim `iss`).
        issued_at: the time of issue, in seconds since the epoch (the claim `iat`).
        expires_at: the time of expiry, in seconds since the epoch (the claim `exp`).
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
    """Check a proof and return the identity that it contains. The check is local; no service is called.

    Pass two more arguments in production. A proof is valid for five minutes, so a copy could be sent again: pass a
    `guard` that all of your servers share. A proof for another application must not sign a user in to yours: pass
    `project_id`, especially if `secret` contains the secrets of several projects.

    Args:
        proof: the JWT that the client received from the verify endpoint. It is untrusted input.
        secret: the project's webhook secret, the whole `whsec_…` string. During a rotation, pass several.
        project_id: the only project whose proofs are accepted; None accepts any proof signed with the secret.
        leeway: seconds that a proof is accepted after its expiry, in case a clock is wrong.
        guard: accepts each proof only once, such as a `SqliteGuard`. It is called last, for valid proofs only.
        now: the time in seconds since the epoch, for tests; the machine's clock by default.

    Raises:
        ProofMalformed, ProofSignatureInvalid, ProofWrongProject, ProofExpired, ProofNotYetValid, ProofAlreadyUsed:
            each a ProofError.
        ValueError: `secret` is not a webhook secret. This is an error in the settings, so it is not a ProofError.
    """
    secrets = require_webhook_secrets(secret)
    if not isinstance(proof, str) or len(proof) > _LONGEST_PROOF or _COMPACT_FORM.fullmatch(proof) is None:
        raise ProofMalformed("The proof is not a JWT. Send the value of `proof` from the verify response, unchanged.")
    claims = _signed_claims(proof, secrets)
    _require_form(claims)
    if project_id is not None and claims["project_id"] != project_id:
        raise ProofWrongProject("The proof was made for a different project than this application's.")
    instant = time.time() if now is None else now  # noqa: TID251 — the SDK has no clock module; tests pass `now`.
    # Written so that a leeway of NaN refuses the proof: every comparison with NaN is false.
    if not instant < claims["exp"] + leeway:
        raise ProofExpired(
            "The proof has expired. Start a new sign-in, or compare this server's clock with the service's."
        )
    if not claims["iat"] <= instant + _FUTURE_TOLERANCE + leeway:
        raise ProofNotYetValid("The proof was issued in the future. Compare this server's clock with the service's.")
    # The guard remembers the proof while it can be accepted, including the leeway, up to the latest time it can store.
    remember_until = math.ceil(min(claims["exp"] + leeway, _LATEST))
    if guard is not None and not guard.take(claims["session_token"], remember_until):
        raise ProofAlreadyUsed("The proof was used before. Start a new sign-in; a proof can be used only once.")
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
    """Return the payload if it was signed with one of the secrets. The claims are not checked yet."""
    for secret in secrets:
        try:
            _require_one_spelling(proof)
            # PyJWT checks only the signature: its checks of claims use the machine's clock and differ by version.
            return read_object(_JWS.decode(proof, secret, _ALGORITHMS))
        except jwt.InvalidSignatureError:
            continue
        except jwt.InvalidAlgorithmError:
            # `from None` here and below: PyJWT's error could quote the proof.
            raise ProofSignatureInvalid("The proof is not signed with HS256.") from None
        except (jwt.InvalidTokenError, ValueError, RecursionError):
            raise ProofMalformed("The proof is not a JWT made by Taproof.") from None
    raise ProofSignatureInvalid(
        "The proof's signature matches none of the given secrets. Use the project's current webhook secret."
    )


def _require_one_spelling(proof: str) -> None:
    """Raise ValueError unless each part is encoded in its only valid way and the header requests no extension."""
    parts = proof.split(".")
    decoded = [base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in parts]
    if [base64.urlsafe_b64encode(each).rstrip(b"=").decode() for each in decoded] != parts:
        raise ValueError("The last character of a part has unused bits that are not zero.")
    header = read_object(decoded[0])
    if "crit" in header or "b64" in header or not is_text(header.get("kid", "")):
        raise ValueError("The header requests an extension, or its kid is not a string.")


def _require_form(claims: dict[str, Any]) -> None:
    """Raise ProofMalformed unless Taproof issued the proof and all eight claims have their exact types.

    The phone number may be missing; if it is present, it is checked too.
    """
    for name in (*_NAMES, *_IDENTIFIERS):
        if not is_text(claims.get(name)):
            raise ProofMalformed(f"The proof's claim {name} is required and must be a string.")
    for name in _IDENTIFIERS:
        if not claims[name]:
            raise ProofMalformed(f"The proof's claim {name} must not be empty.")
    if _PHONE in claims and not is_phone(claims[_PHONE]):
        raise ProofMalformed(f"The proof's claim {_PHONE} must be a phone number like +4915123456789.")
    for name in _TIMES:
        # This uses `type`, because `isinstance` accepts a JSON true as an int.
        if type(claims.get(name)) is not int or not 0 <= claims[name] <= _LATEST:
            raise ProofMalformed(f"The proof's claim {name} is required and must be whole seconds since the epoch.")
    if claims.get("iss") != _ISSUER:
        raise ProofMalformed("The proof was not issued by Taproof: its claim iss is different.")
