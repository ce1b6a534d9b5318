"""The audit log: who changed what, when, and from where."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal, get_args

from taproof.contract.fields import TIME, Field
from taproof.contract.project import PROJECT_ID

Via = Literal["access_token", "console", "login", "invitation", "command_line", "service"]
"""How an action was made: through the API, in the console, with `taproof login` (in a terminal, using only the
messenger), by accepting an invitation, on the operator's command line, or by the service itself."""

AuditAction = Literal[
    "developer.created",
    "developer.invited",
    "developer.identity_bound",
    "developer.identity_unbound",
    "developer.shut_out",
    "developer.removed",
    "invitation.revoked",
    "console.signed_in",
    "console.signed_out",
    "console.session_revoked",
    "console.signed_out_everywhere",
    "access_token.created",
    "access_token.revoked",
    "project.created",
    "project.updated",
    "project.secrets_regenerated",
    "project.deleted",
    "member.invited",
    "member.invitation_revoked",
    "member.joined",
    "member.role_changed",
    "member.removed",
    "client.created",
    "client.updated",
    "client.secret_regenerated",
    "client.deleted",
    "client.grant_ended",
    "webhook_secret.rotated",
    "webhook_secret.promoted",
    "webhook_secret.revealed",
    "webhook.turned_off",
    "delivery.resent",
    "developer.plan_changed",
    "bot.set",
    "bot.removed",
    "bot.broken",
    "signing_keys.replaced",
    "user.erased",
    "audit.purged",
]
"""The action of an audit log entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """An entry of the audit log."""

    id: Annotated[str, Field(example="aud_2Wq9XnBd40RtYcKsLzVh7M")]
    created_at: Annotated[datetime, TIME]
    # Not limited to these values: during a rolling update, an older node can read actions that only newer nodes know.
    action: Annotated[
        str,
        Field(
            f"The action, one of {', '.join(get_args(AuditAction))}. Newer releases may add more.",
            example="project.updated",
        ),
    ]
    actor: Annotated[
        str,
        Field(
            'An e-mail address, "command line" for the operator, or "Taproof" for the service itself.',
            example="ada@example.com",
        ),
    ]
    via: Annotated[
        str,
        Field(
            f"How the change was made: {', '.join(get_args(Via))}. Newer releases may add more.",
            example="access_token",
        ),
    ]
    via_id: Annotated[
        str,
        Field(
            'The id of the access token or console session; "" for other values of via, and if another member acted in '
            "a project of which you are no owner.",
            example="tok_5Nc8RjXw1ZaQe07UbKyLvT",
        ),
    ]
    address: Annotated[str, Field('The IP address of the caller, or "", as for via_id.', example="203.0.113.7")]
    subject: Annotated[
        str,
        Field("The id of the changed object: a project, an access token, …", example=PROJECT_ID.example),
    ]
    details: Annotated[
        dict[str, Any],
        Field(
            "The new values; the fields depend on the action. Secrets are never included. A webhook URL is reduced to "
            "its scheme, host and port.",
            example={"webhook_url": "https://example.com", "is_active": True},
        ),
    ] = field(hash=False)
