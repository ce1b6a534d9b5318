"""The members of projects, and invitations to become one."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Final, Literal, TypedDict, get_args

from taproof.contract.fields import TIME, Field

Role = Literal["owner", "developer", "viewer"]

MEMBER_ID: Final = Field(
    "The developer's id.", example="dev_7Yh2kP0sVd93mQxAeRtU1c", limits={"pattern": "^dev_[A-Za-z0-9]{1,40}$"}
)
INVITATION_ID: Final = Field(
    "The invitation's id.", example="minv_1Zx8cVbNm5AsDfGhJkLqWe", limits={"pattern": "^minv_[A-Za-z0-9]{1,40}$"}
)
_ROLE: Final = (
    "owner: everything. developer: everything except members and deleting the project. viewer: reads everything except "
    "secrets."
)
_INVITER: Final = "The e-mail address of the inviter."


class MemberUpdate(TypedDict):
    """The new role of a member."""

    role: Annotated[Role, Field(_ROLE, example="developer")]


class NewMemberInvitation(TypedDict):
    """An invitation for one more member."""

    role: Annotated[Role, Field(_ROLE, default="developer")]


class InvitationCode(TypedDict):
    """The code of an invitation."""

    code: Annotated[
        str,
        Field("The code of the link: everything after #.", example="join_" + "a1B2c3D" * 7, limits={"maxLength": 100}),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member of a project."""

    developer_id: Annotated[str, MEMBER_ID]
    email: Annotated[str, Field(example="ada@example.com")]
    role: Annotated[str, Field(_ROLE, example="developer", limits={"enum": list(get_args(Role))})]
    joined_at: Annotated[datetime, TIME]
    invited_by: Annotated[
        str,
        Field('The e-mail address of the inviter; "" for the project\'s creator.', example="grace@example.com"),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberInvitation:
    """An open invitation, without its link."""

    id: Annotated[str, INVITATION_ID]
    role: Annotated[str, Field(_ROLE, example="developer", limits={"enum": list(get_args(Role))})]
    invited_by: Annotated[str, Field(_INVITER, example="grace@example.com")]
    created_at: Annotated[datetime, TIME]
    expires_at: Annotated[datetime, TIME]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedMemberInvitation(MemberInvitation):
    """A new invitation with its link. The link is shown only once.

    It is omitted from `repr`.
    """

    link: Annotated[
        str,
        Field(
            "Shown only once. The first developer who uses it becomes a member.",
            example="https://taproof.example.com/console/join#join_" + "a1B2c3D" * 7,
        ),
    ] = field(repr=False)
