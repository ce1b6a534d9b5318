"""The provider's metadata (OpenID Connect Discovery 1.0, section 3; RFC 8414)."""

from typing import Any

from taproof.core.code_challenge import METHOD
from taproof.core.oidc.clients import SIGNING_ALGS
from taproof.core.oidc.requests import RESPONSE_MODES, SCOPES

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
CODE_GRANT = "authorization_code"
REFRESH_GRANT = "refresh_token"

_WITH_SECRET = ("client_secret_basic", "client_secret_post")


def provider_metadata(issuer: str) -> dict[str, Any]:
    """Return the metadata of the provider at `issuer`, which is the service's base URL."""
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/oidc/authorize",
        "token_endpoint": f"{issuer}/oidc/token",
        "userinfo_endpoint": f"{issuer}/oidc/userinfo",
        "jwks_uri": f"{issuer}/oidc/jwks",
        "pushed_authorization_request_endpoint": f"{issuer}/oidc/par",
        "device_authorization_endpoint": f"{issuer}/oidc/device_authorization",
        "revocation_endpoint": f"{issuer}/oidc/revoke",
        "end_session_endpoint": f"{issuer}/oidc/end_session",
        "introspection_endpoint": f"{issuer}/oidc/introspect",
        "scopes_supported": list(SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": list(RESPONSE_MODES),
        "grant_types_supported": [CODE_GRANT, REFRESH_GRANT, DEVICE_GRANT],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": list(SIGNING_ALGS),
        "token_endpoint_auth_methods_supported": [*_WITH_SECRET, "none"],
        "revocation_endpoint_auth_methods_supported": [*_WITH_SECRET, "none"],
        "introspection_endpoint_auth_methods_supported": list(_WITH_SECRET),
        "code_challenge_methods_supported": [METHOD],
        "claims_supported": [
            *("iss", "sub", "aud", "exp", "iat", "auth_time", "nonce", "at_hash", "amr", "sid"),
            *("name", "preferred_username", "updated_at", "phone_number", "phone_number_verified"),
            *("email", "email_verified", "groups"),
        ],
        "claims_parameter_supported": False,
        "request_parameter_supported": False,
        "request_uri_parameter_supported": False,
        "require_pushed_authorization_requests": False,
        "authorization_response_iss_parameter_supported": True,
        "backchannel_logout_supported": True,
        "backchannel_logout_session_supported": True,
        "prompt_values_supported": ["none", "login", "consent", "select_account"],
        "ui_locales_supported": ["ar", "en", "es", "fa", "id", "pt", "ru", "tr", "uk", "uz"],
    }
