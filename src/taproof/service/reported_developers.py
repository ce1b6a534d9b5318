"""End a sign-in to the service itself when its developer reports it with "This wasn't me".

For any other sign-in, the application is informed of the report and ends the access that it granted. Here the service
is that application: a sign-in creates console sessions, access tokens and invitations, and these create others. Each
stores the sign-in from which it derives (`core.rights.Grant`). A report thus ends all of them, even if some in between
were revoked.
"""

from dataclasses import replace

from taproof.contract.audit import AuditAction
from taproof.core.accounts import AuditEntry, EndedRights, ProjectItem
from taproof.core.clock import Clock
from taproof.core.entropy import Entropy
from taproof.core.projects import SERVICE_DEVELOPER
from taproof.core.sessions import Session
from taproof.service.audit import service_entry
from taproof.storage.protocol import Storage


class ReportedDevelopers:
    """Ends the rights that derive from sign-ins that developers report.

    The report is stored before this runs. From then on, the store creates nothing with the sign-in itself or with a
    credential that has ended. `end_sign_in` ends all rights created before, so none remains.
    """

    def __init__(self, storage: Storage, clock: Clock, entropy: Entropy) -> None:
        self._storage = storage
        self._clock = clock
        self._entropy = entropy

    async def end_access(self, session: Session, messenger_id: str) -> bool | None:
        """End all rights that derive from a reported sign-in, and sign its developer out of the console everywhere.

        Repeating an interrupted call completes it. Return whether the account is linked to a developer; None if the
        session does not belong to the service's own projects, or was never confirmed.
        """
        if session.confirmed_at is None:
            return None
        project = await self._storage.projects.read_sign_in_project(session.project_id)
        if project is None or project.developer_id != SERVICE_DEVELOPER:
            return None
        developer = await self._storage.developers.read_developer_of_sign_in(messenger_id, session.id)
        if developer is None:
            return False
        now, reason = self._clock(), {"reported_sign_in": session.id}

        def describe(ended: EndedRights) -> list[AuditEntry]:
            def entry(developer_id: str, action: AuditAction, subject: str, **details: str) -> AuditEntry:
                return service_entry(
                    developer_id, action, now, self._entropy, subject=subject, details=details | reason
                )

            entries = [
                entry(token.developer_id, "access_token.revoked", token.id, name=token.name, preview=token.preview)
                for token in ended.tokens
            ]
            entries += [entry(developer.id, "invitation.revoked", each) for each in ended.invitations]
            for each in ended.developers:  # In the reporter's log and in the developer's own.
                entries += [entry(whose, "developer.shut_out", each) for whose in (developer.id, each)]
            ended_in_projects: list[tuple[AuditAction, tuple[ProjectItem, ...]]] = [
                ("member.removed", ended.members),
                ("member.invitation_revoked", ended.member_invitations),
            ]
            entries += [
                replace(entry(developer.id, action, item), project_id=project_id)
                for action, found in ended_in_projects
                for project_id, item in found
            ]
            if ended.is_unbound:
                entries.append(entry(developer.id, "developer.identity_unbound", developer.id))
            if ended.console_sessions:
                entries.append(entry(developer.id, "console.signed_out_everywhere", developer.id))
            return entries

        await self._storage.developers.end_sign_in(developer.id, session.id, describe=describe)
        return True
