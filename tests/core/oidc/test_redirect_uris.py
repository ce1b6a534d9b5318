"""Redirect URIs (RFC 9700, sections 2.1 and 4.1; RFC 8252, sections 7 and 8.4)."""

from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from taproof.contract.client import REDIRECT_URI_LENGTH
from taproof.core.errors import InvalidRequest
from taproof.core.oidc.redirect_uris import NotARedirectUri, matches, read_redirect_uri, read_redirect_uris

ACCEPTED = (
    "https://app.example/callback",
    "https://App.Example:8443/a/../b?c=d&e=%2F;f",
    "https://app.example",
    "https://localhost:8443/cb",
    "https://203.0.113.7/cb",
    "https://[2001:db8::7]:444/cb",
    "https://grafana/login/generic_oauth",
    "http://127.0.0.1/cb",
    "http://127.0.0.1:8000/cb?x=1",
    "http://[::1]:61023/",
    "http://localhost:3000",
    "com.example.app:/oauth2redirect",
    "com.example-app.v2://callback/a",
)
REFUSED = (
    ("", "plain ASCII"),
    ("app.example/callback", "begin with a scheme"),
    ("/callback", "begin with a scheme"),
    ("//app.example/cb", "begin with a scheme"),
    ("HTTPS://app.example/cb", "lower case"),
    ("https:app.example/cb", "must name a host"),
    ("https:///cb", "must name a host"),
    ("https:/app.example/cb", "must name a host"),
    ("https://:443/cb", "must name a host"),
    ("https://app.example:0/cb", "must name a host"),
    ("https://app.example:65536/cb", "invalid host or port"),
    ("https://app.example:1x/cb", "invalid host or port"),
    ("https://[::1/cb", "invalid host or port"),
    ("https://[fe80::1%25eth0]/cb", "host"),
    ("https://app%2eexample/cb", "must name a host"),
    ("https://0x7f.1/cb", "must name a host"),
    ("https://2130706433/cb", "must name a host"),
    ("https://127.1/cb", "must name a host"),
    ("https://app..example/cb", "must name a host"),
    ("https://ada:secret@app.example/cb", "user name or password"),
    ("https://app.example@evil.example/cb", "user name or password"),
    ("http://127.0.0.1:80@evil.example/cb", "user name or password"),
    ("com.example.app://ada@callback", "user name or password"),
    ("https://app.example/cb#", "fragment"),
    ("https://app.example/cb#top", "fragment"),
    ("https://*.app.example/cb", "wildcard"),
    ("https://app.example/*", "wildcard"),
    ("https://app.example/a b", "plain ASCII"),
    ("https://app.example/\tcb", "plain ASCII"),
    ("https://app.example/cb\n", "plain ASCII"),
    ("https://app.example\\@evil.example/cb", "plain ASCII"),
    ("https://app.example/%zz", "plain ASCII"),
    ("https://app.example/%", "plain ASCII"),
    ("https://app.example/<b>", "plain ASCII"),
    ("https://аpp.example/cb", "plain ASCII"),
    ("https://app。example/cb", "plain ASCII"),
    ("http://app.example/cb", "only for this machine"),
    ("http://127.0.0.1.evil.example/cb", "only for this machine"),
    ("http://localhost.evil.example/cb", "only for this machine"),
    ("http://127.0.0.2/cb", "only for this machine"),
    ("http://[::ffff:127.0.0.1]/cb", "only for this machine"),
    ("http://2130706433/cb", "only for this machine"),
    ("http://LOCALHOST/cb", "only for this machine"),
    ("http://localhost:0/cb", "only for this machine"),
    ("http:127.0.0.1/cb", "only for this machine"),
    ("javascript:alert(1)", "own scheme that contains a dot"),
    ("data:text/html,hi", "own scheme that contains a dot"),
    ("file:///etc/passwd", "own scheme that contains a dot"),
    ("about:blank", "own scheme that contains a dot"),
    ("blob:https://app.example/1", "own scheme that contains a dot"),
    ("vbscript:x", "own scheme that contains a dot"),
    ("view-source:https://app.example", "own scheme that contains a dot"),
    ("urn:ietf:wg:oauth:2.0:oob", "own scheme that contains a dot"),
    ("myapp://callback", "own scheme that contains a dot"),
    ("com.:/cb", "own scheme that contains a dot"),
    ("com..app:/cb", "own scheme that contains a dot"),
    ("https://app.example/" + "a" * REDIRECT_URI_LENGTH, "at most 2,048"),
)


def test_which_redirect_uris_can_be_registered(subtests: pytest.Subtests) -> None:
    """An accepted URI stays unchanged; the sentence for a refused one repeats nothing of it."""
    for uri in ACCEPTED:
        with subtests.test(uri):
            assert read_redirect_uri(uri) == uri
    for uri, problem in REFUSED:
        with subtests.test(uri[:60]):
            with pytest.raises(NotARedirectUri, match=problem.replace("(", r"\(")) as refused:
                read_redirect_uri(uri)
            assert "secret" not in str(refused.value)


def test_a_client_has_one_to_twenty_redirect_uris() -> None:
    """The sentence names the place in the list; equal ones are stored once."""
    uris = [f"https://app.example/{number}" for number in range(20)]
    assert read_redirect_uris(uris) == tuple(uris)
    assert read_redirect_uris([uris[0], uris[0]]) == (uris[0],)
    for wrong in ([], [*uris, "https://app.example/20"]):
        with pytest.raises(InvalidRequest, match="1 to 20"):
            read_redirect_uris(wrong)
    with pytest.raises(InvalidRequest, match="redirect_uris: number 2 of the list must not contain a fragment"):
        read_redirect_uris([uris[0], "https://app.example/#x"])


REGISTERED = ("https://app.example/cb?a=b", "http://127.0.0.1:8000/cb", "http://[::1]", "com.example.app:/cb")
MATCHING = (
    *REGISTERED,
    *("http://127.0.0.1/cb", "http://127.0.0.1:1/cb", "http://127.0.0.1:65535/cb", "http://[::1]:49152"),
)
FOREIGN = (
    *("https://app.example/cb", "https://app.example/cb?a=b&c=d", "https://app.example/cb/?a=b", "https://app.example"),
    *("https://app.example:443/cb?a=b", "https://APP.example/cb?a=b", "https://app.example/x/../cb?a=b"),
    *(
        "https://app.example/%63b?a=b",
        "https://app.example/cb?a=b#",
        "https://app.example./cb?a=b",
        "http://app.example/cb",
    ),
    *("http://localhost:8000/cb", "https://127.0.0.1:8000/cb", "http://127.0.0.1:0/cb", "http://127.0.0.1:65536/cb"),
    *("http://127.0.0.1:/cb", "http://127.0.0.1:8000/cb/", "http://127.0.0.1:8000/cb?x", "http://127.0.0.1:8000/cb#x"),
    *("http://127.0.0.1:80@evil.example/cb", "http://127.0.0.1.evil.example/cb", "http://127.0.0.1:8000\\@evil/cb"),
    *("http://127.0.0.1:٣/cb", "http://127.0.0.1:8000/cb\n", "http://[::1]/", "http://[0::1]:1"),
    *("com.example.app:/cb/", "com.example.app:/CB", "com.example.app://cb", "", "javascript:alert(1)"),
)


def test_a_request_repeats_a_registered_redirect_uri(subtests: pytest.Subtests) -> None:
    """Every character counts, except the port of a loopback address."""
    for uri in MATCHING:
        with subtests.test(uri):
            assert matches(REGISTERED, uri)
    for uri in FOREIGN:
        with subtests.test(uri):
            assert not matches(REGISTERED, uri)
    assert not matches((), "https://app.example/cb")


_TRICKS = (*"@\\#?/:.*[ \t\n\0", "//", "/..", "%2e", "%00", "%0d%0a", ":80")
_PIECES = st.sampled_from((*_TRICKS, "evil.example", "javascript:", "http://", "127.0.0.1", "。", "ﬀ", "\u202e", "1"))


@st.composite
def hostile_uris(draw: st.DrawFn) -> str:
    """Return a registered redirect URI with pieces inserted, replaced or removed."""
    uri = draw(st.sampled_from(REGISTERED))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(uri)))
        end = draw(st.integers(start, min(len(uri), start + 6)))
        uri = uri[:start] + draw(_PIECES | st.just("") | st.text(max_size=3)) + uri[end:]
    return uri


@given(hostile_uris())
@example("http://127.0.0.1:8000:1/cb")
def test_a_hostile_redirect_uri_never_leads_elsewhere(uri: str) -> None:
    """Only a registered URI matches, or one that differs from it in the port of a loopback address alone."""
    if matches(REGISTERED, uri) and uri not in REGISTERED:
        assert read_redirect_uri(uri) == uri
        parts = urlsplit(uri)
        assert (parts.scheme, parts.username, parts.query, parts.fragment) == ("http", None, "", "")
        assert (parts.hostname, parts.path) in {("127.0.0.1", "/cb"), ("::1", "")}


@given(hostile_uris() | st.text(max_size=40) | st.from_regex(r"\A[a-z.+-]{1,12}:[!-~]{0,30}\Z"))
def test_no_code_is_sent_to_what_runs_as_a_script(text: str) -> None:
    """Only https, loopback and an app's own scheme can be registered, in characters that browsers keep unchanged."""
    try:
        uri = read_redirect_uri(text)
    except NotARedirectUri:
        return
    parts = urlsplit(uri)
    assert uri.isascii()
    assert uri.isprintable()
    assert not set(uri) & set('\\#*<>"`{}|^ ')
    assert parts.username is parts.password is None
    assert parts.scheme == "https" or "." in parts.scheme or parts.hostname in {"127.0.0.1", "::1", "localhost"}
