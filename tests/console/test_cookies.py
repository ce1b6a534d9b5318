"""The console accepts only its own cookies, never one that another host of the same domain could have set."""

import httpx
import pytest
from starlette.requests import Request
from tests.console.browsing import Shown
from tests.console.conftest import BASE_URL, SESSION_COOKIE, Installation, Visitor

from taproof.http.cookies import read_cookie

NAME = b"__Host-taproof_session"


def read(*headers: bytes, scheme: str = "https") -> str | None:
    scope = {"type": "http", "scheme": scheme, "headers": [(b"cookie", header) for header in headers]}
    return read_cookie(Request(scope), "session")


READ: list[tuple[list[bytes], str | None]] = [
    # At any position, in one header or in several (HTTP/2).
    ([NAME + b"=ours"], "ours"),
    ([b"a=b; " + NAME + b"=ours; c=d"], "ours"),
    ([b"a=b;" + NAME + b"=ours"], "ours"),
    ([b"a=b; \t" + NAME + b"=ours \t; c=d"], "ours"),
    ([b"a=b", NAME + b"=ours", b"c=d"], "ours"),
    ([b"; ;=; =x; x;" + NAME + b"=ours;;"], "ours"),
    ([b"\xff=\xfe; " + NAME + b"=ours"], "ours"),
    # Quotes are removed as a pair. The first equals sign ends the name, so base64 padding is kept.
    ([NAME + b'="ours"'], "ours"),
    ([NAME + b"=a=b=="], "a=b=="),
    ([NAME + b'="a=b=="'], "a=b=="),
    ([NAME + b'="'], '"'),
    ([NAME + b'="x'], '"x'),
    ([NAME + b'=x"'], 'x"'),
    ([NAME + b"="], ""),
    ([NAME], ""),
    # Two of one name are refused: two readers could each use a different one.
    ([NAME + b"=a; " + NAME + b"=b"], None),
    ([NAME + b"=a; " + NAME + b"=a"], None),
    ([NAME + b"=a", NAME + b"=b"], None),
    ([NAME + b"=a; x=y", b"x=y; " + NAME], None),
    ([], None),
    ([b""], None),
    ([NAME[:-1]], None),
]


def test_a_cookie_is_read_by_its_exact_name() -> None:
    """Each way to send the cookie is read, and none that could be read in two ways."""
    assert [(headers, read(*headers)) for headers, _ in READ] == READ


PLANTED = [
    *[blank + NAME for blank in (b"\xa0", b"\x85", b"\x0b", b"\x0c", b"\x1c", b"\x1f", b"\r", b"\n", b"\0")],
    *[NAME + blank for blank in (b"\xa0", b"\x85", b"\x0c", b"\x1c")],
    b"\xc2\xa0" + NAME,
    b"\xc2\x85" + NAME,
    b" \xa0 " + NAME,
    b'"' + NAME + b'"',
    NAME.lower(),
    NAME.upper(),
    b"x" + NAME,
    b"taproof_session",
]


def test_a_name_that_only_looks_like_ours_is_not_ours() -> None:
    """Browsers protect `__Host-` by the bytes of the name, so only those bytes are accepted."""
    ours = NAME + b"=ours"
    for theirs in (name + b"=theirs" for name in PLANTED):
        assert read(theirs) is None, theirs
        both = read(theirs + b"; " + ours), read(ours + b"; " + theirs), read(ours, theirs)
        assert both == ("ours", "ours", "ours"), theirs


@pytest.mark.parametrize("name", [b"\xa0" + NAME, b"\x85" + NAME])
async def test_a_planted_session_is_not_used(console: Installation, visitor: Visitor, name: bytes) -> None:
    """A session that a sibling host planted neither signs a victim in nor replaces the victim's own."""
    attacker = await console.sign_in(await console.add_developer("mallory@example.com"))
    theirs = name + b"=" + attacker.client.cookies[SESSION_COOKIE].encode()
    ours = NAME + b"=" + visitor.client.cookies[SESSION_COOKIE].encode()
    transport = httpx.ASGITransport(console.app.app)
    async with httpx.AsyncClient(transport=transport, base_url=BASE_URL) as client:

        async def account(cookie: bytes) -> httpx.Response:
            return await client.get("/console/account", headers=[(b"cookie", cookie)])

        assert "mallory@example.com" in (await account(theirs[1:])).text, "it would be used under the true name"
        assert (await account(theirs)).status_code == 303
        assert "ada@example.com" in (await account(ours + b"; " + theirs)).text


def test_thousands_of_cookies() -> None:
    """The console's cookie is found among any number of cookies that a sibling host has set."""
    others = b"; ".join(b"\xa0" * (number % 7) + NAME + b"%d=x" % number for number in range(3_000))
    assert read(others + b"; " + NAME + b"=ours; " + others) == "ours"


def test_plain_http_has_its_own_name() -> None:
    """A cookie that was set over plain HTTP is not accepted over HTTPS, and the reverse."""
    assert read(b"taproof_session=plain; " + NAME + b"=ours", scheme="http") == "plain"
    assert read(b"taproof_session=plain; " + NAME + b"=ours") == "ours"


async def test_head_does_not_use_up_the_secret(visitor: Visitor) -> None:
    """A HEAD request does not use up a notice or a secret that is shown once."""
    made = await visitor.submit("/console/tokens", "/console/tokens", name="Shop")
    assert made.status == 303
    asked = Shown(await visitor.client.head(made.location))
    assert asked.status == 200
    assert not asked.response.headers.get_list("set-cookie")
    assert (await visitor.get(made.location)).all(".//code[@class='secret']")
    assert not (await visitor.get(made.location)).all(".//code[@class='secret']")
