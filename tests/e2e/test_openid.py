"""The OpenID provider from the outside: what an application and a browser see over HTTP."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest
from tests.e2e.conftest import Developer, OwnProject, Phone, Service, make_phone
from tests.e2e.openid import Client, answer_of, begin, create_client, new_browser, sign_in
from tests.e2e.receiver import receiving


@pytest.fixture(scope="module")
def project(developer: Developer) -> OwnProject:
    return developer.create_project("Shop")


@pytest.fixture(scope="module")
def shop(developer: Developer, project: OwnProject) -> Client:
    return create_client(developer, project.id)


@pytest.fixture
def browser(service: Service) -> Iterator[httpx.Client]:
    with new_browser(service.base_url) as browser:
        yield browser


def claims_of(client: Client, phone: Phone, answer: dict[str, Any]) -> dict[str, Any]:
    claims = client.read_id_token(answer["id_token"])
    assert claims["sub"] == phone.messenger_id
    return claims


def test_a_whole_sign_in(browser: httpx.Client, shop: Client, phone: Phone, service: Service) -> None:
    """Authorization request, page, confirmation, code, tokens and userinfo have the values of contract.md."""
    page = begin(browser, shop)
    assert "Sign in to" in page.load().text
    phone.sign_in({"deeplink": page.deeplink})
    answer = answer_of(page.load())
    assert answer["state"] == "state of the application"
    assert answer["iss"] == service.base_url
    response = shop.redeem(answer["code"])
    assert response.status_code == 200, response.text
    assert response.headers["cache-control"] == "no-store"
    tokens = response.json()
    assert tokens["token_type"] == "Bearer"
    assert tokens["expires_in"] == 3600
    claims = claims_of(shop, phone, tokens)
    assert claims["nonce"] == "n-0S6_WzA2Mj"
    assert claims["name"] == "Ada Lovelace"
    assert claims["preferred_username"] == phone.user["username"]
    assert claims["amr"] == ["mca"]
    assert claims["exp"] - claims["iat"] == 3600
    assert "email" not in claims
    user = shop.userinfo(tokens["access_token"])
    assert user.status_code == 200, user.text
    assert user.json() == {name: claims[name] for name in ("sub", "name", "updated_at", "preferred_username")}
    assert "finished" in page.load().text


def test_a_public_client(browser: httpx.Client, developer: Developer, project: OwnProject, phone: Phone) -> None:
    """A client without a secret signs in with PKCE, here with ES256 and a synthetic address."""
    app = create_client(
        developer,
        project.id,
        auth_method="none",
        signing_alg="ES256",
        email="synthetic",
        redirect_uris=["http://127.0.0.1/callback"],
        id_token_lifetime=300,
    )
    page = begin(browser, app, redirect_uri="http://127.0.0.1:5123/callback")
    phone.sign_in({"deeplink": page.deeplink})
    response = page.load()
    assert response.headers["location"].startswith("http://127.0.0.1:5123/callback?")
    tokens = app.redeem(answer_of(response)["code"], redirect_uri="http://127.0.0.1:5123/callback").json()
    claims = claims_of(app, phone, tokens)
    assert claims["email"] == f"{phone.messenger_id}@127.0.0.1"
    assert claims["email_verified"] is False
    assert claims["exp"] - claims["iat"] == 300


def test_leave(browser: httpx.Client, shop: Client, phone: Phone) -> None:
    """A user who goes back gives the application access_denied. In the messenger, they can then only report it."""
    page = begin(browser, shop)
    deeplink = page.deeplink
    assert phone.open(deeplink)[-1]["buttons"]
    answer = answer_of(page.send("leave"))
    assert answer["error"] == "access_denied"
    assert answer["state"] == "state of the application"
    shown = phone.open(deeplink)[-1]
    assert (shown["buttons"], "cancelled this request" in shown["text"]) == ([["This wasn’t me"]], True)
    assert page.load().status_code == 200
    assert page.send("leave").headers["location"] == page.url


def test_cancel_in_the_messenger(browser: httpx.Client, shop: Client, phone: Phone) -> None:
    """The waiting page returns to the application with access_denied, and later says that the sign-in is finished."""
    page = begin(browser, shop)
    assert '<meta http-equiv="refresh"' in page.load().text  # Without scripts, the page loads itself again.
    phone.sign_in({"deeplink": page.deeplink}, "Cancel")
    answer = answer_of(page.load())
    assert (answer["error"], answer["state"]) == ("access_denied", "state of the application")
    assert "This sign-in is finished" in page.load().text


def test_only_the_account_of_the_hint(browser: httpx.Client, shop: Client, project: OwnProject, phone: Phone) -> None:
    """A step-up: the user's own account gets a code, and another one login_required."""
    tokens = shop.redeem(sign_in(browser, shop, phone)).json()
    other = make_phone(project.developer.client, "Grace Hopper")
    for each, expected in ((phone, None), (other, "login_required")):
        page = begin(browser, shop, id_token_hint=tokens["id_token"])
        assert "Confirm with the account that you used before in" in page.load().text
        each.sign_in({"deeplink": page.deeplink})
        answer = answer_of(page.load())
        assert (answer.get("error"), "code" in answer) == (expected, expected is None)


def test_a_device(browser: httpx.Client, shop: Client, phone: Phone) -> None:
    """A device shows a code, the user types it and confirms, and the device gets its tokens."""
    begun = browser.post("/oidc/device_authorization", data={"scope": "openid profile"}, auth=shop.auth).json()
    grant = {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": begun["device_code"]}

    def poll() -> httpx.Response:
        return browser.post("/oidc/token", data=grant, auth=shop.auth)

    assert poll().json()["error"] == "authorization_pending"
    assert poll().json()["error"] == "slow_down"
    same_origin = {"Sec-Fetch-Site": "same-origin"}
    typed = {"user_code": begun["user_code"].replace("-", " ").lower()}
    assert begun["user_code"] in browser.get(begun["verification_uri_complete"]).text
    asked = browser.post("/device", data=typed, headers=same_origin)
    assert (asked.status_code, "Is this code shown" in asked.text) == (200, True)
    led = browser.post("/device", data=typed | {"action": "continue"}, headers=same_origin)
    assert led.status_code == 303, led.text
    page = type(begin(browser, shop))(browser, led.headers["location"])
    phone.sign_in({"deeplink": page.deeplink})
    assert "Go back to your device" in page.load().text
    assert browser.post("/device", data=typed, headers=same_origin).status_code == 404


def test_a_state_of_4_kb(browser: httpx.Client, shop: Client) -> None:
    """A state of 4,096 characters passes through the server in both directions, even if each one is encoded."""
    for state in ("s" * 4096, '"' * 4096):
        parameters = shop.request(state=state, prompt="none")
        for response in (
            browser.get("/oidc/authorize", params=parameters),
            browser.post("/oidc/authorize", data=parameters),
        ):
            assert answer_of(response)["state"] == state


def test_an_erasure_ends_the_tokens(browser: httpx.Client, shop: Client, phone: Phone, developer: Developer) -> None:
    """An erased sign-in gives no claims; the access token ends with it."""
    code = sign_in(browser, shop, phone)
    access_token = shop.redeem(code).json()["access_token"]
    assert developer.call("DELETE", f"/users/{phone.messenger_id}").status_code == 200
    assert shop.userinfo(access_token).status_code == 401


def test_a_report_ends_what_the_application_holds(
    browser: httpx.Client, developer: Developer, project: OwnProject, phone: Phone
) -> None:
    """After a report in the messenger, the application's tokens end and its logout URI is called."""
    with receiving() as received:
        grants = ["authorization_code", "refresh_token"]
        app = create_client(developer, project.id, grant_types=grants, backchannel_logout_uri=f"{received.url}/out")
        code = sign_in(browser, app, phone, scope="openid profile offline_access")
        tokens = app.redeem(code).json()

        def refresh(token: str) -> httpx.Response:
            form = {"grant_type": "refresh_token", "refresh_token": token}
            return app.http.post("/oidc/token", data=form, auth=app.auth)

        tokens = refresh(tokens["refresh_token"]).json()
        claims = claims_of(app, phone, tokens)
        path = f"/projects/{project.id}/clients/{app.id}/grants"
        assert [each["id"] for each in developer.ask("GET", path)["grants"]] == [claims["sid"]]
        phone.send("/sessions")
        phone.tap("1. This wasn’t me")
        assert refresh(tokens["refresh_token"]).json()["error"] == "invalid_grant"
        assert app.userinfo(tokens["access_token"]).status_code == 401
        assert developer.ask("GET", path)["grants"] == []
        (told,) = received.wait_for(1)
        form = dict(parse_qsl(told.body.decode()))
        logout = app.read_id_token(form["logout_token"])
        assert (told.path, logout["sid"], logout["sub"]) == ("/out", claims["sid"], phone.messenger_id)


def test_signing_out(browser: httpx.Client, developer: Developer, project: OwnProject, phone: Phone) -> None:
    """The application sends its user to Taproof, which ends the tokens and leads back."""
    back = "https://app.example/bye"
    grants = ["authorization_code", "refresh_token"]
    app = create_client(developer, project.id, grant_types=grants, post_logout_redirect_uris=[back])
    tokens = app.redeem(sign_in(browser, app, phone, scope="openid offline_access")).json()
    parameters = {"id_token_hint": tokens["id_token"], "post_logout_redirect_uri": back, "state": "s"}
    response = browser.get("/oidc/end_session", params=parameters)
    assert (response.status_code, response.headers["location"]) == (303, f"{back}?state=s")
    form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    assert app.http.post("/oidc/token", data=form, auth=app.auth).json()["error"] == "invalid_grant"
    shown = browser.get("/oidc/end_session", params=parameters | {"post_logout_redirect_uri": f"{back}/x"})
    assert (shown.status_code, "is not registered" in shown.text) == (400, True)
