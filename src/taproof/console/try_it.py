"""The "Try it" page: a real sign-in to a project, from the link to the checked proof.

The browser's cookie is encrypted for the visitor's console session and the project. So another developer, or another
project's page, cannot read who confirmed.
"""

from dataclasses import dataclass
from typing import Final

import jwt
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from taproof.console.access import HOME, Access, Visitor, requester_on_page
from taproof.console.rendering import PageRenderer, readable_json
from taproof.console.waiting import COOKIE_SECONDS, show_state
from taproof.contract.session import SignInStatus
from taproof.core.clock import SECOND, Clock
from taproof.core.errors import (
    BotBroken,
    MessengerUnavailable,
    PlanLimitReached,
    ProjectPaused,
    SameDeviceRequired,
    SignInNotFound,
)
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import Project
from taproof.http.cookies import delete_cookie, read_cookie, set_cookie
from taproof.sdk.proof import ProofError, verify_proof
from taproof.service.console.sign_in import DeveloperSignIns, Trial
from taproof.service.projects import Projects
from taproof.service.sessions.results import VerifyResult

_COOKIE: Final = "try"
_INTRO: Final = "Open the messenger and tap Confirm or Cancel. This page continues automatically."
_INTRO_WITH_CODE: Final = (
    "Open the messenger and tap the number shown below. A wrong number cancels the sign-in. "
    "This page continues automatically."
)
_SAME_DEVICE: Final = (
    "This project requires that a sign-in ends in the browser in which it began, which this page cannot do. Try it on "
    "your own page, or set Same device to Off or Offer in the project's settings."
)


@dataclass(frozen=True, slots=True)
class TryItResult:
    """The result of a trial. Unless the user confirmed, only `status` is set.

    `answer` and `claims` are JSON. `problem` is the error from checking the proof, or "" if the proof is valid.
    """

    status: SignInStatus
    identity: MessengerIdentity | None = None
    answer: str = ""
    proof: str = ""
    claims: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class TryItPages:
    """Starts a sign-in for a project, waits for it, and shows its result once."""

    access: Access
    pages: PageRenderer
    projects: Projects
    sign_ins: DeveloperSignIns
    clock: Clock
    base_url: str
    """The console's origin, which the messenger prompt shows as the page."""

    def routes(self) -> list[Route]:
        """Return the routes of these pages."""
        on_project = self.access.on_project
        page = f"{HOME}/{{project_id}}/try"
        return [
            Route(page, on_project(self._show), methods=["GET"]),
            Route(page, on_project(self._start), methods=["POST"]),
            Route(f"{page}/again", on_project(self._show_again), methods=["GET"]),
            Route(f"{page}/state", on_project(self._show_state), methods=["GET"]),
        ]

    async def _show(self, request: Request, visitor: Visitor, project: Project) -> Response:
        encrypted, trial = read_cookie(request, _COOKIE) or "", Trial(project.id, visitor.session.id)
        try:
            seen = await self.sign_ins.read(encrypted, trial)
            if seen.status == "pending":
                context = {
                    "sign_in": seen,
                    "title": "Waiting for your decision",
                    "intro": _INTRO if seen.match_code is None else _INTRO_WITH_CODE,
                    "state_url": f"{request.url.path}/state",
                    "cancel_url": f"{request.url.path}/again",
                    "other_ways": False,
                }
                return self.pages.render(request, "waiting.html", context)
            if request.method != "GET":  # HEAD must not use up the result that the page shows.
                return self._start_page(request, project)
            result = await self.sign_ins.finish(encrypted, trial)
        except SignInNotFound:
            return self._start_page(request, project)
        outcome = await self._outcome(visitor, project, result)
        return self._start_page(request, project, outcome=outcome, forget=True)

    async def _start(self, request: Request, visitor: Visitor, project: Project) -> Response:
        visitor.session.grant.require("write")
        await self.projects.read_project(visitor.developer, project.id, "secrets")  # The result shows a proof.
        try:
            requester = requester_on_page(request, self.base_url)
            started = await self.sign_ins.start(Trial(project.id, visitor.session.id), requester)
        except (ProjectPaused, BotBroken, PlanLimitReached, MessengerUnavailable, SameDeviceRequired) as error:
            # The page itself says that the project is paused.
            sentence = "" if isinstance(error, ProjectPaused) else error.sentence
            if isinstance(error, SameDeviceRequired):
                sentence = _SAME_DEVICE
            project = await self.projects.read_project(visitor.developer, project.id)
            return self._start_page(request, project, error=sentence, status=error.status)
        response = RedirectResponse(request.url.path, 303)
        set_cookie(request, response, _COOKIE, started.encrypted, max_age=COOKIE_SECONDS)
        return response

    async def _show_again(self, request: Request, _visitor: Visitor, project: Project) -> Response:
        """Show the start page and drop any sign-in in progress."""
        return self._start_page(request, project, forget=True)

    async def _show_state(self, request: Request, visitor: Visitor, project: Project) -> Response:
        """Return the status to the waiting page's script, which reloads the page once it is no longer "pending"."""
        trial = Trial(project.id, visitor.session.id)
        return await show_state(request, self.sign_ins, read_cookie(request, _COOKIE) or "", trial)

    async def _outcome(self, visitor: Visitor, project: Project, result: VerifyResult) -> TryItResult:
        """Read the verify response and check the proof, as an application does."""
        identity, proof = result.identity, result.proof
        if identity is None or proof is None:
            return TryItResult(result.status)
        answer = result.to_answer()
        secret = (await self.projects.read_webhook_secret(visitor.actor, project.id)).webhook_secret
        problem = ""
        try:
            verify_proof(proof, secret, project_id=project.id, now=self.clock() / SECOND)
        except ProofError as error:
            problem = str(error)
        claims = jwt.decode(proof, options={"verify_signature": False})  # Show the claims even if the check failed.
        return TryItResult(result.status, identity, readable_json(answer), proof, readable_json(claims), problem)

    def _start_page(
        self,
        request: Request,
        project: Project,
        *,
        outcome: TryItResult | None = None,
        error: str = "",
        status: int = 200,
        forget: bool = False,
    ) -> Response:
        context = {"project": project, "outcome": outcome, "error": error}
        response = self.pages.render(request, "try_it.html", context, status=status)
        if forget:
            delete_cookie(request, response, _COOKIE)
        return response
