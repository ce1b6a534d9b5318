"""The form of an OpenID Connect client: its values, the input, and the resulting changes."""

from typing import Any, Final

from taproof.console.forms import Form
from taproof.core.errors import InvalidRequest
from taproof.core.names import visible_name
from taproof.core.oidc.clients import CLIENT_DEFAULTS, GRANT_TYPES, ClientChanges, OidcClient

LABELS: Final = {
    "name ": "The name ",
    "redirect_uris": "Redirect URIs",
    "post_logout_redirect_uris": "Post-logout redirect URIs",
    "backchannel_logout_uri ": "The back-channel logout URI ",
    "id_token_lifetime ": "The lifetime of ID tokens ",
    "grant_types ": "How users sign in ",
    "groups can": "A client can",
    "allowed_groups contains": "The groups that may sign in contain",
}
"""The form's labels of fields, by the beginning of an error's sentence."""
NEW: Final = {"name": "", "redirect_uris": ()} | {
    name: value for name, value in CLIENT_DEFAULTS.given().items() if "groups" not in name
}
"""The form values for a new client, which has no groups yet."""
_LISTS: Final = ("redirect_uris", "post_logout_redirect_uris")
_CHOICES: Final = ("auth_method", "signing_alg", "email")


def shown(client: OidcClient) -> dict[str, Any]:
    """Return the form values for a client."""
    values = {field: getattr(client, field) for field in NEW}
    return values | {"name": visible_name(client.name)}


def typed(form: Form, prefix: str = "") -> dict[str, Any]:
    """Return the input, to show it again. With the prefix `was_`, return the values that the form showed."""
    grants = tuple(form["was_grant_types"].split()) if prefix else tuple(each for each in GRANT_TYPES if form[each])
    return {
        "name": visible_name(form[f"{prefix}name"]),
        **{field: tuple(form[prefix + field].split()) for field in _LISTS},
        "backchannel_logout_uri": form[f"{prefix}backchannel_logout_uri"].strip(),
        **{field: form[prefix + field] for field in (*_CHOICES, "id_token_lifetime")},
        "grant_types": grants,
    }


def new(form: Form) -> ClientChanges:
    """Return the settings of a new client. Raise InvalidRequest if the lifetime is not a number."""
    return _changes(typed(form) | {"name": form["name"]})


def changes(form: Form) -> ClientChanges:
    """Return only the fields that the visitor changed. Raise InvalidRequest if the lifetime is not a number.

    Another page can have changed the other fields meanwhile.
    """
    # Use the name as typed: invisible characters are refused, not dropped.
    before = typed(form, "was_") | {"name": form["was_name"]}
    after = typed(form) | {"name": form["name"]}
    return _changes({field: value for field, value in after.items() if value != before[field]})


def _changes(values: dict[str, Any]) -> ClientChanges:
    lifetime = values.get("id_token_lifetime")
    if lifetime is not None:
        if not (lifetime.isascii() and lifetime.isdigit() and len(lifetime) <= 9):
            raise InvalidRequest("id_token_lifetime must be a whole number of seconds.")
        values = values | {"id_token_lifetime": int(lifetime)}
    return ClientChanges(**values)
