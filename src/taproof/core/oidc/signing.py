"""The keys that sign ID tokens: RS256 and ES256 (RFC 7518), published as JWKs (RFC 7517)."""

import base64
import hashlib
import json
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from jwt.types import Options

from taproof.contract.client import SigningAlg
from taproof.core.identifiers import is_client_id

PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey

_RSA_BITS: Final = 2_048
_THUMBPRINT_MEMBERS: Final = {"RSA": ("e", "kty", "n"), "EC": ("crv", "kty", "x", "y")}


def new_private_key(alg: SigningAlg) -> PrivateKey:
    """Return a new private key. An RSA key takes about 0.1 seconds: do not call this on the event loop."""
    if alg == "ES256":
        return ec.generate_private_key(ec.SECP256R1())
    return rsa.generate_private_key(public_exponent=65_537, key_size=_RSA_BITS)


def dump_private_key(key: PrivateKey) -> str:
    """Return the key as PEM (PKCS #8), without a password: the caller encrypts it."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def load_private_key(pem: str) -> PrivateKey:
    """Return the key from the result of `dump_private_key`. Do not call this on the event loop: it can take 50 ms."""
    ec.ECDSA(SHA256())  # The first instance imports a module. Otherwise, the first signature would.
    key = serialization.load_pem_private_key(pem.encode(), password=None)
    assert isinstance(key, (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey))  # noqa: S101 — dump_private_key wrote it.
    return key


def public_jwk(key: PrivateKey, alg: SigningAlg) -> dict[str, Any]:
    """Return the public JWK with `kid`, `alg` and `use`. The `kid` is the thumbprint of the key (RFC 7638)."""
    public = key.public_key()
    found = (
        RSAAlgorithm.to_jwk(public, as_dict=True)
        if isinstance(public, rsa.RSAPublicKey)
        else ECAlgorithm.to_jwk(public, as_dict=True)
    )
    jwk = {name: value for name, value in found.items() if name != "key_ops"}
    members = {name: jwk[name] for name in _THUMBPRINT_MEMBERS[jwk["kty"]]}
    digest = hashlib.sha256(json.dumps(members, separators=(",", ":"), sort_keys=True).encode()).digest()
    kid = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    return {**jwk, "use": "sig", "alg": alg, "kid": kid}


def key_id_of(id_token: str) -> str | None:
    """Return the id of the key that an ID token names; None for other text, such as another kind of token."""
    try:
        header = jwt.get_unverified_header(id_token)
    except (jwt.PyJWTError, RecursionError):  # Thousands of nested brackets need more stack than Python has.
        return None
    kid = header.get("kid")
    return kid if isinstance(kid, str) and header.get("typ", "JWT") == "JWT" else None


def read_id_token(id_token: str, jwk: dict[str, Any], *, issuer: str, client_id: str) -> dict[str, Any] | None:
    """Return the claims of an ID token, also if it has expired; None if it is not what this key signed for this client.

    Its algorithm is that of the key, never the one that the token names (RFC 8725, section 3.1).
    """
    options: Options = {"verify_exp": False, "verify_iat": False, "require": ["iss", "sub", "aud", "iat"]}
    try:
        return jwt.decode(
            *(id_token, jwt.PyJWK(jwk)), algorithms=[jwk["alg"]], audience=client_id, issuer=issuer, options=options
        )
    except jwt.PyJWTError:
        return None


def audience_of(id_token: str) -> str | None:
    """Return the client that an ID token names, before its signature is verified; None for other text."""
    try:
        claims = jwt.decode(id_token, options={"verify_signature": False, "verify_exp": False, "verify_aud": False})
    except (jwt.PyJWTError, RecursionError):
        return None
    audience = claims.get("aud")
    return audience if isinstance(audience, str) and is_client_id(audience) else None


def sign_id_token(claims: dict[str, Any], key: PrivateKey, alg: SigningAlg, kid: str) -> str:
    """Return the signed ID token (RFC 7519)."""
    return jwt.encode(claims, key, algorithm=alg, headers={"kid": kid})


def sign_logout_token(claims: dict[str, Any], key: PrivateKey, alg: SigningAlg, kid: str) -> str:
    """Return the signed logout token. Its type keeps it from being taken for an ID token (Back-Channel Logout, 2.4)."""
    return jwt.encode(claims, key, algorithm=alg, headers={"kid": kid, "typ": "logout+jwt"})
