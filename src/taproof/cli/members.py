"""`taproof members`: the developers who share a project, and the invitations to it."""

from typing import Annotated, Final

import typer

from taproof.cli.command import group
from taproof.cli.developer_api import DeveloperCalls, Output, ProjectId, Yes, api_command, confirm, items_of
from taproof.cli.output import Column, print_items, print_secrets
from taproof.core.errors import MemberNotFound
from taproof.core.names import visible_name

commands: Final = group("members", "Manage the members of projects.")

MemberName = Annotated[
    str, typer.Argument(metavar="MEMBER", help="The e-mail address or the id that `members list` shows.")
]
RoleName = Annotated[str, typer.Argument(metavar="ROLE", help="owner, developer or viewer.")]


@api_command(commands, "list")
async def list_members(api: DeveloperCalls, project_id: ProjectId) -> Output:
    """List the members of a project, in the order in which they joined."""
    answer = await api.call("GET", ["projects", project_id, "members"])
    columns: dict[str, Column] = {
        "email": "email",
        "role": "role",
        "joined": "joined_at",
        "invited by": "invited_by",
        "id": "developer_id",
    }
    return Output(answer, lambda: print_items(columns, items_of(answer, "members"), empty="There are no members."))


@api_command(commands, "invite", "base_url")
async def invite_member(
    api: DeveloperCalls,
    project_id: ProjectId,
    *,
    role: Annotated[
        str, typer.Option(metavar="ROLE", help="The new member's role: owner, developer or viewer.")
    ] = "developer",
) -> Output:
    """Print a one-time link that makes a developer a member. It is shown only once."""
    answer = await api.call("POST", ["projects", project_id, "invitations"], {"role": role})

    def show() -> None:
        until = visible_name(str(answer.get("expires_at", "")))
        typer.echo(f"The first developer who uses this link becomes a member, role {role}. It works until {until}.")
        link = visible_name(str(answer.get("link", "")))
        print_secrets([("Link", link)])
        if link.startswith(("http://127.0.0.1", "http://localhost")):
            typer.echo("The link leads to this machine only. If the service has another address, set TAPROOF_BASE_URL.")

    return Output(answer, show)


@api_command(commands, "invitations")
async def list_invitations(api: DeveloperCalls, project_id: ProjectId) -> Output:
    """List the open invitations of a project, newest first. Their links are not shown."""
    answer = await api.call("GET", ["projects", project_id, "invitations"])
    columns: dict[str, Column] = {
        "id": "id",
        "role": "role",
        "invited by": "invited_by",
        "created": "created_at",
        "expires": "expires_at",
    }
    empty = f"There are no open invitations. Create one with: taproof members invite {project_id}"
    return Output(answer, lambda: print_items(columns, items_of(answer, "invitations"), empty=empty))


@api_command(commands, "revoke-invitation")
async def revoke_invitation(
    api: DeveloperCalls,
    project_id: ProjectId,
    invitation_id: Annotated[
        str, typer.Argument(metavar="INVITATION_ID", help="The id that `members invitations` shows: minv_…")
    ],
    *,
    yes: Yes = False,
) -> Output:
    """Revoke an invitation. Its link stops working immediately."""
    confirm(f"Revoke the invitation {invitation_id}?", yes=yes)
    answer = await api.call("DELETE", ["projects", project_id, "invitations", invitation_id])
    return Output(answer, lambda: typer.echo(f"Revoked {invitation_id}."))


@api_command(commands, "set-role")
async def update_member(api: DeveloperCalls, project_id: ProjectId, member: MemberName, role: RoleName) -> Output:
    """Give a member another role. The only owner keeps their role."""
    developer_id = await _developer_id(api, project_id, member)
    answer = await api.call("PATCH", ["projects", project_id, "members", developer_id], {"role": role})
    return Output(answer, lambda: typer.echo(f"{member} now has the role {role}."))


@api_command(commands, "remove")
async def remove_member(api: DeveloperCalls, project_id: ProjectId, member: MemberName, *, yes: Yes = False) -> Output:
    """Remove a member from a project. The only owner cannot be removed."""
    developer_id = await _developer_id(api, project_id, member)
    confirm(f"Remove {member} from {project_id}?", yes=yes)
    answer = await api.call("DELETE", ["projects", project_id, "members", developer_id])

    def show() -> None:
        typer.echo(f"Removed {member}.")
        typer.echo(f"They may know the project's secrets. To replace them: taproof projects regenerate {project_id}")

    return Output(answer, show)


async def _developer_id(api: DeveloperCalls, project_id: str, member: str) -> str:
    """Return the id of a member, who can be named by e-mail address."""
    if "@" not in member:
        return member
    members = items_of(await api.call("GET", ["projects", project_id, "members"]), "members")
    wanted = member.casefold()
    found = next((each for each in members if str(each.get("email")).casefold() == wanted), None)
    if found is None:
        raise MemberNotFound
    return str(found.get("developer_id"))
