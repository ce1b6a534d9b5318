"""endpoint.py alone: the pages that a sign-in may lead to, the accepted requests, and the settings."""

import re
import time
from dataclasses import replace
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.integrations.conftest import PROJECT, SECRET, SETTINGS, make_proof

from taproof.integrations.endpoint import (
    EndpointRequest,
    SettingsError,
    SignedIn,
    SignInEndpoint,
    TaproofSettings,
    own_path,
)
from taproof.sdk.guard import MemoryGuard

SITE = "https://shop.example.com"
ASKED = EndpointRequest(
    content_type="application/json", fetch_site="same-origin", origin=SITE, scheme="https", host="shop.example.com"
)
"""A request without a body from a page of this site."""


def as_a_browser_reads(path: str) -> str:
    """Return the path as a browser reads it (WHATWG URL).

    Backslashes become slashes, and tabs and line breaks are dropped.
    """
    kept = path.strip("".join(map(chr, range(33)))).replace("\t", "").replace("\n", "").replace("\r", "")
    return kept.replace("\\", "/")


def without_dots(path: str) -> str:
    """Return the path as `location.pathname` has it (WHATWG URL): segments of dots taken out, percent-encoded too."""
    kept: list[str] = []
    segments = path.split("/")[1:]
    for at, segment in enumerate(segments):
        dots = re.sub("%2e", ".", segment, flags=re.IGNORECASE)
        if dots == "..":
            kept = kept[:-1]
        if dots not in {".", ".."}:
            kept.append(segment)
        elif at == len(segments) - 1:
            kept.append("")
    return "/" + "/".join(kept)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/members",
        "/members?tab=a%26b#top",
        "/orders/1,2;x=@:+!'()*",
        "/עברית",
        "/a/",
        "/?back=//b/../c",
        "/a#//b",
        "/.a/..b/c../...",
        "/%2ea/%2f",
    ],
)
def test_paths_of_this_site_are_followed(path: str) -> None:
    """Any page of the application can be the next one."""
    assert own_path(path) == path


OTHER_PATHS = [
    None,
    "",
    "members",
    "https://evil.example/",
    "//evil.example",
    "///evil.example",
    "/.//evil.example/x",
    "/a/..//evil.example",
    "/%2e//evil.example",
    "/%2E%2e//evil.example",
    "/a//b",
    "/a//",
    "/.",
    "/a/..",
    "/a/../b",
    "/a/.%2E?x",
    "/a/%2e./#x",
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
]


def test_other_paths_are_not(subtests: pytest.Subtests) -> None:
    """A path that leads away, or might in some browser, is replaced by the home page."""
    for path in OTHER_PATHS:
        with subtests.test(path=path):
            assert own_path(path) == "/"


PIECES = st.sampled_from([*"//..aa\\\t\n\r :@?#e%\x00\u2028", "%2e", "%2E", "/./", "/../", "//"])


@given(st.lists(PIECES, max_size=12).map("".join))
def test_whatever_is_asked_for_the_browser_stays(rest: str) -> None:
    """No path leads to another host when it is read as browsers do."""
    for asked in (rest, f"/{rest}", f"//{rest}"):
        target = urlsplit(urljoin(f"{SITE}/auth", as_a_browser_reads(own_path(asked))))
        assert f"{target.scheme}://{target.netloc}" == SITE
        # A router takes the path of that address, and hands it to the browser as a new one.
        again = urlsplit(urljoin(SITE, without_dots(target.path)))
        assert f"{again.scheme}://{again.netloc}" == SITE


def endpoint(**options: Any) -> SignInEndpoint:
    return SignInEndpoint(TaproofSettings.from_mapping(SETTINGS), MemoryGuard(), **options)


def with_proof(proof: str) -> EndpointRequest:
    return replace(ASKED, body=f'{{"proof": "{proof}"}}'.encode(), next="/orders")


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
    """Scheme, host and port must all equal those of the public address, as browsers write it."""
    asked = replace(ASKED, fetch_site=None, origin=origin, scheme=scheme, host=host)
    assert endpoint().sign_out(asked).status == (200 if is_own else 403)


def test_a_request_of_another_site_is_refused() -> None:
    """No other site can sign its visitors in to its own account, or sign them out; the proof is not used."""
    at = endpoint()
    own = with_proof(make_proof())
    cases: list[dict[str, Any]] = [
        {"content_type": "application/x-www-form-urlencoded"},
        {"content_type": "text/plain"},
        {"content_type": "text/plain", "fetch_site": None},
        {"content_type": None},
        {"fetch_site": None, "origin": None},
        {"fetch_site": None, "origin": "https://evil.example"},
        {"fetch_site": None, "origin": "null"},
        {"fetch_site": None, "origin": ""},
        {"fetch_site": "cross-site", "origin": None},
        {"fetch_site": "same-site", "origin": None},
        {"fetch_site": "none", "origin": None},
        {"fetch_site": "", "origin": None},
        {"fetch_site": "cross-site"},
    ]
    for changes in cases:
        asked = replace(own, **changes)
        assert (at.sign_in(asked).status, at.sign_out(asked).status) == (403, 403), changes
    assert at.sign_in(own).status == 200


def test_a_body_without_a_proof_is_refused() -> None:
    """Every body is answered with a status and one sentence."""
    cases = [
        (b"", 400),
        (b"{", 400),
        (b"[" * 30_000, 400),
        (b'{"proof":' * 3_000 + b'""' + b"}" * 3_000, 400),
        (b"\xff\xfe", 400),
        (b"null", 400),
        (b'"proof"', 400),
        (b"{}", 400),
        (b'{"proof": null}', 400),
        (b'{"proof": ["a.b.c"]}', 400),
        (b'{"proof": 1' + b"0" * 9_000 + b"}", 400),
        (b'{"proof": "a.b.c", "proof": "a.b.c"}', 400),
        (b'{"proof": "\\ud800"}', 401),
        (b'{"proof": "' + b"a" * 32_768 + b'"}', 413),
    ]
    for body, status in cases:
        answer = endpoint().sign_in(replace(ASKED, body=body))
        assert (answer.status, set(answer.content), answer.session) == (status, {"error"}, None), body[:20]


def test_the_clock_decides_and_is_kept() -> None:
    """The age of a proof is checked with the endpoint's clock, and the session records that time."""
    asked = replace(with_proof(make_proof(age=1_000)), content_type="application/json; charset=utf-8")
    assert endpoint().sign_in(asked).status == 401
    assert "in the future" in endpoint(clock=lambda: 0.0).sign_in(asked).content["error"]


def held_after(proof: str) -> tuple[SignInEndpoint, EndpointRequest, dict[str, str | int]]:
    """Sign in with a proof; return the endpoint, the request and the resulting session."""
    at, asked = endpoint(), with_proof(proof)
    answer = at.sign_in(asked)
    assert answer.status == 200
    assert answer.session is not None
    held = answer.session["taproof"]
    assert held["messenger_id"] == "1001"
    return at, asked, held


def test_a_lost_answer_is_given_again() -> None:
    """A repeated proof, sent with the session that it started, gets the same redirect and starts no new session."""
    at, asked, held = held_after(make_proof(session_token="the-session-token"))
    assert "the-session-token" not in str(held)
    answer = at.sign_in(replace(asked, held=held))
    assert (answer.status, answer.content, answer.session) == (200, {"location": "/orders"}, None)
    assert at.sign_in(replace(asked, held=held, fetch_site="cross-site")).status == 403


def test_a_used_proof_is_refused_to_any_other_session() -> None:
    """Without a session, or with one of another sign-in or account, an older release or garbage, the answer is 401."""
    at, asked, held = held_after(make_proof())
    _, _, other = held_after(make_proof())
    unmarked = {name: value for name, value in held.items() if name in GOOD}
    only_mark = {name: value for name, value in held.items() if name not in GOOD}
    assert only_mark
    sessions: list[Any] = [
        None,
        other,
        unmarked,
        only_mark,
        held | {"messenger_id": "2002"},
        unmarked | dict.fromkeys(only_mark),
        unmarked | dict.fromkeys(only_mark, ""),
        unmarked | {name: [] for name in only_mark},
        list(held),
        "x",
        7,
    ]
    for session in sessions:
        assert at.sign_in(replace(asked, held=session)).status == 401, session


def test_a_session_does_not_make_a_bad_proof_good() -> None:
    """The session's mark only excuses the repetition: a proof that has expired since is refused."""
    now = time.time()
    at = endpoint(clock=lambda: now)
    _, asked, held = held_after(make_proof())
    at.sign_in(asked)
    now += 1_000
    assert "expired" in at.sign_in(replace(asked, held=held)).content["error"]


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("content_type", "application/json; a=b, text/plain"),
        ("content_type", "application/json, application/json"),
        ("content_type", "text/plain, application/json"),
        ("fetch_site", "same-origin, cross-site"),
        ("fetch_site", "same-origin, same-origin"),
        ("origin", f"{SITE}, https://evil.example"),
    ],
)
def test_a_header_that_came_twice_is_refused(header: str, value: str) -> None:
    """A proxy and the application may use different values of a repeated header, so it is refused."""
    asked = replace(ASKED, fetch_site=None) if header == "origin" else ASKED
    assert endpoint().sign_out(asked).status == 200
    changes: Any = {header: value}
    assert endpoint().sign_out(replace(asked, **changes)).status == 403


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
    """The first start reports all missing settings, without any value."""
    with pytest.raises(SettingsError) as caught:
        TaproofSettings.from_mapping(SETTINGS | changes)
    assert [name for name in SETTINGS if name in str(caught.value)] == named
    assert "sk_abc" not in str(caught.value)
    assert SECRET not in str(caught.value)


def test_settings() -> None:
    """A trailing slash is accepted, several secrets allow a rotation, and pages get no secret."""
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
    """The identity and the phone number, which is kept out of logs, are read back.

    Unknown fields of a later release are ignored.
    """
    identity = SignedIn.from_session(GOOD | {"later": 1})
    assert identity is not None
    assert identity.to_session() == GOOD
    identity = SignedIn.from_session(GOOD | {"messenger_phone": "+4915123456789"})
    assert identity is not None
    assert identity.messenger_phone == "+4915123456789"
    assert identity.to_session() == GOOD | {"messenger_phone": "+4915123456789"}
    assert "+49" not in repr(identity)
    for value in (None, 4915123456789, ["+4915123456789"]):
        other = SignedIn.from_session(GOOD | {"messenger_phone": value})
        assert other is not None
        assert other.messenger_phone is None


@pytest.mark.parametrize(
    "kept",
    [None, "", [], {}, GOOD | {"messenger_id": ""}, GOOD | {"messenger_name": None}, GOOD | {"signed_in_at": True}],
)
def test_anything_else_in_the_session_is_nobody(kept: object) -> None:
    """A session of another release, or other data under that name, signs nobody in and raises nothing."""
    assert SignedIn.from_session(kept) is None
