"""The endpoints that clients call, over HTTP: token, userinfo, PAR, device authorization, discovery and JWKS."""

from typing import Any

import httpx
import jwt
import pytest
from structlog.testing import capture_logs
from tests.oidc.conftest import Web
from tests.openid_provider import ISSUER, Parameters, Provider, Shop, basic

from taproof.core.oidc.model import RefusedMethod
from taproof.oidc.pages.texts.catalog import LANGUAGES

FORM = "application/x-www-form-urlencoded"
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


def authenticated(shop: Shop) -> dict[str, str]:
    return {"Authorization": basic(shop.id, shop.secret or "")}


def assert_error(response: httpx.Response, status: int, error: str) -> None:
    """Assert that a response has the error shape of RFC 6749, section 5.2."""
    assert (response.status_code, response.json()["error"]) == (status, error), response.text
    assert set(response.json()) == {"error", "error_description"}
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    assert ("www-authenticate" in response.headers) == (status == 401)


async def test_a_token_response(web: Web, provider: Provider) -> None:
    """Each authentication method gets a response that must not be stored (RFC 6749, section 5.1)."""
    for method in ("any", "basic", "post", "none"):
        shop = await provider.shop(auth_method=method)
        response = await web.redeem(shop, await web.sign_in(shop.request()))
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == "application/json"
        assert (response.headers["cache-control"], response.headers["pragma"]) == ("no-store", "no-cache")
        tokens = response.json()
        assert (tokens["token_type"], tokens["expires_in"]) == ("Bearer", 3600)
        assert "refresh_token" not in tokens


async def test_a_client_may_send_its_secret_in_either_way(web: Web, shop: Shop) -> None:
    """By default, Basic and post work at each endpoint, as discovery says; both in one request do not."""
    methods = (await web.get("/.well-known/openid-configuration")).json()["token_endpoint_auth_methods_supported"]
    assert methods == ["client_secret_basic", "client_secret_post", "none"]
    body = {"client_id": shop.id, "client_secret": shop.secret or ""}
    for path, form in (("par", shop.request()), ("device_authorization", {"scope": "openid"})):
        assert (await web.post(f"/oidc/{path}", data=form, headers=authenticated(shop))).status_code in {200, 201}
        assert (await web.post(f"/oidc/{path}", data=form | body)).status_code in {200, 201}
        assert_error(
            await web.post(f"/oidc/{path}", data=form | body, headers=authenticated(shop)), 400, "invalid_request"
        )


@pytest.mark.parametrize(("method", "other"), [("basic", "post"), ("post", "basic"), ("none", "post")])
async def test_a_refused_method(web: Web, provider: Provider, method: str, other: str) -> None:
    """The answer and one log line name the method that was used and the one expected, and no secret."""
    shop = await provider.shop(auth_method=method)
    secret = shop.secret or "ocs_something"
    with capture_logs() as logs:
        request: dict[str, Any] = {"headers": {"Authorization": basic(shop.id, secret)}, "data": {"a": "1"}}
        if other == "post":
            request = {"data": {"client_id": shop.id, "client_secret": secret}}
        response = await web.post("/oidc/token", **request)
    assert_error(response, 401, "invalid_client")
    wanted = "no secret" if method == "none" else f"client_secret_{method}"
    told = f"This client must use {wanted}, but the request used client_secret_{other}."
    assert response.json()["error_description"].startswith(told)
    (line,) = logs
    assert (line["event"], line["kind"]) == ("credentials_refused", "client_secret")
    assert (line["client_id"], line["used"], line["expected"]) == (shop.id, other, method)
    assert secret not in str(line)
    recorded = await provider.clients.read_refused_method(shop.client)
    assert recorded == RefusedMethod(other, provider.node.clock.now)
    await shop.change_client(auth_method="any")
    assert await provider.clients.read_refused_method(shop.client) is None


async def test_a_wrong_secret_is_no_refused_method(web: Web, provider: Provider) -> None:
    """Only a caller who knows the secret can change what the console shows."""
    shop = await provider.shop(auth_method="post")
    with capture_logs() as logs:
        response = await web.post(
            "/oidc/token", headers={"Authorization": basic(shop.id, "ocs_wrong")}, data={"a": "1"}
        )
    assert_error(response, 401, "invalid_client")
    assert "must use" not in response.json()["error_description"]
    assert [(line["client_id"], line["used"], line["expected"]) for line in logs] == [(shop.id, "basic", "post")]
    assert await provider.clients.read_refused_method(shop.client) is None


async def test_a_reused_code(web: Web, shop: Shop) -> None:
    """A second use answers invalid_grant, and userinfo refuses the access token of the first."""
    response = await web.sign_in(shop.request())
    tokens = (await web.redeem(shop, response)).json()
    assert_error(await web.redeem(shop, response), 400, "invalid_grant")
    bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
    assert_error(await web.get("/oidc/userinfo", headers=bearer), 401, "invalid_token")


async def test_refused_calls(web: Web, shop: Shop, subtests: pytest.Subtests) -> None:
    """The token, PAR and device endpoints refuse other content types, duplicate parameters and wrong secrets."""
    headers = authenticated(shop)
    cases: tuple[tuple[dict[str, Any], int, str], ...] = (
        ({"json": {"grant_type": "authorization_code"}, "headers": headers}, 400, "invalid_request"),
        ({"content": b"code=%ff", "headers": headers | {"Content-Type": FORM}}, 400, "invalid_request"),
        ({"content": b"code=\xff", "headers": headers | {"Content-Type": FORM}}, 400, "invalid_request"),
        ({"content": b"a=1&a=1", "headers": headers | {"Content-Type": FORM}}, 400, "invalid_request"),
        ({"content": b"a=1&" * 100, "headers": headers | {"Content-Type": FORM}}, 400, "invalid_request"),
        ({"data": {"a": "a" * 5_000}, "headers": headers}, 400, "invalid_request"),
        ({"data": {"a": "a" * 20_000}, "headers": headers}, 413, "invalid_request"),
        ({"data": {"a": "1"}, "headers": headers | {"Content-Encoding": "gzip"}}, 415, "invalid_request"),
        ({"data": {"a": "1"}, "headers": [*headers.items(), *headers.items()]}, 400, "invalid_request"),
        ({"data": {"client_secret": shop.secret}, "headers": headers}, 400, "invalid_request"),
        ({"data": {"a": "1"}}, 401, "invalid_client"),
        ({"data": {"a": "1"}, "params": {"client_id": shop.id, "client_secret": shop.secret}}, 401, "invalid_client"),
        ({"data": {"a": "1"}, "headers": {"Authorization": basic(shop.id, "wrong")}}, 401, "invalid_client"),
    )
    for path in ("token", "par", "device_authorization"):
        for request, status, error in (*cases, *((({"headers": headers}, 400, "invalid_request"),) * (path[0] != "d"))):
            with subtests.test(path=path, request=str(request)[:200]):
                response = await web.post(f"/oidc/{path}", **request)
                assert_error(response, status, error)
                if status == 401:
                    assert response.headers["www-authenticate"] == 'Basic realm="Taproof"'
        response = await web.get(f"/oidc/{path}")
        assert (response.status_code, response.headers["allow"].split(", ")[0]) == (405, "POST")


async def test_grants(web: Web, shop: Shop) -> None:
    """Other grants, such as password and implicit, are refused (RFC 9700, section 2.4)."""
    for grant in ("password", "client_credentials", "implicit", "authorization_code "):
        form = {"grant_type": grant, "username": "ada", "password": "x", "refresh_token": "x"}
        response = await web.post("/oidc/token", data=form, headers=authenticated(shop))
        assert_error(response, 400, "unsupported_grant_type")
    for form in (
        {"scope": "openid"},
        {"grant_type": "authorization_code"},
        {"grant_type": "refresh_token"},
        {"grant_type": DEVICE_GRANT},
    ):
        assert_error(await web.post("/oidc/token", data=form, headers=authenticated(shop)), 400, "invalid_request")


async def test_refresh_revoke_and_introspect(web: Web, provider: Provider) -> None:
    """The answers have the shapes of RFC 6749, RFC 7009 and RFC 7662, for each authentication method."""
    for method in ("basic", "post", "none"):
        shop = await provider.shop(auth_method=method)
        header, credentials = shop.credentials()
        headers = {} if header is None else {"Authorization": header}

        async def call(
            endpoint: str, credentials: Parameters = credentials, headers: Parameters = headers, **form: str
        ) -> httpx.Response:
            return await web.post(f"/oidc/{endpoint}", data=credentials | form, headers=headers)

        tokens = (await web.redeem(shop, await web.sign_in(shop.request(scope="openid offline_access")))).json()
        refreshed = await call("token", grant_type="refresh_token", refresh_token=tokens["refresh_token"])
        assert (refreshed.status_code, refreshed.headers["cache-control"]) == (200, "no-store")
        token = refreshed.json()["refresh_token"]
        described = await call("introspect", token=token)
        if method == "none":
            assert_error(described, 401, "invalid_client")
        else:
            assert (described.status_code, described.json()["active"]) == (200, True)
            assert described.headers["cache-control"] == "no-store"
        for _ in range(2):
            revoked = await call("revoke", token=token, token_type_hint="refresh_token")
            assert (revoked.status_code, revoked.headers["access-control-allow-origin"]) == (200, "*")
        assert_error(await call("token", grant_type="refresh_token", refresh_token=token), 400, "invalid_grant")
        for endpoint in ("revoke", "introspect"):
            assert (await web.get(f"/oidc/{endpoint}")).status_code == 405
            if method != "none":
                assert_error(await call(endpoint), 400, "invalid_request")
                wrong = await web.post(f"/oidc/{endpoint}", data={"client_id": shop.id, "token": token})
                assert_error(wrong, 401, "invalid_client")
    preflight = await web.client.options("/oidc/revoke")
    assert preflight.headers["access-control-allow-methods"] == "GET, POST"


async def test_userinfo(web: Web, shop: Shop) -> None:
    """An access token in the header or the body gives the claims; in a URL it is ignored (RFC 6750; RFC 9700)."""
    tokens = (await web.redeem(shop, await web.sign_in(shop.request()))).json()
    token = tokens["access_token"]
    bearer = {"Authorization": f"Bearer {token}"}
    for response in (
        await web.get("/oidc/userinfo", headers=bearer),
        await web.post("/oidc/userinfo", headers=bearer),
        await web.post("/oidc/userinfo", headers={"Authorization": f"bearer {token}"}),
        await web.post("/oidc/userinfo", data={"access_token": token}),
    ):
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == "application/json"
        assert response.headers["cache-control"] == "no-store"
        assert response.json()["sub"] == "1001"
    for response in (
        await web.get("/oidc/userinfo"),
        await web.get("/oidc/userinfo", params={"access_token": token}),
        await web.get("/oidc/userinfo", headers={"Authorization": f"Basic {token}"}),
        await web.post("/oidc/userinfo", data={"token": token}),
    ):
        assert_error(response, 401, "invalid_token")
        # Without a token, the challenge names no error (RFC 6750, section 3.1).
        assert response.headers["www-authenticate"] == "Bearer"
    altered = token[:-1] + "xy"[token.endswith("x")]
    for wrong in (altered, tokens["id_token"], shop.secret):
        response = await web.get("/oidc/userinfo", headers={"Authorization": f"Bearer {wrong}"})
        assert_error(response, 401, "invalid_token")
        assert response.headers["www-authenticate"].startswith('Bearer error="invalid_token", error_description="')


async def test_a_pushed_request(web: Web, shop: Shop) -> None:
    """PAR answers 201 with a request_uri that works once; the browser's URL then shows nothing else (RFC 9126)."""
    response = await web.post("/oidc/par", data=shop.request(), headers=authenticated(shop))
    assert (response.status_code, response.headers["cache-control"]) == (201, "no-store")
    assert set(response.json()) == {"request_uri", "expires_in"}
    assert response.json()["expires_in"] == 90
    pushed = {"client_id": shop.id, "request_uri": response.json()["request_uri"]}
    assert (await web.authorize(pushed)).status_code == 303
    assert (await web.authorize(pushed)).status_code == 400
    other = {"request_uri": "urn:ietf:params:oauth:request_uri:x"}
    response = await web.post("/oidc/par", data=shop.request(**other), headers=authenticated(shop))
    assert_error(response, 400, "invalid_request")


async def test_a_device(web: Web, shop: Shop) -> None:
    """The device endpoint answers as in RFC 8628, section 3.2, and the token endpoint with its errors."""
    response = await web.post("/oidc/device_authorization", data={"scope": "openid"}, headers=authenticated(shop))
    assert (response.status_code, response.headers["cache-control"]) == (200, "no-store")
    begun = response.json()
    assert begun["verification_uri"] == f"{ISSUER}/device"
    form = {"grant_type": DEVICE_GRANT, "device_code": begun["device_code"]}
    for error in ("authorization_pending", "slow_down"):
        assert_error(await web.post("/oidc/token", data=form, headers=authenticated(shop)), 400, error)


async def test_a_device_without_a_scope(web: Web, shop: Shop) -> None:
    """The scope is optional (RFC 8628, section 3.1): with Basic, such a call has neither a body nor a Content-Type."""
    for request in ({}, {"content": b""}, {"data": {"scope": ""}}):
        response = await web.post("/oidc/device_authorization", headers=authenticated(shop), **request)
        assert (response.status_code, "user_code" in response.json()) == (200, True), response.text


async def test_a_nonce_of_any_language(web: Web, shop: Shop) -> None:
    """The ID token has the nonce unchanged (OpenID Connect Core, section 3.1.2.1)."""
    for nonce in ("Straße 🦊", "مرحبا", "~ !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}"):
        response = await web.redeem(shop, await web.sign_in(shop.request(nonce=nonce, state=nonce)))
        claims = jwt.decode(response.json()["id_token"], options={"verify_signature": False})
        assert claims["nonce"] == nonce


async def test_cors(web: Web, shop: Shop) -> None:
    """Scripts of any origin may make each call of a client, without cookies, but load no page.

    Preflights are answered.
    """
    origin = {"Origin": "https://app.example"}
    well_known = ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server", "/oidc/jwks")
    for path in (*well_known, "/oidc/token", "/oidc/userinfo", "/oidc/par", "/oidc/device_authorization"):
        method = "GET" if path in well_known else "POST"
        response = await web.client.request(method, path, headers=origin)
        assert response.headers["access-control-allow-origin"] == "*", path
        assert "access-control-allow-credentials" not in response.headers
        response = await web.client.options(path, headers=origin | {"Access-Control-Request-Method": method})
        assert (response.status_code, response.headers["access-control-allow-origin"]) == (200, "*"), path
        # `*` does not stand for Authorization.
        assert response.headers["access-control-allow-headers"] == "Authorization, Content-Type, *"
        assert "access-control-allow-credentials" not in response.headers
    for path in ("/oidc/authorize", "/device", "/oidc/authorize/auth_x/status"):
        for method in ("GET", "OPTIONS"):
            response = await web.client.request(method, path, headers=origin)
            assert not [name for name in response.headers if name.startswith("access-control-")]


async def test_discovery(web: Web) -> None:
    """The metadata has what OpenID Connect Discovery 1.0, section 3, and RFC 8414, 8628, 9126 and 9207 require."""
    response = await web.get("/.well-known/openid-configuration")
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    metadata = response.json()
    assert metadata == (await web.get("/.well-known/oauth-authorization-server")).json()
    assert metadata["issuer"] == ISSUER
    assert "RS256" in metadata["id_token_signing_alg_values_supported"]
    assert "none" not in metadata["id_token_signing_alg_values_supported"]
    assert metadata["response_types_supported"] == ["code"]
    assert metadata["response_modes_supported"] == ["query", "form_post"]
    assert metadata["subject_types_supported"] == ["public"]
    assert metadata["code_challenge_methods_supported"] == ["S256"]
    assert metadata["grant_types_supported"] == ["authorization_code", "refresh_token", DEVICE_GRANT]
    assert metadata["ui_locales_supported"] == sorted(LANGUAGES)
    assert metadata["scopes_supported"] == ["openid", "profile", "email", "phone", "groups", "offline_access"]
    assert "sid" in metadata["claims_supported"]
    assert metadata["backchannel_logout_supported"] is metadata["backchannel_logout_session_supported"] is True
    assert metadata["end_session_endpoint"] == f"{ISSUER}/oidc/end_session"
    assert "none" not in metadata["introspection_endpoint_auth_methods_supported"]
    assert "none" in metadata["revocation_endpoint_auth_methods_supported"]
    assert metadata["authorization_response_iss_parameter_supported"] is True
    for name in ("claims_parameter_supported", "request_parameter_supported", "request_uri_parameter_supported"):
        assert metadata[name] is False  # Without this, `request_uri` would count as supported.
    endpoints = [value for name, value in metadata.items() if name.endswith(("_endpoint", "_uri"))]
    assert len(endpoints) == 9
    for url in endpoints:
        assert url.startswith(f"{ISSUER}/oidc/")
        assert (await web.get(url)).status_code in {200, 400, 401, 405}


async def test_the_jwk_set(web: Web) -> None:
    """The JWK set has public signing keys with unique ids, and may be cached for five minutes (RFC 7517)."""
    response = await web.get("/oidc/jwks")
    assert response.headers["cache-control"] == "public, max-age=300"
    keys = response.json()["keys"]
    assert len({key["kid"] for key in keys}) == len(keys) == 4
    for key in keys:
        assert key["use"] == "sig"
        assert key.keys() <= {"kty", "use", "alg", "kid", "n", "e", "crv", "x", "y"}
