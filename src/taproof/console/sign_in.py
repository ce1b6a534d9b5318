"""The ways to sign in to the console: the messenger, an access token, or an invitation.

The browser stores the sign-in that it started in one encrypted cookie, with the next page and the invitation code. An
invitation link contains the code in its fragment, which browsers do not send. A form sends the code, so a program that
only opens the link does not use the invitation.

Confirming a sign-in opens only the account of the person who confirms. An invitation has no account yet: anyone who
photographs the QR code could confirm first. So the browser shows which account confirmed, and asks before linking it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from taproof.console.access import (
    ACCEPT_JOINING,
    FIRST_SIGN_IN,
    HOME,
    SESSION_COOKIE,
    SIGN_IN,
    Access,
    client_address,
    requester_on_page,
    safe_next,
)
from taproof.console.encrypted_cookie import EncryptedCookie
from taproof.console.forms import read_form
from taproof.console.rendering import PageRenderer
from taproof.console.waiting import show_state
from taproof.contract.session import SignInStatus
from taproof.core.accounts import AccessToken, Developer
from taproof.core.errors import (
    AccessDenied,
    DeveloperExists,
    IdentityTaken,
    InvalidAccessToken,
    InvalidRequest,
    InvitationNotFound,
    MessengerUnavailable,
    NotTheFirst,
    SignInNotFound,
    TaproofError,
)
from taproof.core.identity import MessengerIdentity
from taproof.core.names import isolated_name
from taproof.core.sessions import DeveloperSignIn
from taproof.http.cookies import set_cookie
from taproof.http.limits.rates import RateLimits
from taproof.http.qr_code import qr_code
from taproof.service.console.sign_in import CONSOLE, INVITATION, DeveloperSignIns, Purpose
from taproof.service.developers import Developers, checked_email
from taproof.service.invitations import Invitations

_WITH_TOKEN: Final = f"{SIGN_IN}/token"
_WAITING: Final = f"{SIGN_IN}/waiting"
_STATE: Final = f"{SIGN_IN}/state"
_INVITE: Final = "/console/invite"
_ACCEPT: Final = f"{_INVITE}/accept"
_CONFIRM: Final = f"{_INVITE}/confirm"

_NONE_STARTED: Final = "This browser has no sign-in in progress, or it has expired. Start a new one."
_ENDED: Final[Mapping[SignInStatus, str]] = {
    "cancelled": "You tapped Cancel in the messenger, or a number other than the one shown here, so nobody was signed "
    "in. If that was a mistake, start again.",
    "expired": "This sign-in expired after ten minutes without a decision. Start a new one.",
    "used": "This sign-in was already used, perhaps in another tab. Start a new one.",
}
_REPORTED: Final = (
    "The person who confirmed this sign-in then reported that it was not them, so nobody is signed in. If you did that "
    "by mistake, send /unblock to the bot and start again."
)
_NOT_VALID: Final = (
    "This access token is not valid: it was mistyped or revoked, or it has expired. Sign in with your messenger, or "
    "ask the operator for a new token, created with: taproof tokens create --developer EMAIL"
)
_NOBODY: Final = (
    "The messenger account {} is not linked to a developer. Ask an owner for an invitation. If you already have an "
    "account, ask the operator to link your messenger to it with: taproof developers invite EMAIL"
)
_EMAIL_TAKEN: Final = (
    "A developer with the e-mail address of this invitation already exists. Sign in as that developer. If the account "
    "has no linked messenger account, ask the operator to link yours with: taproof developers invite EMAIL"
)
_NOBODY_IN_THE_SANDBOX: Final = (
    f"The messenger account {{}} is not linked to a developer. {FIRST_SIGN_IN} If it was used before, choose the "
    "simulated user that it linked, or open an invitation from an owner."
)
_INTRO: Final[Mapping[Purpose, str]] = {
    CONSOLE: "Open the messenger and tap the number shown below. A wrong number cancels the sign-in. This page "
    "continues automatically.",
    INVITATION: "Open the messenger with the account that you want to sign in with, and tap the number shown below. A "
    "wrong number cancels the sign-in. This page continues automatically and first shows which account confirmed.",
}
_FOR_THE_OPERATOR: Final = "The operator of this service can find the reason in its log, or with: taproof doctor"
_IN_THE_SANDBOX: Final = "On the simulated phone, choose another person under “You are”, or “New user”."
_TOKENS_LIVE_ON: Final = (
    "Existing access tokens still work. Revoke any that you do not recognise, on the page Access tokens or with: "
    "taproof tokens list --developer {0} and taproof tokens revoke --developer {0} TOKEN_ID"
)


@dataclass(frozen=True, slots=True)
class SignInPages:
    """The sign-in page, its waiting page, and the pages of an invitation."""

    access: Access
    pages: PageRenderer
    started: EncryptedCookie
    """Stores the started sign-in in the browser."""
    developer_sign_ins: DeveloperSignIns
    invitations: Invitations
    developers: Developers
    limits: RateLimits
    base_url: str
    """The console's origin, which the messenger prompt shows as the page."""
    sandbox: bool

    def routes(self) -> list[Route]:
        """Return the routes of these pages."""
        return [
            Route(SIGN_IN, self._show_sign_in, methods=["GET"]),
            Route(SIGN_IN, self._sign_in_with_messenger, methods=["POST"]),
            Route(_WITH_TOKEN, self._sign_in_with_token, methods=["POST"]),
            Route(_WAITING, self._show_waiting, methods=["GET"]),
            Route(_STATE, self._show_state, methods=["GET"]),
            Route(_INVITE, self._show_invite, methods=["GET"]),
            Route(_INVITE, self._read_code, methods=["POST"]),
            Route(_ACCEPT, self._show_invitation, methods=["GET"]),
            Route(_ACCEPT, self._accept_with_messenger, methods=["POST"]),
            Route(_CONFIRM, self._accept, methods=["POST"]),
        ]

    # ---- the sign-in

    async def _show_sign_in(self, request: Request) -> Response:
        next_page = safe_next(request.query_params.get("next", ""))
        if await self.access.visitor(request) is not None:
            return RedirectResponse(next_page, 303)
        # The page's script starts the sign-in at once, so that signing in takes one screen. ?with=token prevents that.
        starts = "with" not in request.query_params
        return self._sign_in_page(request, next_page, starts=starts)

    async def _sign_in_with_messenger(self, request: Request) -> Response:
        next_page = safe_next((await read_form(request))["next"])
        if await self.access.visitor(request) is not None:
            return RedirectResponse(next_page, 303)
        try:
            return await self._ask_messenger(request, {"next": next_page}, CONSOLE)
        except MessengerUnavailable as error:
            return self._sign_in_page(request, next_page, self._sentence(error), MessengerUnavailable.status)

    async def _sign_in_with_token(self, request: Request) -> Response:
        form = await read_form(request)
        next_page = safe_next(form["next"])
        if await self.access.visitor(request) is not None:
            return RedirectResponse(next_page, 303)
        self.limits.count_credential(request.scope)
        try:
            token, developer = await self.developers.authenticate(form["access_token"])
        except InvalidAccessToken:
            self.limits.refused_credentials.note("access_token", request.scope)
            return self._sign_in_page(request, next_page, _NOT_VALID, InvalidAccessToken.status)
        self.limits.developers.count_sign_in(developer.id)
        return await self._enter(request, developer, next_page, token)

    def _sign_in_page(
        self, request: Request, next_page: str, error: str = "", status: int = 200, *, starts: bool = False
    ) -> Response:
        # The visitor has given the code of an invitation, which is not checked yet.
        joins = next_page == ACCEPT_JOINING
        context = {"next": next_page, "error": error, "starts": starts and not joins, "joins": joins}
        return self.pages.render(request, "sign_in.html", context, status=status)

    async def _enter(
        self,
        request: Request,
        developer: Developer,
        next_page: str,
        opened_with: AccessToken | DeveloperSignIn,
        *,
        notice: str = "",
    ) -> Response:
        """Sign in a developer with an access token or a confirmed sign-in. Raise AccessDenied if that is refused."""
        cookie = await self.access.sign_in(request, developer, opened_with=opened_with)
        response = self.pages.redirect(request, next_page, notice=notice)
        set_cookie(request, response, SESSION_COOKIE, cookie)
        return response

    # ---- the messenger's decision

    async def _ask_messenger(self, request: Request, kept: Mapping[str, Any], purpose: Purpose) -> Response:
        """Start a sign-in that only this browser can finish; raises MessengerUnavailable and RateLimited."""
        self.limits.count_sign_in(request.scope)
        sign_in = await self.developer_sign_ins.start(purpose, requester_on_page(request, self.base_url))
        if not self.sandbox:
            qr_code(sign_in.deeplink)  # Drawn here, where sign-ins are limited: the waiting page is loaded often.
        response = RedirectResponse(_WAITING, 303)
        self.started.give(request, response, {**kept, "encrypted": sign_in.encrypted})
        return response

    async def _show_waiting(self, request: Request) -> Response:
        if request.method == "HEAD":  # HEAD shows no page, so it must not use up the result.
            return self._sign_in_page(request, HOME)
        kept = self.started.read(request)
        if "identity" in kept:
            return self._confirmation_page(request, kept)
        if "encrypted" not in kept:
            if await self.access.visitor(request) is not None:
                return RedirectResponse(HOME, 303)  # Another tab has already finished the sign-in.
            return self._sign_in_page(request, HOME, _NONE_STARTED, 400)
        status: SignInStatus
        purpose = _purpose(kept)
        try:
            sign_in = await self.developer_sign_ins.read(kept["encrypted"], purpose)
            if sign_in.status == "pending":
                is_invited = purpose is INVITATION
                context = {
                    "sign_in": sign_in,
                    "title": "Confirm in your messenger" if is_invited else f"Sign in to {self.pages.console_name}",
                    "intro": _INTRO[purpose],
                    "state_url": _STATE,
                    "cancel_url": _ACCEPT if is_invited else SIGN_IN,
                    "other_ways": not is_invited,
                }
                return self.pages.render(request, "waiting.html", context)
            status = sign_in.status
            if status == "confirmed":
                identity = (await self.developer_sign_ins.finish(kept["encrypted"], purpose)).identity
                if identity is not None:
                    return await self._finish(request, kept, identity)
                status = "used"
        except SignInNotFound:
            status = "expired"
        return await self._go_back(request, kept, _ENDED[status], 400)

    async def _show_state(self, request: Request) -> Response:
        """Return the status to the waiting page's script, which reloads the page once it is no longer "pending"."""
        kept = self.started.read(request)
        return await show_state(request, self.developer_sign_ins, kept.get("encrypted", ""), _purpose(kept))

    async def _finish(self, request: Request, kept: Mapping[str, Any], identity: MessengerIdentity) -> Response:
        if "code" in kept:
            kept = {**kept, "identity": asdict(identity)}
            response = self._confirmation_page(request, kept)
            self.started.give(request, response, kept)
            return response
        developer = await self.developers.read_developer_by_messenger_id(identity.messenger_id)
        if developer is None:
            self.limits.refused_credentials.note("messenger_account", request.scope)
            sentence = _NOBODY_IN_THE_SANDBOX if self.sandbox else _NOBODY
            sentence = sentence.format(isolated_name(identity.messenger_name))
            return await self._go_back(request, kept, sentence, 403)
        try:
            sign_in = await self.developer_sign_ins.source(kept["encrypted"], CONSOLE)
            response = await self._enter(request, developer, safe_next(kept["next"]), sign_in)
        except (AccessDenied, SignInNotFound):
            return await self._go_back(request, kept, _REPORTED, 403)
        self.started.take_away(request, response)
        return response

    async def _go_back(self, request: Request, kept: Mapping[str, Any], error: str, status: int) -> Response:
        """Show why the sign-in failed, on the page that can start it again."""
        if "code" in kept:
            return await self._invitation_page(request, kept, error, status)
        response = self._sign_in_page(request, safe_next(kept["next"]), error, status)
        self.started.take_away(request, response)
        return response

    # ---- invitations

    async def _show_invite(self, request: Request) -> Response:
        return self._invite_page(request)

    async def _read_code(self, request: Request) -> Response:
        code = (await read_form(request))["code"].rpartition("#")[2]  # The visitor can also paste the whole link.
        self.limits.count_credential(request.scope)
        try:
            await self.invitations.read_invitation(code)
        except InvitationNotFound as error:
            self.limits.refused_credentials.note("invitation", request.scope)
            return self._invite_page(request, error.sentence, InvitationNotFound.status)
        response = RedirectResponse(_ACCEPT, 303)
        self.started.give(request, response, {"code": code, "email": ""})
        return response

    async def _show_invitation(self, request: Request) -> Response:
        if request.method == "HEAD":  # HEAD must not end a sign-in in progress.
            return self._invite_page(request)
        kept = self.started.read(request)
        if "code" not in kept:
            return RedirectResponse(_INVITE, 303)
        return await self._invitation_page(request, kept)

    async def _accept_with_messenger(self, request: Request) -> Response:
        typed = (await read_form(request))["email"]
        kept = self.started.read(request)
        if "code" not in kept:
            return RedirectResponse(_INVITE, 303)
        kept = {"code": kept["code"], "email": ""}
        try:
            invitation = await self.invitations.read_invitation(kept["code"])
            if not invitation.email:
                kept["email"] = checked_email(typed)
            return await self._ask_messenger(request, kept, INVITATION)
        except (InvitationNotFound, InvalidRequest, MessengerUnavailable) as error:
            return await self._invitation_page(request, kept, self._sentence(error), error.status, typed=typed)

    def _confirmation_page(self, request: Request, kept: Mapping[str, Any]) -> Response:
        """Ask whether it was the visitor who confirmed, because another person can have scanned the QR code."""
        context = {"identity": MessengerIdentity(**kept["identity"]), "confirm_url": _CONFIRM, "again_url": _ACCEPT}
        return self.pages.render(request, "invite_confirm.html", context)

    async def _accept(self, request: Request) -> Response:
        await read_form(request)
        kept = self.started.read(request)
        # Without a finished sign-in in the cookie, there is nothing to accept.
        if not {"identity", "encrypted"} <= kept.keys():
            return RedirectResponse(_ACCEPT, 303)
        identity = MessengerIdentity(**kept["identity"])
        try:
            sign_in = await self.developer_sign_ins.source(kept["encrypted"], INVITATION)
            invitation = await self.invitations.read_invitation(kept["code"])
            developer = await self.invitations.accept_invitation(
                kept["code"], identity, email=kept["email"], address=client_address(request), sign_in=sign_in
            )
        except (AccessDenied, SignInNotFound):
            return await self._invitation_page(request, kept, _REPORTED, 403)
        except DeveloperExists:
            return await self._invitation_page(request, kept, _EMAIL_TAKEN, DeveloperExists.status)
        except (InvitationNotFound, IdentityTaken, NotTheFirst, InvalidRequest) as error:
            return await self._invitation_page(request, kept, self._sentence(error), error.status)
        notice = f"You are signed in. From now on, you sign in with {_account(identity)}."
        if invitation.developer_id is not None:
            notice = f"{notice} {_TOKENS_LIVE_ON.format(developer.email)}"
        try:
            response = await self._enter(request, developer, HOME, sign_in, notice=notice)
        except AccessDenied:
            response = self._sign_in_page(request, HOME, _REPORTED, 403)
        self.started.take_away(request, response)
        return response

    async def _invitation_page(
        self, request: Request, kept: Mapping[str, Any], error: str = "", status: int = 200, *, typed: str = ""
    ) -> Response:
        """Show an invitation and ask the visitor to continue in the messenger. A sign-in in progress is dropped.

        `typed` is only shown, not stored: the cookie contains only a checked e-mail address, so it stays small enough.
        """
        try:
            invitation = await self.invitations.read_invitation(kept["code"])
        except InvitationNotFound as gone:
            response = self._invite_page(request, error or gone.sentence, InvitationNotFound.status)
            self.started.take_away(request, response)
            return response
        is_bound = False
        if invitation.developer_id is not None:
            is_bound = (await self.developers.read_developer(invitation.email)).messenger_id is not None
        email = typed or kept["email"]
        response = self._invite_page(request, error, status, invitation=invitation, email=email, is_bound=is_bound)
        self.started.give(request, response, {"code": kept["code"], "email": kept["email"]})
        return response

    def _invite_page(self, request: Request, error: str = "", status: int = 200, **shown: object) -> Response:
        context = {"invitation": None, "email": "", "is_bound": False, "error": error, **shown}
        return self.pages.render(request, "invite.html", context, status=status)

    def _sentence(self, error: TaproofError) -> str:
        """Return an error's sentence, with advice for the visitor."""
        if isinstance(error, MessengerUnavailable):
            return f"{error.sentence} {_FOR_THE_OPERATOR}"
        if isinstance(error, IdentityTaken) and self.sandbox:
            return f"{error.sentence} {_IN_THE_SANDBOX}"
        return error.sentence


def _purpose(kept: Mapping[str, Any]) -> Purpose:
    return INVITATION if "code" in kept else CONSOLE


def _account(identity: MessengerIdentity) -> str:
    """Describe a messenger account in words. The id is included, because anyone can choose any name."""
    username = f", @{isolated_name(identity.messenger_username)}" if identity.messenger_username else ""
    return f"the messenger account {isolated_name(identity.messenger_name)}{username}, id {identity.messenger_id}"
