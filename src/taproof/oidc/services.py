"""The use cases of the OpenID provider, and the paths that it serves. Nothing here loads its pages."""

from dataclasses import dataclass
from typing import Final

from taproof.service.oidc.access_tokens import AccessTokens
from taproof.service.oidc.devices import Devices
from taproof.service.oidc.grants import Grants
from taproof.service.oidc.keys import SigningKeys
from taproof.service.oidc.requests import AuthorizationRequests
from taproof.service.oidc.sign_in import OidcSignIns
from taproof.service.oidc.sign_outs import SignOuts
from taproof.service.oidc.tokens import Tokens

CALLS: Final = (
    "/.well-known/openid-configuration",
    "/.well-known/oauth-authorization-server",
    *(f"/oidc/{name}" for name in ("token", "userinfo", "jwks", "par", "device_authorization", "revoke", "introspect")),
)
"""The paths that applications call."""
PAGES: Final = ("/oidc/*", "/device")
"""The paths that browsers show; `/*` stands for everything below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderServices:
    """The use cases that the endpoints call."""

    requests: AuthorizationRequests
    sign_ins: OidcSignIns
    tokens: Tokens
    access_tokens: AccessTokens
    grants: Grants
    sign_outs: SignOuts
    devices: Devices
    keys: SigningKeys
