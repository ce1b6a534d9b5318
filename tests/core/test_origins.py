"""The origins of web pages (RFC 6454, sections 4 and 6.1; the URL standard, Host writing)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taproof.contract.project import ORIGIN_LENGTH
from taproof.core.origins import NotAnOrigin, read_origin


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
