"""Developers' accounts, and how much of their plans they use."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, get_args

from taproof.contract.fields import TIME, Field
from taproof.contract.member import MEMBER_ID

Plan = Literal["free", "pro", "business"]
"""The plan of a developer's account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """How much of their plan a developer uses."""

    projects: Annotated[int, Field(example=2)]
    projects_limit: Annotated[int | None, Field("null: no limit.", example=3)]
    sign_ins_this_month: Annotated[
        int,
        Field(
            "Confirmed sign-ins that were started in this calendar month (UTC). Each user counts once a day across all "
            "projects.",
            example=812,
        ),
    ]
    sign_ins_limit: Annotated[int | None, Field("null: no limit.", example=1000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeveloperAccount:
    """A developer's account."""

    id: Annotated[str, Field(example=MEMBER_ID.example)]
    email: Annotated[str, Field(example="ada@example.com")]
    created_at: Annotated[datetime, TIME]
    plan: Annotated[str, Field(example="free", limits={"enum": list(get_args(Plan))})]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account(DeveloperAccount):
    """The account that an access token belongs to."""

    usage: Usage
