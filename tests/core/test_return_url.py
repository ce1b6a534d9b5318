"""Return URLs: the pages to which a project's sign-ins may lead back (contract.md, Return code)."""

import pytest

from taproof.contract.project import SameDevice
from taproof.core.errors import ReturnUrlNotAllowed
from taproof.core.projects import SignInProject
from taproof.core.return_url import require_allowed_return

OWN_ORIGIN = "https://sign-in.example"
PAGE = "https://shop.example/sign-in?next=%2F"
ENTRY = "https://app.example/back?x=1"
MALFORMED = [
    *("", "shop.example", "/sign-in", "//shop.example/", "ftp://shop.example/", "javascript:alert(1)"),
    *("http://shop.example/", "https://shop.example/#a", "https://shop.example/#", "https://a@shop.example/"),
    *("https://shop.example\\@evil.example/", "https://shop.example/ a", "https://shop.example/\t", "https:///x"),
    *("https://shop.example/\u00e9", "https://*.example/", f"https://shop.example/{'a' * 2_048}", "tg://resolve"),
]
STRANGERS = [
    *("https://evil.example/", "https://shop.example.evil.example/", "https://shop.example:8443/", f"{ENTRY}1"),
]
BESIDE_ENTRY = [
    *(PAGE, "https://app.example/", "https://app.example/back", "https://app.example/back?x=1&y", f"{ENTRY}%20"),
    *("https://app.example/back?", "https://app.example/back/?x=1", "HTTPS://app.example/back?x=1"),
    *("https://app.example:443/back?x=1", "https://app.example/./back?x=1", "https://app.example/%62ack?x=1"),
]
PAGES = [PAGE, "HTTPS://Shop.Example:443"]
POLICIES: list[tuple[SameDevice, str, str, list[str], list[str]]] = [
    ("off", "", "", [*PAGES, *STRANGERS, f"{OWN_ORIGIN}/"], []),
    ("off", "https://shop.example", "", PAGES, STRANGERS),
    ("offer", "https://shop.example", "", PAGES, [*STRANGERS, ENTRY, "http://localhost:3000/"]),
    ("require", "https://a.example", "", [], [*STRANGERS, *BESIDE_ENTRY]),
    ("require", OWN_ORIGIN, "", [], [f"{OWN_ORIGIN}/"]),
    ("off", "https://shop.example https://app.example", ENTRY, [ENTRY], [*STRANGERS, *BESIDE_ENTRY]),
    ("offer", "", ENTRY, [ENTRY], [*STRANGERS, *BESIDE_ENTRY]),
    (
        "require",
        "https://app.example",
        f"{ENTRY} https://app.example/r",
        [ENTRY, "https://app.example/r"],
        BESIDE_ENTRY,
    ),
]


def test_return_urls_lead_to_the_projects_own_pages(subtests: pytest.Subtests) -> None:
    """Under every policy, a return URL must belong to the project.

    An empty list of origins allows any page only while the policy is off.

    With `return_urls`, another page of an allowed origin is refused too, because it may redirect to any address.
    """
    for policy, origins, urls, allowed, refused in POLICIES:
        project = SignInProject(
            developer_id="dev_1",
            plan="free",
            is_active=True,
            public_access=True,
            show_context=True,
            match_code=False,
            allowed_origins=origins,
            bot_id=None,
            bot_username=None,
            bot_broken_at=None,
            same_device=policy,
            return_urls=urls,
        )
        for url in allowed:
            with subtests.test(policy=policy, allowed=url):
                require_allowed_return(project, url, own_origin=OWN_ORIGIN)
        for url in (*MALFORMED, *refused):
            with subtests.test(policy=policy, refused=url), pytest.raises(ReturnUrlNotAllowed):
                require_allowed_return(project, url, own_origin=OWN_ORIGIN)
