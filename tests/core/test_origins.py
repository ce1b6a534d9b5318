"""The origins of web pages (RFC 6454, sections 4 and 6.1; the URL standard, Host writing)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taproof.contract.project import ORIGIN_LENGTH
from taproof.core.errors import OriginNotAllowed
from taproof.core.origins import NotAnOrigin, read_origin, require_allowed_origin
from taproof.core.request_context import origin_domain


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://shop.example", "https://shop.example"),
        ("HTTPS://Shop.EXAMPLE", "https://shop.example"),
        ("https://shop.example:443", "https://shop.example"),
        ("https://shop.example:8443", "https://shop.example:8443"),
        ("https://shop.example:08443", "https://shop.example:8443"),
        ("https://localhost", "https://localhost"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("http://app.localhost:80", "http://app.localhost"),
        ("http://127.0.0.1:3000", "http://127.0.0.1:3000"),
        ("http://[::1]:3000", "http://[::1]:3000"),
        ("http://[0:0::1]", "http://[::1]"),
        ("https://[2001:DB8:0::7]", "https://[2001:db8::7]"),
        ("https://203.0.113.7:8443", "https://203.0.113.7:8443"),
        ("https://xn--mnchen-3ya.example", "https://xn--mnchen-3ya.example"),
        ("https://a_b.example", "https://a_b.example"),
    ],
)
def test_an_origin_is_written_as_browsers_send_it(text: str, origin: str) -> None:
    """The stored origin is compared with the header, character by character."""
    assert read_origin(text) == origin
    assert read_origin(origin) == origin


NOT_ORIGINS = [
    ("", "must begin with https://"),
    ("null", "must begin with https://"),
    ("shop.example", "must begin with https://"),
    ("//shop.example", "must begin with https://"),
    ("https:shop.example", "must begin with https://"),
    ("ftp://shop.example", "must begin with https://"),
    ("javascript:alert(1)", "must begin with https://"),
    ("http://shop.example", "http:// is allowed only for this machine"),
    ("http://127.0.0.1.example", "http:// is allowed only for this machine"),
    ("https://*.shop.example", "wildcard"),
    ("*", "wildcard"),
    ("https://shop.example/", "remove the slash"),
    ("https://shop.example/sign-in", "remove the slash"),
    ("https://shop.example?a=b", "remove the slash"),
    ("https://shop.example#top", "remove the slash"),
    ("https://shop.example?", "remove the slash"),
    ("https://ada:secret@shop.example", "user name or password"),
    ("https://@shop.example", "user name or password"),
    ("https://shop.example https://other.example", "spaces"),
    ("https://shop.example\n", "plain ASCII"),
    ("\thttps://shop.example", "plain ASCII"),
    ("https://shop\\.example", "plain ASCII"),
    ("https://münchen.example", "xn--"),
    ("https://", "must write the host"),
    ("https://:443", "must write the host"),
    ("https://shop.example:", "must write the host"),
    ("https://shop.example:0", "must write the host"),
    ("https://shop.example:65536", "a scheme, a host and optionally a port"),
    ("https://shop.example:https", "a scheme, a host and optionally a port"),
    ("https://shop.example.", "must write the host"),
    ("https://-shop.example", "must write the host"),
    ("https://shop..example", "must write the host"),
    ("https://sh%6fp.example", "must write the host"),
    ("https://127.1", "must write the host"),
    ("https://0x7f.0.0.1", "must write the host"),
    ("https://2130706433", "must write the host"),
    ("https://[::1", "a scheme, a host and optionally a port"),
    ("https://[fe80::1%25eth0]", "must write the host"),
    ("https://x[::1]", "host"),
    ("https://[::1].evil.example", "host"),
    ("https://[::1]x:443", "host"),
    ("https://[v1.a]", "host"),
    ("https://[shop.example]", "host"),
    ("https://" + "a" * ORIGIN_LENGTH, "at most"),
    ("https://" + "a" * 64 + ".example", "must write the host"),
]


def test_what_is_none_is_refused_with_what_is_wrong(subtests: pytest.Subtests) -> None:
    """The message completes a sentence and repeats nothing of the refused text."""
    for text, problem in NOT_ORIGINS:
        with subtests.test(text=text, problem=problem):
            with pytest.raises(NotAnOrigin) as refused:
                read_origin(text)
            assert problem in str(refused.value)
            assert "secret" not in str(refused.value)


@given(st.text(max_size=40) | st.from_regex(r"\A(https?|HTTP)://[a-z0-9.:\[\]%@/?#-]{0,30}\Z"))
def test_each_accepted_origin_is_one_word_and_is_accepted_again(text: str) -> None:
    """Origins are stored separated by spaces, so an accepted one has no space and is accepted again unchanged."""
    try:
        origin = read_origin(text)
    except NotAnOrigin:
        return
    assert origin.split() == [origin]
    assert origin == origin.lower()
    assert read_origin(origin) == origin


def test_pages_of_other_origins_are_refused() -> None:
    """The sentence names an origin, which the developer may want to add, and repeats nothing that no browser sends."""
    allowed = "https://shop.example https://www.shop.example"
    for origin in (None, *allowed.split()):
        require_allowed_origin(allowed, origin)
    named = (
        "https://evil.example",
        "http://localhost:3000",
        "https://shop.example:444",
        "https://xn--bcher-kva.example",
    )
    unnamed = (
        *("", "null", "http://shop.example", "https://shop.example, https://shop.example", "HTTPS://EVIL.EXAMPLE"),
        *("https://shop.example/?q=<script>", "https://evil.example\u202e", f"https://{63 * 'a'}.example{300 * 'x'}"),
    )
    for origin in (*named, *unnamed):
        with pytest.raises(OriginNotAllowed) as refused:
            require_allowed_origin(allowed, origin)
        is_named = refused.value.sentence.startswith(f"Pages of {origin} cannot start sign-ins for this project. ")
        assert is_named is (origin in named)
        assert is_named or refused.value.sentence.startswith("Pages of this origin cannot start")
        assert is_named or origin == "" or origin not in refused.value.sentence


def test_only_a_whole_origin_is_a_domain() -> None:
    """A prompt shows no domain for a malformed origin."""
    domains = {
        "https://shop.example": "shop.example",
        "https://shop.example:8443": "shop.example:8443",
        "http://localhost:80": "localhost",
        "https://[2001:db8::1]:444": "[2001:db8::1]:444",
    }
    none = (
        *("null", "javascript:alert(1)", "https://shop.example@evil.example", "https://shop.example/path"),
        *("https://sh\u043ep.example", f"https://{'a' * 500}", "https://shop.example:99999", "https://[::1"),
    )
    for origin, domain in (domains | dict.fromkeys(none, "")).items():
        assert origin_domain(origin) == domain, origin
