"""Build the responses with tokens, for sign-ins and refreshes (RFC 6749, section 5.1; OpenID Connect Core 1.0)."""

import dataclasses
from typing import Any, NamedTuple

from taproof.core.clock import SECOND
from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.identity import MessengerIdentity
from taproof.core.oidc.claims import id_token_claims, user_claims
from taproof.core.oidc.clients import SignInClient
from taproof.core.oidc.grants import OidcGrant
from taproof.core.oidc.model import ACCESS_TOKEN_LIFETIME
from taproof.core.oidc.requests import Scope
from taproof.core.sessions import Session
from taproof.service.oidc.keys import Signer, SigningKeys


class SignedInUser(NamedTuple):
    """A user of a client, with the scopes that the client got. `auth_time` is the time (ms) of Confirm."""

    client: SignInClient
    identity: MessengerIdentity
    scopes: tuple[Scope, ...]
    auth_time: int


class TokenIssuer:
    """Makes ID tokens and the responses that contain them.

    Args:
        encryptor: decrypts phone numbers.
        keys: sign the ID tokens.
        issuer: the service's base URL.
        email_domain: the domain of synthetic e-mail addresses.
    """

    def __init__(self, encryptor: Encryptor, keys: SigningKeys, *, issuer: str, email_domain: str) -> None:
        self._encryptor = encryptor
        self._keys = keys
        self.issuer = issuer
        self._email_domain = email_domain

    async def find_signer(self, client: SignInClient) -> Signer:
        """Return the key that signs the client's ID tokens. Call this before a code or a refresh token is used up."""
        return await self._keys.find_signer(client.client.signing_alg)

    def of_session(self, client: SignInClient, session: Session, scopes: tuple[Scope, ...]) -> SignedInUser:
        """Return the user who confirmed a session.

        Raises:
            DecryptionFailed: the phone number cannot be decrypted.
        """
        assert session.identity is not None  # noqa: S101 — a session is consumed only after it was confirmed.
        identity = session.identity
        if session.encrypted_phone is not None:
            phone = self._encryptor.decrypt(session.encrypted_phone, associated_data_of("phone", session.id))
            identity = dataclasses.replace(identity, messenger_phone=phone)
        return SignedInUser(client, identity, scopes, session.confirmed_at or 0)

    def of_grant(self, client: SignInClient, grant: OidcGrant, scopes: tuple[Scope, ...]) -> SignedInUser:
        """Return the user of a grant, as at Confirm.

        Raises:
            DecryptionFailed: the phone number cannot be decrypted.
        """
        phone = None
        if grant.encrypted_phone is not None:
            phone = self._encryptor.decrypt(grant.encrypted_phone, associated_data_of("grant_phone", grant.id))
        identity = MessengerIdentity(grant.messenger_id, grant.messenger_name, grant.messenger_username, phone)
        return SignedInUser(client, identity, scopes, grant.auth_time)

    def about_user(self, user: SignedInUser) -> dict[str, Any]:
        """Return the claims about the user."""
        client = user.client.client
        return user_claims(
            user.identity,
            user.scopes,
            user.auth_time,
            email=client.email,
            email_domain=self._email_domain,
            groups=client.groups.of(user.identity.messenger_id),
        )

    def answer(
        self,
        user: SignedInUser,
        signer: Signer,
        access_token: str,
        now: int,
        *,
        refresh_token: str | None,
        sid: str | None,
        nonce: str | None = None,
    ) -> dict[str, Any]:
        """Return the response with the tokens, which are issued at `now` (ms)."""
        claims = id_token_claims(
            self.about_user(user),
            issuer=self.issuer,
            client_id=user.client.client.id,
            now=now,
            lifetime=user.client.client.id_token_lifetime,
            auth_time=user.auth_time,
            nonce=nonce,
            access_token=access_token,
            sid=sid,
        )
        answer = {
            "access_token": access_token,
            "token_type": "Bearer",
            "expires_in": ACCESS_TOKEN_LIFETIME // SECOND,
            "id_token": signer.sign(claims),
            "scope": " ".join(user.scopes),
        }
        return answer if refresh_token is None else answer | {"refresh_token": refresh_token}
