"""The pages of maintainers/ that compare Taproof with a standard have every item, with its evidence or a reason."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from tests.docs.blocks import MAINTAINERS

REFERENCE: Final = re.compile(r"`(?:(?:tests|docs|src|sdk)/[\w./-]+|pyproject\.toml)`")
# OWASP ASVS 5.0.0: the number of requirements of levels 1 and 2 in each section. In each section, those of level 1
# come first, then those of level 2, then those of level 3, which are not covered here.
ASVS_SECTIONS: Final = """
V1.1 0+2, V1.2 5+4, V1.3 2+9, V1.4 0+3, V1.5 1+1
V2.1 1+2, V2.2 2+1, V2.3 1+3, V2.4 0+1
V3.2 2+0, V3.3 1+3, V3.4 2+4, V3.5 3+2, V3.7 0+2
V4.1 1+2, V4.2 0+1, V4.3 0+2, V4.4 1+3
V5.1 0+1, V5.2 2+1, V5.3 2+0, V5.4 0+3
V6.1 1+2, V6.2 8+4, V6.3 2+2, V6.4 2+2, V6.5 0+5, V6.6 0+3, V6.8 0+4
V7.1 0+3, V7.2 4+0, V7.3 0+2, V7.4 2+3, V7.5 0+2, V7.6 0+2
V8.1 1+1, V8.2 2+1, V8.3 1+0, V8.4 0+1
V9.1 3+0, V9.2 1+3
V10.1 0+2, V10.2 0+2, V10.3 0+4, V10.4 5+6, V10.5 0+5, V10.6 0+2, V10.7 0+3
V11.1 0+2, V11.2 0+3, V11.3 2+1, V11.4 1+3, V11.5 0+1, V11.6 0+1
V12.1 1+2, V12.2 2+0, V12.3 0+4
V13.1 0+1, V13.2 0+5, V13.3 0+2, V13.4 1+4
V14.1 0+2, V14.2 1+3, V14.3 1+2
V15.1 1+2, V15.2 1+2, V15.3 1+6
V16.1 0+1, V16.2 0+5, V16.3 0+4, V16.4 0+3, V16.5 0+3
V17.1 0+1, V17.2 0+4, V17.3 0+2
"""
ASVS: Final = {
    section: (int(first), int(second))
    for section, first, second in re.findall(r"(V[\d.]+) (\d+)\+(\d+)", ASVS_SECTIONS)
}
LEVEL_1, LEVEL_2 = 70, 183
RFC_8725: Final = [f"3.{number}" for number in range(1, 13)]
RFC_10027: Final = [
    *(f"2 ({number})" for number in range(1, 6)),
    *("3.1.1", "3.1.2", "3.1.3", "3.2.1"),
    *("4.1.1", "4.1.2", "4.1.3", "4.2", *(f"4.3.{number}" for number in range(1, 10)), "5"),
    *(f"6.1.{number}" for number in range(1, 18)),
    *("6.2.1", "6.2.2", "6.2.3", "6.2.4", "6.3"),
]

# The modules of the plans Basic OP and Config OP in the conformance suite of August 2026.
OPENID_MODULES: Final = """
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
OPENID_STATES: Final = {"met", "warning", "skipped", "does not apply", "not met"}


def rows(name: str, first: str) -> Iterator[list[str]]:
    """Yield the cells of each row of a page's tables whose first cell matches."""
    for line in (MAINTAINERS / f"{name}.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("|") and re.match(first, cells[0]):
            yield cells


def in_order(found: list[str], wanted: list[str]) -> None:
    """Raise unless each item occurs exactly once, and nothing else does."""
    assert {item: count for item, count in Counter(found).items() if count > 1} == {}
    assert sorted(set(wanted) - set(found)) == []
    assert sorted(set(found) - set(wanted)) == []


def asvs_ids() -> list[str]:
    return [f"{section}.{number}" for section, levels in ASVS.items() for number in range(1, levels[0] + levels[1] + 1)]


def asvs_rows() -> list[tuple[list[str], list[str]]]:
    return [(cells[0].split(", "), cells) for cells in rows("asvs", r"V\d+\.\d+\.\d+")]


def test_the_list_of_asvs_has_its_size() -> None:
    """The list of ASVS has the standard's number of requirements of levels 1 and 2, so that no section is missing."""
    assert sum(levels[0] for levels in ASVS.values()) == LEVEL_1
    assert sum(levels[1] for levels in ASVS.values()) == LEVEL_2


def test_every_requirement_of_asvs_is_there_once() -> None:
    """Every requirement of ASVS is there exactly once."""
    in_order([each for ids, _ in asvs_rows() for each in ids], asvs_ids())


def test_every_requirement_of_asvs_has_a_state_and_a_reason() -> None:
    """A requirement that is met names its evidence; any other one has a reason."""
    for ids, cells in asvs_rows():
        assert len(cells) == 4, ids
        state, reason = cells[2:]
        assert state in {"met", "yours", "not met", "n/a"}, ids
        if state == "met":
            assert REFERENCE.search(reason) or "table above" in reason, ids
        else:
            assert len(reason) > 4, ids


def test_the_figures_of_asvs_are_right() -> None:
    """The table at the top counts the rows below it."""
    counted: Counter[str] = Counter()
    for ids, cells in asvs_rows():
        counted[cells[2]] += len(ids)
    told = {cells[0]: int(cells[2]) for cells in rows("asvs", r"(met|yours|not met|n/a)$")}
    assert told == dict(counted)


def test_what_asvs_does_not_have_met_is_in_the_list_at_the_end() -> None:
    """Each chapter with an unmet requirement is in the list at the end, unless only documentation is missing."""
    summary = (MAINTAINERS / "asvs.md").read_text(encoding="utf-8").partition("## Not met, in short")[2]
    for ids, cells in asvs_rows():
        if cells[2] == "not met":
            chapter = ids[0].partition(".")[0]
            assert re.search(rf"\({chapter}[.)]", summary) or ids == ["V11.2.2"], ids


def test_every_section_of_rfc_10027_is_there_once() -> None:
    """Every section of RFC 10027 is there: practices, patterns, exploits, mitigations and protocols."""
    found = [each for cells in rows("cross-device", r"\d") for each in re.split(r", (?=\d)", cells[0])]
    in_order(found, RFC_10027)
    for cells in rows("cross-device", r"(2 \(|6\.1\.)"):
        assert cells[2] in {"done", "yours", "not done"}, cells[0]
        if cells[2] == "done" and cells[0] != "2 (4)":
            assert REFERENCE.search(cells[3]), cells[0]


def test_every_section_of_rfc_8725_is_there_once() -> None:
    """All of section 3 is there, with an entry for either side."""
    found = list(rows("jwt", r"3\.\d"))
    in_order([cells[0] for cells in found], RFC_8725)
    assert all(len(cells) == 4 and all(cells) for cells in found)


def openid_rows() -> list[list[str]]:
    """Return the cells of each row that has a state: the last two are the state and the tests."""
    found = []
    for cells in rows("openid-conformance", ""):
        bare = [cell.strip("` *") for cell in cells]
        if len(bare) > 2 and bare[-2] in OPENID_STATES:
            found.append([*bare[:-1], cells[-1]])
    return found


def test_every_module_of_the_openid_plans_is_there_once() -> None:
    """Each module of the test plans has one row."""
    in_order(
        [cells[0] for cells in openid_rows() if cells[0].startswith("oidcc-")],
        [f"oidcc-{each}" for each in OPENID_MODULES.split()],
    )


def test_every_row_of_the_openid_plans_names_its_tests() -> None:
    """Every row names tests, and one that is not met also gives a reason."""
    assert len(openid_rows()) > 90
    for cells in openid_rows():
        assert "`tests/" in cells[-1], cells
        if cells[-2] != "met":
            assert len(re.sub(r"`tests/[^`]*`", "", cells[-1])) > 20, cells
