"""The providers of the relying parties: Taproof, and oidc-provider for comparison."""

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import httpx
import pytest
from tests.e2e.conftest import OwnProject, Phone, make_phone

AuthMethod = Literal["any", "basic", "post", "none"]
SigningAlg = Literal["RS256", "ES256"]
Email = Literal["none", "synthetic"]
NAME = "Ada <b>Lovelace</b> 🦊"
"""The name of the users: an application and the provider's page must escape it."""


@dataclass(frozen=True)
class Registered:
    """The credentials that a provider issued to an application; the secret is empty for a public client."""

    client_id: str
    client_secret: str = ""


class Provider(Protocol):
    """A provider with a simulated messenger."""

    @property
    def issuer(self) -> str: ...

    def register(
        self,
        path: str,
        *,
        auth_method: AuthMethod = "any",
        signing_alg: SigningAlg = "RS256",
        email: Email = "none",
        signed_out: str | None = None,
    ) -> Registered:
        """Register an application with this path of its redirect URI, on 127.0.0.1 with any port (RFC 8252).

        It may have refresh tokens, and return from a sign-out to the path `signed_out`.
        """
        ...

    def update(self, registered: Registered, **fields: Any) -> None:
        """Change fields of Taproof's own."""
        ...

    def new_phone(self) -> Phone:
        """Create a simulated user whose name is `NAME`."""
        ...


@dataclass(frozen=True)
class Taproof:
    """A project of a Taproof sandbox."""

    project: OwnProject

    @property
    def issuer(self) -> str:
        return str(self.project.developer.client.base_url).rstrip("/")

    def register(
        self,
        path: str,
        *,
        auth_method: AuthMethod = "any",
        signing_alg: SigningAlg = "RS256",
        email: Email = "none",
        signed_out: str | None = None,
    ) -> Registered:
        body: dict[str, Any] = {"name": "The application", "redirect_uris": [f"http://127.0.0.1{path}"]}
        body |= {
            # Applications keep their defaults, so the client accepts its secret in either way.
            "auth_method": "none" if auth_method == "none" else "any",
            "signing_alg": signing_alg,
            "email": email,
            "grant_types": ["authorization_code", "device_code", "refresh_token"],
            "post_logout_redirect_uris": [] if signed_out is None else [f"http://127.0.0.1{signed_out}"],
        }
        created = self.project.developer.ask("POST", f"/projects/{self.project.id}/clients", json=body)
        return Registered(created["client_id"], created.get("client_secret") or "")

    def update(self, registered: Registered, **fields: Any) -> None:
        path = f"/projects/{self.project.id}/clients/{registered.client_id}"
        self.project.developer.ask("PATCH", path, json=fields)

    def new_phone(self) -> Phone:
        return make_phone(self.project.developer.client, NAME)


@dataclass(frozen=True)
class StandIn:
    """oidc-provider, from `stand_in.mjs`. It registers clients by RFC 7591."""

    client: httpx.Client

    @property
    def issuer(self) -> str:
        return str(self.client.base_url).rstrip("/")

    def register(
        self,
        path: str,
        *,
        auth_method: AuthMethod = "any",
        signing_alg: SigningAlg = "RS256",
        email: Email = "none",  # noqa: ARG002 — it has addresses for all clients.
        signed_out: str | None = None,
    ) -> Registered:
        # It fixes a method for each client, where Taproof accepts both.
        methods = {"none": "none", "post": "client_secret_post"}
        metadata = {
            "application_type": "native",  # So that the port of a loopback address does not matter.
            "redirect_uris": [f"http://127.0.0.1{path}"],
            "grant_types": ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
            "post_logout_redirect_uris": [] if signed_out is None else [f"http://127.0.0.1{signed_out}"],
            "token_endpoint_auth_method": methods.get(auth_method, "client_secret_basic"),
            "id_token_signed_response_alg": signing_alg,
        }
        answer = self.client.post("/reg", json=metadata)
        assert answer.status_code == 201, answer.text
        return Registered(answer.json()["client_id"], answer.json().get("client_secret", ""))

    def update(self, registered: Registered, **fields: Any) -> None:
        pytest.skip(f"Only Taproof has {', '.join(fields)} for {registered.client_id}.")

    def new_phone(self) -> Phone:
        return make_phone(self.client, NAME)
