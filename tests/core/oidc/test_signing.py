"""The keys that sign ID tokens (RFC 7517, RFC 7518, RFC 7638, RFC 8725)."""

import base64
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from taproof.contract.client import SigningAlg
from taproof.core.oidc.clients import SIGNING_ALGS
from taproof.core.oidc.signing import (
    PrivateKey,
    dump_private_key,
    load_private_key,
    new_private_key,
    public_jwk,
    sign_id_token,
)

CLAIMS = {"iss": "https://sign-in.example", "sub": "1001", "aud": "oidc_1", "iat": 1, "exp": 9_999_999_999}
# RFC 7517, appendix A.2.
RSA_KEY = {
    "kty": "RSA",
    "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3"
    "oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6"
    "qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJ"
    "zKnqDKgw",
    "e": "AQAB",
    "d": "X4cTteJY_gn4FYPsXB8rdXix5vwsg1FLN5E3EaG6RJoVH-HLLKD9M7dx5oo7GURknchnrRweUkC7hT5fJLM0WbFAKNLWY2vv7B6NqXSzUvxT"
    "0_YSfqijwp3RTzlBaCxWp4doFk5N2o8Gy_nHNKroADIkJ46pRUohsXywbReAdYaMwFs9tv8d_cPVY3i07a3t8MN6TNwm0dSawm9v47UiCl3Sk5ZiG7"
    "xojPLu4sbg1U2jx4IBTNBznbJSzFHK66jT8bgkuqsk0GjskDJk19Z4qwjwbsnn4j2WBii3RL-Us2lGVkY8fkFzme1z0HbIkfz0Y6mqnOYtqc0X4jfc"
    "KoAC8Q",
}
EC_KEY = {
    "kty": "EC",
    "crv": "P-256",
    "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
    "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
    "d": "870MB6gfuTJ4HtUnUvYMyJpr5eUZNP4Bk43bVdj3eAE",
}


@pytest.fixture(scope="module")
def keys() -> dict[SigningAlg, PrivateKey]:
    return {alg: new_private_key(alg) for alg in SIGNING_ALGS}


def verify(token: str, jwk: dict[str, Any]) -> dict[str, Any]:
    """Verify as applications do: with the published JWK and the algorithm that it names."""
    claims: dict[str, Any] = jwt.decode(token, jwt.PyJWK(jwk), algorithms=[jwk["alg"]], audience="oidc_1")
    return claims


def encoded(content: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


def test_the_kid_is_the_thumbprint() -> None:
    """The kid of the RSA key of RFC 7638, section 3.1, is the thumbprint there; an EC key has one likewise."""
    rsa_jwk = public_jwk(RSAAlgorithm.from_jwk(RSA_KEY), "RS256")  # type: ignore[arg-type]
    assert rsa_jwk["kid"] == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
    ec_jwk = public_jwk(ECAlgorithm.from_jwk(EC_KEY), "ES256")  # type: ignore[arg-type]
    assert ec_jwk["kid"] == "cn-I_WNMClehiVp51i_0VpOENW1upEerA8sEam5hn-s"


def test_a_published_key_is_public(keys: dict[SigningAlg, PrivateKey]) -> None:
    """A published JWK has no private member, and says what it is for."""
    for alg, members in (("RS256", {"n", "e"}), ("ES256", {"crv", "x", "y"})):
        jwk = public_jwk(keys[alg], alg)  # type: ignore[index, arg-type]
        assert set(jwk) == members | {"kty", "use", "alg", "kid"}
        assert (jwk["use"], jwk["alg"]) == ("sig", alg)


def test_a_key_survives_the_store(keys: dict[SigningAlg, PrivateKey]) -> None:
    """A key loaded from its stored form is the same, and its JWK verifies what it signs."""
    for alg, key in keys.items():
        jwk = public_jwk(key, alg)
        loaded = load_private_key(dump_private_key(key))
        assert public_jwk(loaded, alg) == jwk
        token = sign_id_token(CLAIMS, loaded, alg, jwk["kid"])
        assert jwt.get_unverified_header(token) == {"alg": alg, "kid": jwk["kid"], "typ": "JWT"}
        assert verify(token, jwk) == CLAIMS


def test_algorithm_confusion(keys: dict[SigningAlg, PrivateKey], subtests: pytest.Subtests) -> None:
    """An application with the JWK set refuses another algorithm, another key, no signature and changed claims."""
    rsa_jwk, ec_jwk = (public_jwk(keys[alg], alg) for alg in SIGNING_ALGS)
    pem = (
        keys["RS256"]
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    hs256 = f"{encoded({'alg': 'HS256', 'kid': rsa_jwk['kid']})}.{encoded(CLAIMS)}"
    mac = jwt.get_algorithm_by_name("HS256").sign(hs256.encode(), pem)
    good = sign_id_token(CLAIMS, keys["RS256"], "RS256", rsa_jwk["kid"])
    header, _, signature = good.split(".")
    forged = {
        "HS256 with the public key": f"{hs256}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}",
        "none": f"{encoded({'alg': 'none'})}.{encoded(CLAIMS)}.",
        "no signature": f"{header}.{encoded(CLAIMS)}.",
        "other claims": f"{header}.{encoded(CLAIMS | {'sub': '1002'})}.{signature}",
        "another algorithm": sign_id_token(CLAIMS, keys["ES256"], "ES256", rsa_jwk["kid"]),
        "another key": sign_id_token(CLAIMS, new_private_key("RS256"), "RS256", rsa_jwk["kid"]),
    }
    assert verify(good, rsa_jwk) == CLAIMS
    for case, token in forged.items():
        for jwk in (rsa_jwk, ec_jwk):
            if (case, jwk) == ("another algorithm", ec_jwk):
                continue  # This is the key that signed it.
            with subtests.test(case=case, alg=jwk["alg"]), pytest.raises(jwt.InvalidTokenError):
                verify(token, jwk)
