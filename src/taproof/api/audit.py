"""The response of `GET /api/v1/dev/audit`."""

import dataclasses
import json
from typing import Any, get_args

from pydantic import BaseModel, Field

from taproof.api.schemas import Time
from taproof.core.accounts import AuditAction, AuditEntry, Via
from taproof.core.clock import iso8601


class AuditEntryAnswer(BaseModel):
    """An entry of the audit log."""

    id: str = Field(examples=["aud_2Wq9XnBd40RtYcKsLzVh7M"])
    created_at: Time
    # Strings, not enumerations: during a rolling update, an older node can read actions that only newer nodes know.
    action: str = Field(
        description=f"The action, one of {', '.join(get_args(AuditAction))}. Newer releases may add more.",
        examples=["project.updated"],
    )
    actor: str = Field(
        description='An e-mail address, "command line" for the operator, or "Taproof" for the service itself.',
        examples=["ada@example.com"],
    )
    via: str = Field(
        description=f"How the change was made: {', '.join(get_args(Via))}. Newer releases may add more.",
        examples=["access_token"],
    )
    via_id: str = Field(
        description='The id of the access token or console session; "" for other values of via, and if another '
        "member acted in a project of which you are no owner.",
        examples=["tok_5Nc8RjXw1ZaQe07UbKyLvT"],
    )
    address: str = Field(description='The IP address of the caller, or "", as for via_id.', examples=["203.0.113.7"])
    subject: str = Field(
        description="The id of the changed object: a project, an access token, …",
        examples=["proj_4KsdT0aQm2vXc81LpZwEyB"],
    )
    details: dict[str, Any] = Field(
        description="The new values; the fields depend on the action. Secrets are never included. A webhook URL is "
        "reduced to its scheme, host and port.",
        examples=[{"webhook_url": "https://example.com", "is_active": True}],
    )


class AuditPageAnswer(BaseModel):
    """A page of the audit log, newest entry first."""

    entries: list[AuditEntryAnswer]
    next_cursor: str | None = Field(description="Send it as cursor to get the next page; null on the last page.")


def show_entry(found: AuditEntry) -> AuditEntryAnswer:
    """Show an entry of the audit log."""
    fields = dataclasses.asdict(found)
    return AuditEntryAnswer(**fields | {"created_at": iso8601(found.created_at), "details": json.loads(found.details)})
