"""The errors of OAuth 2.0 and OpenID Connect, as their RFCs name them.

Sources: RFC 6749, sections 4.1.2.1 and 5.2; RFC 6750, section 3.1; RFC 8628, section 3.5; OpenID Connect Core 1.0,
section 3.1.2.6.
"""

from collections.abc import Mapping
from typing import Final, Literal

OAuthErrorCode = Literal[
    "access_denied",
    "authorization_pending",
    "expired_token",
    "invalid_client",
    "invalid_grant",
    "invalid_request",
    "invalid_request_uri",
    "invalid_scope",
    "invalid_token",
    "login_required",
    "registration_not_supported",
    "request_not_supported",
    "request_uri_not_supported",
    "server_error",
    "slow_down",
    "temporarily_unavailable",
    "unauthorized_client",
    "unsupported_grant_type",
    "unsupported_response_type",
]

PageFault = Literal["unknown_client", "redirect_uri", "request"]

_STATUSES: Final[Mapping[str, int]] = {
    "invalid_client": 401,
    "invalid_token": 401,
    "server_error": 500,
    "temporarily_unavailable": 503,
}
"""The HTTP status of each error that is not 400."""


class OAuthError(Exception):
    """An error response of an OAuth endpoint.

    Args:
        error: the code that the RFC defines.
        description: one sentence for the developer of the application. It contains only printable ASCII without quotes
            and backslashes (RFC 6749, section 5.2).
    """

    def __init__(self, error: OAuthErrorCode, description: str) -> None:
        super().__init__(description)
        self.error: Final = error
        self.description: Final = description

    @property
    def status(self) -> int:
        """The HTTP status of the response."""
        return _STATUSES.get(self.error, 400)

    def to_answer(self) -> dict[str, str]:
        """Return the body of the error response (RFC 6749, section 5.2)."""
        return {"error": self.error, "error_description": self.description}


class ClientRefused(OAuthError):
    """A client that exists, but did not prove its identity (RFC 6749, section 5.2: `invalid_client`).

    Args:
        client_id: the client.
        used: how the request authenticated: `basic`, `post` or `none`.
        expected: the client's `auth_method`.
        description: what to change.
        is_proven: whether its secret was right, so that only the way in which it was sent is wrong.
    """

    def __init__(self, client_id: str, used: str, expected: str, description: str, *, is_proven: bool = False) -> None:
        super().__init__("invalid_client", description)
        self.client_id: Final = client_id
        self.used: Final = used
        self.expected: Final = expected
        self.is_proven: Final = is_proven


class RefusedOnPage(OAuthError):
    """An authorization request that must not be answered with a redirect.

    The client or the redirect URI is wrong, so the redirect could lead to an attacker (RFC 6749, section 4.1.2.1).

    Args:
        fault: what the page explains to the user.
    """

    def __init__(self, fault: PageFault, error: OAuthErrorCode, description: str) -> None:
        super().__init__(error, description)
        self.fault: Final = fault
