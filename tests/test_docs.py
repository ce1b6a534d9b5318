"""The documents say what the code does: each is read here beside what it describes."""

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, cast, get_args

import pytest
from prometheus_client import CollectorRegistry

from taproof.api.developer import DeveloperApi
from taproof.api.openapi.document import build_openapi
from taproof.api.openapi.reference_page import docs_page
from taproof.config.options import variable
from taproof.config.settings import OPTIONS
from taproof.core.accounts import AuditAction
from taproof.core.errors import API_ERRORS
from taproof.http.metrics import Metrics

ROOT = Path(__file__).parent.parent
NOT_OURS = {".git", ".venv", "build", "dist", "node_modules", "__pycache__"}
OF_AN_APPLICATION = {
    *("TAPROOF_BASE_URL", "TAPROOF_PROJECT_ID", "TAPROOF_WEBHOOK_SECRET", "TAPROOF_GUARD"),
    "TAPROOF_SECRET_KEY",
}
"""What the integrations read, TAPROOF_GUARD with Django; and what the pages' own programs call the secret key."""
READERS = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "SECURITY.md", *sorted(ROOT.glob("docs/**/*.md"))]


def files_of_the_repository() -> Iterator[Path]:
    """Yield every text file that belongs to the repository; caches are named with a dot or in NOT_OURS."""
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        if NOT_OURS & set(parts) or any(part.startswith(".") and part not in {".ci", ".gitignore"} for part in parts):
            continue
        if path.is_file() and path.suffix not in {".pyc", ".png", ".db"}:
            yield path


@pytest.fixture(scope="module")
def openapi() -> dict[str, Any]:
    """The document that `/openapi.json` answers. The services are not called to make it."""
    unused = cast("Any", None)
    return build_openapi(
        DeveloperApi(
            *[unused] * 5,
            audit=unused,
            bots=unused,
            plans=unused,
            erasure=unused,
            metrics=Metrics(CollectorRegistry(), "0.1.0"),
            limits=unused,
        ).build_app()
    )


@pytest.fixture(scope="module")
def reference(openapi: dict[str, Any]) -> str:
    """The page that `/docs` answers."""
    return docs_page(openapi).body.decode()


def test_every_action_of_the_audit_log_is_in_its_table() -> None:
    """Whoever reads an entry finds out what it says, in the order of the code, and no action that there is not."""
    page = (ROOT / "docs/how-to/audit.md").read_text(encoding="utf-8")
    table = page.partition("| action | subject | details |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([a-z_.]+)` \|", table, re.MULTILINE) == list(get_args(AuditAction))


def test_every_variable_that_is_named_is_a_setting() -> None:
    """A reader who sets what the documents name must not set it in vain."""
    known = {variable(name) for name in OPTIONS} | OF_AN_APPLICATION
    for path in READERS:
        named = set(re.findall(r"\bTAPROOF_[A-Z_]+\b", path.read_text(encoding="utf-8")))
        assert named <= known, path.relative_to(ROOT)


def test_every_route_is_on_the_reference_page(openapi: dict[str, Any], reference: str) -> None:
    """/docs shows each operation of /openapi.json under a heading of its own."""
    assert len(openapi["paths"]) > 15
    for path, operations in openapi["paths"].items():
        for method in operations:
            heading = f'<h3><b class="{method}">{method.upper()}</b> <code>{escape(path)}</code></h3>'
            assert heading in reference, f"{method} {path}"


def test_every_error_code_is_on_the_reference_page(reference: str) -> None:
    """A program can be written for every X-Error-Code from the page alone."""
    for error in API_ERRORS:
        assert f"<tr><td>{error.status}</td><td><code>{error.code}</code></td>" in reference, error.__name__


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as a code host makes them; the site makes the same (mkdocs.yml)."""
    text = re.sub(r"^ *```.*?^ *```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#{1,6} (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_links_lead_somewhere() -> None:
    """Every relative link, and every picture, is a file of the repository; behind a # is one of its headings."""
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
    """Each decision names the test that holds it; whatever else the documents name is there too."""
    broken = []
    for path in READERS:
        named = re.findall(
            r"`((?:src|tests|docs|scripts|benchmarks|requirements)/[\w./-]+)`", path.read_text(encoding="utf-8")
        )
        broken += [f"{path.name}: {each}" for each in named if not (ROOT / each).exists()]
    assert broken == []


def test_every_decision_is_listed_and_names_its_test() -> None:
    """A decision that nothing enforces is only an opinion."""
    index = (ROOT / "docs/decisions/README.md").read_text(encoding="utf-8")
    decisions = sorted(ROOT.glob("docs/decisions/0*.md"))
    assert decisions
    for path in decisions:
        text = path.read_text(encoding="utf-8")
        title = text.splitlines()[0].removeprefix("# ")
        assert f"- [{title}]({path.name})" in index
        assert re.search(r"`tests/[\w./-]+\.py`", text), f"{path.name} names no test"


def test_every_make_target_says_what_it_does() -> None:
    """Each target has its sentence in the Makefile, and the documents name no other target."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert targets
    for target in targets[1].split():
        assert re.search(rf"^{target}:[^#\n]* ## [A-Z].+\.$", makefile, re.MULTILINE), target
    for path in READERS:
        named = set(re.findall(r"(?:`|\$ )make ([a-z]+)", path.read_text(encoding="utf-8")))
        assert named <= set(targets[1].split()), path.name


@pytest.mark.parametrize("name", ["run.txt", "test.txt"])
def test_requirements_are_locked(name: str) -> None:
    """Every requirement has a version and a hash, and none says where it comes from: that is the machine's affair."""
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    assert "://" not in text
    assert set(re.findall(r"^\s*(-[\w-]*)", text, re.MULTILINE)) == {"--hash"}
    entries = re.sub(r"\s*\\\n\s*", " ", text).splitlines()
    requirements = [entry for entry in entries if entry.strip() and not entry.startswith("#")]
    assert len(requirements) > 20
    for requirement in requirements:
        assert re.match(r"[a-z0-9._-]+(\[[a-z,]+\])?==\S+ .*--hash=sha256:[0-9a-f]{64}", requirement), requirement


def test_the_security_policy_knows_every_lock_file() -> None:
    """Whoever watches advisories finds all that can be vulnerable; a new lock file belongs on the page too."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    files = {path.relative_to(ROOT).as_posix() for path in files_of_the_repository()}
    locks = {name for name in files if name.startswith("requirements/") or name.endswith("/package-lock.json")}
    assert locks
    assert set(re.findall(r"`([\w/-]+/[\w-]+\.(?:txt|json))`", text)) == locks


def test_the_security_policy_promises_times() -> None:
    """How soon a vulnerable part is replaced, by its severity; and a report goes to nobody who may not be there."""
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
    """Nothing in the repository depends on, or tells of, the machine that it was written on."""
    # Written so that this file itself does not match.
    someones = re.compile(r"(?<![\w.}])/(?:home|Users|root|work)/[\w.]")
    found = []
    for path in files_of_the_repository():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if someones.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    assert found == []
