"""The demo's backend: what a real application's server must do with an ID token."""

from typing import Any

import httpx
import jwt
import pytest

from taproof.core.clock import HOUR, SECOND
from taproof.core.errors import StoreUnavailable
from taproof.core.oidc.signing import PrivateKey, new_private_key, public_jwk, sign_id_token
from taproof.sandbox.demo.id_tokens import IdTokens
from taproof.sandbox.demo.server import Demo

ISSUER = "http://127.0.0.1:8080"
CLIENT = "oidc_6Fh2YzQw8sVb1KdTnXcR3L"
NOW = 1_760_000_000_000
KEY, OTHER_KEY = new_private_key("ES256"), new_private_key("ES256")
JWK = public_jwk(KEY, "ES256")
ADA = {"messenger_id": "1001", "messenger_name": "Ada Lovelace", "messenger_username": "ada"}


class World:
    """The demo with a clock and a JWK set that a test controls."""

    def __init__(self) -> None:
        self.now = NOW
        self.keys: list[dict[str, Any]] | Exception = [JWK]

    async def read_jwks(self) -> dict[str, Any]:
        if isinstance(self.keys, Exception):
            raise self.keys
        return {"keys": self.keys}

    def browser(self, *, has_client: bool = True) -> httpx.AsyncClient:
        id_tokens = IdTokens(ISSUER, CLIENT, self.read_jwks, lambda: self.now) if has_client else None
        demo = Demo("proj_0123456789abcdefABCDEF", _no_secret, lambda: self.now, bytes, id_tokens)
        transport = httpx.ASGITransport(demo.app, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url=ISSUER)


async def _no_secret() -> str:
    raise StoreUnavailable


def claims(**changed: Any) -> dict[str, Any]:
    """Return the claims of a valid ID token; a changed one with the value None is left out."""
    about = {"sub": "1001", "name": "Ada Lovelace", "preferred_username": "ada", "at_hash": "77QmUPtjPfzWtF2AnpK9RQ"}
    times = {"iat": NOW // SECOND, "exp": (NOW + HOUR) // SECOND}
    together = {"iss": ISSUER, "aud": CLIENT, **about, **times} | changed
    return {name: value for name, value in together.items() if value is not None}


def signed(key: PrivateKey = KEY, kid: str = JWK["kid"], **changed: Any) -> str:
    return sign_id_token(claims(**changed), key, "ES256", kid)


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        ({}, ADA),
        ({"preferred_username": None}, ADA | {"messenger_username": None}),
        ({"phone_number": "+12025550101"}, ADA | {"messenger_phone": "+12025550101"}),
        ({"name": None}, ADA | {"messenger_name": ""}),
    ],
)
async def test_an_id_token_signs_in_once(changed: dict[str, Any], shown: dict[str, Any]) -> None:
    """A good ID token gives a session with the same fields as a proof, and no second one, even signed anew."""
    world = World()
    async with world.browser() as browser:
        answer = await browser.post("/demo/session", json={"id_token": signed(**changed)})
        assert (answer.status_code, answer.json()) == (200, shown | {"location": "/demo/shop"})
        again = await browser.post("/demo/session", json={"id_token": signed(**changed)})
        assert (again.status_code, "set-cookie" in again.headers) == (409, False)
        other = await browser.post("/demo/session", json={"id_token": signed(at_hash="another")})
        assert other.status_code == 200


async def test_a_bad_id_token_signs_nobody_in(subtests: pytest.Subtests) -> None:
    """Signature, algorithm, issuer, audience, expiry and required claims are checked; the answer quotes no token."""
    header, _, signature = signed().split(".")
    bad = {
        "another key": signed(OTHER_KEY),
        "an unknown key": signed(kid="unknown"),
        "no key": jwt.encode(claims(), KEY, "ES256"),
        "no algorithm": jwt.encode(claims(), "", "none", headers={"kid": JWK["kid"]}),
        "a public key as a secret": jwt.encode(claims(), JWK["x"] * 2, "HS256", headers={"kid": JWK["kid"]}),
        "another payload": f"{header}.{signed(sub='1002').split('.')[1]}.{signature}",
        "another issuer": signed(iss="https://evil.example"),
        "another client": signed(aud="oidc_otherotherotherother12"),
        "several clients": signed(aud=[CLIENT, "oidc_otherotherotherother12"]),
        "expired": signed(exp=NOW // SECOND),
        "no expiry": signed(exp=None),
        "no user": signed(sub=None),
        "no at_hash": signed(at_hash=None),
        "no JWT": "garbage",
        "not text": "\u00e9.\u00e9.\u00e9",
        "deep JSON": "W1tb" * 2_500 + ".e30.e30",
    }
    async with World().browser() as browser:
        for name, id_token in bad.items():
            with subtests.test(name):
                answer = await browser.post("/demo/session", json={"id_token": id_token})
                assert (answer.status_code, list(answer.json())) == (400, ["error"])
                assert id_token not in answer.text
        assert 'data-signed-in="no"' in (await browser.get("/demo/shop")).text


async def test_keys_that_cannot_be_read() -> None:
    """The ID token is not used up if the store cannot be reached."""
    world = World()
    world.keys = StoreUnavailable()
    async with world.browser() as browser:
        assert (await browser.post("/demo/session", json={"id_token": signed()})).status_code == 503
        world.keys = [JWK]
        assert (await browser.post("/demo/session", json={"id_token": signed()})).status_code == 200


async def test_a_demo_without_a_client() -> None:
    """The page names issuer and client. Without a client it names none, and accepts no ID token."""
    async with World().browser() as browser:
        assert f'data-issuer="{ISSUER}" data-client-id="{CLIENT}"' in (await browser.get("/demo/shop")).text
    async with World().browser(has_client=False) as browser:
        assert 'data-issuer="" data-client-id=""' in (await browser.get("/demo/shop")).text
        answer = await browser.post("/demo/session", json={"id_token": signed()})
        assert (answer.status_code, answer.json()) == (400, {"error": "proof is missing."})
