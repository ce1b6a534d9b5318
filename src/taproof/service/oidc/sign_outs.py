"""Sign out the users whom an application sends (OpenID Connect RP-Initiated Logout 1.0).

Taproof keeps no session of its own in the browser. So signing out ends what the application got for its user, and
leads back to the application.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from taproof.core.clock import Clock
from taproof.core.oidc.claims import hashes_of
from taproof.core.oidc.clients import SignInClient
from taproof.core.oidc.redirect_uris import matches
from taproof.core.oidc.signing import audience_of
from taproof.service.oidc.keys import SigningKeys
from taproof.storage.protocol import Storage

_UNKNOWN_CLIENT: Final = "There is no client with this client_id. Copy it from the console."
_WRONG_HINT: Final = (
    "id_token_hint is not an ID token that Taproof issued to this client in the last 180 days. Send one, also an "
    "expired one."
)
_WRONG_ADDRESS: Final = (
    "This post_logout_redirect_uri is not registered for the client. Add it in the console, character by character."
)
_NO_CLIENT: Final = "post_logout_redirect_uri needs id_token_hint or client_id, so that Taproof knows the client."


class SignOutResult(NamedTuple):
    """The outcome of a request to sign out.

    `redirect_to` is the address of the application; None to show a page. `client_name` is "" unless a user was signed
    out. `problem` is the application's mistake; "" for none.
    """

    redirect_to: str | None = None
    client_name: str = ""
    problem: str = ""


class SignOuts:
    """Ends the grants of users who sign out at an application.

    Args:
        storage: the store.
        keys: verify ID tokens.
        clock: returns the time in ms.
        issuer: the service's base URL.
    """

    def __init__(self, storage: Storage, keys: SigningKeys, clock: Clock, issuer: str) -> None:
        self._storage = storage
        self._keys = keys
        self._clock = clock
        self._issuer = issuer

    async def sign_out(self, parameters: Mapping[str, str]) -> SignOutResult:
        """Sign out the user whom the parameters name by an ID token.

        Without a valid ID token, nothing ends: any page could send its visitors here. A registered address is followed
        also then, because it is the application's own.
        """
        hint, address = parameters.get("id_token_hint"), parameters.get("post_logout_redirect_uri")
        client_id = parameters.get("client_id") or (None if hint is None else audience_of(hint))
        client = None if client_id is None else await self._storage.oidc_clients.read_client(client_id)
        if client is None:
            return SignOutResult(problem=_problem_without_client(hint, client_id, address))
        claims = None
        if hint is not None:
            claims = await self._keys.read_id_token(hint, issuer=self._issuer, client_id=client.client.id)
            if claims is None:
                return SignOutResult(problem=_WRONG_HINT)
            await self._end(client, claims)
        if address is None:
            return SignOutResult(client_name="" if claims is None else client.client.name)
        if not matches(client.client.post_logout_redirect_uris, address):
            return SignOutResult(problem=_WRONG_ADDRESS)
        return SignOutResult(_with_state(address, parameters.get("state")))

    async def _end(self, client: SignInClient, claims: Mapping[str, Any]) -> None:
        """End what the client got with this ID token: the grant that it names, or else the access token.

        An ID token that names no grant was issued before the client kept any. So it also ends the later grants of its
        user.
        """
        now, grants, user = self._clock(), self._storage.grants, str(claims["sub"])
        if "sid" not in claims:
            await self._storage.authorizations.end_access_token(client.client.id, *hashes_of(str(claims["at_hash"])))
            await grants.end_grants_of_user(client.client.project_id, client.client.id, user, now, "signed_out")
            return
        grant = await grants.read_grant(str(claims["sid"]))
        if grant is not None and grant.client_id == client.client.id and grant.messenger_id == user:
            await grants.end_grant(grant.id, now, "signed_out")


def _problem_without_client(hint: str | None, client_id: str | None, address: str | None) -> str:
    if hint is not None and client_id is None:
        return _WRONG_HINT
    if client_id is not None:
        return _UNKNOWN_CLIENT
    return "" if address is None else _NO_CLIENT


def _with_state(address: str, state: str | None) -> str:
    if state is None:
        return address
    return f"{address}{'&' if '?' in address else '?'}{urlencode({'state': state})}"
