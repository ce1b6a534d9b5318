"""The access token page: list, create and revoke the tokens with which programs call the developer API."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from taproof.console.access import Access, Visitor
from taproof.console.forms import Form, read_form
from taproof.console.rendering import PageRenderer
from taproof.core.clock import DAY, SECOND, Clock
from taproof.core.errors import InvalidRequest, TooManyAccessTokens
from taproof.core.rights import SCOPES
from taproof.service.developers import Developers

_TOKENS: Final = "/console/tokens"
_DAYS: Final[Mapping[str, int | None]] = {"never": None, "7": 7, "30": 30, "90": 90}
_LIMIT: Final = 3650 * DAY
_EMPTY: Final = {"name": "", "expiry": "90", "date": "", "scope_read": "on", "scope_write": "on", "scope_tokens": ""}


@dataclass(frozen=True, slots=True)
class TokenPages:
    """The page of a developer's access tokens."""

    access: Access
    pages: PageRenderer
    developers: Developers
    clock: Clock

    def routes(self) -> list[Route]:
        """Return the routes of these pages."""
        signed_in = self.access.signed_in
        return [
            Route(_TOKENS, signed_in(self._page, way_out=True), methods=["GET"]),
            Route(_TOKENS, signed_in(self._create), methods=["POST"]),
            Route(f"{_TOKENS}/{{token_id}}/revoke", signed_in(self._revoke, way_out=True), methods=["POST"]),
        ]

    async def _create(self, request: Request, visitor: Visitor) -> Response:
        form = await read_form(request)
        notice = "Access token created."
        try:
            expires_at = _expiry(form, self.clock())
            limit = visitor.session.expires_at
            if limit is not None and (expires_at is None or expires_at > limit):
                expires_at = limit
                notice = f"{notice} It expires at the same time as the token that you signed in with."
            created = await self.developers.create_access_token(
                visitor.actor,
                form["name"],
                expires_at=expires_at,
                scopes=[scope for scope in SCOPES if form.is_checked(f"scope_{scope}")],
            )
        except (InvalidRequest, TooManyAccessTokens) as error:
            typed = {name: form[name] for name in _EMPTY}
            return await self._page(request, visitor, typed, error.sentence, 400)
        return self.pages.redirect(request, _TOKENS, notice=notice, secrets=[("Access token", created.plaintext)])

    async def _revoke(self, request: Request, visitor: Visitor) -> Response:
        token_id: str = request.path_params["token_id"]
        keep_created = (await read_form(request))["created"] != "revoke"
        count = await self.developers.delete_access_token(visitor.actor, token_id, keep_created=keep_created)
        notice = "Access token revoked." if count == 1 else f"{count} access tokens revoked."
        if await self.access.visitor(request) is not None:
            return self.pages.redirect(request, _TOKENS, notice=notice)
        # This session was opened with the token and has ended with it.
        return self.pages.redirect_signed_out(request, f"{notice} You had signed in with it, so you are signed out.")

    async def _page(
        self, request: Request, visitor: Visitor, typed: Mapping[str, str] = _EMPTY, error: str = "", status: int = 200
    ) -> Response:
        tokens = await self.developers.list_access_tokens(visitor.developer.id)
        context = {
            "tokens": tokens,
            "names": {token.id: token.name for token in tokens},
            "parents": {token.parent_id for token in tokens},
            "tomorrow": datetime.fromtimestamp((self.clock() + DAY) // SECOND, UTC).date(),
            "typed": typed,
            "error": error,
        }
        return self.pages.render(request, "tokens.html", context, status=status)


def _expiry(form: Form, now: int) -> int | None:
    """Return a new token's expiry (ms); None if the token does not expire.

    A token with a last day is valid until the end of that day, in UTC.
    """
    if form["expiry"] == "date":
        try:
            last = date.fromisoformat(form["date"])
        except ValueError:
            raise InvalidRequest("Enter the last day on which the token is valid, such as 2027-01-31.") from None
        end = (last - date(1970, 1, 1)).days * DAY + DAY
        if not now < end <= now + _LIMIT:
            raise InvalidRequest("Choose a day between today and ten years from now, or “until it is revoked”.")
        return end
    if form["expiry"] not in _DAYS:
        raise InvalidRequest("Choose how long the token is valid.")
    days = _DAYS[form["expiry"]]
    return None if days is None else now + days * DAY
