"""The applications that sign in with OpenID Connect: the clients of a project, and what a developer may set."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, get_args

from taproof.contract.client import (
    MAX_LIFETIME,
    MIN_LIFETIME,
    AuthMethod,
    ClientSettings,
    EmailClaim,
    GrantType,
    SigningAlg,
)
from taproof.contract.fields import described, stored_settings
from taproof.contract.project import SameDevice
from taproof.core.errors import InvalidRequest
from taproof.core.names import name_problem
from taproof.core.oidc.groups import NO_GROUPS, Groups, read_allowed_groups, read_groups
from taproof.core.oidc.redirect_uris import read_logout_uri, read_post_logout_uris, read_redirect_uris
from taproof.core.project_texts import NO_TEXTS, ProjectTexts

AUTH_METHODS: Final[tuple[AuthMethod, ...]] = get_args(AuthMethod)
SIGNING_ALGS: Final[tuple[SigningAlg, ...]] = get_args(SigningAlg)
EMAIL_CLAIMS: Final[tuple[EmailClaim, ...]] = get_args(EmailClaim)
GRANT_TYPES: Final[tuple[GrantType, ...]] = get_args(GrantType)
CLIENT_LIMIT: Final = 50
"""The maximum number of clients per project."""


@dataclass(frozen=True, slots=True)
class OidcClient:
    """A client, without its secret: only a SHA-256 of it is stored.

    `id_token_lifetime` is in seconds, `created_at` in ms. `secret_preview` is None for a public client.
    """

    id: str
    project_id: str
    name: str
    redirect_uris: tuple[str, ...]
    auth_method: AuthMethod
    signing_alg: SigningAlg
    email: EmailClaim
    id_token_lifetime: int
    grant_types: tuple[GrantType, ...]
    secret_preview: str | None
    created_at: int
    post_logout_redirect_uris: tuple[str, ...] = ()
    backchannel_logout_uri: str = ""
    groups: Groups = NO_GROUPS


class ClientSecret(NamedTuple):
    """A client's secret as it is stored: its SHA-256, and the part that may be shown again."""

    hash: bytes
    preview: str


class SignInClient(NamedTuple):
    """A client with the data of its project that a sign-in needs.

    `secret_hash` is None for a public client. `devices_since` is the time (ms) since which the client has had the grant
    type `device_code` without interruption; None without it. `version` counts the changes that end all grants of the
    client's users, such as a new secret.
    """

    client: OidcClient
    secret_hash: bytes | None
    devices_since: int | None
    developer_id: str
    project_name: str
    is_active: bool
    public_access: bool
    same_device: SameDevice
    texts: ProjectTexts = NO_TEXTS
    logo_url: str = ""
    version: int = 0

    @property
    def has_access(self) -> bool:
        """Return whether the client may sign users in. Without a secret, it needs a project with public access."""
        return self.public_access or self.client.auth_method != "none"

    def can_finish(self, grant_type: GrantType, begun_at: int) -> bool:
        """Return whether the client has the grant type of a sign-in that began at `begun_at` (ms).

        Removing the grant type `device_code` ends the sign-ins of devices. They stay ended if the client gets it again.
        """
        if grant_type == "device_code":
            return self.devices_since is not None and self.devices_since <= begun_at
        return grant_type in self.client.grant_types


@dataclass(frozen=True, slots=True)
class ClientChanges:
    """The fields that a developer can set. None leaves a field unchanged, or at its default in a new client."""

    name: str | None = None
    redirect_uris: tuple[str, ...] | None = None
    auth_method: AuthMethod | None = None
    signing_alg: SigningAlg | None = None
    email: EmailClaim | None = None
    id_token_lifetime: int | None = None
    grant_types: tuple[GrantType, ...] | None = None
    post_logout_redirect_uris: tuple[str, ...] | None = None
    backchannel_logout_uri: str | None = None
    groups: Mapping[str, tuple[str, ...]] | None = None
    allowed_groups: tuple[str, ...] | None = None

    def given(self) -> dict[str, Any]:
        """Return the fields that are not None."""
        fields = ((field.name, getattr(self, field.name)) for field in dataclasses.fields(self))
        return {name: value for name, value in fields if value is not None}


def client_changes(settings: Mapping[str, Any]) -> ClientChanges:
    """Return the changes to the given settings, whose values are those of the API."""
    return ClientChanges(**stored_settings(settings))


CLIENT_DEFAULTS: Final = client_changes({name: field.default for name, (_, field) in described(ClientSettings).items()})
"""The settings of a new client for which the developer gives none."""


def checked_changes(changes: ClientChanges) -> ClientChanges:
    """Return changes as they will be stored.

    Raises:
        InvalidRequest: a field is invalid; the error's sentence names it.
    """
    name = None if changes.name is None else changes.name.strip()
    if name is not None and (problem := name_problem(name)) is not None:
        raise InvalidRequest(f"name {problem}.")
    uris = None if changes.redirect_uris is None else read_redirect_uris(changes.redirect_uris)
    lifetime = changes.id_token_lifetime
    if lifetime is not None and not MIN_LIFETIME <= lifetime <= MAX_LIFETIME:
        raise InvalidRequest(
            f"id_token_lifetime must be a whole number of seconds from {MIN_LIFETIME} to {MAX_LIFETIME}."
        )
    for field, value, accepted in (
        ("auth_method", changes.auth_method, AUTH_METHODS),
        ("signing_alg", changes.signing_alg, SIGNING_ALGS),
        ("email", changes.email, EMAIL_CLAIMS),
    ):
        if value is not None and value not in accepted:
            raise InvalidRequest(f"{field} must be one of: {', '.join(accepted)}.")
    grants = None if changes.grant_types is None else _read_grant_types(changes.grant_types)
    groups = None if changes.groups is None else read_groups(changes.groups)
    allowed = None if changes.allowed_groups is None else read_allowed_groups(changes.allowed_groups)
    ends, logout = changes.post_logout_redirect_uris, changes.backchannel_logout_uri
    return dataclasses.replace(
        changes,
        name=name,
        redirect_uris=uris,
        grant_types=grants,
        post_logout_redirect_uris=None if ends is None else read_post_logout_uris(ends),
        backchannel_logout_uri=None if logout is None else read_logout_uri(logout),
        groups=groups,
        allowed_groups=allowed,
    )


def _read_grant_types(given: tuple[str, ...]) -> tuple[GrantType, ...]:
    """Return the grants in their usual order, each once."""
    if not given or not set(given) <= set(GRANT_TYPES):
        raise InvalidRequest(f"grant_types must contain one or more of: {', '.join(GRANT_TYPES)}.")
    if set(given) == {"refresh_token"}:
        raise InvalidRequest(
            "grant_types must contain authorization_code or device_code beside refresh_token, because users "
            "must sign in first."
        )
    return tuple(grant for grant in GRANT_TYPES if grant in given)
