"""The page on which a user types the code that a device shows (RFC 8628, section 3.3)."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from taproof.core.errors import RateLimited
from taproof.core.oidc.clients import SignInClient
from taproof.core.oidc.user_codes import show_user_code
from taproof.http.limits.rates import RateLimits
from taproof.http.metrics import Metrics
from taproof.http.requester import requester_of
from taproof.http.same_origin import is_same_origin
from taproof.oidc.answers import page_answer, read_form
from taproof.oidc.authorize import AuthorizationPages
from taproof.oidc.pages.rendering import DeviceProblem, Pages, SignInView
from taproof.service.oidc.devices import Devices, UserCodeUnknown


class DevicePages:
    """Serves /device.

    Args:
        devices: find the sign-ins of devices.
        sign_in_pages: lead to the sign-in page.
        pages: render the pages.
        limits: limit how many codes an address can try.
        metrics: count new sessions.
    """

    def __init__(
        self, devices: Devices, sign_in_pages: AuthorizationPages, pages: Pages, *, limits: RateLimits, metrics: Metrics
    ) -> None:
        self._devices = devices
        self._sign_in_pages = sign_in_pages
        self._pages = pages
        self._limits = limits
        self._metrics = metrics

    def routes(self) -> list[BaseRoute]:
        """Return the routes."""
        return [
            Route("/device", self._show),
            Route("/device", self._receive, methods=["POST"]),
        ]

    async def _show(self, request: Request) -> Response:
        """Show the form, with the code in it if the device's link contains one."""
        return self._form(request, request.query_params.get("user_code", "")[:20])

    def _form(
        self, request: Request, user_code: str, problem: DeviceProblem | None = None, status: int = 200
    ) -> Response:
        language = self._sign_in_pages.language(request)
        return page_answer(self._pages.device_code(language, user_code, problem), status)

    async def _receive(self, request: Request) -> Response:
        """Find the device, ask whether it is the user's own, and then bind it to this browser."""
        if not is_same_origin(request):
            return self._form(request, "", status=403)
        form = await read_form(request)
        typed = form.get("user_code", "")[:20]
        try:
            self._limits.count_credential(request.scope)
            found, client = await self._devices.find_device(typed)
            action = form.get("action")
            if action == "continue":
                self._limits.count_generate(request.scope, client.client.project_id)
                begun = await self._devices.continue_device(typed, requester_of(request.scope)._replace(origin=None))
                self._metrics.count_created()
                return self._sign_in_pages.lead_to_page(request, begun)
            if action == "cancel":
                await self._devices.refuse_device(typed)
                return self._show_refusal(request, client)
        except RateLimited:
            return self._form(request, typed, "too_many", 429)
        except UserCodeUnknown:
            return self._form(request, typed, "unknown", 404)
        language = self._sign_in_pages.language(request)
        shown = show_user_code(found.user_code or "")
        names = (client.project_name, client.client.name)
        page = self._pages.device_confirm(language, shown, *names, logo_url=client.logo_url)
        return page_answer(page, logo_url=client.logo_url)

    def _show_refusal(self, request: Request, client: SignInClient) -> Response:
        """Show that the device was refused: no sign-in was started, so the page has no authorization."""
        view = SignInView(
            state="cancelled",
            authorization_id="",
            project_name=client.project_name,
            client_name=client.client.name,
            logo_url=client.logo_url,
        )
        page = self._pages.sign_in(view, self._sign_in_pages.language(request))
        return page_answer(page, logo_url=client.logo_url)
