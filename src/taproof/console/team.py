"""The team page, on which owners see the installation's developers and invitations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast, get_args

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from taproof.console.access import FIRST_SIGN_IN, Access, Endpoint, Page, Visitor
from taproof.console.forms import read_form
from taproof.console.rendering import PageRenderer
from taproof.contract.account import Plan
from taproof.core.errors import DeveloperExists, InvalidRequest, NotFound
from taproof.service.developers import Developers
from taproof.service.invitations import Invitations

_TEAM: Final = "/console/team"
_MESSENGER_ONLY: Final = (
    "You signed in with an access token. To invite others, or to revoke an invitation, sign out and sign in with your "
    "messenger."
)
_ONE_CLICK: Final = (
    "A console session that was opened with one click or with an access token cannot invite developers or revoke an "
    "invitation."
)
_AS_THE_LINKED_USER: Final = "Sign out, and sign in with the messenger as the simulated user that is linked to you."
_EMPTY: Final = {"email": "", "plan": "free", "is_owner": ""}


@dataclass(frozen=True, slots=True)
class TeamPages:
    """The team page. It exists only for owners."""

    access: Access
    pages: PageRenderer
    developers: Developers
    invitations: Invitations
    base_url: str
    """The beginning of invitation links."""
    one_click: bool = False
    """True if one click opens a console session with the sandbox's access token."""

    def routes(self) -> list[Route]:
        """Return the routes of these pages."""
        return [
            Route(_TEAM, self._for_owners(self._page), methods=["GET"]),
            Route(f"{_TEAM}/invitations", self._for_writing(self._invite), methods=["POST"]),
            Route(f"{_TEAM}/invitations/{{invitation_id}}/revoke", self._for_writing(self._revoke), methods=["POST"]),
        ]

    def _for_owners(self, page: Page) -> Endpoint:
        async def answer(request: Request, visitor: Visitor) -> Response:
            if not visitor.developer.is_owner:
                raise NotFound("This page does not exist.")
            return await page(request, visitor)

        return self.access.signed_in(answer)

    def _for_writing(self, page: Page) -> Endpoint:
        """Refuse visitors who signed in with an access token: a leaked token must not create lasting access."""

        async def answer(request: Request, visitor: Visitor) -> Response:
            if self._refusal(visitor):
                return await self._page(request, visitor, error=self._refusal(visitor), status=403)
            return await page(request, visitor)

        return self._for_owners(answer)

    def _refusal(self, visitor: Visitor) -> str:
        """Return why a visitor can neither invite nor revoke an invitation; "" if they can."""
        if visitor.session.access_token_id is None:
            return ""
        if not self.one_click:
            return _MESSENGER_ONLY
        return f"{_ONE_CLICK} {FIRST_SIGN_IN if visitor.developer.messenger_id is None else _AS_THE_LINKED_USER}"

    async def _invite(self, request: Request, visitor: Visitor) -> Response:
        form = await read_form(request)
        try:
            if form["plan"] not in get_args(Plan):
                raise InvalidRequest("Choose a plan from the list.")  # noqa: TRY301 — shown like the service's own errors.
            created = await self.invitations.invite_developer(
                visitor.actor, form["email"], plan=cast("Plan", form["plan"]), is_owner=form.is_checked("is_owner")
            )
        except (InvalidRequest, DeveloperExists) as error:
            typed = {name: form[name] for name in _EMPTY}
            return await self._page(request, visitor, typed, error.sentence, 400)
        return self.pages.redirect(
            request,
            _TEAM,
            notice=f"{created.invitation.email} is invited. Send them the link, because Taproof sends no e-mail.",
            secrets=[("Invitation link", f"{self.base_url}/console/invite#{created.code}")],
            secrets_hint=f"Send it to {created.invitation.email} only: the first person to use it gets the account. "
            "It is shown only once.",
        )

    async def _revoke(self, request: Request, visitor: Visitor) -> Response:
        await self.invitations.delete_invitation(visitor.actor, request.path_params["invitation_id"])
        return self.pages.redirect(request, _TEAM, notice="The invitation was revoked. Its link no longer works.")

    async def _page(
        self, request: Request, visitor: Visitor, typed: Mapping[str, str] = _EMPTY, error: str = "", status: int = 200
    ) -> Response:
        context = {
            "developers": await self.developers.list_developers(),
            "invitations": await self.invitations.list_invitations(visitor.developer),
            "plans": get_args(Plan),
            "typed": typed,
            "error": error,
            "refusal": self._refusal(visitor),
        }
        return self.pages.render(request, "team.html", context, status=status)
