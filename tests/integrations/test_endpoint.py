"""endpoint.py alone: where a sign-in may lead, whose requests are taken, and which settings it starts with."""

from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.integrations.conftest import PROJECT, SECRET, SETTINGS, make_proof

from taproof.integrations.endpoint import Asked, Endpoint, SettingsError, SignedIn, TaproofSettings, own_path
from taproof.sdk.guard import MemoryGuard

SITE = "https://shop.example.com"


def as_a_browser_reads(path: str) -> str:
    """Return the path as a browser takes it (WHATWG URL): backslashes are slashes, tabs and line breaks nothing."""
    kept = path.strip("".join(map(chr, range(33)))).replace("\t", "").replace("\n", "").replace("\r", "")
    return kept.replace("\\", "/")


@pytest.mark.parametrize(
    "path", ["/", "/members", "/members?tab=a%26b#top", "/orders/1,2;x=@:+!'()*", "/עברית", "/a//b"]
)
def test_paths_of_this_site_are_followed(path: str) -> None:
    """Any page of the application can be the next one."""
    assert own_path(path) == path


@pytest.mark.parametrize(
    "path",
    [
        None,
        "",
        "members",
        "https://evil.example/",
        "//evil.example",
        "///evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "/\n/evil.example",
        "\t//evil.example",
        " /members",
        "/members\r\nSet-Cookie: a=b",
        "/\x00",
        "javascript:alert(1)",
        "/" + "a" * 3_000,
    ],
)
def test_other_paths_are_not(path: str | None) -> None:
    """What leads away, or might in some browser, leads home instead."""
    assert own_path(path) == "/"


@given(st.text(alphabet=st.sampled_from("/\\\t\n\r .:@?#ae%\x00\u2028"), max_size=12))
def test_whatever_is_asked_for_the_browser_stays(rest: str) -> None:
    """No path leads to another host, read as browsers do."""
    for asked in (rest, f"/{rest}", f"//{rest}"):
        target = urlsplit(urljoin(f"{SITE}/auth", as_a_browser_reads(own_path(asked))))
        assert f"{target.scheme}://{target.netloc}" == SITE


def endpoint() -> Endpoint:
    return Endpoint(TaproofSettings.from_mapping(SETTINGS), MemoryGuard())


@pytest.mark.parametrize(
    ("origin", "scheme", "host", "is_own"),
    [
        (SITE, "https", "shop.example.com", True),
        (SITE, "https", "Shop.Example.com:443", True),
        ("http://127.0.0.1:8000", "http", "127.0.0.1:8000", True),
        ("http://[::1]:8000", "http", "[::1]:8000", True),
        ("http://shop.example.com", "http", "shop.example.com:80", True),
        ("http://shop.example.com", "http", "shop.example.com:8080", False),
        (SITE, "http", "shop.example.com", False),
        (SITE, "https", "shop.example.com:8443", False),
        (f"{SITE}.evil.example", "https", "shop.example.com", False),
        ("https://evil.example", "https", "shop.example.com", False),
        ("https://", "https", "", False),
        ("null", "https", "shop.example.com", False),
        (None, "https", "shop.example.com", False),
    ],
)
def test_an_origin_is_the_applications_own_or_not(origin: str | None, scheme: str, host: str, *, is_own: bool) -> None:
    """Scheme, host and port must all be the public address's, as browsers write it."""
    asked = Asked(content_type="application/json", fetch_site=None, origin=origin, scheme=scheme, host=host)
    assert endpoint().sign_out(asked).status == (200 if is_own else 403)


def test_the_clock_decides_and_is_kept() -> None:
    """A proof is judged by the clock that the endpoint was given, and the session says when that was."""
    proof = make_proof(age=1_000)
    asked = Asked(
        content_type="application/json; charset=utf-8",
        fetch_site="same-origin",
        origin=None,
        scheme="https",
        host="",
        body=f'{{"proof": "{proof}"}}'.encode(),
    )
    assert endpoint().sign_in(asked).status == 401
    settings = TaproofSettings.from_mapping(SETTINGS)
    now = 0.0
    behind = Endpoint(settings, MemoryGuard(), clock=lambda: now)
    assert "in the future" in behind.sign_in(asked).content["error"]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"TAPROOF_BASE_URL": ""}, ["TAPROOF_BASE_URL"]),
        ({"TAPROOF_BASE_URL": "signin.example.com"}, ["TAPROOF_BASE_URL"]),
        ({"TAPROOF_BASE_URL": "https://user:pass@signin.example.com"}, ["TAPROOF_BASE_URL"]),
        ({"TAPROOF_BASE_URL": 'https://signin.example.com"><script>'}, ["TAPROOF_BASE_URL"]),
        ({"TAPROOF_BASE_URL": "https://signin.example.com/api"}, ["TAPROOF_BASE_URL"]),
        ({"TAPROOF_BASE_URL": "javascript:alert(1)"}, ["TAPROOF_BASE_URL"]),
        ({"TAPROOF_PROJECT_ID": "Shop"}, ["TAPROOF_PROJECT_ID"]),
        ({"TAPROOF_WEBHOOK_SECRET": "sk_abc"}, ["TAPROOF_WEBHOOK_SECRET"]),
        ({"TAPROOF_WEBHOOK_SECRET": f"{SECRET},"}, ["TAPROOF_WEBHOOK_SECRET"]),
        ({"TAPROOF_PROJECT_ID": None, "TAPROOF_WEBHOOK_SECRET": 7}, ["TAPROOF_PROJECT_ID", "TAPROOF_WEBHOOK_SECRET"]),
        (dict.fromkeys(SETTINGS), list(SETTINGS)),
    ],
)
def test_settings_that_are_wrong_are_all_named(changes: dict[str, Any], named: list[str]) -> None:
    """One start is enough to learn all that is missing; no value is shown."""
    with pytest.raises(SettingsError) as caught:
        TaproofSettings.from_mapping(SETTINGS | changes)
    assert [name for name in SETTINGS if name in str(caught.value)] == named
    assert "sk_abc" not in str(caught.value)
    assert SECRET not in str(caught.value)


def test_settings() -> None:
    """A slash at the end does no harm, several secrets go with a rotation, and pages get no secret."""
    other = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
    settings = TaproofSettings.from_mapping(
        SETTINGS | {"TAPROOF_BASE_URL": "http://127.0.0.1:8080/", "TAPROOF_WEBHOOK_SECRET": f"{other}, {SECRET}"}
    )
    assert settings.webhook_secrets == (other, SECRET)
    assert SECRET not in repr(settings)
    assert settings.for_pages == {
        "base_url": "http://127.0.0.1:8080",
        "script_url": "http://127.0.0.1:8080/sdk/taproof.js",
        "project_id": PROJECT,
    }


GOOD = {"messenger_id": "1", "messenger_name": "Ada", "messenger_username": "", "signed_in_at": 1_760_000_000}


def test_a_session_is_read_as_it_was_written() -> None:
    """What the session holds is the identity again, and a field of a later release does no harm."""
    identity = SignedIn.from_session(GOOD | {"later": 1})
    assert identity is not None
    assert identity.to_session() == GOOD


@pytest.mark.parametrize(
    "kept",
    [None, "", [], {}, GOOD | {"messenger_id": ""}, GOOD | {"messenger_name": None}, GOOD | {"signed_in_at": True}],
)
def test_anything_else_in_the_session_is_nobody(kept: object) -> None:
    """A session of another release, or of something else of that name, signs nobody in and raises nothing."""
    assert SignedIn.from_session(kept) is None
