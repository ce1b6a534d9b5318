"""The proof: a JWT that any library can check (service-spec.md, Proof)."""

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taproof.core.entropy import system_entropy
from taproof.core.identifiers import new_webhook_secret
from taproof.core.identity import MessengerIdentity
from taproof.core.proof import sign_proof

NOW = 1_795_214_643_999
SECRET = "whsec_" + "A" * 43 + "="
ADA = MessengerIdentity("1001", "Ada Lovelace", "ada")


def claims_of(proof: str, key: str) -> dict[str, object]:
    """Check a proof as an application would, at a time that the test chooses."""
    options = {"verify_exp": False, "verify_iat": False}
    claims: dict[str, object] = jwt.decode(proof, key, algorithms=["HS256"], issuer="taproof", options=options)  # type: ignore[arg-type]
    return claims


def test_the_claims_are_exactly_the_eight_of_the_spec() -> None:
    """A proof has exactly the claims of the spec, with the types of the spec."""
    claims = claims_of(sign_proof(ADA, "proj_1", "token", SECRET, NOW), SECRET)
    assert claims == {
        "messenger_id": "1001",
        "messenger_name": "Ada Lovelace",
        "messenger_username": "ada",
        "project_id": "proj_1",
        "session_token": "token",
        "iss": "taproof",
        "iat": NOW // 1000,
        "exp": NOW // 1000 + 300,
    }


def test_the_key_is_the_whole_secret_with_its_prefix() -> None:
    """HS256 uses the bytes of the whole `whsec_…` string, not what it decodes to (contract.md)."""
    proof = sign_proof(ADA, "p", "t", SECRET, NOW)
    for wrong in (SECRET.removeprefix("whsec_"), SECRET + " ", new_webhook_secret(system_entropy)):
        with pytest.raises(jwt.InvalidSignatureError):
            claims_of(proof, wrong)


@given(st.text(st.characters(codec="utf-8")), st.none() | st.text(max_size=5), st.text(min_size=40, max_size=60))
def test_the_proof_is_the_one_that_pyjwt_makes(name: str, phone: str | None, secret: str) -> None:
    """Signing without PyJWT changes no byte."""
    proof = sign_proof(MessengerIdentity("1", name, name, phone), "proj_1", "token", secret, NOW)
    key = secret.encode(errors="replace")
    claims = jwt.decode(proof, options={"verify_signature": False})
    assert proof == jwt.encode(claims, key, algorithm="HS256")


@given(st.text(st.characters(codec="utf-8")), st.integers(0, 2**43))
def test_any_name_and_any_instant_survive(name: str, now: int) -> None:
    """Right-to-left names, emoji, quotes and control characters are unchanged; seconds are rounded down."""
    claims = claims_of(sign_proof(MessengerIdentity("1", name, ""), "p", "t", SECRET, now), SECRET)
    assert claims["messenger_name"] == name
    assert claims["iat"] == now // 1000
    assert claims["exp"] == now // 1000 + 300
