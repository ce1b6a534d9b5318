"""Authlib's clients for Starlette and for Flask."""

import re

import httpx
import pytest
from playwright.async_api import Page
from tests.e2e.conftest import Phone
from tests.slow.relying_parties.at_provider import sign_in_without_browser
from tests.slow.relying_parties.conftest import StartParty
from tests.slow.relying_parties.providers import Provider
from tests.slow.relying_parties.walk import sign_in_out_and_in_again

pytestmark = pytest.mark.browser


@pytest.mark.asyncio(loop_scope="session")
async def test_starlette(page: Page, provider: Provider, start: StartParty, phone: Phone) -> None:
    """A user signs in with PKCE; the application asks userinfo for the name."""
    party = start("authlib_starlette.py", provider.register("/callback"))
    await sign_in_out_and_in_again(page, party, phone)


@pytest.mark.asyncio(loop_scope="session")
async def test_flask(page: Page, provider: Provider, start: StartParty, phone: Phone) -> None:
    """A user signs in without PKCE at an application with a secret, which checks an ID token signed with ES256."""
    party = start("authlib_flask.py", provider.register("/callback", signing_alg="ES256"))
    await sign_in_out_and_in_again(page, party, phone)


def test_without_a_browser(provider: Provider, start: StartParty, phone: Phone) -> None:
    """A CI walks through all redirects without a browser or JavaScript, twice."""
    party = start("authlib_starlette.py", provider.register("/callback"))
    subjects = []
    with httpx.Client(base_url=party.base_url, timeout=60, follow_redirects=True) as client:
        for _ in range(2):
            home = sign_in_without_browser(client, "/sign-in", phone)
            assert str(home.url) == f"{party.base_url}/"
            subjects += re.findall('id="sub">(.*?)<', home.text)
            assert 'id="sub"' not in client.post("/sign-out").text
    assert subjects == [phone.messenger_id] * 2
