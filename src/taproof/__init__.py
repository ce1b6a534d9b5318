"""Taproof: sign users in with their messenger account. This module exports the SDK's names, imported on first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
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
    from taproof.sdk.async_client import AsyncClient
    from taproof.sdk.client import Client
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
    from taproof.sdk.results import (
        AccessToken,
        Account,
        Analytics,
        AnalyticsDay,
        AnalyticsFunnel,
        AuditEntry,
        ChangedOidcClient,
        CreatedAccessToken,
        CreatedMemberInvitation,
        CreatedProject,
        Delivery,
        DeliveryAttempt,
        Member,
        MemberInvitation,
        OidcClient,
        Project,
        ProjectName,
        ProjectSecrets,
        ProjectUser,
        Session,
        Usage,
        WebhookSecret,
        WebhookTurnedOff,
    )
    from taproof.sdk.session_calls import MessengerUser, SignIn, SignInResult, SignInStatus
    from taproof.sdk.webhook import (
        WebhookError,
        WebhookEvent,
        WebhookFromFuture,
        WebhookMalformed,
        WebhookSignatureInvalid,
        WebhookTooOld,
        verify_webhook,
    )

__all__ = [
    "AccessToken",
    "Account",
    "Analytics",
    "AnalyticsDay",
    "AnalyticsFunnel",
    "AsyncClient",
    "AuditEntry",
    "AuthenticationFailed",
    "ChangedOidcClient",
    "Client",
    "ConnectionFailed",
    "CreatedAccessToken",
    "CreatedMemberInvitation",
    "CreatedProject",
    "Delivery",
    "DeliveryAttempt",
    "Identity",
    "InvalidRequest",
    "Member",
    "MemberInvitation",
    "MemoryGuard",
    "MessengerUser",
    "NotFound",
    "OidcClient",
    "Project",
    "ProjectName",
    "ProjectSecrets",
    "ProjectUser",
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

_MODULES: Final = (
    "code_challenge",
    "guard",
    "proof",
    "webhook",
    "api_errors",
    "results",
    "session_calls",
    "client",
    "async_client",
)
"""The modules that define these names. The clients are last, so that checking a proof does not load them."""

if not TYPE_CHECKING:  # With `__getattr__`, a type checker would assume that every name exists.

    def __getattr__(name: str) -> Any:
        """Return an SDK name from the module that defines it. The service's own commands use no such names."""
        if name in __all__:
            for module in _MODULES:
                found = getattr(import_module(f"taproof.sdk.{module}"), name, None)
                if found is not None:
                    return globals().setdefault(name, found)
        raise AttributeError(f"module 'taproof' has no attribute {name!r}")

    def __dir__() -> list[str]:
        """Return all names, including those that are not imported yet."""
        return sorted({*globals(), *__all__})
