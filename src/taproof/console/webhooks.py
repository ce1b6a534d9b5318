"""A project's webhook pages: the endpoint's state, the secret and its rotation, and the deliveries."""

import json
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from taproof.console.access import HOME, Access, Visitor
from taproof.console.forms import read_form
from taproof.console.rendering import PageRenderer, readable_json
from taproof.contract.delivery import DeliveryState, EventType
from taproof.contract.project import OVERLAP_LIMIT
from taproof.core.attempt_errors import attempt_sentence
from taproof.core.errors import InvalidRequest, NoRotation, RotationUnderWay, SignInReported, WebhookNotSet
from taproof.core.projects import Project
from taproof.service.deliveries import Deliveries, SeenDelivery
from taproof.service.projects import Projects

PAGE: Final = 25
"""The number of deliveries on a page."""
_DELIVERIES: Final = "/console/deliveries"
_NO_URL: Final = "This project has no webhook URL to send to. Set one in its settings first."
_SHOWN_AGAIN: Final = "Reloading this page hides it; press Show to see it again."

EndpointState = Literal["none", "off", "failing", "works", "untaken", "untried"]
"""In order: there is no URL; the webhook was turned off; the latest attempts failed; no attempt has failed since the
last success; nothing has been accepted yet, for example after a failed test; nothing has been sent yet."""


@dataclass(frozen=True, slots=True)
class WebhookPages:
    """Shows and controls the webhooks of a developer's projects."""

    access: Access
    pages: PageRenderer
    projects: Projects
    deliveries: Deliveries

    def routes(self) -> list[Route]:
        """Return the routes of these pages."""
        signed_in, on_project = self.access.signed_in, self.access.on_project
        page = f"{HOME}/{{project_id}}/webhooks"
        delivery = f"{_DELIVERIES}/{{delivery_id}}"
        return [
            Route(page, on_project(self._page), methods=["GET"]),
            Route(f"{page}/secret", on_project(self._reveal), methods=["POST"]),
            Route(f"{page}/rotate", on_project(self._rotate), methods=["POST"]),
            Route(f"{page}/promote", on_project(self._promote), methods=["POST"]),
            Route(f"{page}/test", on_project(self._send_test), methods=["POST"]),
            Route(delivery, signed_in(self._show_delivery), methods=["GET"]),
            Route(f"{delivery}/resend", signed_in(self._resend), methods=["POST"]),
        ]

    # ---- a project's webhook

    async def _reveal(self, request: Request, visitor: Visitor, project: Project) -> Response:
        found = await self.projects.reveal_webhook_secret(visitor.actor, project.id)
        secrets = [("Webhook secret", found.webhook_secret)]
        if found.next_webhook_secret is not None:
            secrets.append(("Next webhook secret", found.next_webhook_secret))
        return self.pages.redirect(request, _path(project), secrets=secrets, secrets_hint=_SHOWN_AGAIN)

    async def _rotate(self, request: Request, visitor: Visitor, project: Project) -> Response:
        hours = (await read_form(request))["overlap_hours"]
        is_number = hours.isascii() and hours.isdigit() and len(hours) <= len(str(OVERLAP_LIMIT))
        if not is_number or not 1 <= int(hours) <= OVERLAP_LIMIT:
            error = f"The overlap must be a whole number of hours, from 1 to {OVERLAP_LIMIT}."
            return await self._page(request, visitor, project, rotation_error=error, overlap_hours=hours)
        try:
            rotation = await self.projects.rotate_webhook_secret(visitor.actor, project.id, int(hours))
        except RotationUnderWay:
            error = "A rotation is already in progress. Promote its secret, or wait for it to end."
            project = await self.projects.read_project(visitor.developer, project.id)
            return await self._page(request, visitor, project, rotation_error=error)
        secrets = [("Next webhook secret", rotation.next_webhook_secret or rotation.webhook_secret)]
        notice = "The rotation has started. Your servers must now accept the next secret as well as the current one."
        return self.pages.redirect(request, _path(project), notice=notice, secrets=secrets, secrets_hint=_SHOWN_AGAIN)

    async def _promote(self, request: Request, visitor: Visitor, project: Project) -> Response:
        try:
            await self.projects.promote_webhook_secret(visitor.actor, project.id)
        except NoRotation:
            error = "No rotation is in progress, so there is nothing to promote. The last one has ended."
            return await self._page(request, visitor, project, rotation_error=error)
        notice = "The rotation is complete: proofs and webhooks are signed with the new secret only."
        return self.pages.redirect(request, _path(project), notice=notice)

    async def _send_test(self, request: Request, visitor: Visitor, project: Project) -> Response:
        try:
            sent = await self.deliveries.send_test(visitor.actor, project.id)
        except WebhookNotSet:
            project = await self.projects.read_project(visitor.developer, project.id)
            return await self._page(request, visitor, project, test_error=_NO_URL)
        path, status = f"{_DELIVERIES}/{sent.record.event_id}", sent.record.attempts[-1].status
        if sent.record.state == "delivered":
            return self.pages.redirect(request, path, notice=f"The receiver accepted the test: HTTP {status}.")
        outcome = "there was no response" if status is None else f"the receiver returned HTTP {status}"
        return self.pages.redirect(request, path, problem=f"The test failed: {outcome}.")

    async def _page(
        self,
        request: Request,
        visitor: Visitor,
        project: Project,
        *,
        rotation_error: str = "",
        overlap_hours: str = "24",
        test_error: str = "",
    ) -> Response:
        event: EventType | None = _choice(request, "event", get_args(EventType))
        state: DeliveryState | None = _choice(request, "status", get_args(DeliveryState))
        found = await self.deliveries.list_deliveries(
            visitor.developer,
            project.id,
            event_type=event,
            state=state,
            limit=PAGE,
            cursor=request.query_params.get("cursor"),
        )
        filters = {name: value for name, value in (("event", event), ("status", state)) if value is not None}
        path = _path(project)
        context = {
            "project": project,
            "endpoint": await self._endpoint_state(visitor, project),
            "host": urlsplit(project.webhook_url).netloc,
            "problem": rotation_error,  # Repeat the error at the top, because its form is far down the page.
            "rotation_error": rotation_error,
            "overlap_hours": overlap_hours,
            "overlap_limit": OVERLAP_LIMIT,
            "test_error": test_error,
            "deliveries": found.deliveries,
            "event": event,
            "status": state,
            "events": {each: each for each in get_args(EventType)},
            "is_filtered": bool(filters),
            "newest_url": f"{path}?{urlencode(filters)}" if "cursor" in request.query_params else "",
            "older_url": f"{path}?{urlencode(filters | {'cursor': found.next_cursor})}" if found.next_cursor else "",
        }
        status = 400 if rotation_error or test_error else 200
        return self.pages.render(request, "webhooks.html", context, status=status)

    async def _endpoint_state(self, visitor: Visitor, project: Project) -> EndpointState:
        if not project.webhook_url:
            return "none" if project.webhook_off_at is None else "off"
        if project.webhook_failing_since is not None:
            return "failing"
        tried: tuple[tuple[DeliveryState, EndpointState], ...] = (("delivered", "works"), ("failed", "untaken"))
        for state, shown in tried:
            found = await self.deliveries.list_deliveries(
                visitor.developer, project.id, event_type=None, state=state, limit=1, cursor=None
            )
            if found.deliveries:
                return shown
        return "untried"

    # ---- one delivery

    async def _show_delivery(self, request: Request, visitor: Visitor) -> Response:
        found = await self.deliveries.read_delivery(visitor.developer, request.path_params["delivery_id"])
        return await self._delivery_page(request, visitor, found)

    async def _resend(self, request: Request, visitor: Visitor) -> Response:
        event_id = request.path_params["delivery_id"]
        try:
            await self.deliveries.resend_delivery(visitor.actor, event_id)
        except (WebhookNotSet, SignInReported) as refused:
            found = await self.deliveries.read_delivery(visitor.developer, event_id)
            error = _NO_URL if isinstance(refused, WebhookNotSet) else refused.sentence
            return await self._delivery_page(request, visitor, found, error=error)
        # This wording is still true once the event has been sent; the page updates itself.
        notice = "The event was queued to be sent again."
        return self.pages.redirect(request, f"{_DELIVERIES}/{event_id}", notice=notice)

    async def _delivery_page(
        self, request: Request, visitor: Visitor, found: SeenDelivery, *, error: str = ""
    ) -> Response:
        project = await self.projects.read_project(visitor.developer, found.record.project_id)
        attempts = found.record.attempts
        asked = request.query_params.get("attempt", "")
        chosen = next((each for each in attempts if str(each.number) == asked), attempts[-1] if attempts else None)
        if asked and (chosen is None or str(chosen.number) != asked):
            raise InvalidRequest("This attempt is not stored. Open the delivery again, and choose another.")
        # An attempt that was not sent had no request.
        was_sent = chosen is not None and chosen.error not in {"circuit_open", "not_signed"}
        sent = None
        if chosen is not None and was_sent:
            sent = await self.deliveries.rebuild_request(project, found.record, chosen)
        context = {
            "project": project,
            "delivery": found,
            "attempts": [
                (each, attempt_sentence(each.status, each.error), answer)
                for each, answer in zip(attempts, found.answers, strict=True)
            ],
            "chosen": chosen,
            "sent": sent,
            "sent_body": "" if sent is None else readable_json(json.loads(sent.body)),
            "was_sent": was_sent,
            "error": error,
        }
        return self.pages.render(request, "delivery.html", context, status=400 if error else 200)


def _path(project: Project) -> str:
    return f"{HOME}/{project.id}/webhooks"


def _choice(request: Request, name: str, choices: tuple[str, ...]) -> Any:
    """Return a filter's chosen value; None if no value is chosen."""
    chosen = request.query_params.get(name, "")
    if chosen == "":
        return None
    if chosen not in choices:
        raise InvalidRequest("There is no such filter. Choose one in the form above the list.")
    return chosen
