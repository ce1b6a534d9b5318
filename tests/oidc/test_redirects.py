"""Hostile authorization requests: a response goes only to a registered redirect URI, and carries only its own values.

Sources: RFC 6749, section 10; RFC 9207; RFC 9700, sections 4.1, 4.4 and 4.11.
"""

import json
from html.parser import HTMLParser
from urllib.parse import parse_qsl, quote, urlsplit

import httpx
import pytest
from tests.e2e.openid import answer_of
from tests.oidc.conftest import Web
from tests.openid_provider import ISSUER, Provider, Shop

REGISTERED = (
    "https://app.example/callback",
    "https://app.example/with?query=1",
    "http://127.0.0.1/cb",
    "com.example.app:/oauth",
)
TRICKS = (
    "https://evil.example/callback",
    "https://app.example/callback/",
    "https://app.example/callback?",
    "https://app.example/callback?next=//evil.example",
    "https://app.example/callback#",
    "https://app.example/callback#/evil",
    "https://app.example/callback/../../evil",
    "https://app.example/./callback",
    "https://app.example//callback",
    "https://app.example/Callback",
    "https://app.example/%63allback",
    "https://app.example/callback%2f..%2fevil",
    "https://app.example/callback%00.evil",
    "https://app.example/callback;x",
    "https://app.example:443/callback",
    "https://app.example:8443/callback",
    "https://App.example/callback",
    "HTTPS://app.example/callback",
    "http://app.example/callback",
    "https://app.example./callback",
    "https://app.example@evil.example/callback",
    "https://evil.example@app.example/callback",
    "https://app.example:443@evil.example/callback",
    "https://app.example%40evil.example/callback",
    "https://evil.example\\@app.example/callback",
    "https://evil.example\\app.example/callback",
    "https:\\\\app.example\\callback",
    "https:///app.example/callback",
    "https:app.example/callback",
    "https://app.example.evil.example/callback",
    "https://evil.example/https://app.example/callback",
    "https://xn--pp-eia.example/callback",
    "https://аpp.example/callback",
    "https://app。example/callback",
    "//app.example/callback",
    "/callback",
    "callback",
    "javascript:alert(1)//https://app.example/callback",
    "data:text/html,https://app.example/callback",
    " https://app.example/callback",
    "https://app.example/callback ",
    "https://app.example/callback\t",
    "https://app.example/call\nback",
    "https://app.example/callback\r\nLocation: https://evil.example",
    "https://app.example/callback%0d%0aLocation:%20https://evil.example",
    "https://app.example/callback\x00",
    "https://app.example/with?query=1&more=2",
    "https://app.example/with",
    "http://127.0.0.1/cb/",
    "http://127.0.0.1:0/cb",
    "http://127.0.0.1:65536/cb",
    "http://127.0.0.1:80@evil.example/cb",
    "http://127.0.0.1:8000.evil.example/cb",
    "http://127.0.0.1.evil.example/cb",
    "http://127.0.0.1:8000evil/cb",
    "http://127.0.0.1:٣/cb",
    "http://127.0.0.2/cb",
    "http://127.1/cb",
    "http://localhost/cb",
    "http://[::1]/cb",
    "https://127.0.0.1:8000/cb",
    "com.example.app://oauth",
    "com.example.app:/oauth/",
    "com.example.app:/OAUTH",
    "com.example.app.evil:/oauth",
)
INSERTED = ("/", "\\", "@", ":", "#", "?", "&", ".", "%2e", "%", " ", "\r\n", "\x00", "evil.example", "ſ")


class Links(HTMLParser):
    """The addresses to which a page leads."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.fields: dict[str, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.found += [given[name] for name in ("href", "action", "src", "formaction") if name in given]
        if "http-equiv" in given:
            self.found.append(given["content"])
        if tag == "input":
            self.fields[given["name"]] = given["value"]


def assert_leads_nowhere(response: httpx.Response, uri: str) -> None:
    assert response.status_code == 400, uri
    assert "location" not in response.headers, uri
    assert "set-cookie" not in response.headers, uri
    for link in Links(response.text).found:
        assert link.startswith("/oidc/static/"), (uri, link)


@pytest.fixture
async def shop(provider: Provider) -> Shop:
    return await provider.shop(redirect_uris=REGISTERED)


async def test_unregistered_redirect_uris(web: Web, shop: Shop) -> None:
    """A redirect URI that differs in any way gets no response, neither a code nor an error (RFC 9700, section 2.1)."""
    # With prompt=none, a request with a registered redirect URI is answered there at once.
    for uri in REGISTERED:
        response = await web.authorize(shop.request(redirect_uri=uri, prompt="none"))
        assert response.headers["location"].startswith(uri + ("&" if "?" in uri else "?"))
    inserted = (
        uri[:at] + each + uri[at:] for uri in REGISTERED[:1] for each in INSERTED for at in range(0, len(uri) + 1, 4)
    )
    cut = (uri[:at] + uri[at + 1 :] for uri in REGISTERED for at in range(0, len(uri), 3))
    for uri in {*TRICKS, *inserted, *cut} - set(REGISTERED):
        for changed in ({"prompt": "none"},) if uri not in TRICKS else ({"prompt": "none"}, {}, {"scope": ""}):
            assert_leads_nowhere(await web.authorize(shop.request(redirect_uri=uri, **changed)), uri)


async def test_only_loopback_addresses_have_any_port(web: Web, shop: Shop) -> None:
    """The port is free for a loopback address, and the response goes to the port of the request (RFC 8252, 7.3)."""
    for port in (1, 8000, 65535):
        uri = f"http://127.0.0.1:{port}/cb"
        response = await web.authorize(shop.request(redirect_uri=uri, prompt="none"))
        assert response.headers["location"].startswith(f"{uri}?error=login_required")


async def test_parameters_that_readers_could_understand_differently(web: Web, shop: Shop) -> None:
    """A parameter that occurs twice, in another spelling or in another place redirects nowhere else."""
    good, evil = quote(REGISTERED[0]), quote("https://evil.example/")
    query = f"client_id={shop.id}&response_type=code&scope=openid&prompt=none"
    for text in (
        f"{query}&redirect_uri={good}&redirect_uri={evil}",
        f"{query}&redirect_uri={evil}&redirect_uri={good}",
        f"{query}&redirect_uri={good}&redirect%5Furi={evil}",
        f"{query}&redirect_uri={good}&client_id=oidc_other",
        f"{query}&redirect_uri[]={good}",
        f"{query}&Redirect_uri={good}",
        f"{query};redirect_uri={good}",
        f"{query}&redirect_uri={good};evil",
        f"{query}&redirect_uri=%ff{good}",
        f"{query}&redirect_uri={quote(good)}",
        query,
        f"redirect_uri={good}",
        "",
    ):
        assert_leads_nowhere(await web.get(f"/oidc/authorize?{text}"), text)
    # The query of a POST does not count.
    response = await web.post(f"/oidc/authorize?redirect_uri={evil}", data=shop.request(prompt="none"))
    assert response.headers["location"].startswith(REGISTERED[0])


async def test_redirect_uris_of_other_clients(web: Web, shop: Shop, provider: Provider) -> None:
    """A client cannot use the redirect URI of another one in its project."""
    other = await provider.shop(beside=shop, redirect_uris=("https://other.example/",))
    assert_leads_nowhere(await web.authorize(other.request(redirect_uri=REGISTERED[0])), "another client")


async def test_a_query_in_the_redirect_uri_is_kept(web: Web, shop: Shop) -> None:
    """The response is added to the query of the redirect URI (RFC 6749, section 3.1.2)."""
    answer = answer_of(await web.sign_in(shop.request(redirect_uri=REGISTERED[1])))
    assert answer["query"] == "1"
    assert {"code", "state", "iss"} <= answer.keys()


async def test_every_response_names_the_issuer(web: Web, shop: Shop) -> None:
    """Codes and errors carry `iss`, so a client can tell providers apart (RFC 9207, section 2), and the state."""
    for mode in ("query", "form_post"):
        for changed, error in (
            ({}, None),
            ({"prompt": "none"}, "login_required"),
            ({"scope": "profile"}, "invalid_scope"),
            ({"response_type": "token"}, "unsupported_response_type"),
            ({"request": "e30.e30."}, "request_not_supported"),
            ({"request_uri": "https://evil.example/request"}, "request_uri_not_supported"),
        ):
            parameters = shop.request(response_mode=mode, **changed)
            response = await (web.sign_in if error is None else web.authorize)(parameters)
            answer = answer_of(response) if mode == "query" else Links(response.text).fields
            assert (answer["iss"], answer["state"], answer.get("error")) == (ISSUER, "a state", error)
            assert ("code" in answer) == (error is None)


async def test_hostile_states(web: Web, shop: Shop) -> None:
    """A state is returned unchanged up to 4 KB, whatever it contains, and never becomes a header or markup."""
    states = (
        "s" * 4096,
        ("~ !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}" * 128)[:4096],
        '"><script>alert(1)</script><input name="code" value="',
        "&code=injected&iss=https://evil.example",
        "#fragment",
        "%0d%0aSet-Cookie:%20x=1",
        json.dumps({"url": "https://app.example/?a=b&c=d"}),
        "Straße 🦊 \u2028 مرحبا",
    )
    for state in states:
        for mode in ("query", "form_post"):
            response = await web.authorize(shop.request(state=state, response_mode=mode, prompt="none"))
            found = Links(response.text).fields if mode == "form_post" else answer_of(response)
            assert found["state"] == state
            assert found.keys() == {"error", "error_description", "state", "iss"}
            assert found["iss"] == ISSUER
    for state in ("a\r\nSet-Cookie: x=1", "a\nb", "\x00", "\x7f"):
        response = await web.authorize(shop.request(state=state))
        assert "set-cookie" not in response.headers
        parts = urlsplit(response.headers["location"])
        assert f"{parts.scheme}://{parts.netloc}{parts.path}" == REGISTERED[0]
        assert dict(parse_qsl(parts.query))["error"] == "invalid_request"
        assert dict(parse_qsl(parts.query))["state"] == state
    assert_leads_nowhere(await web.authorize(shop.request(state="s" * 4097)), "4,097 characters")


async def test_a_code_of_another_sign_in(web: Web, shop: Shop, provider: Provider) -> None:
    """An injected code of another sign-in fails, because its verifier is different (RFC 9700, 4.5)."""
    stolen = await web.sign_in(shop.request())
    refused = await web.redeem(shop, stolen, code_verifier="v" * 43)
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")
    other = await provider.shop(beside=shop, redirect_uris=REGISTERED)
    refused = await web.redeem(other, stolen)
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")
    assert (await web.redeem(shop, stolen)).status_code == 200


async def test_no_form_is_posted_to_the_service_itself(web: Web, provider: Provider) -> None:
    """The page of form_post has the console's origin, so an application could send the console's forms with it."""
    path = "/console/projects/proj_6Fh2YzQw8sVb1KdTnXcR3L/webhooks/rotate"
    own = (
        ISSUER,
        f"{ISSUER}:",
        f"{ISSUER}:443",
        f"{ISSUER}:0443",
        "https://SIGN-IN.example",
        "https://sign-in.example.",
        "https://alias.example:8443",
        "https://[::1]:8443",
        "http://127.0.0.1:8080",
    )
    shop = await provider.shop(redirect_uris=(*(f"{each}{path}" for each in own), REGISTERED[0]))
    hosts = {f"{own[6]}{path}": "alias.example:8443", f"{own[7]}{path}": "[0:0::1]:8443"}
    for uri in shop.client.redirect_uris[:8]:
        headers = {"Host": hosts.get(uri, "sign-in.example")}
        for changed in ({"prompt": "none"}, {"scope": "profile"}):
            parameters = shop.request(redirect_uri=uri, response_mode="form_post", **changed)
            assert_leads_nowhere(await web.get("/oidc/authorize", params=parameters, headers=headers), uri)
        begun = await web.get("/oidc/authorize", params=shop.request(redirect_uri=uri, response_mode="form_post"))
        assert begun.status_code == 303
        await web.confirm(begun.headers["location"])
        assert_leads_nowhere(await web.get(begun.headers["location"], headers=headers), uri)
    for uri in shop.client.redirect_uris[8:]:
        response = await web.authorize(shop.request(redirect_uri=uri, response_mode="form_post", prompt="none"))
        assert Links(response.text).found[-2:-1] == [uri], uri
    # A redirect is a GET, which changes nothing there.
    response = await web.authorize(shop.request(redirect_uri=f"{ISSUER}{path}", prompt="none"))
    assert response.status_code == 303
