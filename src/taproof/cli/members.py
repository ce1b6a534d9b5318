"""`taproof members`: the developers who share a project, and the invitations to it."""

from typing import Annotated, Final, cast

import typer

from taproof.cli.command import group
from taproof.cli.developer_api import CallRunner, Output, ProjectId, Yes, api_command, confirm, list_output
from taproof.cli.output import Column, print_secrets
from taproof.contract.member import Role
from taproof.core.errors import MemberNotFound
from taproof.core.names import visible_name
from taproof.sdk import member_calls

commands: Final = group("members", "Manage the members of projects.")

MemberName = Annotated[
    str, typer.Argument(metavar="MEMBER", help="The e-mail address or the id that `members list` shows.")
]
RoleName = Annotated[str, typer.Argument(metavar="ROLE", help="owner, developer or viewer.")]


@api_command(commands, "list")
async def list_members(api: CallRunner, project_id: ProjectId) -> Output:
    """List the members of a project, in the order in which they joined."""
    answer = await api.call(member_calls.list_members, project_id)
    columns: dict[str, Column] = {
        "email": "email",
        "role": "role",
        "joined": "joined_at",
        "invited by": "invited_by",
        "id": "developer_id",
    }
    return list_output(answer, "members", columns, empty="There are no members.")


@api_command(commands, "invite", "base_url")
async def invite_member(
    api: CallRunner,
    project_id: ProjectId,
    *,
    role: Annotated[
        str, typer.Option(metavar="ROLE", help="The new member's role: owner, developer or viewer.")
    ] = "developer",
) -> Output:
    """Print a one-time link that makes a developer a member. It is shown only once."""
    answer = await api.call(member_calls.create_member_invitation, project_id, cast("Role", role))

    def show() -> None:
        until, link = visible_name(answer["expires_at"]), visible_name(answer["link"])
        typer.echo(f"The first developer who uses this link becomes a member, role {role}. It works until {until}.")
        print_secrets([("Link", link)])
        if link.startswith(("http://127.0.0.1", "http://localhost")):
            typer.echo("The link leads to this machine only. If the service has another address, set TAPROOF_BASE_URL.")

    return Output(answer, show)


@api_command(commands, "invitations")
async def list_invitations(api: CallRunner, project_id: ProjectId) -> Output:
    """List the open invitations of a project, newest first. Their links are not shown."""
    answer = await api.call(member_calls.list_member_invitations, project_id)
    columns: dict[str, Column] = {
        "id": "id",
        "role": "role",
        "invited by": "invited_by",
        "created": "created_at",
        "expires": "expires_at",
    }
    empty = f"There are no open invitations. Create one with: taproof members invite {project_id}"
    return list_output(answer, "invitations", columns, empty=empty)


@api_command(commands, "revoke-invitation")
async def revoke_invitation(
    api: CallRunner,
    project_id: ProjectId,
    invitation_id: Annotated[
        str, typer.Argument(metavar="INVITATION_ID", help="The id that `members invitations` shows: minv_…")
    ],
    *,
    yes: Yes = False,
) -> Output:
    """Revoke an invitation. Its link stops working immediately."""
    confirm(f"Revoke the invitation {invitation_id}?", yes=yes)
    answer = await api.call(member_calls.delete_member_invitation, project_id, invitation_id)
    return Output(answer, lambda: typer.echo(f"Revoked {invitation_id}."))


@api_command(commands, "set-role")
async def update_member(api: CallRunner, project_id: ProjectId, member: MemberName, role: RoleName) -> Output:
    """Give a member another role. The only owner keeps their role."""
    developer_id = await _developer_id(api, project_id, member)
    answer = await api.call(member_calls.update_member, project_id, developer_id, cast("Role", role))
    return Output(answer, lambda: typer.echo(f"{member} now has the role {role}."))


@api_command(commands, "remove")
async def remove_member(api: CallRunner, project_id: ProjectId, member: MemberName, *, yes: Yes = False) -> Output:
    """Remove a member from a project. The only owner cannot be removed."""
    developer_id = await _developer_id(api, project_id, member)
    confirm(f"Remove {member} from {project_id}?", yes=yes)
    answer = await api.call(member_calls.delete_member, project_id, developer_id)

    def show() -> None:
        typer.echo(f"Removed {member}.")
        typer.echo(f"They may know the project's secrets. To replace them: taproof projects regenerate {project_id}")

    return Output(answer, show)


async def _developer_id(api: CallRunner, project_id: str, member: str) -> str:
    """Return the id of a member, who can be named by e-mail address."""
    if "@" not in member:
        return member
    answer = await api.call(member_calls.list_members, project_id)
    for each in answer["members"]:
        if each["email"].casefold() == member.casefold():
            return str(each["developer_id"])
    raise MemberNotFound
