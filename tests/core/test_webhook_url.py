"""The webhook URLs that are accepted (contract.md, Developer endpoints)."""

from hypothesis import given
from hypothesis import strategies as st

from taproof.contract.project import WEBHOOK_URL_LIMIT
from taproof.core.address_rules import AddressRules
from taproof.core.webhook_url import is_loopback, split_url, webhook_url_problem

PORTS = frozenset({443, 8443})
BASE = "https://example.com/"

ACCEPTED = [
    "",
    "https://example.com",
    "https://example.com/",
    "https://example.com:8443/hooks?a=1&b=2",
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
    "https://example.com/hooks#part",
    "https://example.com/#",
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


def test_each_url_is_accepted_or_refused_in_each_mode() -> None:
    """Each refused URL gets a sentence and none an exception. A real service never posts to itself."""
    by_modes = {
        (True, True): ACCEPTED,
        (False, True): LOOPBACK,
        # Look-alikes of loopback, private and metadata addresses do not pass as this machine.
        (False, False): [*REFUSED, *NOT_LOOPBACK],
    }
    wrong = []
    for accepted, urls in by_modes.items():
        for url in urls:
            sentences = (problem(url), problem(url, sandbox=True))
            starts = {sentence.split()[0] for sentence in sentences if sentence is not None}
            if tuple(sentence is None for sentence in sentences) != accepted or not starts <= {"must", "is"}:
                wrong.append((url[:100], sentences))
    assert wrong == []


def test_internal_addresses_are_refused_at_once() -> None:
    """A forbidden address is refused before any delivery fails; an address that the operator allows is accepted."""
    wrong = [
        url
        for url, name in INTERNAL
        if problem(url, name, "private", "documentation") is not None
        or not all(f"this one is {name}," in (problem(url, sandbox=sandbox) or "") for sandbox in (False, True))
    ]
    wrong += [
        url
        for url in OWN
        if "this one is loopback," not in (problem(url) or "")
        or problem(url, "loopback") is not None
        or problem(url, sandbox=True) is not None
    ]
    assert wrong == []


SPLIT = {
    "https://example.com": "example.com /",
    "https://example.com?a=1": "example.com /?a=1",
    "https://example.com/?": "example.com /?",
    "https://Example.COM:443/Hooks": "Example.COM /Hooks",
    "https://example.com:8443/hooks": "example.com:8443 /hooks",
    "https://example.com:/hooks": "example.com /hooks",
    "http://127.0.0.1:443/": "127.0.0.1:443 /",
    "http://localhost:80/": "localhost /",
    "https://example.com./hooks": "example.com. /hooks",
    "https://[2606:4700::1111]:443/a": "[2606:4700::1111] /a",
    "https://[2606:4700::1111]:8443": "[2606:4700::1111]:8443 /",
    "HTTPS://example.com/%7Eshop/a%2Fb?sp=%2Ftriggers&to=me%40shop.example&x=%41&note=it%27s": (
        "example.com /%7Eshop/a%2Fb?sp=%2Ftriggers&to=me%40shop.example&x=%41&note=it%27s"
    ),
    "https://example.com//a/./b/../c;v=1//?a=//b?c&&=&a+b%20c": "example.com //a/./b/../c;v=1//?a=//b?c&&=&a+b%20c",
    "https://example.com/%zz%2f%2F/{id}|^`<>\"'?[x]=%": "example.com /%zz%2f%2F/{id}|^`<>\"'?[x]=%",
    BASE + "?" + "a" * 2000: "example.com /?" + "a" * 2000,
}


def test_a_url_is_posted_to_as_it_is_stored() -> None:
    """The request line and `Host` have the URL's own spelling, so that signatures over the URL stay valid."""
    assert {url: f"{split_url(url).authority} {split_url(url).target}" for url in SPLIT} == SPLIT
    for url in ACCEPTED[1:]:
        split_url(url)


def test_the_sentence_names_the_exception_of_the_sandbox() -> None:
    """The sentence about http:// names the exception of the sandbox only in the sandbox."""
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
