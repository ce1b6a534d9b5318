"""The authorization endpoint and the pages it leads to, as the test plans of the OpenID Foundation see them."""

import asyncio

import httpx
import pytest
from tests.e2e.openid import answer_of
from tests.oidc.conftest import SAME_ORIGIN, Web
from tests.oidc.test_redirects import Links
from tests.openid_provider import ADA, ISSUER, PKCE, Provider, Shop
from tests.waiting import until

from taproof.core.clock import MINUTE
from taproof.core.identifiers import session_key
from taproof.core.sessions import Hint
from taproof.oidc.authorize import COOKIES_LIMIT


async def test_requests_that_begin_a_sign_in(web: Web, shop: Shop, subtests: pytest.Subtests) -> None:
    """Optional and unknown parameters, in any order, and a POST begin a sign-in (OpenID Connect Core, 15.1)."""
    for changed in (
        {"display": "page"},
        {"display": "popup"},
        {"login_hint": "ada@app.example"},
        {"ui_locales": "se"},
        {"claims_locales": "se"},
        {"acr_values": "1 2"},
        {"claims": '{"userinfo": {"name": {"essential": true}}}'},
        {"extra": "foobar"},
        {"max_age": "10000"},
        {"prompt": "login"},
        {"scope": "openid address"},
        {"scope": "phone email profile openid"},
        {"nonce": ""},
        {"state": ""},
        dict.fromkeys(PKCE, ""),
    ):
        with subtests.test(changed=changed):
            parameters = shop.request(**changed)
            backwards = dict(reversed(parameters.items()))
            for response in (await web.authorize(backwards), await web.post("/oidc/authorize", data=parameters)):
                assert response.status_code == 303
                assert response.headers["location"].startswith(f"{ISSUER}/oidc/authorize/auth_")


async def test_errors_at_the_redirect_uri(web: Web, shop: Shop, subtests: pytest.Subtests) -> None:
    """A request with a valid redirect URI and another fault is answered there (OpenID Connect Core, 3.1.2.6)."""
    for changed, error in (
        ({"response_type": ""}, "invalid_request"),
        ({"prompt": "none"}, "login_required"),
        ({"prompt": "none", "id_token_hint": "e30.e30."}, "login_required"),
        ({"prompt": "none", "max_age": "10000"}, "login_required"),
        ({"request": "eyJhbGciOiJub25lIn0.e30."}, "request_not_supported"),
        ({"request_uri": "https://app.example/request.jwt"}, "request_uri_not_supported"),
        ({"request_uri": "urn:example:request"}, "request_uri_not_supported"),
        ({"registration": "{}"}, "registration_not_supported"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"response_mode": "web_message"}, "invalid_request"),
        ({"prompt": "create"}, "invalid_request"),
        ({"prompt": "login create"}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
    ):
        with subtests.test(changed=changed):
            assert answer_of(await web.authorize(shop.request(**changed)))["error"] == error
    await shop.change_project(is_active=False)
    assert answer_of(await web.authorize(shop.request()))["error"] == "temporarily_unavailable"


async def test_a_link_checker_begins_nothing(web: Web, shop: Shop) -> None:
    """HEAD is refused, and the pushed request that the link names can still be used."""
    authorization, _ = shop.credentials()
    pushed = await web.post("/oidc/par", data=shop.request(), headers={"Authorization": authorization or ""})
    link = {"client_id": shop.id, "request_uri": pushed.json()["request_uri"]}
    refused = await web.client.head("/oidc/authorize", params=link)
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, POST")
    assert (await web.authorize(link)).status_code == 303


async def test_errors_on_a_page(web: Web, shop: Shop) -> None:
    """Without a known client, or with a request_uri that nobody pushed, a page explains the error; no redirect."""
    for changed, fault in (
        ({"client_id": "oidc_unknown"}, "There is no client with this client_id"),
        ({"client_id": "\x00"}, "There is no client with this client_id"),
        ({"client_id": ""}, "client_id is missing"),
        ({"redirect_uri": ""}, "redirect_uri is missing"),
        ({"redirect_uri": "https://app.example/"}, "not registered"),
        ({"request_uri": "urn:ietf:params:oauth:request_uri:guessed"}, "This request_uri has expired"),
    ):
        response = await web.authorize(shop.request(**changed))
        assert (response.status_code, "location" in response.headers) == (400, False), changed
        assert fault in response.text, changed


async def test_the_page_in_a_requested_language(web: Web, shop: Shop) -> None:
    """`ui_locales` chooses the language, before Accept-Language; an unknown one causes no error."""
    for locales, language in (("se", "fa"), ("es se", "es"), ("se pt-BR", "pt"), ("", "fa")):
        page = (await web.authorize(shop.request(ui_locales=locales))).headers["location"]
        shown = await web.get(page, headers={"Accept-Language": "fa"})
        assert f'<html lang="{language}"' in shown.text


async def test_the_projects_logo_and_label(web: Web, shop: Shop) -> None:
    """The page shows both, and its policy allows the logo's origin alone, also on the page that leads back."""
    await shop.change_project(
        logo_url="https://cdn.shop.example/logo.png", texts={"default": {"button_label": "Enter the <shop>"}}
    )
    page = (await web.authorize(shop.request())).headers["location"]
    for path in (page, f"{page}/return"):
        shown = await web.get(path)
        assert shown.text.count('src="https://cdn.shop.example/logo.png"') == 1
        assert "img-src 'self' https://cdn.shop.example; " in shown.headers["content-security-policy"]
    assert "<bdi>Enter the &lt;shop&gt;</bdi></a>" in (await web.get(page)).text


async def test_cancel_returns_to_the_application(web: Web, shop: Shop) -> None:
    """Cancel in the messenger is answered immediately with access_denied, in each mode (OpenID Connect Core, 3.1.2.6).

    The page's script is told so and loads the page again, and so does the page without scripts. *Back* does not repeat
    the answer.
    """
    for mode in ("query", "form_post"):
        page = (await web.authorize(shop.request(response_mode=mode))).headers["location"]
        waiting = asyncio.create_task(web.get(f"{page}/status?seen=waiting&hint=waiting"))
        await until(lambda: web.provider.node.signin.waiting.count, "the call waits")
        await web.confirm(page, "Cancel")
        waited = (await waiting).json()
        if waited["state"] == "waiting":  # It was told first that the link was opened.
            waited = (await web.get(f"{page}/status?seen=waiting&hint=opened")).json()
        assert waited == {"state": "cancelled"}
        for action in ("start-again", "return"):
            formed = await web.post(f"{page}/{action}", data={"return_code": "x"}, headers=SAME_ORIGIN)
            assert (formed.status_code, formed.headers["location"]) == (303, page)
        assert "location" not in (await web.client.head(page)).headers
        response = await web.get(page)
        answer = answer_of(response) if mode == "query" else Links(response.text).fields
        assert (answer["error"], answer["state"], answer["iss"]) == ("access_denied", "a state", ISSUER)
        again = await web.get(page)
        assert (again.status_code, "<h1>This sign-in is finished</h1>" in again.text) == (200, True)


async def test_an_expired_request_keeps_its_page(web: Web, shop: Shop) -> None:
    """The user may still want to sign in: the page offers to start again, and to go back."""
    page = (await web.authorize(shop.request())).headers["location"]
    web.provider.later(10 * MINUTE)
    shown = await web.get(page)
    assert (shown.status_code, "The request has expired" in shown.text) == (200, True)
    await web.post(f"{page}/start-again", headers=SAME_ORIGIN)
    await web.confirm(page)
    assert "code" in answer_of(await web.get(page))


async def test_characters_that_are_not_percent_encoded(web: Web, shop: Shop) -> None:
    """An application that does not percent-encode its state gets it back unchanged, if it is UTF-8."""
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    begun = f"client_id={shop.id}&redirect_uri={shop.client.redirect_uris[0]}&response_type=code&prompt=none&state="
    response = await web.post("/oidc/authorize", content=f"{begun}Straße 🦊".encode(), headers=headers)
    assert answer_of(response)["state"] == "Straße 🦊"
    response = await web.post("/oidc/authorize", content=f"{begun}Straße".encode("latin-1"), headers=headers)
    assert (response.status_code, "The parameters are not UTF-8" in response.text) == (400, True)


async def test_an_error_for_an_application_that_reads_the_fragment(web: Web, shop: Shop) -> None:
    """An application that requests response_mode=fragment gets the error there too.

    Otherwise, it would start again forever.
    """
    for changed in ({}, {"prompt": "none"}):
        response = await web.authorize(shop.request(response_mode="fragment", **changed))
        query, _, fragment = response.headers["location"].partition("?")[2].partition("#")
        assert (query, "error=" in query, "state=a+state" in query) == (fragment, True, True)
    assert "#" not in (await web.authorize(shop.request(prompt="none"))).headers["location"]


async def test_form_post(web: Web, shop: Shop) -> None:
    """With form_post, a page posts code or error to the redirect URI, and is not stored (Form Post Response Mode)."""
    for response in (
        await web.sign_in(shop.request(response_mode="form_post")),
        await web.authorize(shop.request(response_mode="form_post", prompt="none")),
    ):
        assert (response.status_code, response.headers["cache-control"]) == (200, "no-store")
        assert 'method="post"' in response.text.lower()
        links = Links(response.text)
        assert shop.client.redirect_uris[0] in links.found
        assert links.fields["state"] == "a state"
        if "code" in links.fields:
            located = httpx.Response(303, headers={"location": f"https://app.example/?code={links.fields['code']}"})
            assert (await web.redeem(shop, located)).status_code == 200


async def test_no_page_can_be_framed(web: Web, shop: Shop) -> None:
    """Every page refuses frames, is not stored, and tells other sites no address (RFC 9700, sections 4.2.4, 4.16)."""
    pages = {"unknown client": await web.authorize(shop.request(client_id="oidc_unknown"))}
    begun = (await web.authorize(shop.request())).headers["location"]
    pages["waiting"] = await web.get(begun)
    await web.confirm(begun, "Cancel")
    assert (await web.get(begun)).status_code == 303
    pages["cancelled"] = await web.get(begun)
    pages["another sign-in"] = await web.get(f"{ISSUER}/oidc/authorize/auth_unknown")
    pages["from another site"] = await web.post(f"{begun}/leave", headers={"Sec-Fetch-Site": "cross-site"})
    late = (await web.authorize(shop.request())).headers["location"]
    web.provider.later(10 * MINUTE)
    pages["expired"] = await web.get(late)
    pages["form_post"] = await web.sign_in(shop.request(response_mode="form_post"))
    done = (await web.authorize(shop.request())).headers["location"]
    await web.post(f"{done}/leave", headers=SAME_ORIGIN)
    pages["finished"] = await web.get(done)
    device = await shop.begin_device()
    typed = {"user_code": device["user_code"]}
    pages["device"] = await web.get("/device")
    pages["device, code"] = await web.get("/device", params=typed)
    pages["device, question"] = await web.post("/device", data=typed, headers=SAME_ORIGIN)
    pages["device, wrong"] = await web.post("/device", data={"user_code": "x"}, headers=SAME_ORIGIN)
    pages["device, from another site"] = await web.post("/device", data=typed)
    refusal = await web.post("/device", data=typed | {"action": "cancel"}, headers=SAME_ORIGIN)
    assert "Nobody was signed in." in refusal.text
    pages["device, refused"] = refusal
    pages["no page"] = await web.get("/oidc/nothing")
    pages["wrong method"] = await web.client.delete("/oidc/authorize")
    for name, page in pages.items():
        assert page.headers["content-type"] == "text/html; charset=utf-8", name
        assert "frame-ancestors 'none'" in page.headers["content-security-policy"], name
        assert "default-src 'none'" in page.headers["content-security-policy"], name
        assert page.headers["x-frame-options"] == "DENY", name
        assert page.headers["cache-control"] == "no-store", name
        assert page.headers["referrer-policy"] == "same-origin", name
        assert "access-control-allow-origin" not in page.headers, name


async def test_redirects(web: Web, shop: Shop) -> None:
    """Redirects use 303 and send no Referer, also after a POST (RFC 9700, sections 4.2.4 and 4.12)."""
    begun = await web.post("/oidc/authorize", data=shop.request())
    page = begun.headers["location"]
    await web.confirm(page)
    for response in (begun, await web.get(page)):
        assert (response.status_code, response.headers["referrer-policy"]) == (303, "no-referrer")
        assert response.headers["cache-control"] == "no-store"


async def test_the_cookie(web: Web, shop: Shop) -> None:
    """The cookie that binds a page to its browser is for this host only, and scripts cannot read it."""
    response = await web.authorize(shop.request())
    name, _, attributes = response.headers["set-cookie"].partition("=")
    authorization_id = response.headers["location"].rpartition("/")[2]
    assert name == f"__Host-taproof_oidc_{authorization_id}"
    assert {"Secure", "HttpOnly", "Path=/", "SameSite=lax"} <= set(attributes.split("; "))
    assert "Domain" not in attributes


async def test_hints(web: Web, shop: Shop, subtests: pytest.Subtests) -> None:
    """The page's script gets each change of the hint immediately, in the language of the page."""
    page = (await web.authorize(shop.request(ui_locales="es"))).headers["location"]
    signin, sessions = web.provider.node.signin, web.provider.node.storage.sessions
    token = await web.token_of(page)
    key = session_key(token)
    assert key is not None
    assert (await web.get(f"{page}/status")).json()["hint"] == "waiting"
    waiting = asyncio.create_task(web.get(f"{page}/status?seen=waiting&hint=waiting"))
    await until(lambda: signin.waiting.count, "the call waits")
    await signin.open_session(token, ADA.messenger_id)
    text = "Abierto en la aplicación de mensajería: confirme allí."
    assert (await waiting).json() == {"state": "waiting", "hint": "opened", "text": text}
    seen = "seen=waiting&hint=opened"
    changes: tuple[tuple[Hint, str, str], ...] = (
        ("phone_asked", "waiting", "La aplicación de mensajería pide su número de teléfono: compártalo allí."),
        ("unreachable", "unreachable", ""),
    )
    for hint, state, shown in changes:
        with subtests.test(hint=hint):
            await sessions.set_hint(key, hint)
            assert (await web.get(f"{page}/status?{seen}")).json() == {"state": state, "hint": hint, "text": shown}
            seen = f"seen={state}&hint={hint}"
    assert "Ha bloqueado el bot" in (await web.get(page)).text
    await signin.cancel_session(token, ADA.messenger_id)
    assert (await web.get(f"{page}/status?{seen}")).json() == {"state": "cancelled"}


async def test_the_drawn_link(web: Web, shop: Shop) -> None:
    """Only the browser of the sign-in gets the QR code, and only while the user can decide."""
    page = (await web.authorize(shop.request())).headers["location"]
    drawn = await web.get(f"{page}/qr.svg")
    assert (drawn.status_code, drawn.headers["content-type"]) == (200, "image/svg+xml")
    assert drawn.headers["cache-control"] == "no-store"
    assert drawn.headers["content-security-policy"].startswith("default-src 'none'")
    cookies = dict(web.client.cookies)
    web.client.cookies.clear()
    assert (await web.get(f"{page}/qr.svg")).status_code == 404
    web.client.cookies.update(cookies)
    await web.confirm(page, "Cancel")
    refused = await web.get(f"{page}/qr.svg")
    assert (refused.status_code, refused.json()) == (404, {"state": "cancelled"})


async def test_forms_of_other_sites(web: Web, shop: Shop, provider: Provider) -> None:
    """Another site can neither end a sign-in, nor start it again, nor continue or refuse a device."""
    page = (await web.authorize(shop.request())).headers["location"]
    device = await shop.begin_device()
    for headers in ({}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "null"}):
        for form in ("leave", "start-again"):
            refused = await web.post(f"{page}/{form}", headers=headers)
            assert (refused.status_code, "Sec-Fetch-Site do not say" in refused.text) == (404, True)
        for action in ("continue", "cancel"):
            typed = {"user_code": device["user_code"], "action": action}
            assert (await web.post("/device", data=typed, headers=headers)).status_code == 403
    assert (await web.get(f"{page}/status")).json()["state"] == "waiting"
    found, _ = await provider.devices.find_device(device["user_code"])
    assert found.browser_hash is None
    assert found.ended_at is None


async def test_a_browser_keeps_the_cookies_of_its_last_sign_ins(web: Web, shop: Shop) -> None:
    """A hostile page that starts sign-ins in a popup must not fill the request head of this browser."""
    pages = [(await web.authorize(shop.request())).headers["location"] for _ in range(COOKIES_LIMIT + 3)]
    assert len(web.client.cookies) == COOKIES_LIMIT
    statuses = [(await web.get(page)).status_code for page in pages]
    assert statuses == [404] * 3 + [200] * COOKIES_LIMIT


async def test_strange_cookies_are_left_alone(web: Web, shop: Shop) -> None:
    """Another host of the domain can set cookies with any name. None of them breaks the start of a sign-in."""
    names = ("oidc_auth_", "oidc_auth_a b", "oidc_auth_@", "oidc_auth_\xe9", "oidc_auth_a,b", "xoidc_auth_a", "session")
    strange = "; ".join(f"__Host-taproof_{name}=1" for name in names * 5)
    response = await web.get("/oidc/authorize", params=shop.request(), headers=[("Cookie", strange.encode("latin-1"))])
    assert response.status_code == 303
    assert len(response.headers.get_list("set-cookie")) == 1


async def test_a_form_that_cannot_be_read(web: Web) -> None:
    """A malformed form is the sender's fault: its page has status 400, and nothing is logged as a fault."""
    for body in (b"user_code=%ff", b"user_code=\xff", b"user_code=a&user_code=b", b"a=" + b"a" * 5_000, b"a=1&" * 100):
        headers = SAME_ORIGIN | {"Content-Type": "application/x-www-form-urlencoded"}
        assert (await web.post("/device", content=body, headers=headers)).status_code == 400
    assert (await web.post("/device", json={}, headers=SAME_ORIGIN)).status_code == 400
