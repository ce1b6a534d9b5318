"""The people who sign in to a project."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from taproof.contract.fields import TIME, Field


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectUser:
    """A user who signed in to a project. The names are those of the last sign-in."""

    messenger_id: Annotated[str, Field(example="123456789")]
    messenger_name: Annotated[str, Field(example="Ada Lovelace")]
    messenger_username: Annotated[str | None, Field("null: the user has no username.", example="ada")]
    first_sign_in_at: Annotated[datetime, TIME]
    last_sign_in_at: Annotated[datetime, TIME]
    sign_ins: Annotated[int, Field("How often the user confirmed a sign-in.", example=12)]
    reports: Annotated[int, Field("How many of the stored sign-ins the user reported as not theirs.", example=0)]
