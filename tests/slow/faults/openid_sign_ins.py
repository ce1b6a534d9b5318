"""Sign users in through the OpenID provider without HTTP: as the application, the browser and the user."""

import base64
import hashlib
from typing import Any, Final

from tests.signals import signals
from tests.whole_sign_in import WholeSignIn

from taproof.core.accounts import Actor
from taproof.core.clock import Clock, system_clock
from taproof.core.encryption import Encryptor
from taproof.core.entropy import system_entropy
from taproof.core.identity import MessengerIdentity
from taproof.core.oidc.clients import ClientChanges, SignInClient
from taproof.core.oidc.requests import AuthorizationRequest, Scope
from taproof.core.request_context import Requester
from taproof.service.oidc.access_tokens import AccessTokens
from taproof.service.oidc.clients import OidcClients
from taproof.service.oidc.grants import Grants
from taproof.service.oidc.issuing import TokenIssuer
from taproof.service.oidc.keys import SigningKeys
from taproof.service.oidc.sign_in import OidcSignIns
from taproof.service.oidc.tokens import Tokens
from taproof.storage.protocol import Storage

ISSUER: Final = "https://login.example"
REDIRECT_URI: Final = "https://app.example/callback"
VERIFIER: Final = "the-code-verifier-of-every-sign-in-of-these-tests"
_CHALLENGE: Final = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()


async def create_client(storage: Storage, actor: Actor, project_id: str, **fields: Any) -> SignInClient:
    """Create a client of a project; the fields are those of `ClientChanges`."""
    wanted = ClientChanges(**{"name": "Shop", "redirect_uris": (REDIRECT_URI,)} | fields)
    client, _ = await OidcClients(storage, system_clock, system_entropy).create_client(actor, project_id, wanted)
    found = await storage.oidc_clients.read_client(client.id)
    assert found is not None
    return found


class OpenidNode:
    """One process of the service: its use cases on a store."""

    def __init__(self, storage: Storage, master_key: str, clock: Clock = system_clock) -> None:
        self.storage = storage
        encryptor = Encryptor(master_key)
        self.signin = WholeSignIn(storage, encryptor, lambda: "https://t.me/b", clock, system_entropy)
        self.keys = SigningKeys(storage, encryptor, clock, system_entropy)
        self.sign_ins = OidcSignIns(
            storage,
            encryptor,
            self.signin,
            clock,
            system_entropy,
            signals=signals(),
            waiting=self.signin.waiting,
            base_url=ISSUER,
        )
        issuing = TokenIssuer(encryptor, self.keys, issuer=ISSUER, email_domain="login.example")
        self.tokens = Tokens(storage, encryptor, issuing, clock, system_entropy)
        self.access_tokens = AccessTokens(storage, issuing, clock)
        self.grants = Grants(storage, issuing, clock, system_entropy)

    async def new_code(self, client: SignInClient, user: str, *scopes: Scope) -> str:
        """Return the code of a sign-in that this user has confirmed, with the scopes openid, profile and more."""
        request = AuthorizationRequest(REDIRECT_URI, scopes=("openid", "profile", *scopes), code_challenge=_CHALLENGE)
        begun = await self.sign_ins.begin_sign_in(client, request, Requester())
        waiting = await self.sign_ins.read_sign_in(*begun)
        assert waiting is not None
        assert waiting.deeplink is not None
        session_token = waiting.deeplink.partition("?start=")[2]
        await self.signin.open_session(session_token, user)
        identity = MessengerIdentity(user, f"User {user}", "")
        assert (await self.signin.confirm_session(session_token, identity)).changed
        confirmed = await self.sign_ins.read_sign_in(*begun)
        assert confirmed is not None
        code = await self.sign_ins.finish_sign_in(confirmed, begun.browser_secret)
        assert code is not None
        return code

    async def redeem(self, client: SignInClient, code: str) -> dict[str, Any]:
        """Return the answer with the tokens for a code or a refresh token."""
        if code.startswith("ort_"):
            return await self.grants.refresh_tokens(client, {"refresh_token": code})
        return await self.tokens.redeem_code(
            client, {"code": code, "redirect_uri": REDIRECT_URI, "code_verifier": VERIFIER}
        )
