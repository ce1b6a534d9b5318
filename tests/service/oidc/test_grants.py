"""Refresh tokens, revocation and introspection (RFC 6749, section 6; RFC 9700, section 4.14; RFC 7009; RFC 7662)."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from tests.openid_provider import ADA, ISSUER, REQUESTER, InBrowser, Provider, Shop, error_of
from tests.service.conftest import acting
from tests.service.oidc.test_tokens import claims_of, userinfo_error

from taproof.core.clock import DAY, HOUR, MINUTE, iso8601
from taproof.core.entropy import system_entropy
from taproof.core.oidc.grants import OidcGrant, read_refresh_token
from taproof.core.projects import ProjectChanges
from taproof.service.erasure import Erasure
from taproof.service.user_export import Texts, UserExports
from taproof.storage.queries.oidc.grants import GrantQueries

OFFLINE = "openid profile offline_access"


@dataclass
class Kept:
    """A user who stays signed in."""

    shop: Shop
    tokens: dict[str, Any]

    @property
    def refresh_token(self) -> str:
        token: str = self.tokens["refresh_token"]
        return token

    @property
    def access_token(self) -> str:
        token: str = self.tokens["access_token"]
        return token

    async def refresh(self, token: str | None = None, **more: str) -> dict[str, Any]:
        client = await self.shop.authenticated()
        grants = self.shop.provider.grants
        self.tokens = await grants.refresh_tokens(client, {"refresh_token": token or self.refresh_token} | more)
        return self.tokens

    async def refused(self, token: str | None = None, **more: str) -> str:
        return await error_of(self.refresh(token, **more))

    async def introspect(self, token: str) -> dict[str, Any]:
        client = await self.shop.authenticated()
        return await self.shop.provider.access_tokens.introspect_token(client, {"token": token})

    async def assert_over(self, *access_tokens: str) -> None:
        """Assert that the user is signed out: nothing that the client got works."""
        token = self.refresh_token
        assert await self.refused(token) == "invalid_grant"
        assert await self.introspect(token) == {"active": False}
        for each in (*access_tokens, self.access_token):
            assert await userinfo_error(self.shop, each) == "invalid_token"
            assert await self.introspect(each) == {"active": False}


async def kept(shop: Shop, **changed: str) -> Kept:
    code = await shop.sign_in(**{"scope": OFFLINE} | changed)
    return Kept(shop, await shop.redeem(code))


async def stored(user: Kept) -> OidcGrant:
    token = read_refresh_token(user.refresh_token)
    assert token is not None
    grant = await user.shop.provider.node.storage.grants.read_grant_by_family(token.hashes.family)
    assert grant is not None
    return grant


async def test_a_refresh_gives_new_tokens(shop: Shop) -> None:
    """The ID token has the times of the sign-in and no nonce (Core, section 12.2); each refresh token works once."""
    user = await kept(shop)
    first = await claims_of(shop, user.tokens["id_token"])
    assert user.tokens["scope"] == OFFLINE
    old = user.refresh_token
    shop.provider.later(10 * MINUTE)
    tokens = await user.refresh()
    second = await claims_of(shop, tokens["id_token"])
    assert tokens["refresh_token"] != old
    assert (tokens["token_type"], tokens["expires_in"], tokens["scope"]) == ("Bearer", 3600, OFFLINE)
    same = ("iss", "sub", "aud", "auth_time", "sid", "name", "preferred_username", "amr")
    assert [second[name] for name in same] == [first[name] for name in same]
    assert (second["iat"] - first["iat"], "nonce" in second) == (600, False)
    userinfo = await shop.provider.access_tokens.read_user(tokens["access_token"])
    assert userinfo == {name: first[name] for name in ("sub", "name", "preferred_username", "updated_at")}
    for _ in range(3):
        await user.refresh()


async def test_no_refresh_token_without_scope_and_grant(provider: Provider) -> None:
    """Without the scope or the grant, an application gets no refresh token, no sid and not the scope."""
    for scope, grants in ((OFFLINE, ("authorization_code",)), ("openid", ("authorization_code", "refresh_token"))):
        shop = await provider.shop(grant_types=grants)
        tokens = await shop.redeem(await shop.sign_in(scope=scope))
        assert "refresh_token" not in tokens
        assert "offline_access" not in tokens["scope"]
        assert "sid" not in await claims_of(shop, tokens["id_token"])
    shop = await provider.shop(grant_types=("authorization_code",))
    client = await shop.authenticated()
    refused = provider.grants.refresh_tokens(client, {"refresh_token": "ort_x"})
    assert await error_of(refused) == "unauthorized_client"


async def test_a_client_that_is_told_of_logouts_gets_a_sid(provider: Provider) -> None:
    """A client with a logout URI gets a sid, even without a refresh token."""
    shop = await provider.shop(grant_types=("authorization_code",), backchannel_logout_uri="https://app.example/out")
    tokens = await shop.redeem(await shop.sign_in())
    assert "refresh_token" not in tokens
    assert (await claims_of(shop, tokens["id_token"]))["sid"].startswith("auth_")


async def test_a_device_stays_signed_in(shop: Shop) -> None:
    """A device stays signed in as an application in a browser does."""
    begun = await shop.begin_device(OFFLINE)
    signed = await shop.provider.devices.continue_device(begun["user_code"], REQUESTER)
    await InBrowser(shop.provider, signed).confirm()
    user = Kept(shop, await shop.poll(begun["device_code"]))
    assert (await user.refresh())["scope"] == OFFLINE


async def test_a_used_refresh_token_ends_everything(shop: Shop) -> None:
    """The second use shows that the token was stolen, so thief and owner both lose their tokens."""
    user = await kept(shop)
    stolen, first_access = user.refresh_token, user.access_token
    await user.refresh()
    assert await user.refused(stolen) == "invalid_grant"
    await user.assert_over(first_access)


async def test_what_is_no_refresh_token(provider: Provider, shop: Shop) -> None:
    """Other texts and another client's token are refused, and do not end the grant."""
    user, other = await kept(shop), Kept(await provider.shop(beside=shop), {})
    token = user.refresh_token
    for wrong in ("", "x", "ort_", token[:-1], token + "x", token[:-1] + ("0" if token[-1] != "0" else "1"), "\0"):
        assert read_refresh_token(wrong) is None
        assert await user.refused(wrong or " ") == "invalid_grant"
    assert await other.refused(token) == "invalid_grant"
    missing = provider.grants.refresh_tokens(await shop.authenticated(), {})
    assert await error_of(missing) == "invalid_request"
    assert user.shop is shop
    user.tokens = {"refresh_token": token}
    await user.refresh()


async def test_a_refresh_can_ask_for_less(shop: Shop) -> None:
    """A refresh can ask for fewer scopes, and later for the original ones. It never gets more (RFC 6749, section 6)."""
    user = await kept(shop)
    assert (await user.refresh(scope="openid"))["scope"] == "openid"
    assert await shop.provider.access_tokens.read_user(user.access_token) == {"sub": ADA.messenger_id}
    assert await user.refused(scope="openid phone") == "invalid_scope"
    assert await user.refused(scope="profile") == "invalid_scope"
    assert (await user.refresh(scope=f"{OFFLINE} something"))["scope"] == OFFLINE


async def test_the_lifetimes_of_refresh_tokens(shop: Shop) -> None:
    """A refresh token ends after 30 days without use, and after 180 days in any case."""
    idle, used = await kept(shop), await kept(shop)
    for _ in range(6):
        shop.provider.later(30 * DAY - 1)
        await used.refresh()
    assert await idle.refused() == "invalid_grant"
    shop.provider.later(6)
    await used.assert_over()


async def test_what_ends_a_users_grants(provider: Provider, subtests: pytest.Subtests) -> None:
    """After the answer, no token works: neither the first ones nor refreshed ones."""
    node = provider.node
    for cause in ("report", "block", "erasure", "secret", "public", "grant", "client", "project", "developer"):
        with subtests.test(cause):
            shop = await provider.shop()
            user = await kept(shop)
            first_access = user.access_token
            await user.refresh()
            grant = await stored(user)
            actor = acting(shop.developer)
            authenticated = await shop.authenticated()
            if cause == "report":
                (sign_in,) = await node.storage.sessions.list_sign_ins(
                    ADA.messenger_id, 0, 1, node.clock.now, project_id=shop.project.id
                )
                assert (await node.signin.report_sign_in(sign_in.key, ADA.messenger_id)).changed
            elif cause == "block":
                await node.storage.users.block_project(ADA.messenger_id, shop.project.id, node.clock.now)
            elif cause == "erasure":
                assert await Erasure(node.storage, node.clock, system_entropy).erase_user(actor, ADA.messenger_id)
            elif cause == "secret":
                shop.secret = await provider.clients.regenerate_client_secret(actor, shop.project.id, shop.id)
            elif cause == "public":
                await shop.change_client(auth_method="none")
            elif cause == "grant":
                await shop.change_client(grant_types=("authorization_code",))
                await shop.change_client(grant_types=("authorization_code", "refresh_token"))
            elif cause == "client":
                await provider.clients.delete_client(actor, shop.project.id, shop.id)
            elif cause == "project":
                await node.projects.delete_project(actor, shop.project.id)
            else:
                assert await node.storage.grants.end_grant(grant.id, node.clock.now, "ended")
            for each in (first_access, user.access_token):
                assert await userinfo_error(shop, each) == "invalid_token"
            refused = provider.grants.refresh_tokens(authenticated, {"refresh_token": user.refresh_token})
            assert await error_of(refused) == "invalid_grant"


async def test_a_paused_project_keeps_users_signed_in(shop: Shop) -> None:
    """A paused project refuses only new sign-ins."""
    user = await kept(shop)
    await shop.provider.node.projects.update_project(
        acting(shop.developer), shop.project.id, ProjectChanges(is_active=False)
    )
    await user.refresh()


async def test_a_code_used_twice_ends_the_grant(shop: Shop) -> None:
    """The grant ends with everything that was refreshed since (RFC 6749, section 4.1.2)."""
    code = await shop.sign_in(scope=OFFLINE)
    user = Kept(shop, await shop.redeem(code))
    first = user.access_token
    await user.refresh()
    assert await error_of(shop.redeem(code)) == "invalid_grant"
    await user.assert_over(first)


async def test_revocation(provider: Provider, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Revoking a refresh token revokes its access tokens.

    Revoking an access token affects only that (RFC 7009, section 2.1). A token that is unknown or of another client
    causes no write.
    """

    async def revoke(by: Shop, token: str) -> None:
        client = await by.authenticated()
        await provider.access_tokens.revoke_token(client, {"token": token, "token_type_hint": "access_token"})

    user, other = await kept(shop), await provider.shop(beside=shop)
    with monkeypatch.context() as patch:
        for write in ("revoke_access_token", "end_grant"):
            patch.delattr(GrantQueries, write)
        for token in (user.refresh_token, user.access_token, "unknown", "ort_unknown"):
            await revoke(other, token)
    assert (await user.introspect(user.access_token))["active"]
    first = user.access_token
    await revoke(shop, first)
    assert await userinfo_error(shop, first) == "invalid_token"
    await user.refresh()
    await revoke(shop, user.access_token)
    assert await userinfo_error(shop, user.access_token) == "invalid_token"
    await user.refresh()
    await revoke(shop, user.refresh_token)
    await user.assert_over(first)
    missing = provider.access_tokens.revoke_token(await shop.authenticated(), {})
    assert await error_of(missing) == "invalid_request"


async def test_introspection(provider: Provider, shop: Shop) -> None:
    """A client can introspect only its own tokens, and only with a secret (RFC 7662, section 2)."""
    user = await kept(shop)
    now = provider.node.clock.now // 1000
    common = {"active": True, "client_id": shop.id, "sub": ADA.messenger_id, "aud": shop.id, "iss": ISSUER}
    access = common | {"scope": OFFLINE, "token_type": "Bearer", "exp": now + 3600, "iat": now, "username": "ada"}
    assert await user.introspect(user.access_token) == access
    refresh = common | {"scope": OFFLINE, "exp": now + 30 * 86_400, "iat": now}
    assert await user.introspect(user.refresh_token) == refresh
    replaced = user.refresh_token
    await user.refresh(scope="openid")
    assert await user.introspect(user.access_token) == {
        name: value for name, value in access.items() if name != "username"
    } | {"scope": "openid"}
    for token in ("unknown", "oat_unknown", replaced):
        assert await user.introspect(token) == {"active": False}
    other = Kept(await provider.shop(beside=shop), {})
    for token in (user.access_token, user.refresh_token):
        assert await other.introspect(token) == {"active": False}
    public = Kept(await provider.shop(beside=shop, auth_method="none"), {})
    assert await error_of(public.introspect(user.access_token)) == "invalid_client"
    assert await error_of(provider.access_tokens.introspect_token(await shop.authenticated(), {})) == "invalid_request"
    provider.later(HOUR)
    assert await user.introspect(user.access_token) == {"active": False}


async def test_nothing_is_active_while_other_groups_are_allowed(shop: Shop) -> None:
    """Also of a user who was in no group, whose grant the change does not end."""
    user = await kept(shop)
    first = user.access_token
    await user.refresh()
    await shop.change_client(groups={"staff": ("9",)}, allowed_groups=("staff",))
    await user.assert_over(first)


async def test_phone_numbers_of_those_who_stay(provider: Provider) -> None:
    """The number is kept with the grant, encrypted, only if the client got it."""
    shop = await provider.shop()
    await shop.change_project(collect_phone=True, phone_required=False)
    for scope, has_phone in ((f"{OFFLINE} phone", True), (OFFLINE, False)):
        browser = await shop.begin(scope=scope)
        token = await browser.open()
        signin = provider.node.signin
        assert (await signin.confirm_session(token, ADA)).outcome == "phone"
        given = await signin.give_phone(ADA, ADA.messenger_id, "+4915112345678", answers=lambda _: True)
        assert given.changed
        code = await browser.finish()
        assert code is not None
        user = Kept(shop, await shop.redeem(code))
        await user.refresh()
        claims = await provider.access_tokens.read_user(user.access_token)
        assert ("phone_number" in claims) is has_phone
        grant = await stored(user)
        assert (grant.encrypted_phone is not None) is has_phone


async def test_an_export_contains_what_clients_hold(provider: Provider, shop: Shop) -> None:
    """An export has the grants without the hashes of their tokens, for the developer and the operator.

    An erasure removes them.
    """
    node = provider.node
    user = await kept(shop)
    exports = UserExports(node.storage, node.encryptor, node.clock)

    async def grants_of(texts: Texts) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads("".join([each async for each in texts]))["grants"]
        return found

    (shown,) = await grants_of(await exports.export_user(shop.developer, ADA.messenger_id))
    assert [shown] == await grants_of(exports.export_everywhere(ADA.messenger_id))
    assert (shown["client_id"], shown["messenger_name"], shown["scopes"]) == (shop.id, ADA.messenger_name, OFFLINE)
    assert shown["created_at"] == iso8601(node.clock.now)
    assert not [name for name in shown if name.endswith("_hash")]
    token = read_refresh_token(user.refresh_token)
    assert token is not None
    assert token.hashes.secret.hex() not in json.dumps(shown)
    assert await Erasure(node.storage, node.clock, system_entropy).erase_user(acting(shop.developer), ADA.messenger_id)
    assert await grants_of(await exports.export_user(shop.developer, ADA.messenger_id)) == []
