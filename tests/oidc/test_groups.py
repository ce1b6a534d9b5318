"""Groups of a client over HTTP: the claim, and who may sign in."""

import jwt
from tests.e2e.openid import answer_of
from tests.oidc.conftest import SAME_ORIGIN, Web
from tests.oidc.test_token import DEVICE_GRANT, assert_error, authenticated
from tests.openid_provider import ADA, Provider, Shop
from tests.service.conftest import acting

GROUPS = {"admins": (ADA.messenger_id,), "away": ("9",), "staff": (ADA.messenger_id,)}


async def test_the_claim_groups(web: Web, shop: Shop) -> None:
    """ID token and userinfo have the user's groups if the scope asks for them, and the current ones at each request."""
    await shop.change_client(groups=GROUPS)
    for scope, groups in (("openid groups", ["admins", "staff"]), ("openid profile", None)):
        tokens = (await web.redeem(shop, await web.sign_in(shop.request(scope=scope)))).json()
        claims = jwt.decode(tokens["id_token"], options={"verify_signature": False})
        assert claims.get("groups") == groups
        bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
        assert (await web.get("/oidc/userinfo", headers=bearer)).json().get("groups") == groups
    assert "groups" in (await web.get("/.well-known/openid-configuration")).json()["scopes_supported"]


async def test_a_user_who_may_not_sign_in(web: Web, shop: Shop) -> None:
    """The page says whom to ask and shows the user's own id; its form leads back with access_denied."""
    await shop.change_client(groups=GROUPS, allowed_groups=("away",))
    page = (await web.authorize(shop.request())).headers["location"]
    await web.confirm(page)
    shown = await web.get(page)
    assert shown.status_code == 200
    assert "may not sign in" in shown.text
    assert f"<code>{ADA.messenger_id}</code>" in shown.text
    assert (await web.get(f"{page}/status")).json() == {"state": "not_allowed"}
    refused = answer_of(await web.post(f"{page}/leave", headers=SAME_ORIGIN))
    assert (refused["error"], "code" in refused) == ("access_denied", False)


async def test_a_user_who_is_removed(web: Web, shop: Shop) -> None:
    """The removed user's code gives no tokens, and the access token no longer works (contract.md)."""
    await shop.change_client(groups=GROUPS, allowed_groups=("staff",))
    response = await web.sign_in(shop.request())
    tokens = (await web.redeem(shop, await web.sign_in(shop.request()))).json()
    bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
    assert (await web.get("/oidc/userinfo", headers=bearer)).status_code == 200
    await shop.change_client(groups=GROUPS | {"staff": ()})
    assert_error(await web.get("/oidc/userinfo", headers=bearer), 401, "invalid_token")
    assert_error(await web.redeem(shop, response), 400, "invalid_grant")


async def test_a_device_of_a_user_who_may_not_sign_in(web: Web, shop: Shop) -> None:
    """The device learns access_denied, and the page in the browser says why."""
    await shop.change_client(groups=GROUPS, allowed_groups=("away",))
    device = (
        await web.post("/oidc/device_authorization", data={"scope": "openid"}, headers=authenticated(shop))
    ).json()
    form = {"user_code": device["user_code"], "action": "continue"}
    page = (await web.post("/device", data=form, headers=SAME_ORIGIN)).headers["location"]
    await web.confirm(page)
    assert "may not sign in" in (await web.get(page)).text
    poll = {"grant_type": DEVICE_GRANT, "device_code": device["device_code"]}
    assert_error(await web.post("/oidc/token", data=poll, headers=authenticated(shop)), 400, "access_denied")


async def test_what_ends_an_access_token_without_a_grant(web: Web, provider: Provider, shop: Shop) -> None:
    """A block and a new client secret, as they end refresh tokens; an unblocked user signs in again."""
    storage = provider.node.storage

    async def signed_in() -> dict[str, str]:
        tokens = (await web.redeem(shop, await web.sign_in(shop.request()))).json()
        bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
        assert (await web.get("/oidc/userinfo", headers=bearer)).status_code == 200
        return bearer

    bearer = await signed_in()
    assert await storage.users.block_project(ADA.messenger_id, shop.project.id, provider.node.clock.now)
    assert_error(await web.get("/oidc/userinfo", headers=bearer), 401, "invalid_token")
    assert await storage.users.unblock_project(ADA.messenger_id, shop.project.id)
    bearer = await signed_in()
    shop.secret = await provider.clients.regenerate_client_secret(acting(shop.developer), shop.project.id, shop.id)
    assert_error(await web.get("/oidc/userinfo", headers=bearer), 401, "invalid_token")
    await signed_in()
