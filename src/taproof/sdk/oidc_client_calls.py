"""The calls for a project's OpenID Connect clients; see `developer_calls.py`."""

from collections.abc import Collection
from typing import Unpack

from taproof.contract.client import (
    ChangedOidcClient,
    ClientSecret,
    ClientSettings,
    ClientUpdate,
    OidcClient,
    OidcGrant,
)
from taproof.sdk.developer_api import ask_developer_api, path_id, read_list, read_one, sent_settings
from taproof.sdk.developer_calls import Pages
from taproof.sdk.exchange import Call, Service
from taproof.sdk.reading import read


def list_clients(service: Service, project_id: str) -> Call[list[OidcClient]]:
    """Return all OpenID Connect clients of a project, oldest first."""
    return read_list(OidcClient, (yield from ask_developer_api(service, "GET", _clients(project_id))), "clients")


def create_client(
    service: Service, project_id: str, name: str, redirect_uris: Collection[str], **settings: Unpack[ClientSettings]
) -> Call[ChangedOidcClient]:
    """Create an OpenID Connect client. Store its `client_secret`: it is shown only once.

    Settings that are omitted or None have their defaults.

    Args:
        project_id: the project whose users sign in.
        name: the name of the application, up to 100 characters.
        redirect_uris: the addresses to which users can return, such as "https://grafana.example/login/generic_oauth".
        settings: see `ClientSettings`.
    """
    body = sent_settings(ClientUpdate, {"name": name, "redirect_uris": redirect_uris, **settings})
    return read_one(service, ChangedOidcClient, "POST", _clients(project_id), body)


def read_client(service: Service, project_id: str, client_id: str) -> Call[OidcClient]:
    """Return one OpenID Connect client."""
    return read_one(service, OidcClient, "GET", _client(project_id, client_id))


def update_client(
    service: Service, project_id: str, client_id: str, **settings: Unpack[ClientUpdate]
) -> Call[ChangedOidcClient]:
    """Change an OpenID Connect client. Settings that are omitted or None are not changed.

    An `auth_method` of "none" erases its secret. With any other, a client without a secret gets one, which is in
    `client_secret` and shown only once. Without a grant in `grant_types`, sign-ins that use it end.

    Args:
        project_id: the project of the client.
        client_id: `oidc_…`.
        settings: see `ClientUpdate`.
    """
    body = sent_settings(ClientUpdate, settings)
    return read_one(service, ChangedOidcClient, "PATCH", _client(project_id, client_id), body)


def delete_client(service: Service, project_id: str, client_id: str) -> Call[None]:
    """Delete an OpenID Connect client. Applications that use it can no longer sign users in."""
    yield from ask_developer_api(service, "DELETE", _client(project_id, client_id))


def regenerate_client_secret(service: Service, project_id: str, client_id: str) -> Call[str]:
    """Replace the secret of an OpenID Connect client, and return it. The old one stops working immediately."""
    path = f"{_client(project_id, client_id)}/regenerate"
    return read(ClientSecret, (yield from ask_developer_api(service, "POST", path))).client_secret


def list_grants(service: Service, project_id: str, client_id: str, *, page_size: int = 50) -> Pages[OidcGrant]:
    """Iterate over the sign-ins at a client that can be ended, the latest first; pages are read as needed.

    These are the sign-ins with a refresh token, or all of them if the client has a `backchannel_logout_uri`.

    Args:
        service: given by the client.
        project_id: the project of the client.
        client_id: `oidc_…`.
        page_size: number of items per request, 1 to 200.
    """
    path = f"{_client(project_id, client_id)}/grants"
    return Pages(service, path, {"limit": page_size}, "grants", OidcGrant)


def end_grant(service: Service, project_id: str, client_id: str, grant_id: str) -> Call[None]:
    """Sign a user out of a client.

    Its tokens stop working immediately, and its `backchannel_logout_uri` is notified.
    """
    yield from ask_developer_api(service, "DELETE", f"{_client(project_id, client_id)}/grants/{path_id(grant_id)}")


def _clients(project_id: str) -> str:
    return f"/projects/{path_id(project_id)}/clients"


def _client(project_id: str, client_id: str) -> str:
    return f"{_clients(project_id)}/{path_id(client_id)}"
