"""Which webhook URLs are accepted (contract.md, Developer endpoints)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taproof.core.webhook_url import WEBHOOK_URL_LIMIT, is_loopback, webhook_url_problem

BASE = "https://example.com/"

ACCEPTED = [
    "",
    "https://example.com",
    "https://example.com/",
    "https://example.com:8443/hooks?a=1&b=2",
    "https://example.com/hooks#part",
    "https://xn--bcher-kva.example/hooks",
    "https://example.com/%D1%85%D1%83%D0%BA",
    "https://example.com/@handle",
    "https://example.com/?email=a@b.c",
    "https://[2001:db8::1]/hooks",
    "https://[2001:db8::1]:8443/hooks",
    "HTTPS://EXAMPLE.COM/",
    "https://127.0.0.1/hooks",
    BASE + "a" * (WEBHOOK_URL_LIMIT - len(BASE)),
]

REFUSED = [
    " ",
    "example.com",
    "example.com/hooks",
    "//example.com/hooks",
    "/hooks",
    "https:",
    "https://",
    "https:///hooks",
    "https://:443/hooks",
    "https:example.com",
    "http://example.com/hooks",
    "ftp://example.com/hooks",
    "ws://example.com/hooks",
    "file:///etc/passwd",
    "javascript:alert(1)",
    "javascript://example.com/%0aalert(1)",
    "data:text/html,hello",
    "https://user@example.com/",
    "https://user:password@example.com/",
    "https://@example.com/",
    "https://:@example.com/",
    "https://example.com@evil.example/",
    "https://example.com\\@evil.example/",
    "https:\\\\example.com",
    "https://example.com:0/",
    "https://example.com:65536/",
    "https://example.com:-1/",
    "https://example.com:port/",
    "https://example.com:80 80/",
    "https://exa mple.com/",
    "https://example.com/a b",
    " https://example.com/",
    "https://example.com/ ",
    "https://example.com/\r\nX-Injected: 1",
    "https://example.com/\n",
    "https://exam\tple.com/",
    "https://example.com/\0",
    "https://example.com/\x7f",
    "https://bücher.example/",
    "https://example.com/хук",
    "https://example\u3002com/",
    "https://example.com/\ud800",
    "https://[::1/hooks",
    "https://[not-an-address]/hooks",
    BASE + "a" * (WEBHOOK_URL_LIMIT - len(BASE) + 1),
    "a" * 1_000_000,
]

LOOPBACK = [
    "http://localhost/hooks",
    "http://localhost:20001/hooks",
    "http://LOCALHOST/hooks",
    "http://127.0.0.1:20001/hooks",
    "http://127.8.9.10/",
    "http://[::1]:20001/hooks",
]

NOT_LOOPBACK = [
    "http://localhost.example.com/",
    "http://127.0.0.1.example.com/",
    "http://example.com/",
    "http://10.0.0.1/",
    "http://192.168.1.1/",
    "http://169.254.169.254/latest/meta-data",
    "http://0.0.0.0/",
    "http://[::]/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://localhost@example.com/",
    "http://[fe80::1]/",
    "ftp://localhost/",
]


@pytest.mark.parametrize("url", ACCEPTED)
@pytest.mark.parametrize("sandbox", [False, True])
def test_good_urls_are_accepted(url: str, sandbox: bool) -> None:  # noqa: FBT001 — a table's column.
    """An https URL with a host, or "" for no webhook, in both modes."""
    assert webhook_url_problem(url, allow_loopback_http=sandbox) is None


@pytest.mark.parametrize("url", REFUSED)
@pytest.mark.parametrize("sandbox", [False, True])
def test_bad_urls_are_refused(url: str, sandbox: bool) -> None:  # noqa: FBT001 — a table's column.
    """Each with a sentence, none with an exception, in both modes."""
    problem = webhook_url_problem(url, allow_loopback_http=sandbox)
    assert problem is not None
    assert problem.split()[0] in {"must", "is"}


@pytest.mark.parametrize("url", LOOPBACK)
def test_plain_http_to_this_machine_is_for_the_sandbox_only(url: str) -> None:
    """A real service posts to https only."""
    assert webhook_url_problem(url, allow_loopback_http=True) is None
    assert webhook_url_problem(url, allow_loopback_http=False) is not None


@pytest.mark.parametrize("url", NOT_LOOPBACK)
def test_plain_http_to_elsewhere_is_refused_even_in_the_sandbox(url: str) -> None:
    """Look-alikes of loopback, private and metadata addresses do not pass as this machine."""
    assert webhook_url_problem(url, allow_loopback_http=True) is not None


@given(st.text())
def test_no_text_makes_the_check_fail(rest: str) -> None:
    """A developer may send anything: the answer is a sentence or None."""
    for url in (rest, "https://" + rest, "https://[" + rest, "https://example.com:" + rest):
        webhook_url_problem(url, allow_loopback_http=True)
        is_loopback(rest)
