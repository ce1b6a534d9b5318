"""Synapse: people sign in to a Matrix homeserver with their messenger."""

import asyncio

import httpx
import pytest
from playwright.async_api import Page
from tests.e2e.conftest import Phone
from tests.slow.relying_parties.at_provider import sign_in_at_provider
from tests.slow.relying_parties.conftest import StartParty
from tests.slow.relying_parties.providers import NAME, Provider

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_a_user_signs_in(page: Page, provider: Provider, start: StartParty, phone: Phone) -> None:
    """Twice, as the same Matrix user; the issuer may have plain HTTP, as in the sandbox."""
    party = await asyncio.to_thread(start, "synapse.py", provider.register("/_synapse/client/oidc/callback"))
    users = []
    for _ in range(2):
        landing = f"{party.base_url}/_matrix/static/"
        await page.goto(f"{party.base_url}/_matrix/client/v3/login/sso/redirect/oidc-taproof?redirectUrl={landing}")
        await sign_in_at_provider(page, phone)
        await page.wait_for_url(f"{landing}?loginToken=*")
        token = httpx.URL(page.url).params["loginToken"]
        body = {"type": "m.login.token", "token": token}
        async with httpx.AsyncClient(base_url=party.base_url) as client:
            signed_in = (await client.post("/_matrix/client/v3/login", json=body)).json()
            users.append(signed_in["user_id"])
            bearer = {"Authorization": f"Bearer {signed_in['access_token']}"}
            profile = await client.get(f"/_matrix/client/v3/profile/{users[0]}", headers=bearer)
            assert profile.json()["displayname"] == NAME
    assert users == [f"@u{phone.messenger_id}:example.test"] * 2
