"""The webhook URLs that are accepted (contract.md, Developer endpoints)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taproof.core.address_rules import AddressRules
from taproof.core.webhook_url import WEBHOOK_URL_LIMIT, is_loopback, webhook_url_problem

PORTS = frozenset({443, 8443})
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
    "https://[2606:4700::1111]/hooks",
    "https://[2606:4700::1111]:8443/hooks",
    "https://1.1.1.1/hooks",
    "https://1.1.1.1:8443/hooks",
    "https://example.com:443/",
    "https://example.com./hooks",
    "https://hooks_1.example.com/",
    "https://1.1.1.1.example.com/",
    "https://0x7f.example.com/",
    "https://12345.0xcafe.example/",
    "https://notlocalhost/",
    "https://localhost.example.com/",
    "HTTPS://EXAMPLE.COM/",
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
    "https://[v1.address]/hooks",
    "https://[1.1.1.1]/hooks",
    "https://[::ffff:1.1.1.1]/hooks",
    "https://[::ffff:10.0.0.1]/hooks",
    "https://[2606:4700:0:0:0:0:0:1111]/hooks",
    "https://[2606:4700:0::1111]/hooks",
    "https://[2606:4700::1111%25eth0]/hooks",
    "https://1.1.1.1./hooks",
    "https://1.1.257/hooks",
    "https://1.1.1.01/hooks",
    "https://0x1010101/hooks",
    "https://16843009/hooks",
    "https://1/hooks",
    "https://1.1.1.1.1/hooks",
    "https://example.1/hooks",
    "https://example.0xA/hooks",
    "https://example%2ecom/hooks",
    "https://example.com,evil.example/hooks",
    "https://exa$mple.com/hooks",
    "https://example.com:22/hooks",
    "https://example.com:80/hooks",
    "https://1.1.1.1:8080/hooks",
    BASE + "a" * (WEBHOOK_URL_LIMIT - len(BASE) + 1),
    "a" * 1_000_000,
]

INTERNAL = [
    ("https://10.0.0.1/hooks", "private"),
    ("https://[fd00::1]/hooks", "private"),
    ("https://169.254.169.254/latest/meta-data", "cloud-internal"),
    ("https://168.63.129.16/machine", "cloud-internal"),
    ("https://[fd00:ec2::254]/latest/meta-data", "cloud-internal"),
    ("https://100.64.0.1/hooks", "cgnat"),
    ("https://0.0.0.0/hooks", "unspecified"),
    ("https://[::]/hooks", "unspecified"),
    ("https://[::a00:1]/hooks", "ipv4-compatible"),
    ("https://[64:ff9b::a00:1]/hooks", "nat64"),
    ("https://[2001:db8::1]:8443/hooks", "documentation"),
]

OWN = [
    "https://localhost/hooks",
    "https://LOCALHOST/hooks",
    "https://shop.localhost/hooks",
    "https://localhost./hooks",
    "https://127.0.0.1/hooks",
    "https://127.8.9.10/hooks",
    "https://[::1]/hooks",
    "https://[::1]:8443/hooks",
]

LOOPBACK = [
    "http://shop.localhost:3000/hooks",
    "https://localhost:20001/hooks",
    "https://127.0.0.1:20001/hooks",
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
    "http://127.1/",
    "http://127.0.0.1./",
    "http://localhost./",
    "http://[::ffff:127.0.0.1]/",
    "http://localhost@example.com/",
    "http://[fe80::1]/",
    "ftp://localhost/",
]


def problem(url: str, *allowed: str, sandbox: bool = False) -> str | None:
    rules = AddressRules([*allowed, "loopback"] if sandbox else allowed)
    return webhook_url_problem(url, rules=rules, ports=PORTS, allow_loopback_http=sandbox)


@pytest.mark.parametrize("url", ACCEPTED)
@pytest.mark.parametrize("sandbox", [False, True])
def test_good_urls_are_accepted(url: str, sandbox: bool) -> None:  # noqa: FBT001 — a table's column.
    """An https URL with a host, or "" for no webhook, in both modes."""
    assert problem(url, sandbox=sandbox) is None


@pytest.mark.parametrize("url", REFUSED)
@pytest.mark.parametrize("sandbox", [False, True])
def test_bad_urls_are_refused(url: str, sandbox: bool) -> None:  # noqa: FBT001 — a table's column.
    """Each with a sentence, none with an exception, in both modes."""
    sentence = problem(url, sandbox=sandbox)
    assert sentence is not None
    assert sentence.split()[0] in {"must", "is"}


@pytest.mark.parametrize("url", LOOPBACK)
def test_plain_http_to_this_machine_is_for_the_sandbox_only(url: str) -> None:
    """A real service posts to https only, on its ports only, and never to itself."""
    assert problem(url, sandbox=True) is None
    assert problem(url, sandbox=False) is not None


@pytest.mark.parametrize("url", NOT_LOOPBACK)
def test_plain_http_to_elsewhere_is_refused_even_in_the_sandbox(url: str) -> None:
    """Look-alikes of loopback, private and metadata addresses do not pass as this machine."""
    assert problem(url, sandbox=True) is not None


@pytest.mark.parametrize(("url", "name"), INTERNAL)
@pytest.mark.parametrize("sandbox", [False, True])
def test_an_internal_address_is_refused_at_once(url: str, name: str, sandbox: bool) -> None:  # noqa: FBT001 — a column.
    """A forbidden address is refused before any delivery fails; an address that the operator allows is accepted."""
    sentence = problem(url, sandbox=sandbox)
    assert sentence is not None
    assert f"this one is {name}," in sentence
    assert problem(url, name, "private", "documentation") is None


@pytest.mark.parametrize("url", OWN)
def test_this_machine_itself_is_for_the_sandbox_or_by_permission(url: str) -> None:
    """Under its names as under its addresses."""
    sentence = problem(url)
    assert sentence is not None
    assert "this one is loopback," in sentence
    assert problem(url, "loopback") is None
    assert problem(url, sandbox=True) is None


def test_the_sentence_says_what_the_sandbox_takes_besides() -> None:
    """Whoever types http:// in the sandbox learns of the one way that works there, and elsewhere of none."""
    assert problem("http://example.com/") == "must begin with https://"
    assert problem("http://example.com/", sandbox=True) == (
        "must begin with https://, or in the sandbox with http://127.0.0.1"
    )


def test_the_sentence_names_the_ports() -> None:
    """The sentence names the ports that this operator allows."""
    assert problem("https://example.com:444/") == "must use port 443 or 8443"
    rules, ports = AddressRules(), frozenset({9443})
    for url in ("https://example.com/", "https://example.com:443/"):
        assert webhook_url_problem(url, rules=rules, ports=ports, allow_loopback_http=True) == "must use port 9443"
    assert webhook_url_problem("https://a.test:9443/", rules=rules, ports=ports, allow_loopback_http=False) is None


@given(st.text())
def test_no_text_makes_the_check_fail(rest: str) -> None:
    """A developer may send anything: the answer is a sentence or None."""
    for url in (rest, "https://" + rest, "https://[" + rest, "https://example.com:" + rest):
        problem(url, sandbox=True)
        is_loopback(rest)
