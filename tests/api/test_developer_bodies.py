"""The allowed bodies of developer requests (contract.md, Everywhere)."""

import re
from typing import Any

import pytest
from tests.api.conftest import Api, assert_error

from taproof.api.projects import CreateProject
from taproof.contract.fields import described
from taproof.contract.project import ProjectUpdate
from taproof.core.return_url import NotAReturnUrl, read_return_url

EVENTS = 'webhook_events must be a list of strings, such as ["auth.confirmed"].'
ORIGINS = 'allowed_origins must be a list of strings, such as ["https://shop.example.com"]; [] allows any page.'
BOT_TOKEN = 'bot_token must be a string: the token from @BotFather, or "" to use the service\'s own bot again.'
RETURN_URLS = {
    'https://app.example/back?to=%2F&x="!$': True,
    "http://127.0.0.1:3000/": True,
    "https://app.example/#top": False,
    "https://app.example/#": False,
    "https://app.example?a#b": False,
    "http://app.example/": False,
    "https://app.example/a b": False,
    "https://app.example/\\": False,
}
BAD_BODIES: list[tuple[bytes, str]] = [
    (b"", "JSON"),
    (b"{", "JSON"),
    (b"[]", "object"),
    (b"null", "object"),
    (b'"name"', "object"),
    (b"\xff\xfe{}", "UTF-8"),
    ('{"name":"Acme"}'.encode("utf-16"), "UTF-8"),
    (b'\xef\xbb\xbf{"name":"a"}', "JSON"),
    (b"[" * 10_000, "JSON"),
    (b'{"name":' + b"[" * 10_000, "JSON"),
    (b'{"name":' + b"9" * 10_000 + b"}", "JSON"),
    (b"{}", "name is required."),
    (b'{"name":null}', "name must be a string."),
    (b'{"name":7}', "name must be a string."),
    (b'{"name":["a"]}', "name must be a string."),
    (b'{"name":NaN}', "not valid JSON"),
    (b'{"name":""}', "name must have"),
    (b'{"name":"   "}', "name must have"),
    (b'{"name":"' + b"a" * 101 + b'"}', "name must have"),
    (b'{"name":"a\\u0000b"}', "name must not contain"),
    (b'{"name":"a\\nb"}', "name must not contain"),
    (b'{"name":"a\\ud800"}', "name must not contain"),
    (b'{"name":"\\u200b"}', "name must"),
    (b'{"name":"a","public_access":"true"}', "public_access must be true or false."),
    (b'{"name":"a","public_access":1}', "public_access must be true or false."),
    (b'{"name":"a","public_access":null}', "public_access must be true or false."),
    (b'{"name":"a","webhook_url":null}', "webhook_url must be a string."),
    (b'{"name":"a","webhook_url":"http://example.com"}', "webhook_url must begin with https://."),
    (b'{"name":"a","webhook_url":"https://u:p@example.com"}', "webhook_url must not"),
    (b'{"name":"a","webhook_url":"https://e\\u0000x.com"}', "webhook_url must be"),
    (b'{"name":"a","webhook_url":"https://' + b"a" * 2048 + b'"}', "webhook_url must have"),
    (b'{"name":"a","collect_phone":true}', "collect_phone is available on"),
    (b'{"name":"a","allowed_origins":"https://a.example"}', ORIGINS),
    (b'{"name":"a","allowed_origins":null}', ORIGINS),
    (b'{"name":"a","allowed_origins":{"0":"https://a.example"}}', ORIGINS),
    (b'{"name":"a","allowed_origins":[1]}', ORIGINS),
    (b'{"name":"a","allowed_origins":["https://a.example",["https://b.example"]]}', ORIGINS),
    (b'{"name":"a","allowed_origins":["https://a.example/x"]}', "allowed_origins: number 1 of the list must end after"),
    (b'{"name":"a","webhook_events":null}', EVENTS),
    (b'{"name":"a","webhook_events":"auth.confirmed"}', EVENTS),
    (b'{"name":"a","webhook_events":["auth.confirmed",1]}', EVENTS),
    (b'{"name":"a","webhook_events":[]}', "webhook_events must name at least one event."),
    (
        b'{"name":"a","webhook_events":["auth.confirmed","auth.used"]}',
        "webhook_events: number 2 of the list is unknown.",
    ),
    (b'{"name":"a","bot_token":null}', BOT_TOKEN),
    (b'{"name":"a","bot_token":5}', BOT_TOKEN),
    (b'{"name":"a","match_code":true}', "match_code must be off or on."),
    (b'{"name":"a","colour":1}', "colour is not a field of this request."),
    (b'{"name":"a","is_active":true}', "is_active is not a field of this request."),
    (b'{"name":"a","\\ud800":1}', "an unknown field"),
    (b'{"name":"a","<b>\\u0000":1}', "an unknown field"),
    (b'{"name":"a","":1}', "an unknown field"),
]


async def test_a_bad_body_is_400_and_creates_nothing(api: Api, subtests: pytest.Subtests, token: str) -> None:
    """The sentence names the problem; nothing is converted, guessed or stored."""
    for content, sentence in BAD_BODIES:
        with subtests.test(content=content[:100], sentence=sentence):
            response = await api.call(
                "POST", "/projects", token, content=content, headers={"Content-Type": "application/json"}
            )
            assert sentence in assert_error(response, 400, "invalid_request")
            assert (await api.call("GET", "/projects", token)).json() == {"projects": []}


@pytest.mark.parametrize("field", described(ProjectUpdate))
async def test_patch_refuses_null_and_changes_nothing(api: Api, field: str) -> None:
    """JSON null is not a valid value of any field; a request with one wrong field changes none of the others."""
    _, token = await api.sign_up("ada@example.com", "pro")
    project = await api.post("/projects", token, {"name": "Acme"})
    path = f"/projects/{project['id']}"
    before = (await api.call("GET", path, token)).json()
    body = {"name": "New", "is_active": False} | {field: None}
    assert field in assert_error(await api.call("PATCH", path, token, json=body), 400, "invalid_request")
    assert (await api.call("GET", path, token)).json() == before


CONTENT_TYPES = {
    "": False,
    "text/plain": False,
    "application/x-www-form-urlencoded": False,
    "application/json5": False,
    "application/json; charset=latin-1": False,
    "application/json" + ";" * 200: False,
    "application/json; charset=UTF-8": True,
    "Application/JSON;x=y": True,
}


async def test_a_body_says_that_it_is_json(api: Api, subtests: pytest.Subtests, token: str) -> None:
    """The type must be JSON in UTF-8, which a form on a foreign page cannot send.

    Other parameters, and case, do not matter.
    """
    for content_type, is_allowed in CONTENT_TYPES.items():
        with subtests.test(content_type[:50]):
            headers = {"Content-Type": content_type}
            response = await api.call("POST", "/projects", token, content=b'{"name":"a"}', headers=headers)
            if is_allowed:
                assert response.status_code == 200
            else:
                assert "application/json" in assert_error(response, 400, "invalid_request")


def test_the_pattern_of_return_urls_is_the_rule() -> None:
    """The pattern in the document matches the rule, because generated clients check it before they send."""
    items = CreateProject.model_json_schema()["properties"]["return_urls"]["items"]
    for url, is_one in RETURN_URLS.items():
        assert (re.search(items["pattern"], url) is not None) is is_one, url
        if is_one:
            read_return_url(url)
        else:
            with pytest.raises(NotAReturnUrl):
                read_return_url(url)


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(("size", "status"), [(16 * 1024, 200), (16 * 1024 + 1, 413), (1024 * 1024, 413)])
async def test_bodies_end_at_16_kib(api: Api, size: int, status: int, token: str, *, chunked: bool) -> None:
    """The limit applies to Content-Length and, without one, while reading."""
    body = b'{"name":"a"}'.ljust(size)

    async def chunks() -> Any:
        for start in range(0, size, 4000):
            yield body[start : start + 4000]

    response = await api.call(
        "POST",
        "/projects",
        token,
        content=chunks() if chunked else body,
        headers={"Content-Type": "application/json"},
    )
    assert response.status_code == status
    if status == 413:
        assert_error(response, 413, "payload_too_large")
