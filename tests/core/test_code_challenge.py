"""Code challenge and verifier (RFC 7636)."""

import hashlib

import pytest

from taproof.core.code_challenge import challenge_digest, is_code_verifier, is_proven

VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def test_the_pair_of_the_standard() -> None:
    """The verifier of RFC 7636, appendix B, proves its challenge. Without a challenge, every verifier is accepted."""
    digest = challenge_digest(CHALLENGE)
    assert digest == hashlib.sha256(VERIFIER.encode()).digest()
    assert is_proven(digest, VERIFIER)
    assert is_proven(None, None)
    assert is_proven(None, "anything")


@pytest.mark.parametrize(
    "verifier", [None, "", VERIFIER[:-1], VERIFIER + "A", VERIFIER.lower(), CHALLENGE, "é" * 43, "\ud800" * 43]
)
def test_any_other_verifier_proves_nothing(verifier: str | None) -> None:
    """No verifier, a shorter, longer or different one, the challenge itself, and unencodable text are refused."""
    assert not is_proven(challenge_digest(CHALLENGE), verifier)


@pytest.mark.parametrize("challenge", ["", CHALLENGE[:-1], CHALLENGE + "=", CHALLENGE[:-1] + "N", CHALLENGE[:-1] + "+"])
def test_a_challenge_has_one_spelling(challenge: str) -> None:
    """Only the base64url of exactly 32 bytes, without padding, is a challenge."""
    assert challenge_digest(challenge) is None


@pytest.mark.parametrize(
    ("verifier", "fits"),
    [("a" * 42, False), ("a" * 43, True), ("-._~" * 32, True), ("a" * 129, False), ("a" * 42 + " ", False)],
)
def test_the_form_of_a_verifier(verifier: str, fits: bool) -> None:  # noqa: FBT001 — a parameter of the test.
    """RFC 7636, section 4.1: 43 to 128 unreserved characters."""
    assert is_code_verifier(verifier) is fits
