"""Relying parties with their own defaults: each needs the issuer, its credentials and its redirect URI.

The settings that differ are in a table of docs/how-to/oidc/README.md. Synapse and Apache have files of their own.
"""

import json
from dataclasses import dataclass

import pytest
from playwright.async_api import Page, expect
from tests.e2e.conftest import Phone
from tests.slow.relying_parties.at_provider import (
    cancel_at_provider,
    press_and_sign_out_at_provider,
    report,
    sign_in_at_provider,
)
from tests.slow.relying_parties.conftest import StartParty
from tests.slow.relying_parties.processes import Program
from tests.slow.relying_parties.providers import NAME, AuthMethod, Email, Provider, Registered
from tests.slow.relying_parties.walk import Step, press_sign_in, press_sign_out, read_page, sign_in_out_and_in_again
from tests.waiting import until

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
    signed_out: str | None = None
    """The path to which it returns from the provider's sign-out, if it goes there."""
    can_refresh: bool = True
    email: Email = "none"

    def start(self, provider: Provider, start: StartParty) -> Program:
        return start(self.program, self.register(provider))

    def register(self, provider: Provider) -> Registered:
        auth_method: AuthMethod = "none" if self.is_public else "any"
        return provider.register(self.path, auth_method=auth_method, email=self.email, signed_out=self.signed_out)

    async def sign_out(self, page: Page) -> None:
        if self.signed_out is None:
            await press_sign_out(page)
        else:
            await press_and_sign_out_at_provider(page, press_sign_out)


OIDC_CLIENT_TS = Party("oidc_client_ts.mjs", sign_in=press_button, is_public=True, signed_out="/")
EXPRESS = Party("express_openid_connect.mjs", signed_out="")
ALLAUTH = Party("django_allauth_site.py", "/accounts/oidc/taproof/login/callback/", can_refresh=False)
PARTIES = [
    OIDC_CLIENT_TS,
    EXPRESS,
    Party("better_auth.mjs", "/api/auth/callback/taproof", press_button, signed_out="/", email="synthetic"),
    ALLAUTH,
    Party("requests_oauthlib_flask.py"),
    Party("idpyoidc_flask.py"),
]
each_party = pytest.mark.parametrize("tried", PARTIES, ids=lambda each: each.program)
REFRESHING = [each for each in PARTIES if each.can_refresh]


@each_party
async def test_a_user_signs_in(page: Page, provider: Provider, start: StartParty, phone: Phone, tried: Party) -> None:
    """A user signs in, out, and in again as the same user. Some sign out at the provider, too."""
    party = tried.start(provider, start)
    await sign_in_out_and_in_again(page, party, phone, start=tried.sign_in, end=tried.sign_out)


@pytest.mark.parametrize("tried", REFRESHING, ids=lambda each: each.program)
async def test_refresh(page: Page, provider: Provider, start: StartParty, phone: Phone, tried: Party) -> None:
    """The application gets new tokens of the same user twice, without asking them."""
    party = tried.start(provider, start)
    await page.goto(party.base_url)
    await tried.sign_in(page)
    await sign_in_at_provider(page, phone)
    before = await read_page(page)
    for _ in range(2):
        await page.get_by_role("button", name="Refresh").click()
        await expect(page.locator("#access_token")).not_to_have_text(before["access_token"])
        after = await read_page(page)
        assert after["sub"] == before["sub"] == phone.messenger_id
        before = after


async def test_a_report_ends_the_session(page: Page, provider: Provider, start: StartParty, phone: Phone) -> None:
    """After *This wasn't me* in the messenger, express-openid-connect has signed the user out, too."""
    registered = EXPRESS.register(provider)
    party = start(EXPRESS.program, registered)
    provider.update(registered, backchannel_logout_uri=f"{party.base_url}/backchannel-logout")
    await page.goto(party.base_url)
    await EXPRESS.sign_in(page)
    await sign_in_at_provider(page, phone)
    await read_page(page)
    await report(phone)

    async def is_signed_out() -> bool:
        await page.goto(party.base_url)
        return await page.get_by_role("link", name="Sign in").is_visible()

    await until(is_signed_out)


async def test_revocation(page: Page, provider: Provider, start: StartParty, phone: Phone) -> None:
    """oidc-client-ts revokes its tokens from the browser: the refresh after it fails."""
    party = OIDC_CLIENT_TS.start(provider, start)
    await page.goto(party.base_url)
    await press_button(page)
    await sign_in_at_provider(page, phone)
    await read_page(page)
    await page.get_by_role("button", name="Revoke").click()
    await expect(page.locator("#revoked")).to_be_visible()


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


async def test_silent_without_refresh_token(page: Page, provider: Provider, start: StartParty, phone: Phone) -> None:
    """Without a refresh token, oidc-client-ts asks with prompt=none, which Taproof answers with login_required."""
    registered = OIDC_CLIENT_TS.register(provider)
    provider.update(registered, grant_types=["authorization_code"])
    party = start(OIDC_CLIENT_TS.program, registered)
    await page.goto(party.base_url)
    await press_button(page)
    await sign_in_at_provider(page, phone)
    await read_page(page)
    await page.get_by_role("button", name="Refresh").click()
    await expect(page.locator("#error")).to_have_text("login_required")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"ACCOUNT_SIGNUP_FIELDS": ["email*", "username*", "password1*"]}, "As a final step"),
        ({"ACCOUNT_EMAIL_VERIFICATION": "mandatory"}, "Verify Your Email Address"),
        (
            {
                "ACCOUNT_SIGNUP_FIELDS": ["email*", "username*", "password1*"],
                "ACCOUNT_EMAIL_VERIFICATION": "mandatory",
                "SOCIALACCOUNT_EMAIL_REQUIRED": False,
                "SOCIALACCOUNT_EMAIL_VERIFICATION": "none",
            },
            NAME,
        ),
    ],
    ids=["required", "verified", "neither"],
)
async def test_addresses_of_allauth(
    page: Page, provider: Provider, start: StartParty, phone: Phone, settings: dict[str, object], expected: str
) -> None:
    """A site that insists on an address asks for one, or for its verification, unless it says otherwise for others."""
    party = start(ALLAUTH.program, ALLAUTH.register(provider), SETTINGS=json.dumps(settings))
    await page.goto(party.base_url)
    await ALLAUTH.sign_in(page)
    await sign_in_at_provider(page, phone)
    await expect(page.get_by_text(expected).first).to_be_visible()


async def test_better_auth_without_an_address(page: Page, provider: Provider, start: StartParty, phone: Phone) -> None:
    """better-auth creates no account, and says why."""
    party = start("better_auth.mjs", provider.register("/api/auth/callback/taproof"))
    await page.goto(party.base_url)
    await press_button(page)
    await sign_in_at_provider(page, phone)
    await expect(page.get_by_text("email_not_found")).to_be_visible()
