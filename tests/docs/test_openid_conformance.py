"""docs/reference/openid-conformance.md: every module of each test plan is there, and so is every test named."""

import re
from typing import Final

from tests.docs.blocks import ROOT
from tests.docs.test_threat_model import REFERENCE, functions_of, in_order

PAGE: Final = ROOT / "docs/reference/openid-conformance.md"
# The modules of the plans Basic OP and Config OP in the conformance suite of August 2026.
MODULES: Final = """
server response-type-missing idtoken-signature idtoken-unsigned userinfo-get userinfo-post-header userinfo-post-body
ensure-request-without-nonce-succeeds-for-code-flow scope-profile scope-email scope-address scope-phone scope-all
alternate-happy-flow display-page display-popup prompt-login prompt-none-not-logged-in prompt-none-logged-in max-age-1
max-age-10000 ensure-request-with-unknown-parameter-succeeds id-token-hint login-hint ui-locales claims-locales
ensure-request-with-acr-values-succeeds codereuse codereuse-30seconds ensure-registered-redirect-uri
ensure-post-request-succeeds server-client-secret-post
request-uri-unsigned-supported-correctly-or-rejected-as-unsupported
unsigned-request-object-supported-correctly-or-rejected-as-unsupported claims-essential
ensure-request-object-with-redirect-uri refresh-token ensure-request-with-valid-pkce-succeeds
discovery-endpoint-verification
"""
STATES: Final = {"met", "warning", "skipped", "does not apply", "not met"}


def rows() -> list[list[str]]:
    """Return the cells of each row that has a state: the last two are the state and the tests."""
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip("` *") for cell in line.strip("| ").split(" | ")]
        if line.startswith("|") and len(cells) > 2 and cells[-2] in STATES:
            found.append([*cells[:-1], line.rpartition(" | ")[2].strip("| ")])
    return found


def test_every_module_is_there_once() -> None:
    """Each module of the test plans has one row."""
    in_order(
        [cells[0] for cells in rows() if cells[0].startswith("oidcc-")], [f"oidcc-{each}" for each in MODULES.split()]
    )


def test_every_row_names_its_tests() -> None:
    """A row that is met names existing tests, and every other one also gives a reason."""
    assert len(rows()) > 90
    for cells in rows():
        named = REFERENCE.findall(cells[-1])
        assert named, cells
        assert cells[-1].count("tests/") == len(named), cells
        for path, function in named:
            assert (ROOT / path).is_file(), path
            assert not function or function in functions_of(ROOT / path), f"{path}::{function}"
        if cells[-2] != "met":
            assert len(re.sub(r"`tests/[^`]*`", "", cells[-1])) > 20, cells
