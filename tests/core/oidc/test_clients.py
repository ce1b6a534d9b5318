"""The settings of an OpenID Connect client are checked."""

import pytest

from taproof.core.errors import InvalidRequest
from taproof.core.oidc.clients import CLIENT_DEFAULTS, ClientChanges, checked_changes


def test_changes_are_stored_trimmed_and_without_duplicates() -> None:
    """A field that is None stays None, so that it remains unchanged."""
    uri = "https://app.example/cb"
    given = ClientChanges("  Grafana ", (uri, uri), "post", "ES256", "synthetic", 300, ("device_code",) * 2)
    expected = ClientChanges("Grafana", (uri,), "post", "ES256", "synthetic", 300, ("device_code",))
    assert checked_changes(given) == expected
    assert checked_changes(ClientChanges()) == ClientChanges()
    assert ClientChanges().given() == {}
    assert checked_changes(CLIENT_DEFAULTS).given() == {
        "auth_method": "any",
        "signing_alg": "RS256",
        "email": "none",
        "id_token_lifetime": 3600,
        "grant_types": ("authorization_code",),
        "groups": {},
        "allowed_groups": (),
        "post_logout_redirect_uris": (),
        "backchannel_logout_uri": "",
    }


IDS = tuple(map(str, range(251)))
WRONG = (
    (ClientChanges(name=" "), "name must have 1 to 100 characters"),
    (ClientChanges(name="a" * 101), "name must have 1 to 100 characters"),
    (ClientChanges(name="a\nb"), "name must not contain control characters"),
    (ClientChanges(redirect_uris=()), "redirect_uris must contain 1 to 20"),
    (ClientChanges(redirect_uris=("x",)), "redirect_uris: number 1 of the list must be absolute"),
    (ClientChanges(id_token_lifetime=299), "id_token_lifetime must be a whole number of seconds from 300 to 86400"),
    (ClientChanges(id_token_lifetime=86401), "id_token_lifetime"),
    (ClientChanges(auth_method="private_key_jwt"), "auth_method must be one of: any, basic, post, none"),  # type: ignore[arg-type]
    (ClientChanges(signing_alg="HS256"), "signing_alg must be one of: RS256, ES256"),  # type: ignore[arg-type]
    (ClientChanges(grant_types=()), "grant_types must contain one or more of: authorization_code, device_code"),
    (ClientChanges(groups={"": ()}), "The name of a group must have 1 to 64"),
    (ClientChanges(groups={"a" * 65: ()}), "The name of a group"),
    (ClientChanges(groups={"a\n": ()}), "The name of a group"),
    (ClientChanges(groups={" a": ()}), "The name of a group"),
    (ClientChanges(groups={"a": "1"}), 'The group "a" must be a list of messenger ids'),  # type: ignore[dict-item]
    (ClientChanges(groups={"a": ("x",)}), 'The group "a" must be a list'),
    (ClientChanges(groups={"a": (1,)}), 'The group "a" must be a list'),  # type: ignore[dict-item]
    (ClientChanges(groups={f"g{each}": () for each in range(51)}), "groups can contain at most 50 groups"),
    (ClientChanges(groups={"a": IDS, "b": IDS[:250]}), "groups can contain at most 500 messenger ids"),
    (ClientChanges(grant_types=("implicit",)), "grant_types must contain one or more of"),  # type: ignore[arg-type]
    (ClientChanges(grant_types=("refresh_token",)), "grant_types must contain authorization_code or device_code"),
    (ClientChanges(email="real"), "email must be one of: none, synthetic"),  # type: ignore[arg-type]
)


def test_a_wrong_field_is_refused_with_its_name(subtests: pytest.Subtests) -> None:
    """The sentence begins with the field, so that a person can correct it."""
    for changes, problem in WRONG:
        with subtests.test(problem), pytest.raises(InvalidRequest, match=f"^{problem}"):
            checked_changes(changes)
