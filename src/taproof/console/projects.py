"""The project pages: the list, a new project, the quick start, the settings and deletion."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from taproof.console import appearance_form, project_form
from taproof.console.access import HOME, Access, Visitor
from taproof.console.forms import Form, in_words, read_form
from taproof.console.guard import content_security_policy
from taproof.console.quick_start import QuickStart
from taproof.console.rendering import PageRenderer
from taproof.core.errors import (
    BotTaken,
    BotTokenRefused,
    InvalidRequest,
    MessengerUnavailable,
    PlanLimitReached,
    RateLimited,
    TooManyProjects,
)
from taproof.core.logo_url import logo_origin
from taproof.core.names import isolated_name, visible_name
from taproof.core.projects import Project, ProjectChanges
from taproof.http.errors import retry_after
from taproof.service.bots import Bots
from taproof.service.managed_bots import ManagedBots
from taproof.service.plans import Plans
from taproof.service.projects import Projects, ProjectSecrets

PAGE_SIZE: Final = 50
_NOT_CONFIRMED: Final = "That is neither the project's name nor its id, so nothing was changed. Type one of them."
_UNCHANGED: Final = "Nothing was changed."
_NO_ERRORS: Final[Mapping[str, str]] = {}
_NO_TOKEN: Final = "Paste the token that @BotFather shows for the bot."  # noqa: S105 — a sentence.
_TOKEN_REFUSED: Final = "The messenger does not recognise this bot token. Copy the whole token from @BotFather here."  # noqa: S105 — a sentence.
"""The sentence of `BotTokenRefused`, with the form's name of the field."""
_SHOWN_ONCE: Final = (
    "The secret key is shown only once. You can show the webhook secret again under Webhooks."
    " Store both with your server's other secrets, never in source code."
)


@dataclass(frozen=True, slots=True)
class ProjectPages:
    """Shows, creates, changes and deletes projects."""

    access: Access
    pages: PageRenderer
    projects: Projects
    bots: Bots
    managed_bots: ManagedBots
    plans: Plans
    quick_start: QuickStart

    def routes(self) -> list[Route]:
        """Return the routes of these pages."""
        signed_in, on_project = self.access.signed_in, self.access.on_project
        project = f"{HOME}/{{project_id}}"
        return [
            Route(HOME, signed_in(self._list, across_projects=True), methods=["GET"]),
            Route(HOME, signed_in(self._create), methods=["POST"]),
            Route(f"{HOME}/new", signed_in(self._new), methods=["GET"]),
            Route(project, on_project(self._overview, across_projects=True), methods=["GET"]),
            Route(f"{project}/settings", on_project(self._show_settings), methods=["GET"]),
            Route(f"{project}/settings", on_project(self._update), methods=["POST"]),
            Route(f"{project}/appearance", on_project(self._set_appearance), methods=["POST"]),
            Route(f"{project}/active", on_project(self._set_active), methods=["POST"]),
            Route(f"{project}/bot", on_project(self._set_bot), methods=["POST"]),
            Route(f"{project}/bot/remove", on_project(self._remove_bot), methods=["POST"]),
            Route(f"{project}/regenerate", on_project(self._regenerate), methods=["POST"]),
            Route(f"{project}/delete", on_project(self._delete), methods=["POST"]),
        ]

    async def _list(self, request: Request, visitor: Visitor) -> Response:
        number = _page_number(request)
        start, end = (number - 1) * PAGE_SIZE, number * PAGE_SIZE
        found, count = await self.projects.page_projects(visitor.developer, start, PAGE_SIZE)
        context = {
            "projects": found,
            "count": count,
            "page": number,
            "has_more": end < count,
            "usage": await self.plans.read_usage(visitor.developer),
        }
        return self.pages.render(request, "projects.html", context)

    async def _new(self, request: Request, _visitor: Visitor) -> Response:
        return self.pages.render(request, "new_project.html", {"name": "", "error": ""})

    async def _create(self, request: Request, visitor: Visitor) -> Response:
        name = (await read_form(request))["name"]
        try:
            project, secrets = await self.projects.create_project(visitor.actor, ProjectChanges(name=name))
        except (InvalidRequest, PlanLimitReached, TooManyProjects) as error:
            context = {"name": visible_name(name), "error": project_form.in_words(error)}
            return self.pages.render(request, "new_project.html", context, status=400)
        return self._show_secrets(request, project.id, secrets, "Project created. Copy its two secrets now.")

    async def _overview(self, request: Request, visitor: Visitor, project: Project) -> Response:
        is_own = project.developer_id == visitor.developer.id
        usage = await self.plans.read_usage(visitor.developer) if is_own else None  # Other plans are not shown.
        context = {"project": project, "snippets": self.quick_start.snippets(project), "usage": usage}
        return self.pages.render(request, "project.html", context)

    async def _update(self, request: Request, visitor: Visitor, project: Project) -> Response:
        form = await read_form(request)
        changes = project_form.changes(form)
        if changes == ProjectChanges():
            return self._saved(request, project, _UNCHANGED)
        try:
            await self.projects.update_project(visitor.actor, project.id, changes)
        except InvalidRequest as error:
            typed, was = project_form.typed(form), project_form.was(form)
            errors = {"settings": project_form.in_words(error)}
            return await self._show_settings(request, visitor, project, typed=typed, was=was, errors=errors)
        return self._saved(request, project)

    async def _set_appearance(self, request: Request, visitor: Visitor, project: Project) -> Response:
        form = await read_form(request)
        try:
            changes = appearance_form.changes(form)
            if changes != ProjectChanges():
                await self.projects.update_project(visitor.actor, project.id, changes)
        except InvalidRequest as error:
            errors = {"appearance": in_words(error, appearance_form.LABELS)}
            appearance = appearance_form.typed(form)
            return await self._show_settings(request, visitor, project, appearance=appearance, errors=errors)
        return self._saved(request, project, _UNCHANGED if changes == ProjectChanges() else "Saved.")

    async def _set_active(self, request: Request, visitor: Visitor, project: Project) -> Response:
        is_active = (await read_form(request)).is_checked("is_active")
        await self.projects.update_project(visitor.actor, project.id, ProjectChanges(is_active=is_active))
        notice = "The project was resumed." if is_active else "The project was paused: it starts no new sign-ins."
        return self.pages.redirect(request, f"{HOME}/{project.id}", notice=notice)

    async def _set_bot(self, request: Request, visitor: Visitor, project: Project) -> Response:
        token = (await read_form(request))["bot_token"]
        if not token:
            return await self._show_settings(request, visitor, project, errors={"bot": _NO_TOKEN})
        try:
            await self.bots.set_bot(visitor.actor, project.id, token)
        except (InvalidRequest, BotTokenRefused, BotTaken, MessengerUnavailable, RateLimited) as error:
            # Do not repeat the token on the page, because a bystander could read it.
            errors = {"bot": _TOKEN_REFUSED if isinstance(error, BotTokenRefused) else project_form.in_words(error)}
            refused = await self._show_settings(request, visitor, project, errors=errors, status=error.status)
            refused.raw_headers += retry_after(error)
            return refused
        changed = await self.projects.read_project(visitor.developer, project.id)
        return self._saved(request, project, f"@{changed.bot_username} now asks people to confirm.")

    async def _remove_bot(self, request: Request, visitor: Visitor, project: Project) -> Response:
        await read_form(request)
        await self.bots.set_bot(visitor.actor, project.id, "")
        return self._saved(request, project, "The bot was removed. The service's own bot now asks people to confirm.")

    def _saved(self, request: Request, project: Project, notice: str = "Saved.") -> Response:
        return self.pages.redirect(request, f"{HOME}/{project.id}/settings", notice=notice)

    async def _regenerate(self, request: Request, visitor: Visitor, project: Project) -> Response:
        if not _is_confirmed(await read_form(request), project):
            return await self._show_settings(request, visitor, project, errors={"regenerate": _NOT_CONFIRMED})
        secrets = await self.projects.regenerate_secrets(visitor.actor, project.id)
        notice = (
            "Both secrets were replaced, and the old ones no longer work. Update your servers with the new ones now."
        )
        return self._show_secrets(request, project.id, secrets, notice)

    async def _delete(self, request: Request, visitor: Visitor, project: Project) -> Response:
        if not _is_confirmed(await read_form(request), project):
            return await self._show_settings(request, visitor, project, errors={"delete": _NOT_CONFIRMED})
        await self.projects.delete_project(visitor.actor, project.id)
        notice = f"{isolated_name(project.name)} was deleted, with its sessions and analytics."
        return self.pages.redirect(request, HOME, notice=notice)

    def _show_secrets(self, request: Request, project_id: str, new: ProjectSecrets, notice: str) -> Response:
        secrets = [("Secret key", new.secret_key), ("Webhook secret", new.webhook_secret)]
        path = f"{HOME}/{project_id}"
        return self.pages.redirect(request, path, notice=notice, secrets=secrets, secrets_hint=_SHOWN_ONCE)

    async def _show_settings(
        self,
        request: Request,
        visitor: Visitor,
        project: Project,
        *,
        typed: dict[str, Any] | None = None,
        was: dict[str, Any] | None = None,
        appearance: Mapping[str, str] | None = None,
        errors: Mapping[str, str] = _NO_ERRORS,
        status: int = 400,
    ) -> Response:
        """Show the project's settings. After an error, show the input `typed` and `appearance` instead.

        `errors` maps a form to its error: "settings", "appearance", "bot", "regenerate" or "delete".
        """
        kept = project_form.shown(project)
        needs_bot = project.bot_username is None or project.bot_broken_at is not None
        context = {
            "project": project,
            "typed": kept | (typed or {}),
            "was": kept | (was or {}),
            "appearance": appearance or appearance_form.shown(project),
            "boxes": project_form.BOXES,
            "errors": errors,
            "new_bot_link": await self.managed_bots.suggest_bot(visitor.actor, project) if needs_bot else None,
            # Repeated at the top, because the other forms are far down the page.
            "problem": next((error for form, error in errors.items() if form != "settings"), ""),
        }
        page = self.pages.render(request, "project_settings.html", context, status=status if errors else 200)
        if project.logo_url:
            page.headers["content-security-policy"] = content_security_policy(logo_origin(project.logo_url))
        return page


def _page_number(request: Request) -> int:
    """Return the number of the requested page, counted from 1."""
    text = request.query_params.get("page", "1")
    # Four digits are enough for the last page of any list.
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and int(text)):
        raise InvalidRequest("This page of your projects does not exist. Go back to the first page.")
    return int(text)


def _is_confirmed(form: Form, project: Project) -> bool:
    """Return whether the visitor typed the project's visible name, or its id if the name is hard to type."""
    typed = form["confirmation"]
    return typed == project.id or visible_name(typed) == visible_name(project.name)
