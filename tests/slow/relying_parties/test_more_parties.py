"""Relying parties with their own defaults: the figure of settings that differ is in docs/how-to/oidc/README.md."""

import pytest
from playwright.async_api import Page
from tests.e2e.conftest import Phone
from tests.slow.relying_parties.conftest import StartParty
from tests.slow.relying_parties.providers import Provider
from tests.slow.relying_parties.walk import press_sign_in, press_sign_out, sign_in_out_and_in_again

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def press_button(page: Page) -> None:
    await page.get_by_role("button", name="Sign in", exact=True).click()


@pytest.mark.parametrize(
    ("program", "path"),
    [
        ("express_openid_connect.mjs", "/callback"),
        ("better_auth.mjs", "/api/auth/callback/taproof"),
        ("oidc_client_ts.mjs", "/callback"),
        ("django_allauth_site.py", "/accounts/oidc/taproof/login/callback/"),
        ("requests_oauthlib_flask.py", "/callback"),
        ("idpyoidc_flask.py", "/callback"),
    ],
)
async def test_a_user_signs_in(
    page: Page, provider: Provider, start: StartParty, phone: Phone, program: str, path: str
) -> None:
    """Each program needs the issuer and the client's credentials, and nothing else."""
    public = program == "oidc_client_ts.mjs"
    party = start(program, provider.register(path, auth_method="none" if public else "basic", email="synthetic"))
    by_button = program in {"oidc_client_ts.mjs", "better_auth.mjs"}
    await sign_in_out_and_in_again(
        page, party, phone, start=press_button if by_button else press_sign_in, end=press_sign_out
    )
