"""The documents match the code: each test compares one with what it describes."""

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, get_args

import pytest
from scripts import docs_reference

from taproof.api.openapi.reference_page import docs_page
from taproof.config.options import variable
from taproof.config.settings import OPTIONS
from taproof.contract.audit import AuditAction
from taproof.core.errors import API_ERRORS

ROOT = Path(__file__).parent.parent
NOT_OURS = {".git", ".venv", "build", "dist", "site", "node_modules", "__pycache__"}
OF_AN_APPLICATION = {
    *("TAPROOF_BASE_URL", "TAPROOF_PROJECT_ID", "TAPROOF_WEBHOOK_SECRET", "TAPROOF_GUARD"),
    "TAPROOF_SECRET_KEY",
}
"""Variables that the integrations read, TAPROOF_GUARD with Django, and the pages' own name of the secret key."""
READERS = [path for pattern in ("*.md", "docs/**/*.md", "maintainers/**/*.md") for path in sorted(ROOT.glob(pattern))]


def files_of_the_repository() -> Iterator[Path]:
    """Yield every text file of the repository, without caches: names with a leading dot, and NOT_OURS."""
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        if NOT_OURS & set(parts) or any(part.startswith(".") and part not in {".ci", ".gitignore"} for part in parts):
            continue
        # A running `make run` has .db, .db-wal and .db-shm here.
        if path.is_file() and path.suffix not in {".pyc", ".png", ".webp"} and not path.suffix.startswith(".db"):
            yield path


@pytest.fixture(scope="module")
def openapi() -> dict[str, Any]:
    """Return the document that `/openapi.json` serves."""
    return docs_reference.openapi()


@pytest.fixture(scope="module")
def reference(openapi: dict[str, Any]) -> str:
    """Return the page that `/docs` serves."""
    return docs_page(openapi).body.decode()


def test_every_action_of_the_audit_log_is_in_its_table() -> None:
    """The table of the audit log lists every action, in the order of the code, and no other."""
    page = (ROOT / "docs/how-to/audit.md").read_text(encoding="utf-8")
    table = page.partition("| action | subject | details |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([a-z_.]+)` \|", table, re.MULTILINE) == list(get_args(AuditAction))


def test_every_variable_that_is_named_is_a_setting() -> None:
    """Every variable in the documents is a setting that exists."""
    known = {variable(name) for name in OPTIONS} | OF_AN_APPLICATION
    for path in READERS:
        named = set(re.findall(r"\bTAPROOF_[A-Z_]+\b", path.read_text(encoding="utf-8")))
        assert named <= known, path.relative_to(ROOT)


def test_every_route_is_on_the_reference_page(openapi: dict[str, Any], reference: str) -> None:
    """/docs shows each operation of /openapi.json under its own heading."""
    assert len(openapi["paths"]) > 15
    for path, operations in openapi["paths"].items():
        for method in operations:
            heading = f'<h3><b class="{method}">{method.upper()}</b> <code>{escape(path)}</code></h3>'
            assert heading in reference, f"{method} {path}"


def test_every_error_code_is_on_the_reference_page(reference: str) -> None:
    """The page lists every X-Error-Code, so that a program can be written from the page alone."""
    for error in API_ERRORS:
        assert f"<tr><td>{error.status}</td><td><code>{error.code}</code></td>" in reference, error.__name__


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings as a code host makes them; the site makes the same (mkdocs.yml)."""
    text = re.sub(r"^ *```.*?^ *```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#{1,6} (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_links_lead_somewhere() -> None:
    """Every relative link and picture is a file of the repository; a part after # is one of its headings."""
    links = [
        (path, target)
        for path in [*READERS, *sorted(ROOT.glob("benchmarks/*.md"))]
        for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8"))
        if not re.match(r"[a-z]+:", target)
    ]
    assert links
    broken = []
    for path, target in links:
        file, _, anchor = target.partition("#")
        found = path.parent / file if file else path
        if not found.exists() or (anchor and anchor not in anchors(found)):
            broken.append(f"{path.relative_to(ROOT)}: {target}")
    assert broken == []


def test_files_that_are_named_exist() -> None:
    """Every file that the documents name exists, in particular each decision's test."""
    broken = []
    for path in READERS:
        named = re.findall(
            r"`((?:src|tests|docs|maintainers|scripts|benchmarks|requirements)/[\w./-]+)`",
            path.read_text(encoding="utf-8"),
        )
        broken += [f"{path.name}: {each}" for each in named if not (ROOT / each).exists()]
    assert broken == []


def test_documents_name_no_test_functions() -> None:
    """Documents name the file of a test, never its functions; the pages for users name no test in their text."""
    texts = {path: re.sub(r"<!--.*?-->", "", path.read_text(encoding="utf-8")) for path in READERS}
    wrong = {path: r"`tests/" if path.is_relative_to(ROOT / "docs") else r"`tests/[^`]*::" for path in texts}
    assert [path.name for path, pattern in wrong.items() if re.search(pattern, texts[path])] == []


def test_every_decision_is_listed_and_names_its_test() -> None:
    """Every decision is listed and names the test that enforces it."""
    index = (ROOT / "maintainers/decisions/README.md").read_text(encoding="utf-8")
    decisions = sorted(ROOT.glob("maintainers/decisions/0*.md"))
    assert decisions
    for path in decisions:
        text = path.read_text(encoding="utf-8")
        title = text.splitlines()[0].removeprefix("# ")
        assert f"- [{title}]({path.name})" in index
        assert re.search(r"`tests/[\w./-]+\.py`", text), f"{path.name} names no test"


def test_every_make_target_says_what_it_does() -> None:
    """Each target has a sentence in the Makefile, and the documents name no other target."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert targets
    for target in targets[1].split():
        assert re.search(rf"^{target}:[^#\n]* ## [A-Z].+\.$", makefile, re.MULTILINE), target
    for path in READERS:
        named = set(re.findall(r"(?:`|\$ )make ([a-z]+)", path.read_text(encoding="utf-8")))
        assert named <= set(targets[1].split()), path.name


@pytest.mark.parametrize("name", ["run.txt", "test.txt", "relying-parties.txt"])
def test_requirements_are_locked(name: str) -> None:
    """Every requirement has a version and a hash, and none names an index, which depends on the machine."""
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    assert "://" not in text
    assert set(re.findall(r"^\s*(-[\w-]*)", text, re.MULTILINE)) == {"--hash"}
    entries = re.sub(r"\s*\\\n\s*", " ", text).splitlines()
    requirements = [entry for entry in entries if entry.strip() and not entry.startswith("#")]
    assert len(requirements) > 20
    for requirement in requirements:
        assert re.match(r"[a-z0-9._-]+(\[[a-z,]+\])?==\S+ .*--hash=sha256:[0-9a-f]{64}", requirement), requirement


def test_the_security_policy_knows_every_lock_file() -> None:
    """The security policy lists every lock file, so that readers of advisories find all dependencies."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    files = {path.relative_to(ROOT).as_posix() for path in files_of_the_repository()}
    locks = {name for name in files if name.startswith("requirements/") or name.endswith("/package-lock.json")}
    assert locks
    assert set(re.findall(r"`([\w/-]+/[\w-]+\.(?:txt|json))`", text)) == locks


def test_the_security_policy_promises_times() -> None:
    """The security policy says how soon a vulnerable dependency is replaced, by severity.

    It names no e-mail address.
    """
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    promised = {
        row.split(" | ")[0].strip("| "): row.split(" | ")[1] for row in re.findall(r"^\| .* \|$", text, re.MULTILINE)
    }
    assert "7 days" in promised["critical, high (7.0 and more)"]
    assert "30 days" in promised["any other"]
    assert "@" not in text
    for page in ("README.md", "docs/index.md", "docs/explanation/threat-model.md"):
        assert "SECURITY.md" in (ROOT / page).read_text(encoding="utf-8"), page
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert (ROOT / target).is_file(), target


def test_no_path_of_one_machine() -> None:
    """No file contains a path of the machine that it was written on."""
    # Written so that this file does not match itself.
    someones = re.compile(r"(?<![\w.}])/(?:home|Users|root|work)/[\w.]")
    found = []
    for path in files_of_the_repository():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if someones.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert found == []
