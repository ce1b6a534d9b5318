"""The OpenID Connect pages of a project: its clients, with the values to paste into each application."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from taproof.console import client_form
from taproof.console.access import HOME, Access, Visitor
from taproof.console.forms import Form, in_words, read_form
from taproof.console.rendering import PageRenderer
from taproof.contract.client import MAX_LIFETIME, MIN_LIFETIME, REDIRECT_URIS_LIMIT
from taproof.core.errors import ClientNotFound, GrantNotFound, InvalidRequest, TooManyClients
from taproof.core.identifiers import is_client_id
from taproof.core.names import isolated_name
from taproof.core.oidc.clients import CLIENT_LIMIT, ClientChanges, OidcClient
from taproof.core.oidc.discovery import provider_metadata
from taproof.core.oidc.grants import LogoutFailure
from taproof.core.oidc.groups import Groups
from taproof.core.projects import Project
from taproof.service.oidc.client_grants import ClientGrants, GrantPage
from taproof.service.oidc.clients import OidcClients

_SHOWN_ONCE: Final = (
    "It is shown only once. Paste it into the application's settings, or store it with your server's other secrets."
)
GRANTS_SHOWN: Final = 50
_ENDED: Final = "This user is no longer signed in to the application. The list below is current."
_ADDRESSES: Final = {
    "Authorization endpoint": "authorization_endpoint",
    "Token endpoint": "token_endpoint",
    "Userinfo endpoint": "userinfo_endpoint",
    "Keys (JWKS)": "jwks_uri",
    "End session endpoint": "end_session_endpoint",
}
"""The names in the metadata of the addresses that applications ask for beside the issuer, by their usual labels."""
_LIMITS: Final = {"uris": REDIRECT_URIS_LIMIT, "min_lifetime": MIN_LIFETIME, "max_lifetime": MAX_LIFETIME}


@dataclass(frozen=True, slots=True)
class ClientPages:
    """Shows, creates, changes and deletes the clients of a project."""

    access: Access
    pages: PageRenderer
    clients: OidcClients
    grants: ClientGrants
    base_url: str
    """The issuer."""

    def routes(self) -> list[Route]:
        """Return the routes of these pages."""
        on_project = self.access.on_project
        clients = f"{HOME}/{{project_id}}/clients"
        client = f"{clients}/{{client_id}}"
        user_groups = f"{HOME}/{{project_id}}/users/{{messenger_id}}/groups"
        return [
            Route(clients, on_project(self._list), methods=["GET"]),
            Route(clients, on_project(self._create), methods=["POST"]),
            Route(client, on_project(self._show), methods=["GET"]),
            Route(client, on_project(self._update), methods=["POST"]),
            Route(f"{client}/regenerate", on_project(self._regenerate), methods=["POST"]),
            Route(f"{client}/grants", on_project(self._list_grants), methods=["GET"]),
            Route(f"{client}/grants/{{grant_id}}/end", on_project(self._end_grant), methods=["POST"]),
            Route(f"{client}/delete", on_project(self._delete), methods=["POST"]),
            Route(f"{client}/groups", on_project(self._edit_groups), methods=["POST"]),
            Route(f"{client}/allowed-groups", on_project(self._allow_groups), methods=["POST"]),
            Route(user_groups, on_project(self._edit_user), methods=["POST"]),
        ]

    async def _list(
        self,
        request: Request,
        visitor: Visitor,
        project: Project,
        *,
        typed: Mapping[str, Any] = client_form.NEW,
        error: str = "",
    ) -> Response:
        context = {
            "project": project,
            "clients": await self.clients.list_clients(visitor.developer, project.id),
            "client_limit": CLIENT_LIMIT,
            "values": self._values(),
            "typed": typed,
            "limits": _LIMITS,
            "error": error,
        }
        return self.pages.render(request, "clients.html", context, status=400 if error else 200)

    async def _create(self, request: Request, visitor: Visitor, project: Project) -> Response:
        form = await read_form(request)
        try:
            client, secret = await self.clients.create_client(visitor.actor, project.id, client_form.new(form))
        except (InvalidRequest, TooManyClients) as error:
            typed, sentence = client_form.typed(form), in_words(error, client_form.LABELS)
            return await self._list(request, visitor, project, typed=typed, error=sentence)
        return self._redirect(request, client, "Client created. Paste the values below into the application.", secret)

    async def _show(self, request: Request, visitor: Visitor, project: Project) -> Response:
        client = await self._client(request, visitor, project)
        failure = await self.grants.read_logout_failure(visitor.developer, project.id, client.id)
        return await self._page(request, project, client, failure=failure)

    async def _list_grants(
        self, request: Request, visitor: Visitor, project: Project, *, error: str = "", status: int = 200
    ) -> Response:
        client = await self._client(request, visitor, project)
        cursor = request.query_params.get("cursor")
        page = GrantPage([], None)
        try:
            page = await self.grants.list_grants(
                *(visitor.developer, project.id, client.id), limit=GRANTS_SHOWN, cursor=cursor
            )
        except InvalidRequest as invalid:
            error, status = invalid.sentence, 400
        context = {
            "project": project,
            "client": client,
            "grants": page.grants,
            "next_cursor": page.next_cursor,
            "is_first": cursor is None,
            "error": error,
        }
        return self.pages.render(request, "grants.html", context, status=status)

    async def _end_grant(self, request: Request, visitor: Visitor, project: Project) -> Response:
        await read_form(request)
        client = await self._client(request, visitor, project)
        try:
            await self.grants.end_grant(visitor.actor, project.id, client.id, request.path_params["grant_id"])
        except GrantNotFound:
            return await self._list_grants(request, visitor, project, error=_ENDED, status=404)
        path = f"{HOME}/{project.id}/clients/{client.id}/grants"
        return self.pages.redirect(request, path, notice="The user is signed out of this application.")

    async def _update(self, request: Request, visitor: Visitor, project: Project) -> Response:
        form = await read_form(request)
        client = await self._client(request, visitor, project)
        try:
            changes = client_form.changes(form)
            if changes == ClientChanges():
                return self._redirect(request, client, "Nothing was changed.")
            client, secret = await self.clients.update_client(visitor.actor, project.id, client.id, changes)
        except InvalidRequest as error:
            typed, was = client_form.typed(form), client_form.typed(form, "was_")
            sentence = in_words(error, client_form.LABELS)
            return await self._page(request, project, client, typed=typed, was=was, error=sentence)
        return self._redirect(request, client, "Saved.", secret)

    async def _regenerate(self, request: Request, visitor: Visitor, project: Project) -> Response:
        await read_form(request)
        client = await self._client(request, visitor, project)
        try:
            secret = await self.clients.regenerate_client_secret(visitor.actor, project.id, client.id)
        except InvalidRequest as error:  # It became public in another tab.
            return await self._page(request, project, client, error=error.sentence)
        return self._redirect(request, client, "The secret was replaced, and the old one no longer works.", secret)

    async def _edit_groups(self, request: Request, visitor: Visitor, project: Project) -> Response:
        """Add or delete a group, or add or remove one of its members."""
        form = await read_form(request)
        client = await self._client(request, visitor, project)
        try:
            await self._edit(visitor, client, form)
        except InvalidRequest as error:
            return await self._page(request, project, client, groups_error=in_words(error, client_form.LABELS))
        return self._redirect(request, client, "Saved.")

    async def _allow_groups(self, request: Request, visitor: Visitor, project: Project) -> Response:
        """Change which groups may sign in."""
        form = await read_form(request)
        client = await self._client(request, visitor, project)
        allowed = tuple(name for name in client.groups.members if form.is_checked(f"allowed {name}"))
        try:
            await self.clients.update_client(
                visitor.actor, project.id, client.id, ClientChanges(allowed_groups=allowed)
            )
        except InvalidRequest as error:  # A group was deleted in another tab.
            return await self._page(request, project, client, groups_error=in_words(error, client_form.LABELS))
        return self._redirect(request, client, "Saved.")

    async def _edit_user(self, request: Request, visitor: Visitor, project: Project) -> Response:
        """Add a user to a group, or remove them, on the user's page."""
        form = await read_form(request)
        messenger_id: str = request.path_params["messenger_id"]
        form["messenger_id"] = messenger_id
        client_id, _, form["group"] = form["group"].partition(" ")
        if not is_client_id(client_id):
            raise ClientNotFound
        client = await self.clients.read_client(visitor.developer, project.id, client_id)
        await self._edit(visitor, client, form)
        path = f"{HOME}/{project.id}/users/{messenger_id}"
        return self.pages.redirect(request, path, notice="Saved.")

    async def _edit(self, visitor: Visitor, client: OidcClient, form: Form) -> None:
        group, messenger_id = form["group"], form["messenger_id"]
        edits: dict[str, Callable[[Groups], Groups]] = {
            "add-group": lambda groups: groups.with_group(group),
            "delete-group": lambda groups: groups.without_group(group),
            "add-member": lambda groups: groups.with_member(group, messenger_id, is_member=True),
            "remove-member": lambda groups: groups.with_member(group, messenger_id, is_member=False),
        }
        edit = edits.get(form["action"])
        if edit is None:
            raise InvalidRequest("Use the forms of the page.")
        await self.clients.edit_groups(visitor.actor, client.project_id, client.id, edit, group)

    async def _delete(self, request: Request, visitor: Visitor, project: Project) -> Response:
        await read_form(request)
        client = await self._client(request, visitor, project)
        await self.clients.delete_client(visitor.actor, project.id, client.id)
        notice = f"{isolated_name(client.name)} was deleted. Nobody can sign in to it any more."
        return self.pages.redirect(request, f"{HOME}/{project.id}/clients", notice=notice)

    async def _client(self, request: Request, visitor: Visitor, project: Project) -> OidcClient:
        client_id: str = request.path_params["client_id"]
        if not is_client_id(client_id):
            raise ClientNotFound
        return await self.clients.read_client(visitor.developer, project.id, client_id)

    async def _page(
        self,
        request: Request,
        project: Project,
        client: OidcClient,
        *,
        typed: Mapping[str, Any] | None = None,
        was: Mapping[str, Any] | None = None,
        error: str = "",
        groups_error: str = "",
        failure: LogoutFailure | None = None,
    ) -> Response:
        """Show a client. After an error, show the input `typed` instead of the values `was`."""
        kept = client_form.shown(client)
        context = {
            "project": project,
            "client": client,
            "values": self._values(),
            "typed": typed or kept,
            "was": was or kept,
            "refused": await self.clients.read_refused_method(client),
            "limits": _LIMITS,
            "error": error,
            "groups_error": groups_error,
            "failure": failure,
        }
        return self.pages.render(request, "client.html", context, status=400 if error or groups_error else 200)

    def _redirect(self, request: Request, client: OidcClient, notice: str, secret: str | None = None) -> Response:
        path = f"{HOME}/{client.project_id}/clients/{client.id}"
        secrets = None if secret is None else [("Client secret", secret)]
        return self.pages.redirect(request, path, notice=notice, secrets=secrets, secrets_hint=_SHOWN_ONCE)

    def _values(self) -> dict[str, str]:
        """Return the values that are the same for all clients, by label."""
        metadata = provider_metadata(self.base_url)
        return {
            "Issuer": self.base_url,
            "Discovery URL": f"{self.base_url}/.well-known/openid-configuration",
            **{label: metadata[name] for label, name in _ADDRESSES.items()},
        }
