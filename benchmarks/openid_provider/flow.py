"""One sign-in through an OpenID provider, as an application with a secret makes it. Every answer is checked."""

import hashlib
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urljoin, urlsplit

import jwt
from aiohttp import BasicAuth, ClientResponse, ClientSession
from benchmarks.machine import fail

REDIRECT_URI: Final = "http://127.0.0.1:1/callback"
"""Nobody listens there: the load reads the redirects and does not follow this one."""
SCOPE: Final = "openid profile"

SignIn = Callable[[ClientSession, str], Awaitable[str]]
"""Take the address that `authorize` redirects to, let the user confirm, and return the address of the redirect back."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A running provider, what it publishes, and how its user confirms."""

    name: str
    storage: str
    pid: int
    client_id: str
    client_secret: str
    published: dict[str, Any]
    keys: dict[str, jwt.PyJWK]
    """Its RS256 keys by their id."""
    sign_in: SignIn


Start = Callable[[Path], AbstractAsyncContextManager[Provider]]
"""Start a provider on the server's core, with its files in a directory, and finally stop it."""


async def flow(session: ClientSession, provider: Provider) -> None:
    """Sign a user in with the code flow and PKCE: authorize, token, userinfo.

    Args:
        session: a session without cookies, whose jar accepts those of IP addresses.
        provider: the provider.

    Raises:
        BenchmarkFailed: an answer was wrong.
    """
    verifier, state, nonce = (secrets.token_urlsafe(32) for _ in range(3))
    parameters = {
        "response_type": "code",
        "client_id": provider.client_id,
        "redirect_uri": REDIRECT_URI,
        "scope": SCOPE,
        "state": state,
        "nonce": nonce,
        "code_challenge": urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("="),
        "code_challenge_method": "S256",
    }
    endpoint = provider.published["authorization_endpoint"]
    async with session.get(endpoint, params=parameters, allow_redirects=False) as answer:
        page = await redirect_of(answer)
    back = await provider.sign_in(session, page)
    told = {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()}
    issuer = provider.published["issuer"]
    if not back.startswith(REDIRECT_URI) or told.get("state") != state or told.get("iss") != issuer:
        fail(f"{provider.name} sent the user to {back}")
    fields = {"grant_type": "authorization_code", "code": told["code"]}
    fields |= {"redirect_uri": REDIRECT_URI, "code_verifier": verifier}
    basic = BasicAuth(provider.client_id, provider.client_secret)
    async with session.post(provider.published["token_endpoint"], data=fields, auth=basic) as answer:
        tokens = await json_of(answer)
    header = jwt.get_unverified_header(tokens["id_token"])
    claims = jwt.decode(
        tokens["id_token"],
        provider.keys[header["kid"]],
        algorithms=["RS256"],
        audience=provider.client_id,
        issuer=issuer,
        options={"require": ["iss", "sub", "aud", "exp", "iat"]},
    )
    bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
    async with session.get(provider.published["userinfo_endpoint"], headers=bearer) as answer:
        user = await json_of(answer)
    if claims["nonce"] != nonce or user["sub"] != claims["sub"] or not user["name"]:
        fail(f"{provider.name} gave {claims} and {user} for the nonce {nonce}")


async def redirect_of(answer: ClientResponse) -> str:
    """Return the address of a redirect; end the run if the answer is none."""
    location = answer.headers.get("Location")
    if answer.status not in {302, 303} or location is None:
        fail(f"{answer.url} was answered {answer.status}: {(await answer.text())[:300]}")
    return urljoin(str(answer.url), location)


async def json_of(answer: ClientResponse) -> dict[str, Any]:
    """Return the JSON object of an answer that must be 200; otherwise end the run."""
    if answer.status != 200:
        fail(f"{answer.url} was answered {answer.status}: {(await answer.text())[:300]}")
    parsed: dict[str, Any] = await answer.json()
    return parsed


async def published_by(issuer: str) -> tuple[dict[str, Any], dict[str, jwt.PyJWK]]:
    """Return the provider's metadata, and its RS256 keys by their id."""
    async with ClientSession() as session:
        async with session.get(f"{issuer}/.well-known/openid-configuration") as answer:
            published = await json_of(answer)
        async with session.get(published["jwks_uri"]) as answer:
            keys = (await json_of(answer))["keys"]
    return published, {each["kid"]: jwt.PyJWK(each, "RS256") for each in keys if each["kty"] == "RSA"}
