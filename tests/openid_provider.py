"""The OpenID provider on a real store with a clock that tests set, and the steps of an application and a user."""

import base64
import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.service.conftest import Node, acting
from tests.signals import signals
from tests.whole_sign_in import OWN_ORIGIN

from taproof.contract.client import SigningAlg
from taproof.core.accounts import Developer
from taproof.core.brand import Brand
from taproof.core.entropy import system_entropy
from taproof.core.identity import MessengerIdentity
from taproof.core.oidc.clients import GRANT_TYPES, ClientChanges, OidcClient, SignInClient
from taproof.core.oidc.errors import OAuthError
from taproof.core.oidc.signing import PrivateKey, new_private_key
from taproof.core.projects import Project, ProjectChanges
from taproof.core.request_context import Requester
from taproof.core.session_state import CountedDecision
from taproof.http.limits.rates import RateLimits
from taproof.http.metrics import Metrics
from taproof.oidc.app import OpenidProvider
from taproof.oidc.services import ProviderServices
from taproof.service.oidc import keys
from taproof.service.oidc.access_tokens import AccessTokens
from taproof.service.oidc.clients import OidcClients
from taproof.service.oidc.devices import Devices
from taproof.service.oidc.grants import Grants
from taproof.service.oidc.issuing import TokenIssuer
from taproof.service.oidc.keys import SigningKeys
from taproof.service.oidc.requests import AuthorizationRequests
from taproof.service.oidc.sign_in import BegunSignIn, OidcSignIns, SeenSignIn
from taproof.service.oidc.sign_outs import SignOuts
from taproof.service.oidc.tokens import Tokens

ISSUER = OWN_ORIGIN
REDIRECT_URI = "https://app.example/callback"
VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"  # RFC 7636, appendix B.
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
PKCE = {"code_challenge": CHALLENGE, "code_challenge_method": "S256"}
ADA = MessengerIdentity("1001", "Ada Lovelace", "ada")
REQUESTER = Requester(origin="https://app.example")
Parameters = dict[str, str]


@cache
def _made_key(alg: SigningAlg, number: int) -> PrivateKey:
    return new_private_key(alg)


@pytest.fixture(autouse=True)
def quick_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Create each key once in a run, because an RSA key takes 0.1 seconds. A database never gets the same key twice."""
    numbers: Iterator[int] = itertools.count()
    monkeypatch.setattr(keys, "new_private_key", lambda alg: _made_key(alg, next(numbers)))


class Provider:
    """The use cases of the provider in one process."""

    def __init__(self, node: Node) -> None:
        storage, encryptor, clock = node.storage, node.encryptor, node.clock
        self.node = node
        self.brand = Brand()
        self.counted: list[CountedDecision] = []
        self.clients = OidcClients(storage, clock, system_entropy)
        self.keys = SigningKeys(storage, encryptor, clock, system_entropy)
        self.requests = AuthorizationRequests(storage, self.keys, clock, system_entropy, ISSUER)
        self.sign_ins = OidcSignIns(
            storage,
            encryptor,
            node.signin,
            clock,
            system_entropy,
            signals=signals(count_decision=self.counted.append),
            waiting=node.signin.waiting,
            base_url=ISSUER,
        )
        issuing = TokenIssuer(encryptor, self.keys, issuer=ISSUER, email_domain="sign-in.example")
        self.tokens = Tokens(storage, encryptor, issuing, clock, system_entropy)
        self.access_tokens = AccessTokens(storage, issuing, clock)
        self.grants = Grants(storage, issuing, clock, system_entropy)
        self.sign_outs = SignOuts(storage, self.keys, clock, ISSUER)
        self.devices = Devices(storage, self.sign_ins, ISSUER, clock, system_entropy)

    def build(self) -> OpenidProvider:
        """Return the HTTP endpoints."""
        metrics = Metrics(CollectorRegistry(), "0.1.0")
        limits = RateLimits(metrics, self.node.clock, generate_address=None, generate_project=None, local_only=True)
        services = ProviderServices(
            requests=self.requests,
            sign_ins=self.sign_ins,
            tokens=self.tokens,
            access_tokens=self.access_tokens,
            grants=self.grants,
            sign_outs=self.sign_outs,
            devices=self.devices,
            keys=self.keys,
        )
        return OpenidProvider(
            services, self.node.clock, issuer=ISSUER, brand=self.brand, limits=limits, metrics=metrics
        )

    def later(self, milliseconds: int) -> None:
        self.node.clock.now += milliseconds

    async def shop(self, beside: "Shop | None" = None, **settings: Any) -> "Shop":
        """Create a client, in the project of `beside` or in a new one."""
        if beside is not None:
            developer, project = beside.developer, beside.project
        else:
            developer = await self.node.developer("business")
            project, _ = await self.node.project(developer)
        wanted = ClientChanges(
            **{"name": "Shop", "redirect_uris": (REDIRECT_URI,), "grant_types": GRANT_TYPES} | settings
        )
        client, secret = await self.clients.create_client(acting(developer), project.id, wanted)
        return Shop(self, developer, project, client, secret)


@dataclass
class Shop:
    """An application with a client, and its users."""

    provider: Provider
    developer: Developer
    project: Project
    client: OidcClient
    secret: str | None
    pkce: Parameters = field(default_factory=lambda: dict(PKCE))

    @property
    def id(self) -> str:
        return self.client.id

    def request(self, **changed: str) -> Parameters:
        """Return the parameters of an authorization request; a changed one that is "" counts as left out."""
        parameters = {
            "client_id": self.id,
            "redirect_uri": self.client.redirect_uris[0],
            "response_type": "code",
            "scope": "openid profile",
            "state": "a state",
            "nonce": "a nonce",
            **self.pkce,
        } | changed
        return {name: value for name, value in parameters.items() if value}

    async def change_project(self, **fields: Any) -> None:
        await self.provider.node.projects.update_project(
            acting(self.developer), self.project.id, ProjectChanges(**fields)
        )

    async def change_client(self, **fields: Any) -> None:
        """Change the client, and record its secret if that changes too."""
        actor, changes = acting(self.developer), ClientChanges(**fields)
        self.client, secret = await self.provider.clients.update_client(actor, self.project.id, self.id, changes)
        self.secret = secret or self.secret

    async def authenticated(self) -> SignInClient:
        """Return the client as its credentials prove it."""
        return await self.provider.tokens.authenticate_client(*self.credentials())

    def credentials(self) -> tuple[str | None, Parameters]:
        """Return the Authorization header and the body parameters with which the client authenticates."""
        secret = self.secret
        if self.client.auth_method in {"any", "basic"}:
            return basic(self.id, secret or ""), {}
        return None, {"client_id": self.id} | ({} if secret is None else {"client_secret": secret})

    async def begin(self, **changed: str) -> "InBrowser":
        provider = self.provider
        client, wanted = await provider.requests.read_request(self.request(**changed))
        return InBrowser(provider, await provider.sign_ins.begin_sign_in(client, wanted, REQUESTER))

    async def sign_in(self, identity: MessengerIdentity = ADA, /, **changed: str) -> str:
        """Sign a user in; return the code."""
        browser = await self.begin(**changed)
        await browser.confirm(identity)
        code = await browser.finish()
        assert code is not None
        return code

    async def redeem(self, code: str, /, **changed: str) -> dict[str, Any]:
        """Exchange a code for tokens; a changed parameter that is "" is left out."""
        verifier = {"code_verifier": VERIFIER} if self.pkce else {}
        form = {"code": code, "redirect_uri": self.client.redirect_uris[0], **verifier} | changed
        given = {name: value for name, value in form.items() if value}
        return await self.provider.tokens.redeem_code(await self.authenticated(), given)

    async def begin_device(self, scope: str = "openid profile") -> dict[str, Any]:
        return await self.provider.devices.begin_device(await self.authenticated(), scope)

    async def poll(self, device_code: str) -> dict[str, Any]:
        parameters = {"device_code": device_code}
        return await self.provider.tokens.redeem_device_code(await self.authenticated(), parameters)


@dataclass
class InBrowser:
    """A sign-in in the browser that started it."""

    provider: Provider
    begun: BegunSignIn

    async def see(self) -> SeenSignIn:
        seen = await self.provider.sign_ins.read_sign_in(self.begun.id, self.begun.browser_secret)
        assert seen is not None
        return seen

    async def session_token(self) -> str:
        seen = await self.see()
        assert seen.deeplink is not None
        return seen.deeplink.partition("?start=")[2]

    async def open(self, identity: MessengerIdentity = ADA) -> str:
        """Open the link in the messenger; return the session token."""
        token = await self.session_token()
        assert (await self.provider.node.signin.open_session(token, identity.messenger_id)).outcome == "opened"
        return token

    async def confirm(self, identity: MessengerIdentity = ADA) -> None:
        assert (await self.provider.node.signin.confirm_session(await self.open(identity), identity)).changed

    async def finish(self) -> str | None:
        return await self.provider.sign_ins.finish_sign_in(await self.see(), self.begun.browser_secret)


def basic(client_id: str, secret: str) -> str:
    return f"Basic {base64.b64encode(f'{client_id}:{secret}'.encode()).decode()}"


async def error_of(call: Any) -> str:
    """Return the code of the error with which a call of the provider fails."""
    with pytest.raises(OAuthError) as refused:
        await call
    return refused.value.error
