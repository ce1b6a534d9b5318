"""Sign-ins of devices without a browser (RFC 8628)."""

import hashlib
from typing import Any, Final

from taproof.core.clock import SECOND, Clock
from taproof.core.entropy import Entropy
from taproof.core.errors import TaproofError
from taproof.core.identifiers import new_id, random_base64url
from taproof.core.oidc.clients import SignInClient
from taproof.core.oidc.errors import OAuthError
from taproof.core.oidc.model import DEVICE_INTERVAL, DEVICE_LIFETIME, Authorization, NewAuthorization
from taproof.core.oidc.requests import AuthorizationRequest, read_scopes
from taproof.core.oidc.user_codes import new_user_code, read_user_code, show_user_code
from taproof.core.request_context import Requester
from taproof.service.oidc.requests import require_grant_type
from taproof.service.oidc.sign_in import BegunSignIn, OidcSignIns, browser_hash
from taproof.storage.protocol import Storage

_ATTEMPTS: Final = 5


class UserCodeUnknown(TaproofError, code="user_code_unknown"):
    """The typed code belongs to no open sign-in."""

    sentence = "There is no such code, or it has expired. Check the code on the device, or start again there."


class Devices:
    """Starts sign-ins of devices, and connects them to the browser in which the user types the code.

    Args:
        storage: the store.
        sign_ins: create the sessions.
        base_url: the service's address, at which the page /device is.
        clock: returns the time in ms.
        entropy: returns random bytes.
    """

    def __init__(self, storage: Storage, sign_ins: OidcSignIns, base_url: str, clock: Clock, entropy: Entropy) -> None:
        self._storage = storage
        self._sign_ins = sign_ins
        self._base_url = base_url
        self._clock = clock
        self._entropy = entropy

    async def begin_device(self, client: SignInClient, scope: str) -> dict[str, Any]:
        """Start a device's sign-in, and return the response (RFC 8628, section 3.2).

        Raises:
            OAuthError: the client or the scope is refused; nothing is stored.
        """
        require_grant_type(client, "device_code")
        if not client.is_active:
            raise OAuthError("unauthorized_client", "This project is paused, so no sign-in can be started.")
        if client.same_device == "require":
            raise OAuthError(
                "unauthorized_client",
                "This project requires that a sign-in ends in the browser in which it began (same_device), so devices "
                "cannot sign in.",
            )
        request = AuthorizationRequest(scopes=read_scopes(scope))
        device_code = random_base64url(self._entropy)
        # Another node, whose clock is ahead of this one, may just have given the grant.
        now = max(self._clock(), client.devices_since or 0)
        for _ in range(_ATTEMPTS):
            user_code = new_user_code(self._entropy)
            created = await self._storage.authorizations.create_authorization(
                NewAuthorization(
                    id=new_id("auth", self._entropy),
                    client_id=client.client.id,
                    project_id=client.client.project_id,
                    request=request.dump(),
                    created_at=now,
                    expires_at=now + DEVICE_LIFETIME,
                    device_code_hash=device_code_hash(device_code),
                    user_code=user_code,
                )
            )
            if created:
                break
        else:
            raise OAuthError("temporarily_unavailable", "Try again in a moment.")
        page = f"{self._base_url}/device"
        return {
            "device_code": device_code,
            "user_code": show_user_code(user_code),
            "verification_uri": page,
            "verification_uri_complete": f"{page}?user_code={show_user_code(user_code)}",
            "expires_in": DEVICE_LIFETIME // SECOND,
            "interval": DEVICE_INTERVAL,
        }

    async def find_device(self, typed: str) -> tuple[Authorization, SignInClient]:
        """Return the sign-in whose user code was typed, and its client.

        Raises:
            UserCodeUnknown: there is none that waits for a browser, or its client has lost the grant.
        """
        code = read_user_code(typed)
        found = None
        if code is not None:
            found = await self._storage.authorizations.read_authorization_by_user_code(code, self._clock())
        client = None if found is None else await self._storage.oidc_clients.read_client(found.client_id)
        if found is None or client is None or not client.can_finish("device_code", found.created_at):
            raise UserCodeUnknown
        return found, client

    async def continue_device(self, typed: str, requester: Requester) -> BegunSignIn:
        """Bind a device's sign-in to the browser, and create its session.

        Raises:
            UserCodeUnknown: the code belongs to no sign-in, or another browser was faster.
            ProjectNotFound, ProjectPaused, SameDeviceRequired, BotBroken, PlanLimitReached, MessengerUnavailable: the
                sign-in has ended, so that the device stops polling; the user starts again there.
        """
        found, _ = await self.find_device(typed)
        secret = random_base64url(self._entropy)
        if not await self._storage.authorizations.bind_browser(found.id, browser_hash(secret), self._clock()):
            raise UserCodeUnknown
        try:
            await self._sign_ins.start_session(found, requester)
        except TaproofError:
            await self._storage.authorizations.end_authorization(found.id, self._clock())
            raise
        return BegunSignIn(found.id, secret)

    async def refuse_device(self, typed: str) -> None:
        """End a device's sign-in, because the user does not know the device.

        Raises:
            UserCodeUnknown: the code belongs to no open sign-in.
        """
        found, _ = await self.find_device(typed)
        await self._storage.authorizations.end_authorization(found.id, self._clock())


def device_code_hash(device_code: str) -> bytes:
    """Return the stored form of a device code."""
    return hashlib.sha256(device_code.encode()).digest()
