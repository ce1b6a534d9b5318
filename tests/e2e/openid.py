"""An application that signs in with OpenID Connect, written by hand, and the browser that goes through the pages."""

import base64
import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import jwt
from tests.e2e.conftest import TRUST, Developer, Phone

REDIRECT_URI = "https://app.example/callback"
DEEPLINK = re.compile(r'<a class="button" href="([^"]+)"')


@dataclass
class Client:
    """A client of a project, with the calls that an application makes."""

    http: httpx.Client
    created: dict[str, Any]
    verifier: str = field(default_factory=lambda: token_urlsafe(48))

    @property
    def id(self) -> str:
        client_id: str = self.created["client_id"]
        return client_id

    @property
    def auth(self) -> httpx.Auth:
        """HTTP Basic authentication; none for a client without a secret."""
        secret = self.created.get("client_secret")
        return httpx.Auth() if secret is None else httpx.BasicAuth(self.id, secret)

    def request(self, **changed: str | None) -> dict[str, str]:
        """Return the parameters of an authorization request; a changed one with the value None is left out."""
        challenge = base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()
        parameters = {
            "client_id": self.id,
            "redirect_uri": self.created["redirect_uris"][0],
            "response_type": "code",
            "scope": "openid profile",
            "state": "state of the application",
            "nonce": "n-0S6_WzA2Mj",
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        } | changed
        return {name: value for name, value in parameters.items() if value is not None}

    def redeem(self, code: str, **changed: str | None) -> httpx.Response:
        """Exchange a code for tokens."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.created["redirect_uris"][0],
            "code_verifier": self.verifier,
            **({"client_id": self.id} if self.created["auth_method"] == "none" else {}),
        } | changed
        data = {name: value for name, value in form.items() if value is not None}
        return self.http.post("/oidc/token", data=data, auth=self.auth)

    def userinfo(self, access_token: str) -> httpx.Response:
        return self.http.get("/oidc/userinfo", headers={"Authorization": f"Bearer {access_token}"})

    def read_id_token(self, id_token: str) -> dict[str, Any]:
        """Return the claims of an ID token, checked with the JWK set."""
        jwks = jwt.PyJWKSet.from_dict(self.http.get("/oidc/jwks").json())
        header = jwt.get_unverified_header(id_token)
        issuer = self.http.get("/.well-known/openid-configuration").json()["issuer"]
        assert header["alg"] == self.created["signing_alg"]
        claims: dict[str, Any] = jwt.decode(
            id_token, jwks[header["kid"]], algorithms=[header["alg"]], audience=self.id, issuer=issuer
        )
        return claims


def create_client(developer: Developer, project_id: str, **fields: Any) -> Client:
    grants = ["authorization_code", "device_code"]
    body = {"name": "Shop", "redirect_uris": [REDIRECT_URI], "grant_types": grants} | fields
    return Client(developer.client, developer.ask("POST", f"/projects/{project_id}/clients", json=body))


@dataclass
class Page:
    """The sign-in page in one browser."""

    browser: httpx.Client
    url: str

    def load(self) -> httpx.Response:
        return self.browser.get(self.url)

    @property
    def deeplink(self) -> str:
        found = DEEPLINK.search(self.load().text)
        assert found, self.load().text
        return unescape(found[1])

    def send(self, form: str) -> httpx.Response:
        """Send one of the page's forms, as a browser does."""
        return self.browser.post(f"{self.url}/{form}", headers={"Sec-Fetch-Site": "same-origin"})


@contextmanager
def new_browser(base_url: str) -> Iterator[httpx.Client]:
    """Yield a browser without scripts: it keeps cookies, and shows each redirect."""
    with httpx.Client(base_url=base_url, timeout=60, verify=TRUST) as browser:
        yield browser


def begin(browser: httpx.Client, client: Client, **changed: str | None) -> Page:
    """Send the browser to the authorization endpoint, and return the page to which it leads."""
    response = browser.get("/oidc/authorize", params=client.request(**changed))
    assert response.status_code == 303, response.text
    return Page(browser, response.headers["location"])


def answer_of(response: httpx.Response) -> dict[str, str]:
    """Return the parameters of the authorization response in a redirect."""
    assert response.status_code == 303, response.text
    return dict(parse_qsl(urlsplit(response.headers["location"]).query, strict_parsing=True))


def sign_in(browser: httpx.Client, client: Client, phone: Phone, **changed: str | None) -> str:
    """Sign in through the pages; return the code."""
    page = begin(browser, client, **changed)
    phone.sign_in({"deeplink": page.deeplink})
    return answer_of(page.load())["code"]
