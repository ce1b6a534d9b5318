"""The URLs of logos that are accepted, and the origins that a page may load images from."""

import re

from hypothesis import given
from hypothesis import strategies as st

from taproof.api.projects import CreateProject
from taproof.contract.project import LOGO_URL_LIMIT
from taproof.core.logo_url import logo_origin, logo_url_problem

ORIGINS = {
    "https://shop.example/logo.png": "https://shop.example",
    "https://shop.example": "https://shop.example",
    "HTTPS://Shop.Example:443/a;b,c'\"": "https://shop.example",
    "https://cdn.shop.example:8443/?v=2": "https://cdn.shop.example:8443",
    "https://xn--bcher-kva.example/%D1%85.svg": "https://xn--bcher-kva.example",
    "https://shop.example/" + "a" * (LOGO_URL_LIMIT - 21): "https://shop.example",
}
IN_SANDBOX = {
    "http://127.0.0.1:8123/logo.png": "http://127.0.0.1:8123",
    "http://localhost/logo.png": "http://localhost",
}
REFUSED = [
    " ",
    "logo.png",
    "//shop.example/logo.png",
    "http://shop.example/logo.png",
    "ftp://shop.example/logo.png",
    "javascript:alert(1)",
    "data:image/png;base64,AAAA",
    "https://",
    "https:///logo.png",
    "https://user@shop.example/logo.png",
    "https://user:password@shop.example/logo.png",
    "https://shop.example;script-src */logo.png",
    "https://shop.example, https://evil.example/",
    "https://*.example/logo.png",
    "https://shop.example:0/",
    "https://shop.example:99999/",
    "https://shop.example:/",
    "https://shop.example\\@evil.example/",
    "https://shop.example/lo go.png",
    "https://shop.example/logo.png#part",
    "https://shop.example/\nlogo.png",
    "https://shop.example/л.png",
    "https://магазин.example/",
    "https://intranet/logo.png",
    "https://localhost/logo.png",
    "https://shop.localhost/logo.png",
    "https://192.168.0.1/logo.png",
    "https://203.0.113.7/logo.png",
    "https://0x7f.1/logo.png",
    "https://[2001:db8::7]/logo.png",
    "https://shop.example/" + "a" * (LOGO_URL_LIMIT - 20),
    "https://" + "a" * 1_000_000,
]
PATTERN = CreateProject.model_json_schema()["properties"]["logo_url"]["pattern"]


def test_which_are_accepted() -> None:
    """An https URL with a public name; in the sandbox, also http to this machine. Generated clients accept them too."""
    assert {url: logo_origin(url) for url in ORIGINS | IN_SANDBOX} == ORIGINS | IN_SANDBOX
    answers = [logo_url_problem(url, allow_loopback_http=False) for url in ("", *ORIGINS)]
    answers += [logo_url_problem(url, allow_loopback_http=True) for url in IN_SANDBOX]
    assert set(answers) == {None}
    assert [url for url in (*ORIGINS, *IN_SANDBOX) if not re.search(PATTERN, url, re.IGNORECASE)] == []
    for is_sandbox, urls in ((False, [*REFUSED, *IN_SANDBOX]), (True, set(REFUSED) - {"https://localhost/logo.png"})):
        accepted = [url for url in urls if logo_url_problem(url, allow_loopback_http=is_sandbox) is None]
        assert [url for url in accepted if not (is_sandbox and "localhost" in url)] == []


@given(st.one_of(st.text(), st.text().map("https://".__add__)))
def test_an_origin_cannot_extend_a_policy(text: str) -> None:
    """Return one origin or nothing for any stored value, because it becomes a source in a Content-Security-Policy."""
    assert re.fullmatch(r"(https?://[a-z0-9._-]+(:[0-9]+)?)?", logo_origin(text))
