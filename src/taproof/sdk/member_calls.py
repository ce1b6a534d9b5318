"""The calls for a project's members and invitations; see `developer_calls.py`."""

from taproof.contract.member import CreatedMemberInvitation, Member, MemberInvitation, Role
from taproof.contract.project import Project
from taproof.sdk.developer_api import ask_developer_api, path_id, read_list, read_one
from taproof.sdk.exchange import Call, Service


def list_members(service: Service, project_id: str) -> Call[list[Member]]:
    """Return all members of a project, in the order in which they joined."""
    return read_list(Member, (yield from ask_developer_api(service, "GET", _members(project_id))), "members")


def update_member(service: Service, project_id: str, developer_id: str, role: Role) -> Call[Member]:
    """Give a member another role. Only owners can do this. The only owner keeps their role."""
    return read_one(service, Member, "PATCH", f"{_members(project_id)}/{path_id(developer_id)}", {"role": role})


def delete_member(service: Service, project_id: str, developer_id: str) -> Call[None]:
    """Remove a member. Owners can remove anyone; other members only themselves. The only owner cannot leave."""
    yield from ask_developer_api(service, "DELETE", f"{_members(project_id)}/{path_id(developer_id)}")


def list_member_invitations(service: Service, project_id: str) -> Call[list[MemberInvitation]]:
    """Return the open invitations of a project, newest first."""
    answer = yield from ask_developer_api(service, "GET", _invitations(project_id))
    return read_list(MemberInvitation, answer, "invitations")


def create_member_invitation(
    service: Service, project_id: str, role: Role = "developer"
) -> Call[CreatedMemberInvitation]:
    """Create a one-time link that makes a developer a member. It is shown only once, and expires after 7 days."""
    return read_one(service, CreatedMemberInvitation, "POST", _invitations(project_id), {"role": role})


def delete_member_invitation(service: Service, project_id: str, invitation_id: str) -> Call[None]:
    """Revoke an invitation. Its link stops working immediately."""
    yield from ask_developer_api(service, "DELETE", f"{_invitations(project_id)}/{path_id(invitation_id)}")


def accept_member_invitation(service: Service, code: str) -> Call[Project]:
    """Accept an invitation, and return the project of which you are now a member.

    Args:
        code: the part of the link after "#".
    """
    return read_one(service, Project, "POST", "/invitations/accept", {"code": code})


def _members(project_id: str) -> str:
    return f"/projects/{path_id(project_id)}/members"


def _invitations(project_id: str) -> str:
    return f"/projects/{path_id(project_id)}/invitations"
