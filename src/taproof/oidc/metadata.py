"""Serves discovery and the JWK set."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from taproof.core.oidc.discovery import provider_metadata
from taproof.core.oidc.model import JWKS_MAX_AGE
from taproof.oidc.answers import ANY_ORIGIN, json_answer, preflight_routes
from taproof.service.oidc.keys import SigningKeys

_CACHED: Final = f"public, max-age={JWKS_MAX_AGE}".encode()


class MetadataEndpoints:
    """Serves what applications read before they start a sign-in.

    Args:
        issuer: the service's base URL.
        keys: the keys of the JWK set.
    """

    def __init__(self, issuer: str, keys: SigningKeys) -> None:
        self._metadata = provider_metadata(issuer)
        self._keys = keys

    def routes(self) -> list[BaseRoute]:
        """Return the routes."""
        endpoints = {
            "/.well-known/openid-configuration": self._read_metadata,
            "/.well-known/oauth-authorization-server": self._read_metadata,
            "/oidc/jwks": self._read_jwks,
        }
        return [*(Route(*each) for each in endpoints.items()), *preflight_routes(*endpoints)]

    async def _read_metadata(self, _: Request) -> Response:
        return json_answer(self._metadata, headers=ANY_ORIGIN, cache=_CACHED)

    async def _read_jwks(self, _: Request) -> Response:
        return json_answer(await self._keys.read_jwks(), headers=ANY_ORIGIN, cache=_CACHED)
