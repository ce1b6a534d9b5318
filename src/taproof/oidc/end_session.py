"""The end_session_endpoint, to which applications send users who sign out there (RP-Initiated Logout 1.0)."""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from taproof.oidc.answers import page_answer, read_form, read_query, redirect_answer
from taproof.oidc.pages.language import choose_language
from taproof.oidc.pages.rendering import Pages
from taproof.service.oidc.sign_outs import SignOuts


class EndSessionPages:
    """Serves the endpoint.

    Args:
        sign_outs: end the grants of users.
        pages: render the pages.
    """

    def __init__(self, sign_outs: SignOuts, pages: Pages) -> None:
        self._sign_outs = sign_outs
        self._pages = pages

    def routes(self) -> list[BaseRoute]:
        """Return the routes."""
        return [Route("/oidc/end_session", self._sign_out, methods=["GET", "POST"])]

    async def _sign_out(self, request: Request) -> Response:
        if request.method == "HEAD":  # Programs that check links must not sign users out.
            raise HTTPException(405, headers={"allow": "GET, POST"})
        if request.method == "POST":
            parameters = await read_form(request)
        else:
            parameters = read_query(request.scope["query_string"])
        done = await self._sign_outs.sign_out(parameters)
        if done.redirect_to is not None:
            return redirect_answer(done.redirect_to)
        language = choose_language(parameters.get("ui_locales", "")[:200], request.headers.get("accept-language"))
        if done.problem:
            return page_answer(self._pages.signed_out("problem", language, detail=done.problem), 400)
        if not done.client_name:
            return page_answer(self._pages.signed_out("nothing", language))
        return page_answer(self._pages.signed_out("text", language, done.client_name))
