"""mozilla-django-oidc, which finds a user by e-mail address."""

import pytest
from playwright.async_api import Page
from tests.e2e.conftest import Phone
from tests.slow.relying_parties.conftest import StartParty
from tests.slow.relying_parties.providers import Provider
from tests.slow.relying_parties.walk import Shown, read_page, sign_in_out_and_in_again

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_a_user_signs_in(page: Page, provider: Provider, start: StartParty, phone: Phone) -> None:
    """The synthetic address makes both sign-ins the same user of Django; the secret is in the token request's body."""
    registered = provider.register("/oidc/callback/", auth_method="post", email="synthetic")
    party = start("django_site.py", registered)

    async def read(page: Page) -> Shown:
        shown = await read_page(page)
        assert shown["email"].partition("@")[0] == shown["sub"]
        assert shown["number"] == "1"
        return shown

    await sign_in_out_and_in_again(page, party, phone, read=read)
