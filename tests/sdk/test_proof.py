"""verify_proof beyond sdk/vectors (test_vectors.py), which define the valid and the invalid proofs."""

import base64
import hashlib
import hmac
import json
import subprocess
import sys
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st
from phonenumbers import COUNTRY_CODE_TO_REGION_CODE as CODES

import taproof
from taproof import (
    Identity,
    MemoryGuard,
    ProofAlreadyUsed,
    ProofError,
    ProofExpired,
    ProofMalformed,
    ProofSignatureInvalid,
    verify_proof,
)
from taproof.core.identity import MessengerIdentity as Confirmed
from taproof.core.proof import sign_proof
from taproof.sdk.strict_json import is_phone
from taproof.service.phones import e164_number

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER_SECRET = "whsec_" + base64.b64encode(bytes(range(32, 64))).decode()
PROJECT = "proj_0123456789abcdefABCDEF"
TOKEN = "T" * 42 + "A"
NOW = 1_760_000_000
CLAIMS: dict[str, Any] = {
    "messenger_id": "1001",
    "messenger_name": "Ada Lovelace",
    "messenger_username": "ada",
    "project_id": PROJECT,
    "session_token": TOKEN,
    "iss": "taproof",
    "iat": NOW,
    "exp": NOW + 300,
}


def segment(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def handmade(payload: bytes, header: bytes = b'{"alg":"HS256","typ":"JWT"}', secret: str = SECRET) -> str:
    """Sign any bytes, including those that PyJWT refuses to sign."""
    signed = f"{segment(header)}.{segment(payload)}"
    return f"{signed}.{segment(hmac.new(secret.encode(), signed.encode(), hashlib.sha256).digest())}"


def proof_of(secret: str = SECRET, /, **changes: Any) -> str:
    """Sign the valid claims with changes."""
    return handmade(json.dumps(CLAIMS | changes).encode(), secret=secret)


def verify(proof: Any, secret: Any = SECRET, **options: Any) -> Identity:
    given_options: dict[str, Any] = {"project_id": PROJECT, "now": NOW, **options}
    return verify_proof(proof, secret, **given_options)


def public_key_proof() -> str:
    """Return an HMAC keyed with a public RSA key, which a verifier would accept if it confused the algorithms."""
    public = rsa.generate_private_key(65537, 2048).public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return handmade(json.dumps(CLAIMS).encode(), secret=pem.decode())


def test_a_proof_of_the_service_gives_the_identity() -> None:
    """The SDK verifies what core/proof.py signs, and returns all eight claims (service-spec.md, Proof)."""
    proof = sign_proof(Confirmed("1001", "Ada Lovelace", "ada"), PROJECT, TOKEN, SECRET, NOW * 1000 + 999)
    assert verify(proof) == Identity(
        messenger_id="1001",
        messenger_name="Ada Lovelace",
        messenger_username="ada",
        project_id=PROJECT,
        session_token=TOKEN,
        issuer="taproof",
        issued_at=NOW,
        expires_at=NOW + 300,
    )


def test_a_phone_number_of_the_service_is_part_of_the_identity() -> None:
    """The SDK verifies what core/proof.py signs with a number; `repr` leaves it and the session token out of logs."""
    confirmed = Confirmed("1001", "Ada Lovelace", "ada", "+4915123456789")
    identity = verify(sign_proof(confirmed, PROJECT, TOKEN, SECRET, NOW * 1000))
    assert identity.messenger_phone == "+4915123456789"
    assert "+49" not in repr(identity)
    assert TOKEN not in repr(identity)
    assert verify(proof_of()).messenger_phone is None


def test_no_phone_number_of_the_service_is_refused() -> None:
    """The SDK accepts every number that the service accepts, or some users could not sign in."""
    given = [f"+{code}{first}{'5' * rest}" for code in CODES for first in "0123456789" for rest in range(18)]
    taken = {number for each in given if (number := e164_number(each)) is not None}
    assert len({number[:3] for number in taken}) > 50
    for number in (min(taken, key=len), max(taken, key=len)):
        assert verify(proof_of(messenger_phone=number)).messenger_phone == number
    assert [number for number in taken if not is_phone(number)] == []


def test_the_machines_clock_is_the_default() -> None:
    """Without `now`, a fresh proof is valid and a past one is not."""
    with pytest.raises(ProofExpired):
        verify_proof(proof_of(), SECRET)
    assert verify_proof(proof_of(exp=2**40), SECRET).messenger_id == "1001"


def test_the_sdk_stands_alone() -> None:
    """An application that uses the SDK loads nothing of the server, and no HTTP client before it creates one."""
    program = "import sys, taproof; [getattr(taproof, name) for name in taproof.__all__]; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    ours = {name for name in loaded if name.partition(".")[0] == "taproof"}
    assert all(name == "taproof" or name.startswith(("taproof.sdk", "taproof.contract")) for name in ours), ours
    assert "taproof.sdk.async_client" in ours
    assert not {"pydantic", "fastapi", "starlette", "aiohttp", "apsw", "httpx", "urllib3"} & set(loaded)


def test_checking_proofs_waits_for_no_client() -> None:
    """Checking proofs imports only what it needs, and the bare package imports nothing."""
    program = "import sys, taproof; print(*sys.modules); taproof.verify_proof; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    bare, checking = (set(line.split()) for line in done.stdout.splitlines())
    assert not {"jwt", "taproof.sdk"} & bare
    assert "taproof.sdk.proof" in checking
    assert not {"taproof.sdk.client", "taproof.contract.project"} & checking


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A misspelt import fails as for any other package, and `dir` lists the public names."""
    with pytest.raises(AttributeError, match="verify_prof"):
        _ = taproof.verify_prof  # type: ignore[attr-defined]
    assert set(taproof.__all__) <= set(dir(taproof))


def test_only_hs256_with_the_secret_is_accepted() -> None:
    """Neither a real RS256 signature nor an HMAC with a public key is accepted, and bytes are not a proof."""
    rs256 = jwt.encode(CLAIMS, rsa.generate_private_key(65537, 2048), algorithm="RS256")
    for proof in (rs256, public_key_proof()):
        with pytest.raises(ProofSignatureInvalid):
            verify(proof)
    with pytest.raises(ProofMalformed):
        verify(proof_of().encode())


@pytest.mark.parametrize("secret", [SECRET.encode(), None])
def test_a_secret_that_is_no_string_is_refused(secret: Any) -> None:
    """The vectors, which are JSON, cannot contain these values."""
    with pytest.raises(ValueError, match="secret"):
        verify(proof_of(), secret)


@given(
    st.one_of(st.text(), st.binary(), st.from_regex(r"[A-Za-z0-9_-]{0,40}(\.[A-Za-z0-9_-]{0,40}){2}", fullmatch=True))
)
def test_whatever_comes_the_answer_is_a_proof_error(proof: Any) -> None:
    """No input makes the SDK raise anything other than ProofError, so catching that is enough."""
    with pytest.raises(ProofError):
        verify(proof)


@given(st.binary(max_size=60), st.binary(max_size=200))
def test_whatever_was_signed_the_answer_is_a_proof_error(header: bytes, payload: bytes) -> None:
    """Even with a valid signature, only the spec's claims are accepted."""
    with pytest.raises(ProofError):
        verify(handmade(payload, header))
    with pytest.raises(ProofError):
        verify(handmade(payload))


class NotingGuard:
    """Accepts every proof, and records its calls."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def take(self, session_token: str, expires_at: int) -> bool:
        self.asked.append((session_token, expires_at))
        return True


def test_a_guard_takes_a_proof_once() -> None:
    """The same proof does not sign in twice; another one of the same user does."""
    guard = MemoryGuard(clock=lambda: NOW)
    assert verify(proof_of(), guard=guard).session_token == TOKEN
    with pytest.raises(ProofAlreadyUsed):
        verify(proof_of(), guard=guard)
    with pytest.raises(ProofAlreadyUsed):
        verify(proof_of(OTHER_SECRET), [SECRET, OTHER_SECRET], guard=guard)
    assert verify(proof_of(session_token="another"), guard=guard).session_token == "another"


@pytest.mark.parametrize(
    ("leeway", "remembered"), [(0, NOW + 300), (10, NOW + 310), (0.5, NOW + 301), (float("inf"), 2**53)]
)
def test_a_used_proof_is_remembered_for_as_long_as_it_would_hold(leeway: float, remembered: int) -> None:
    """With a leeway, a proof is accepted after its expiry, so the guard must remember it for longer too."""
    guard = NotingGuard()
    verify(proof_of(), guard=guard, leeway=leeway)
    assert guard.asked == [(TOKEN, remembered)]
    assert type(guard.asked[0][1]) is int


def test_a_guard_that_fails_signs_nobody_in() -> None:
    """If the guard fails, its error is raised and no identity is returned."""

    class Broken:
        def take(self, session_token: str, expires_at: int) -> bool:  # noqa: ARG002 — the names of the protocol.
            raise OSError("The disk is full.")

    with pytest.raises(OSError, match="disk"):
        verify(proof_of(), guard=Broken())
