"""Authlib's clients for Starlette and Flask: the applications of docs/how-to/oidc/authlib.md, unchanged."""

import re

import httpx
import pytest
from playwright.async_api import Page, expect
from tests.e2e.conftest import Phone
from tests.slow.relying_parties.at_provider import cancel_at_provider, sign_in_without_browser
from tests.slow.relying_parties.conftest import StartParty
from tests.slow.relying_parties.providers import NAME, Provider, SigningAlg
from tests.slow.relying_parties.walk import Shown, press_sign_in, read_page, sign_in_out_and_in_again

pytestmark = pytest.mark.browser
STARLETTE, FLASK = "authlib_starlette.py", "authlib_flask.py"


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(("program", "signing_alg"), [(STARLETTE, "RS256"), (FLASK, "ES256")])
async def test_a_user_signs_in(
    page: Page, provider: Provider, start: StartParty, phone: Phone, program: str, signing_alg: SigningAlg
) -> None:
    """A user signs in with PKCE, is greeted, and signs out; the ID token may be signed with either algorithm."""
    party = start(program, provider.register("/callback", signing_alg=signing_alg))

    async def read(page: Page) -> Shown:
        await expect(page.get_by_text(f"Welcome, {NAME}")).to_be_visible()
        await page.goto(f"{party.base_url}/shown")
        return await read_page(page)

    await sign_in_out_and_in_again(page, party, phone, read=read)


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("program", [STARLETTE, FLASK])
async def test_a_user_cancels(page: Page, provider: Provider, start: StartParty, phone: Phone, program: str) -> None:
    """Cancel in the messenger leads back to the application's page, and nobody is signed in."""
    party = start(program, provider.register("/callback"))
    await page.goto(party.base_url)
    await press_sign_in(page)
    await cancel_at_provider(page, phone, party)
    await expect(page.get_by_role("link", name="Sign in")).to_be_visible()


def test_without_a_browser(provider: Provider, start: StartParty, phone: Phone) -> None:
    """A CI follows all redirects without a browser or JavaScript, twice."""
    party = start(STARLETTE, provider.register("/callback"))
    subjects = []
    with httpx.Client(base_url=party.base_url, timeout=60, follow_redirects=True) as client:
        for _ in range(2):
            home = sign_in_without_browser(client, "/sign-in", phone)
            assert str(home.url) == f"{party.base_url}/"
            subjects += re.findall('id="sub">(.*?)<', client.get("/shown").text)
            assert "Welcome" not in client.post("/sign-out").text
    assert subjects == [phone.messenger_id] * 2
