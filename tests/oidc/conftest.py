"""The endpoints of the OpenID provider in this process, with a clock that tests set, and a browser."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from html import unescape
from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send
from tests.e2e.openid import DEEPLINK, answer_of
from tests.openid_provider import ADA, ISSUER, VERIFIER, Parameters, Provider, Shop, quick_keys
from tests.service.conftest import clock, driver, encryptor, node, waiting_options
from tests.service.oidc.conftest import open_store, provider, shop

from taproof.core.identity import MessengerIdentity
from taproof.oidc.services import CALLS

__all__ = ["clock", "driver", "encryptor", "node", "open_store", "provider", "quick_keys", "shop", "waiting_options"]

SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}


@dataclass
class Web:
    """A browser without scripts: it keeps cookies, and shows each redirect."""

    provider: Provider
    client: httpx.AsyncClient

    async def get(self, url: str, **request: Any) -> httpx.Response:
        return await self.client.get(url, **request)

    async def post(self, url: str, **request: Any) -> httpx.Response:
        return await self.client.post(url, **request)

    async def authorize(self, parameters: Parameters) -> httpx.Response:
        return await self.get("/oidc/authorize", params=parameters)

    async def token_of(self, page: str) -> str:
        """Return the session token in the link on a sign-in page."""
        found = DEEPLINK.search((await self.get(page)).text)
        assert found
        return unescape(found[1]).partition("?start=")[2]

    async def confirm(self, page: str, button: str = "Confirm", identity: MessengerIdentity = ADA) -> str:
        """Open the link on a sign-in page in the messenger, and decide there. Return the link back, or ""."""
        token = await self.token_of(page)
        signin = self.provider.node.signin
        await signin.open_session(token, identity.messenger_id)
        if button == "Confirm":
            decided = await signin.confirm_session(token, identity)
        else:
            decided = await signin.cancel_session(token, identity.messenger_id)
        assert decided.changed
        return decided.return_link or ""

    async def sign_in(self, parameters: Parameters) -> httpx.Response:
        """Go through the pages; return the authorization response."""
        begun = await self.authorize(parameters)
        assert begun.status_code == 303, begun.text
        page = begun.headers["location"]
        assert page.startswith(f"{ISSUER}/oidc/authorize/auth_"), page
        await self.confirm(page)
        return await self.get(page)

    async def redeem(self, shop: Shop, response: httpx.Response, **changed: str) -> httpx.Response:
        """Exchange the code of an authorization response for tokens."""
        header, form = shop.credentials()
        form |= {
            "grant_type": "authorization_code",
            "code": answer_of(response)["code"],
            "redirect_uri": shop.client.redirect_uris[0],
            "code_verifier": VERIFIER,
        } | changed
        headers = {} if header is None else {"Authorization": header}
        return await self.post("/oidc/token", data=form, headers=headers)


@pytest.fixture
async def web(provider: Provider) -> AsyncIterator[Web]:
    built = provider.build()
    apps = dict.fromkeys(CALLS, built.calls)

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        await apps.get(scope["path"], built.pages)(scope, receive, send)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(route), base_url=ISSUER) as client:
        yield Web(provider, client)
