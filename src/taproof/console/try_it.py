"""The "Try it" page: a real sign-in to a project, from the link to the checked proof.

The browser's cookie is encrypted for the visitor's console session and the project. Another developer, or the page of
another project, cannot read who confirmed.
"""

import base64
import json
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from taproof.console.access import (
    HOME,
    Access,
    Visitor,
    delete_cookie,
    read_cookie,
    requester_on_page,
    set_cookie,
)
from taproof.console.rendering import PageRenderer
from taproof.console.waiting_state import show_state
from taproof.core.clock import SECOND, Clock
from taproof.core.errors import BotBroken, MessengerUnavailable, PlanLimitReached, ProjectPaused, SignInNotFound
from taproof.core.model import MessengerIdentity, Project, Status
from taproof.sdk.proof import ProofError, verify_proof
from taproof.service.console.sign_in import DeveloperSignIns, Trial
from taproof.service.projects import Projects
from taproof.service.sessions.create_and_verify import VerifyResult

COOKIE_SECONDS: Final = 660
"""A minute longer than a sign-in lasts, so that the page can show how it ended."""
_COOKIE: Final = "try"
_INTRO: Final = "Open the messenger and tap Confirm or Cancel. This page continues by itself."
_INTRO_WITH_CODE: Final = (
    "Open the messenger and tap the number shown below. A wrong number cancels. This page continues by itself."
)


@dataclass(frozen=True, slots=True)
class TryItResult:
    """The result of a trial. Only `status` is set unless the user confirmed.

    `answer` and `claims` are JSON. `problem` is the error of the proof's check, "" if the proof is valid.
    """

    status: Status
    identity: MessengerIdentity | None = None
    answer: str = ""
    proof: str = ""
    claims: str = ""
    problem: str = ""


class TryItPages:
    """Starts a sign-in for a project, waits for it, and shows its result once.

    Args:
        access: recognises visitors.
        pages: renders templates.
        projects: reads the project and its webhook secret.
        developer_sign_ins: runs sign-ins that the browser stores encrypted.
        clock: returns the time in ms.
        base_url: the address of the console, which the prompt names as the page.
    """

    def __init__(
        self,
        access: Access,
        pages: PageRenderer,
        projects: Projects,
        developer_sign_ins: DeveloperSignIns,
        clock: Clock,
        *,
        base_url: str,
    ) -> None:
        self._base_url = base_url
        self._access = access
        self._pages = pages
        self._projects = projects
        self._sign_ins = developer_sign_ins
        self._clock = clock

    def routes(self) -> list[Route]:
        """Return every route of these pages."""
        signed_in = self._access.signed_in
        page = f"{HOME}/{{project_id}}/try"
        return [
            Route(page, signed_in(self._show), methods=["GET"]),
            Route(page, signed_in(self._start), methods=["POST"]),
            Route(f"{page}/again", signed_in(self._show_again), methods=["GET"]),
            Route(f"{page}/state", signed_in(self._show_state), methods=["GET"]),
        ]

    async def _show(self, request: Request, visitor: Visitor) -> Response:
        project = await self._read(request, visitor)
        encrypted, trial = _kept(request), Trial(project.id, visitor.session.id)
        try:
            seen = await self._sign_ins.read(encrypted, trial)
            if seen.status == "pending":
                context = {
                    "project": project,
                    "title": "Waiting for your decision",
                    "intro": _INTRO if seen.match_code is None else _INTRO_WITH_CODE,
                    "deeplink": seen.deeplink,
                    "match_code": seen.match_code,
                    "expires_at": seen.expires_at,
                    "state_url": f"{request.url.path}/state",
                    "cancel_url": f"{request.url.path}/again",
                }
                return self._pages.render(request, "waiting.html", context)
            if request.method != "GET":  # HEAD must not use up the result that the page shows.
                return self._start_page(request, project)
            result = await self._sign_ins.finish(encrypted, trial)
        except SignInNotFound:
            return self._start_page(request, project)
        outcome = await self._outcome(visitor, project, result)
        return self._forget(request, self._start_page(request, project, outcome=outcome))

    async def _start(self, request: Request, visitor: Visitor) -> Response:
        visitor.session.grant.require("write")
        project = await self._read(request, visitor)
        try:
            requester = requester_on_page(request, self._base_url)
            started = await self._sign_ins.start(Trial(project.id, visitor.session.id), requester)
        except (ProjectPaused, BotBroken, PlanLimitReached, MessengerUnavailable) as error:
            # The page itself says that the project is paused.
            sentence = "" if isinstance(error, ProjectPaused) else error.sentence
            project = await self._read(request, visitor)
            return self._start_page(request, project, error=sentence, status=error.status)
        response = RedirectResponse(request.url.path, 303)
        set_cookie(request, response, _COOKIE, started.encrypted, max_age=COOKIE_SECONDS)
        return response

    async def _show_again(self, request: Request, visitor: Visitor) -> Response:
        """Show the start page and drop any sign-in in progress."""
        return self._forget(request, self._start_page(request, await self._read(request, visitor)))

    async def _show_state(self, request: Request, visitor: Visitor) -> Response:
        """Answer the waiting page's script, which reloads the page once the status is no longer "pending"."""
        project = await self._read(request, visitor)
        kept = (_kept(request), Trial(project.id, visitor.session.id))
        return await show_state(request, partial(self._sign_ins.wait, *kept), partial(self._sign_ins.read, *kept))

    async def _read(self, request: Request, visitor: Visitor) -> Project:
        return await self._projects.read_project(visitor.developer, request.path_params["project_id"])

    async def _outcome(self, visitor: Visitor, project: Project, result: VerifyResult) -> TryItResult:
        """Read the answer of verify as an application does, including the check of the proof."""
        identity, proof = result.identity, result.proof
        if identity is None or proof is None:
            return TryItResult(result.status)
        answer = result.to_answer()
        secret = (await self._projects.read_webhook_secret(visitor.actor, project.id)).webhook_secret
        problem = ""
        try:
            verify_proof(proof, secret, project_id=project.id, now=self._clock() / SECOND)
        except ProofError as error:
            problem = str(error)
        return TryItResult(result.status, identity, _shown_json(answer), proof, _shown_json(_claims(proof)), problem)

    def _start_page(
        self,
        request: Request,
        project: Project,
        *,
        outcome: TryItResult | None = None,
        error: str = "",
        status: int = 200,
    ) -> Response:
        context = {"project": project, "outcome": outcome, "error": error}
        return self._pages.render(request, "try_it.html", context, status=status)

    @staticmethod
    def _forget(request: Request, response: Response) -> Response:
        delete_cookie(request, response, _COOKIE)
        return response


def _kept(request: Request) -> str:
    return read_cookie(request, _COOKIE) or ""


def _claims(proof: str) -> dict[str, Any]:
    payload = proof.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return claims


def _shown_json(value: dict[str, Any]) -> str:
    """Return JSON for people to read; invisible characters and those that change the text direction are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
