"""Taproof: sign users in with their messenger account. This module exports the SDK's names, imported on first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from taproof.contract.access_token import AccessToken, CreatedAccessToken
    from taproof.contract.account import Account, Usage
    from taproof.contract.analytics import Analytics, AnalyticsDay, AnalyticsFunnel, ProjectName
    from taproof.contract.audit import AuditEntry
    from taproof.contract.client import ChangedOidcClient, ClientSettings, ClientUpdate, OidcClient, OidcGrant
    from taproof.contract.delivery import Delivery, DeliveryAttempt
    from taproof.contract.member import CreatedMemberInvitation, Member, MemberInvitation
    from taproof.contract.project import (
        CreatedProject,
        Project,
        ProjectSecrets,
        ProjectSettings,
        ProjectUpdate,
        WebhookSecret,
        WebhookTurnedOff,
    )
    from taproof.contract.session import MessengerUser, Session, SignInStatus
    from taproof.contract.user import ProjectUser
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
    from taproof.sdk.session_calls import SignIn, SignInResult
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
    "ClientSettings",
    "ClientUpdate",
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
    "OidcGrant",
    "Project",
    "ProjectName",
    "ProjectSecrets",
    "ProjectSettings",
    "ProjectUpdate",
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
    "sdk.code_challenge",
    "sdk.guard",
    "sdk.proof",
    "sdk.webhook",
    "sdk.api_errors",
    "contract.access_token",
    "contract.account",
    "contract.analytics",
    "contract.audit",
    "contract.client",
    "contract.delivery",
    "contract.member",
    "contract.project",
    "contract.session",
    "contract.user",
    "sdk.session_calls",
    "sdk.client",
    "sdk.async_client",
)
"""The modules that define these names. The clients are last, so that checking a proof does not load them."""

if not TYPE_CHECKING:  # With `__getattr__`, a type checker would assume that every name exists.

    def __getattr__(name: str) -> Any:
        """Return an SDK name from the module that defines it. The service's own commands use no such names."""
        if name in __all__:
            for module in _MODULES:
                found = getattr(import_module(f"taproof.{module}"), name, None)
                if found is not None:
                    return globals().setdefault(name, found)
        raise AttributeError(f"module 'taproof' has no attribute {name!r}")

    def __dir__() -> list[str]:
        """Return all names, including those that are not imported yet."""
        return sorted({*globals(), *__all__})
