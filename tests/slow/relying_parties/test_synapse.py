"""Synapse: people sign in to a Matrix homeserver with the provider of docs/how-to/oidc/synapse.md."""

import asyncio

import httpx
import pytest
from playwright.async_api import Page, expect
from tests.e2e.conftest import Phone
from tests.slow.relying_parties.at_provider import cancel_at_provider, report, sign_in_at_provider
from tests.slow.relying_parties.conftest import StartParty
from tests.slow.relying_parties.processes import Program
from tests.slow.relying_parties.providers import NAME, Provider
from tests.waiting import until

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
PATH = "/_synapse/client/oidc/callback"
SIGN_IN = "/_matrix/client/v3/login/sso/redirect/oidc-taproof?redirectUrl={base_url}/_matrix/static/"


async def use_login_token(page: Page, party: Program) -> tuple[str, dict[str, str]]:
    """Use the login token of the page's address, as a Matrix client does; return the user's id and the credentials."""
    await page.wait_for_url(f"{party.base_url}/_matrix/static/?loginToken=*")
    body = {"type": "m.login.token", "token": httpx.URL(page.url).params["loginToken"]}
    async with httpx.AsyncClient(base_url=party.base_url) as client:
        signed_in = (await client.post("/_matrix/client/v3/login", json=body)).json()
        user_id: str = signed_in["user_id"]
        bearer = {"Authorization": f"Bearer {signed_in['access_token']}"}
        profile = await client.get(f"/_matrix/client/v3/profile/{user_id}", headers=bearer)
    assert profile.json()["displayname"] == NAME
    return user_id, bearer


async def test_a_user_signs_in(page: Page, provider: Provider, start: StartParty, phone: Phone) -> None:
    """Cancel is shown as an error. Then a user chooses a Matrix name once, and is the same user at the next sign-in.

    A report in the messenger ends the session at Synapse. The issuer may have plain HTTP, as in the sandbox.
    """
    registered = provider.register(PATH)
    party = await asyncio.to_thread(start, "synapse.py", registered)
    address = f"{party.base_url}{SIGN_IN.format(base_url=party.base_url)}"
    await page.goto(address)
    await cancel_at_provider(page, phone, party)
    await expect(page.locator("#errormsg")).to_contain_text("cancelled")
    await page.goto(address)
    await sign_in_at_provider(page, phone)
    await page.get_by_label("Username").fill("ada")
    # The page asks whether the name is free, and has sent nothing before.
    await expect(page.locator("#field-username-output")).to_be_empty()
    await page.get_by_role("button", name="Continue").click()
    assert (await use_login_token(page, party))[0] == "@ada:example.test"
    logout_uri = f"{party.base_url}/_synapse/client/oidc/backchannel_logout"
    await asyncio.to_thread(provider.update, registered, backchannel_logout_uri=logout_uri)
    await page.goto(address)
    await sign_in_at_provider(page, phone)
    user_id, bearer = await use_login_token(page, party)
    assert user_id == "@ada:example.test"
    await report(phone)
    async with httpx.AsyncClient(base_url=party.base_url, headers=bearer) as client:

        async def is_signed_out() -> bool:
            return (await client.get("/_matrix/client/v3/account/whoami")).status_code == 401

        await until(is_signed_out)
