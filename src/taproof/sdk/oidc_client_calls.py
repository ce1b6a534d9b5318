"""The calls for a project's OpenID Connect clients; see `developer_calls.py`."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from taproof.sdk.developer_api import ask_developer_api, given_only, path_id, read_list, read_one
from taproof.sdk.exchange import Call, Service
from taproof.sdk.reading import read
from taproof.sdk.results import ChangedOidcClient, OidcClient

_LISTS: Final = {
    "redirect_uris": '["https://app.example.com/callback"]',
    "grant_types": '["authorization_code", "device_code"]',
}
"""The settings that are lists, with an example of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Regenerated:
    client_secret: str = field(repr=False)


def list_clients(service: Service, project_id: str) -> Call[list[OidcClient]]:
    """Return all OpenID Connect clients of a project, oldest first."""
    return read_list(OidcClient, (yield from ask_developer_api(service, "GET", _clients(project_id))), "clients")


def create_client(
    service: Service,
    project_id: str,
    name: str,
    redirect_uris: Collection[str],
    *,
    auth_method: Literal["basic", "post", "none"] | None = None,
    signing_alg: Literal["RS256", "ES256"] | None = None,
    email: Literal["none", "synthetic"] | None = None,
    id_token_lifetime: int | None = None,
    grant_types: Collection[Literal["authorization_code", "device_code"]] | None = None,
) -> Call[ChangedOidcClient]:
    """Create an OpenID Connect client. Store its `client_secret`: it is shown only once.

    Arguments of None are not sent.

    Args:
        service: given by the client.
        project_id: the project whose users sign in.
        name: the name of the application, up to 100 characters.
        redirect_uris: the addresses to which users can return, such as "https://grafana.example/login/generic_oauth".
        auth_method: how the client sends its secret: "basic", the default, "post", or "none" for one without a secret.
        signing_alg: the algorithm that signs ID tokens; "RS256" by default.
        email: "synthetic" for an e-mail address made from the user's id in ID tokens; "none" by default.
        id_token_lifetime: seconds, 300 to 86400; 3600 by default.
        grant_types: how the client signs users in: "authorization_code", the default, and "device_code" for devices
            that show a code.
    """
    settings = _settings(
        redirect_uris=redirect_uris,
        auth_method=auth_method,
        signing_alg=signing_alg,
        email=email,
        id_token_lifetime=id_token_lifetime,
        grant_types=grant_types,
    )
    return read_one(service, ChangedOidcClient, "POST", _clients(project_id), {"name": name, **settings})


def read_client(service: Service, project_id: str, client_id: str) -> Call[OidcClient]:
    """Return one OpenID Connect client."""
    return read_one(service, OidcClient, "GET", _client(project_id, client_id))


def update_client(
    service: Service,
    project_id: str,
    client_id: str,
    *,
    name: str | None = None,
    redirect_uris: Collection[str] | None = None,
    auth_method: Literal["basic", "post", "none"] | None = None,
    signing_alg: Literal["RS256", "ES256"] | None = None,
    email: Literal["none", "synthetic"] | None = None,
    id_token_lifetime: int | None = None,
    grant_types: Collection[Literal["authorization_code", "device_code"]] | None = None,
) -> Call[ChangedOidcClient]:
    """Change an OpenID Connect client. Omitted fields stay as they are. For the fields, see `create_client`.

    An `auth_method` of "none" erases its secret. With "basic" or "post", a client without a secret gets one, which is
    in `client_secret` and shown only once. Without a grant in `grant_types`, sign-ins that use it end.
    """
    settings = _settings(
        redirect_uris=redirect_uris,
        auth_method=auth_method,
        signing_alg=signing_alg,
        email=email,
        id_token_lifetime=id_token_lifetime,
        grant_types=grant_types,
    )
    body = given_only({"name": name, **settings})
    return read_one(service, ChangedOidcClient, "PATCH", _client(project_id, client_id), body)


def delete_client(service: Service, project_id: str, client_id: str) -> Call[None]:
    """Delete an OpenID Connect client. Applications that use it can no longer sign users in."""
    yield from ask_developer_api(service, "DELETE", _client(project_id, client_id))


def regenerate_client_secret(service: Service, project_id: str, client_id: str) -> Call[str]:
    """Replace the secret of an OpenID Connect client, and return it. The old one stops working immediately."""
    path = f"{_client(project_id, client_id)}/regenerate"
    return read(_Regenerated, (yield from ask_developer_api(service, "POST", path))).client_secret


def _settings(**given: Collection[str] | str | int | None) -> Mapping[str, Any]:
    for name, example in _LISTS.items():
        if isinstance(given[name], str):
            raise TypeError(f"{name} must be a list, such as {example}.")
    return {name: list(value) if name in _LISTS else value for name, value in given_only(given).items()}


def _clients(project_id: str) -> str:
    return f"/projects/{path_id(project_id)}/clients"


def _client(project_id: str, client_id: str) -> str:
    return f"{_clients(project_id)}/{path_id(client_id)}"
