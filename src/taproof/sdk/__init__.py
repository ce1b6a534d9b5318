"""The SDK, which applications import. It needs only PyJWT, and urllib3 for `Client`, but nothing of the server.

`proof.py` checks the proof that a browser sends, and `guard.py` accepts each proof only once. `webhook.py` checks the
webhooks of the service. `client.py` and `async_client.py` call the service. `session_calls.py` and `developer_calls.py`
define the calls without input or output, with the retries of `retries.py`. `reading.py` turns the answers into the
values of `results.py`. The package `taproof` exports the same names.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from taproof.sdk.api_errors import (
    AuthenticationFailed,
    ConnectionFailed,
    InvalidRequest,
    NotFound,
    RateLimited,
    ServiceUnavailable,
    TaproofApiError,
    UnexpectedAnswer,
)
from taproof.sdk.code_challenge import code_challenge, new_code_verifier
from taproof.sdk.guard import MemoryGuard, SingleUseGuard, SqliteGuard
from taproof.sdk.proof import (
    Identity,
    ProofAlreadyUsed,
    ProofError,
    ProofExpired,
    ProofMalformed,
    ProofNotYetValid,
    ProofSignatureInvalid,
    ProofWrongProject,
    verify_proof,
)
from taproof.sdk.webhook import (
    WebhookError,
    WebhookEvent,
    WebhookFromFuture,
    WebhookMalformed,
    WebhookSignatureInvalid,
    WebhookTooOld,
    verify_webhook,
)

if TYPE_CHECKING:
    from taproof.sdk.async_client import AsyncClient
    from taproof.sdk.client import Client
    from taproof.sdk.results import (
        AccessToken,
        Account,
        Analytics,
        AnalyticsDay,
        AnalyticsFunnel,
        AuditEntry,
        CreatedAccessToken,
        CreatedProject,
        Delivery,
        DeliveryAttempt,
        Project,
        ProjectName,
        ProjectSecrets,
        Session,
        Usage,
        WebhookSecret,
        WebhookTurnedOff,
    )
    from taproof.sdk.session_calls import MessengerUser, SignIn, SignInResult, SignInStatus

__all__ = [
    "AccessToken",
    "Account",
    "Analytics",
    "AnalyticsDay",
    "AnalyticsFunnel",
    "AsyncClient",
    "AuditEntry",
    "AuthenticationFailed",
    "Client",
    "ConnectionFailed",
    "CreatedAccessToken",
    "CreatedProject",
    "Delivery",
    "DeliveryAttempt",
    "Identity",
    "InvalidRequest",
    "MemoryGuard",
    "MessengerUser",
    "NotFound",
    "Project",
    "ProjectName",
    "ProjectSecrets",
    "ProofAlreadyUsed",
    "ProofError",
    "ProofExpired",
    "ProofMalformed",
    "ProofNotYetValid",
    "ProofSignatureInvalid",
    "ProofWrongProject",
    "RateLimited",
    "ServiceUnavailable",
    "Session",
    "SignIn",
    "SignInResult",
    "SignInStatus",
    "SingleUseGuard",
    "SqliteGuard",
    "TaproofApiError",
    "UnexpectedAnswer",
    "Usage",
    "WebhookError",
    "WebhookEvent",
    "WebhookFromFuture",
    "WebhookMalformed",
    "WebhookSecret",
    "WebhookSignatureInvalid",
    "WebhookTooOld",
    "WebhookTurnedOff",
    "code_challenge",
    "new_code_verifier",
    "verify_proof",
    "verify_webhook",
]

_OF_CLIENTS: Final = ("client", "async_client", "session_calls", "results")
"""Imported on first use of one of their names, so that checking proofs does not load them."""

if not TYPE_CHECKING:  # With `__getattr__`, a type checker would assume that every name exists.

    def __getattr__(name: str) -> Any:
        """Return a name of the client modules and import its module."""
        if name in __all__:
            for module in _OF_CLIENTS:
                found = getattr(import_module(f"taproof.sdk.{module}"), name, None)
                if found is not None:
                    return globals().setdefault(name, found)
        raise AttributeError(f"module 'taproof.sdk' has no attribute {name!r}")

    def __dir__() -> list[str]:
        """Return all names, including those that are imported on first use."""
        return sorted({*globals(), *__all__})
