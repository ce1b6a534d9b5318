"""Relying parties with their own defaults: each needs the issuer, its credentials and its redirect URI.

The settings that differ are in a table of docs/how-to/oidc/README.md. Synapse and Apache have files of their own.
"""

from dataclasses import dataclass

import pytest
from playwright.async_api import Page, expect
from tests.e2e.conftest import Phone
from tests.slow.relying_parties.at_provider import cancel_at_provider, sign_in_at_provider
from tests.slow.relying_parties.conftest import StartParty
from tests.slow.relying_parties.processes import Program
from tests.slow.relying_parties.providers import AuthMethod, Provider
from tests.slow.relying_parties.walk import Step, press_sign_in, press_sign_out, read_page, sign_in_out_and_in_again

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def press_button(page: Page) -> None:
    await page.get_by_role("button", name="Sign in", exact=True).click()


@dataclass(frozen=True)
class Party:
    """A relying party in this directory."""

    program: str
    path: str = "/callback"
    sign_in: Step = press_sign_in
    is_public: bool = False

    def start(self, provider: Provider, start: StartParty) -> Program:
        auth_method: AuthMethod = "none" if self.is_public else "any"
        # better-auth and django-allauth create no account without an address.
        return start(self.program, provider.register(self.path, auth_method=auth_method, email="synthetic"))


OIDC_CLIENT_TS = Party("oidc_client_ts.mjs", sign_in=press_button, is_public=True)
PARTIES = [
    OIDC_CLIENT_TS,
    Party("express_openid_connect.mjs"),
    Party("better_auth.mjs", "/api/auth/callback/taproof", press_button),
    Party("django_allauth_site.py", "/accounts/oidc/taproof/login/callback/"),
    Party("requests_oauthlib_flask.py"),
    Party("idpyoidc_flask.py"),
]
each_party = pytest.mark.parametrize("tried", PARTIES, ids=lambda each: each.program)


@each_party
async def test_a_user_signs_in(page: Page, provider: Provider, start: StartParty, phone: Phone, tried: Party) -> None:
    """A user signs in, out, and in again as the same user."""
    party = tried.start(provider, start)
    await sign_in_out_and_in_again(page, party, phone, start=tried.sign_in, end=press_sign_out)


@each_party
async def test_a_user_cancels(page: Page, provider: Provider, start: StartParty, phone: Phone, tried: Party) -> None:
    """Cancel in the messenger leads back to the application with access_denied, and nobody is signed in."""
    party = tried.start(provider, start)
    await page.goto(party.base_url)
    await tried.sign_in(page)
    await cancel_at_provider(page, phone, party)
    await page.goto(party.base_url)
    await expect(page.get_by_text("Sign in").first).to_be_visible()


async def test_another_account_than_before(page: Page, provider: Provider, start: StartParty, phone: Phone) -> None:
    """With the ID token of an earlier sign-in as id_token_hint, another account gets login_required."""
    party = OIDC_CLIENT_TS.start(provider, start)
    await page.goto(party.base_url)
    await press_button(page)
    await sign_in_at_provider(page, phone)
    first = await read_page(page)
    await press_sign_out(page)
    for user, expected in ((provider.new_phone(), "login_required"), (phone, None)):
        await page.goto(party.base_url)
        await page.get_by_role("button", name="Sign in as before").click()
        await sign_in_at_provider(page, user)
        if expected is None:
            assert (await read_page(page))["sub"] == first["sub"]
        else:
            await expect(page.locator("#error")).to_have_text(expected)
