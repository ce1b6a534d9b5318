"""The audit log as the developer API answers it: `GET /api/v1/dev/audit`."""

import json
from typing import Any, get_args

from pydantic import BaseModel, Field

from taproof.api.schemas import Time
from taproof.core.accounts import AuditAction, AuditEntry, Via
from taproof.core.clock import iso8601
from taproof.service.audit import AuditPage


class AuditEntryAnswer(BaseModel):
    """An entry of the audit log."""

    id: str = Field(examples=["aud_2Wq9XnBd40RtYcKsLzVh7M"])
    created_at: Time
    # Texts, not enumerations: while a newer release is rolled out, an older node shows what only that one knows.
    action: str = Field(
        description=f"What was done: one of {', '.join(get_args(AuditAction))}; new ones may come.",
        examples=["project.updated"],
    )
    actor: str = Field(
        description='Who did it: an e-mail address, "command line" for the operator, or "Taproof" for the service '
        "itself.",
        examples=["ada@example.com"],
    )
    via: str = Field(description=f"How: {', '.join(get_args(Via))}; new ones may come.", examples=["access_token"])
    via_id: str = Field(
        description='The id of the access token or of the console session; "" for the others.',
        examples=["tok_5Nc8RjXw1ZaQe07UbKyLvT"],
    )
    address: str = Field(description='The IP address that the call came from, or "".', examples=["203.0.113.7"])
    subject: str = Field(
        description="The id of what was changed: of a project, an access token, …",
        examples=["proj_4KsdT0aQm2vXc81LpZwEyB"],
    )
    details: dict[str, Any] = Field(
        description="What was set; its fields depend on the action. Never a secret: of a webhook URL it is scheme, "
        "host and port only.",
        examples=[{"webhook_url": "https://example.com", "is_active": True}],
    )


class AuditPageAnswer(BaseModel):
    """A page of the audit log, newest entry first."""

    entries: list[AuditEntryAnswer]
    next_cursor: str | None = Field(description="Send it as cursor for the next page; null on the last.")


def show_page(found: AuditPage) -> AuditPageAnswer:
    """Show a page of the audit log."""
    return AuditPageAnswer(entries=[show_entry(entry) for entry in found.entries], next_cursor=found.next_cursor)


def show_entry(found: AuditEntry) -> AuditEntryAnswer:
    """Show an entry of the audit log."""
    return AuditEntryAnswer(
        id=found.id,
        created_at=iso8601(found.created_at),
        action=found.action,
        actor=found.actor,
        via=found.via,
        via_id=found.via_id,
        address=found.address,
        subject=found.subject,
        details=json.loads(found.details),
    )
