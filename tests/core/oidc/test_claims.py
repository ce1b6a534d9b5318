"""The claims of ID tokens and userinfo responses (contract.md, OpenID provider)."""

from dataclasses import replace
from typing import Any, Literal

import pytest

from taproof.core.identity import MessengerIdentity
from taproof.core.oidc.claims import id_token_claims, token_hash, user_claims
from taproof.core.oidc.requests import Scope

ADA = MessengerIdentity("1001", "Ada Lovelace", "ada", "+15550100")
CONFIRMED_AT = 1_795_214_643_999
NAME = {"name": "Ada Lovelace", "updated_at": 1_795_214_643, "preferred_username": "ada"}
PHONE = {"phone_number": "+15550100", "phone_number_verified": True}


def claims(
    *scopes: Scope, identity: MessengerIdentity = ADA, email: Literal["none", "synthetic"] = "none"
) -> dict[str, Any]:
    return user_claims(
        identity,
        ("openid", *scopes),
        CONFIRMED_AT,
        email=email,
        email_domain="sign-in.example",
        groups=("admins", "staff"),
    )


def test_claims_of_each_scope(subtests: pytest.Subtests) -> None:
    """A claim is present only if a scope asks for it and the messenger gave it; no claim is ever null."""
    email = {"email": "1001@sign-in.example", "email_verified": False}
    cases: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
        (claims(), {}),
        (claims("profile"), NAME),
        (claims("phone"), PHONE),
        (claims("profile", "phone"), NAME | PHONE),
        (claims("email"), {}),
        (claims("groups"), {"groups": ["admins", "staff"]}),
        (claims(email="synthetic"), email),
        (claims("email", "profile", email="synthetic"), NAME | email),
        (claims("phone", identity=replace(ADA, messenger_phone=None)), {}),
        (
            claims("profile", identity=replace(ADA, messenger_username="")),
            {name: value for name, value in NAME.items() if name != "preferred_username"},
        ),
    )
    for found, wanted in cases:
        with subtests.test(wanted=wanted):
            assert found == {"sub": "1001"} | wanted


def test_claims_of_an_id_token() -> None:
    """An ID token has the claims that OpenID Connect Core requires (section 2), in seconds, and the nonce."""
    made: dict[str, Any] = {
        "issuer": "https://sign-in.example",
        "client_id": "oidc_1",
        "now": CONFIRMED_AT + 2_000,
        "lifetime": 300,
        "auth_time": CONFIRMED_AT,
        "access_token": "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y",
    }
    wanted = {
        "iss": "https://sign-in.example",
        "sub": "1001",
        "aud": "oidc_1",
        "iat": 1_795_214_645,
        "exp": 1_795_214_945,
        "auth_time": 1_795_214_643,
        "at_hash": "77QmUPtjPfzWtF2AnpK9RQ",
        "amr": ["mca"],
    }
    assert id_token_claims(claims(), **made, nonce=None) == wanted
    assert id_token_claims(claims(), **made, nonce="n") == wanted | {"nonce": "n"}


def test_the_hash_of_an_access_token() -> None:
    """The at_hash equals that of the example in OpenID Connect Core 1.0, section A.3."""
    assert token_hash("jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y") == "77QmUPtjPfzWtF2AnpK9RQ"
