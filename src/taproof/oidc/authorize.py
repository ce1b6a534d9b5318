"""The authorization endpoint and the sign-in page (RFC 6749, section 3.1; OpenID Connect Core 1.0, section 3.1.2)."""

from functools import partial
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from taproof.core.clock import SECOND, Clock
from taproof.core.errors import (
    BotBroken,
    MessengerUnavailable,
    PlanLimitReached,
    ProjectNotFound,
    ProjectPaused,
    RateLimited,
    SameDeviceRequired,
    TaproofError,
)
from taproof.core.oidc.errors import OAuthError, RefusedOnPage
from taproof.core.oidc.groups import NOT_ADMITTED
from taproof.core.oidc.model import AUTHORIZATION_LIFETIME, KEPT_AFTER
from taproof.core.oidc.redirect_uris import leads_to
from taproof.core.oidc.requests import AuthorizationRequest, RefusedByRedirect, ReturnAddress
from taproof.core.origins import NotAnOrigin, read_origin
from taproof.core.request_context import Requester
from taproof.http.cookies import delete_cookie, list_cookies, read_cookie, set_cookie
from taproof.http.errors import RawHeaders, error_response, retry_after
from taproof.http.limits.rates import RateLimits
from taproof.http.metrics import Metrics
from taproof.http.qr_code import qr_code_file
from taproof.http.requester import requester_of, until_gone
from taproof.http.same_origin import is_same_origin, origin_of
from taproof.oidc.answers import (
    authorization_answer,
    drawing_answer,
    json_answer,
    page_answer,
    read_form,
    read_query,
    redirect_answer,
)
from taproof.oidc.pages.language import choose_language
from taproof.oidc.pages.rendering import Pages, ProblemKey, SignInState, SignInView, UnavailableReason
from taproof.service.oidc.requests import AuthorizationRequests
from taproof.service.oidc.sign_in import LIVE, BegunSignIn, OidcSignIns, PageState, SeenSignIn

WAIT_SECONDS: Final = 25
"""The longest time that the page's script waits for a change, in seconds."""
COOKIE_SECONDS: Final = (AUTHORIZATION_LIFETIME + KEPT_AFTER) // SECOND
COOKIES_LIMIT: Final = 20
"""The maximum number of sign-ins that one browser can have open. The next one replaces the oldest."""
_SAME_DEVICE: Final = "The project's sign-ins must end in the browser in which they began, which this page cannot do."
_UNAVAILABLE: Final[dict[type[TaproofError], UnavailableReason]] = {
    ProjectPaused: "paused",
    BotBroken: "bot_broken",
    PlanLimitReached: "limit",
}
_DESCRIPTIONS: Final[dict[UnavailableReason, str]] = {
    "paused": "The project is paused, so no sign-in can be started.",
    "bot_broken": "The bot of the project does not work, so no sign-in can be started.",
    "limit": "The plan of the project allows no more sign-ins.",
    "try_later": "The messenger cannot be reached. Try again in a moment.",
}
_REFUSALS: Final[dict[PageState, OAuthError]] = {
    "cancelled": OAuthError("access_denied", "The user cancelled the sign-in in the messenger."),
    "other_account": OAuthError("login_required", "Another account confirmed than the one that id_token_hint names."),
}
"""The errors returned if the user's decision does not fulfil the application's request."""


class AuthorizationPages:
    """Serves the authorization endpoint and the page that it leads to.

    Args:
        requests: read authorization requests.
        sign_ins: create and finish sign-ins.
        pages: render the pages.
        issuer: the service's base URL.
        clock: returns the time in ms.
        limits: the rate limits of clients.
        metrics: count new sessions.
    """

    def __init__(
        self,
        requests: AuthorizationRequests,
        sign_ins: OidcSignIns,
        pages: Pages,
        issuer: str,
        clock: Clock,
        *,
        limits: RateLimits,
        metrics: Metrics,
    ) -> None:
        self._requests = requests
        self._sign_ins = sign_ins
        self._pages = pages
        self._issuer = issuer
        self._clock = clock
        self._limits = limits
        self._metrics = metrics

    def routes(self) -> list[BaseRoute]:
        """Return the routes."""
        page = "/oidc/authorize/{authorization_id}"
        return [
            Route("/oidc/authorize", self._authorize, methods=["GET", "POST"]),
            Route(page, self._show),
            Route(f"{page}/qr.svg", self._draw_link),
            Route(f"{page}/status", self._read_state),
            Route(f"{page}/start-again", self._start_again, methods=["POST"]),
            Route(f"{page}/leave", self._leave, methods=["POST"]),
            Route(f"{page}/return", self._show_return),
            Route(f"{page}/return", self._finish_return, methods=["POST"]),
        ]

    async def _authorize(self, request: Request) -> Response:
        """Check an authorization request, start the sign-in and lead to its page."""
        if request.method == "HEAD":  # Programs that check links must not start sign-ins.
            raise HTTPException(405, headers={"allow": "GET, POST"})
        try:
            if request.method == "POST":
                parameters = await read_form(request)
            else:
                parameters = read_query(request.scope["query_string"])
            client, wanted = await self._requests.read_request(parameters)
        except RefusedByRedirect as error:
            return self._return(request, error.address, error.to_answer())
        except OAuthError as error:
            fault = error.fault if isinstance(error, RefusedOnPage) else "request"
            return self.show_problem(request, fault, error.description, error.status)
        try:
            self._limits.count_generate(request.scope, client.client.project_id)
            begun = await self._sign_ins.begin_sign_in(client, wanted, _requester(request, wanted))
        except (ProjectPaused, BotBroken, PlanLimitReached, MessengerUnavailable) as error:
            description = _DESCRIPTIONS[_UNAVAILABLE.get(type(error), "try_later")]
            return self._refuse(request, wanted, OAuthError("temporarily_unavailable", description))
        except SameDeviceRequired:
            return self._refuse(request, wanted, OAuthError("unauthorized_client", _SAME_DEVICE))
        self._metrics.count_created()
        return self.lead_to_page(request, begun)

    def lead_to_page(self, request: Request, begun: BegunSignIn) -> Response:
        """Return the redirect to the page of a new sign-in, which it binds to the browser.

        A page with a popup can start one sign-in after another. Without a limit, their cookies would soon exceed the
        16 KiB of a request head, and this browser could no longer reach the service.
        """
        response = redirect_answer(f"{self._issuer}/oidc/authorize/{begun.id}")
        for old in list_cookies(request, _cookie("auth_"))[: -(COOKIES_LIMIT - 1)]:
            delete_cookie(request, response, old)
        set_cookie(request, response, _cookie(begun.id), begun.browser_secret, max_age=COOKIE_SECONDS)
        return response

    async def _show(self, request: Request) -> Response:
        """Show the sign-in page, or lead back to the application with the code."""
        found = await self._find(request)
        if found is None:
            return self._unknown(request)
        seen, secret = found
        if seen.state == "confirmed" and request.method == "GET":
            code = await self._sign_ins.finish_sign_in(seen, secret)
            if code is not None:
                wanted = seen.request
                return self._return(request, wanted.return_address, {"code": code}, wanted.ui_locales)
            # Another tab was faster, or the session was just reported: show the current state.
            found = await self._find(request)
            if found is None:
                return self._unknown(request)
            seen, _ = found
        refusal = _REFUSALS.get(seen.state)
        if refusal is None or not seen.request.redirect_uri or request.method != "GET":
            return self._page(request, seen)
        if not await self._sign_ins.leave_sign_in(seen):  # Another tab was faster.
            return redirect_answer(f"{self._issuer}/oidc/authorize/{seen.authorization.id}")
        return self._refuse(request, seen.request, refusal)

    def _page(self, request: Request, seen: SeenSignIn, unavailable: UnavailableReason | None = None) -> Response:
        now = self._clock()
        state: SignInState
        match seen.state:
            case "unreachable":
                state, unavailable = "unavailable", unavailable or "blocked"
            case "confirmed" | "returned" | "other_account":
                state = "finished"
            case other:
                state = other
        view = SignInView(
            state="unavailable" if unavailable is not None else state,
            authorization_id=seen.authorization.id,
            project_name=seen.client.project_name,
            client_name=seen.client.client.name,
            deeplink=seen.deeplink,
            match_code=seen.match_code,
            seconds_left=max(0, (seen.session_expires_at - now) // SECOND),
            reason=unavailable,
            can_start_again=seen.can_start_again,
            application_url=bool(seen.request.redirect_uri),
            hint=seen.hint,
            return_required=seen.return_required,
            expects_account=seen.authorization.expected_user is not None,
            texts=seen.client.texts,
            logo_url=seen.client.logo_url,
            messenger_id=seen.messenger_id,
        )
        page = self._pages.sign_in(view, self.language(request, seen.request.ui_locales))
        return page_answer(page, leaves=bool(seen.request.redirect_uri), logo_url=view.logo_url)

    async def _draw_link(self, request: Request) -> Response:
        """Return the QR code of the link, for browsers without scripts."""
        found = await self._find(request)
        if found is None or found[0].deeplink is None or found[0].return_required:
            return json_answer({"state": None if found is None else found[0].state}, 404)
        return drawing_answer(qr_code_file(found[0].deeplink))

    async def _read_state(self, request: Request) -> Response:
        """Return the sign-in's state to the page's script, once it differs from the state that the script has seen."""
        found = await self._find(request)
        if found is None:
            return json_answer({"state": None}, 404)
        query = request.query_params
        if found[0].state in LIVE and (found[0].state, found[0].hint) == (query.get("seen"), query.get("hint")):
            await self._sign_ins.wait_for_change(found[0], WAIT_SECONDS, partial(until_gone, request.receive))
            found = await self._find(request)
        if found is None or found[0].state not in LIVE:
            return json_answer({"state": None if found is None else found[0].state})
        seen, _ = found
        text = self._pages.status_text(seen.hint, seen.match_code, self.language(request, seen.request.ui_locales))
        return json_answer({"state": seen.state, "hint": seen.hint, "text": text})

    async def _start_again(self, request: Request) -> Response:
        found = await self._find_for_form(request)
        if isinstance(found, Response):
            return found
        seen, _ = found
        try:
            self._limits.count_generate(request.scope, seen.client.client.project_id)
            created = await self._sign_ins.start_again(seen, _requester(request, seen.request))
        except (ProjectNotFound, ProjectPaused, BotBroken, PlanLimitReached, MessengerUnavailable) as error:
            return self._page(request, seen, _UNAVAILABLE.get(type(error), "try_later"))
        except SameDeviceRequired:
            if not seen.request.redirect_uri:  # A device learns it when it begins again.
                raise
            return self._refuse(request, seen.request, OAuthError("unauthorized_client", _SAME_DEVICE))
        if created:
            self._metrics.count_created()
        return redirect_answer(f"{self._issuer}/oidc/authorize/{seen.authorization.id}")

    async def _leave(self, request: Request) -> Response:
        found = await self._find_for_form(request)
        if isinstance(found, Response):
            return found
        seen, _ = found
        page = f"{self._issuer}/oidc/authorize/{seen.authorization.id}"
        if not await self._sign_ins.leave_sign_in(seen) or not seen.request.redirect_uri:
            return redirect_answer(page)
        reason = NOT_ADMITTED if seen.state == "not_allowed" else "The user went back without signing in."
        return self._refuse(request, seen.request, OAuthError("access_denied", reason))

    async def _show_return(self, request: Request) -> Response:
        """Show the page to which the messenger leads. Its script sends the return code, which is in the fragment.

        This never redirects: browsers would take the fragment along, so the next page would get the code.
        """
        found = await self._find(request)
        if found is None:
            is_signed_in = await self._sign_ins.is_finished_elsewhere(request.path_params["authorization_id"])
            page = self._pages.elsewhere(self.language(request), is_signed_in=is_signed_in)
            return page_answer(page, 200 if is_signed_in else 404)
        seen, _ = found
        language = self.language(request, seen.request.ui_locales)
        logo = seen.client.logo_url
        page = self._pages.back_in_browser(seen.authorization.id, seen.client.project_name, language, logo_url=logo)
        return page_answer(page, leaves=bool(seen.request.redirect_uri), logo_url=logo)

    async def _finish_return(self, request: Request) -> Response:
        found = await self._find_for_form(request)
        if isinstance(found, Response):
            return found
        seen, secret = found
        form = await read_form(request)
        code = await self._sign_ins.finish_return(seen, secret, form.get("return_code", ""))
        if code is None:
            return redirect_answer(f"{self._issuer}/oidc/authorize/{seen.authorization.id}")
        return self._return(request, seen.request.return_address, {"code": code}, seen.request.ui_locales)

    async def _find(self, request: Request) -> tuple[SeenSignIn, str] | None:
        """Return the sign-in of this page and the secret in its cookie; None in another browser."""
        authorization_id = request.path_params["authorization_id"]
        secret = read_cookie(request, _cookie(authorization_id))
        seen = None if secret is None else await self._sign_ins.read_sign_in(authorization_id, secret)
        return None if seen is None or secret is None else (seen, secret)

    async def _find_for_form(self, request: Request) -> tuple[SeenSignIn, str] | Response:
        """Return the sign-in on whose page a form was sent, or the response if it was not sent there."""
        if not is_same_origin(request):
            return self._unknown(request, "Origin and Sec-Fetch-Site do not say that this page sent the form.")
        found = await self._find(request)
        return self._unknown(request) if found is None else found

    def _unknown(
        self, request: Request, detail: str = "No cookie of this browser belongs to this sign-in."
    ) -> Response:
        return self.show_problem(request, "unknown_sign_in", detail, 404)

    def _refuse(self, request: Request, wanted: AuthorizationRequest, error: OAuthError) -> Response:
        return self._return(request, wanted.return_address, error.to_answer(), wanted.ui_locales)

    def _return(
        self, request: Request, address: ReturnAddress, fields: dict[str, str], ui_locales: str = ""
    ) -> Response:
        """Return the authorization response, with the state and the issuer (RFC 9207).

        A page of this origin must not post a form to this origin for an application. It would be same-origin, so the
        application could send forms of the console in the developer's name.
        """
        if address.response_mode == "form_post" and self._is_own(request, address.redirect_uri):
            return self.show_problem(request, "redirect_uri", "form_post cannot lead to this service itself.", 400)
        if address.state is not None:
            fields = fields | {"state": address.state}
        language = self.language(request, ui_locales)
        return authorization_answer(self._pages, language, address, fields | {"iss": self._issuer})

    def _is_own(self, request: Request, redirect_uri: str) -> bool:
        """Return whether a redirect URI leads to this service, also under another name that reaches it."""
        return any(leads_to(redirect_uri, origin) for origin in (self._issuer, origin_of(request)))

    def language(self, request: Request, ui_locales: str = "") -> str:
        """Return the language of a page."""
        return choose_language(ui_locales, request.headers.get("accept-language"))

    def show_problem(
        self, request: Request, key: ProblemKey, detail: str, status: int, headers: RawHeaders | None = None
    ) -> Response:
        """Return the page for a request that cannot be answered with a redirect."""
        return page_answer(self._pages.problem(key, detail, self.language(request)), status, headers)

    async def show_failure(self, request: Request, error: Exception) -> Response:
        """Return the page for a failed request."""
        if isinstance(error, OAuthError):  # A form that cannot be read.
            return self.show_problem(request, "request", error.description, error.status)
        status, _, _ = error_response(error)
        if isinstance(error, RateLimited):
            return self.show_problem(request, "too_many", error.sentence, status, retry_after(error))
        sentence = error.sentence if isinstance(error, TaproofError) and status != 500 else "Internal error."
        return self.show_problem(request, "failure" if status >= 500 else "request", sentence, status)


def _cookie(authorization_id: str) -> str:
    return f"oidc_{authorization_id}"


def _requester(request: Request, wanted: AuthorizationRequest) -> Requester:
    """Return the requester that the messenger's prompt shows: the application's site, where the user came from."""
    scheme, separator, rest = wanted.redirect_uri.partition("://")
    try:
        origin = read_origin(f"{scheme}{separator}{rest.partition('/')[0].partition('?')[0]}")
    except NotAnOrigin:
        origin = None
    return requester_of(request.scope)._replace(origin=origin)
