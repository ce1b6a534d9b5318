"""Hooks of MkDocs (see `hooks` in mkdocs.yml).

The site has a page for each directory in `SHOWN` with the directory's files. A path in the documentation therefore
links to its file, also for readers without a checkout.
"""

import re
from pathlib import Path
from posixpath import relpath
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

_ROOT: Final = Path(__file__).parent.parent
SHOWN: Final = (
    "examples/django",
    "examples/express",
    "examples/fastapi",
    "deploy/compose",
    "deploy/docker",
    "deploy/kubernetes",
    "deploy/systemd",
)
# Only these names and suffixes: a checkout that is in use also has filled-in settings, keys and databases.
_LANGUAGES: Final = {".css": "css", ".html": "html", ".js": "js", ".py": "python", ".yaml": "yaml"}
_PLAIN: Final = {
    ".env.example",
    "Caddyfile",
    "Dockerfile",
    "README.md",
    "env.example",
    "package.json",
    "requirements.txt",
    "run",
    "secret.example.env",
    "settings.env",
    "sysusers.conf",
    "taproof.service",
    "tls.conf",
}
_NOT_OURS: Final = {".venv", "__pycache__", "node_modules"}
_FOR_TESTS: Final = re.compile(r"^ *<!-- (?:same as|run by|not run:|before:) [^\n]* -->\n", re.MULTILINE)
_ROW: Final = re.compile(r"^\|.*\|$", re.MULTILINE)
_CODE: Final = re.compile(r"`[^`]*`")
_PATH: Final = re.compile(rf"<code>((?:{'|'.join(SHOWN)})(?:/[\w./-]+)?)</code>")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the changelog, and a page for each directory of `SHOWN`."""
    texts = {directory: listing(directory) for directory in SHOWN}
    texts["CHANGELOG"] = (_ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for name, text in texts.items():
        files.append(File.generated(config, f"source/{name}.md", content=text, inclusion=InclusionLevel.NOT_IN_NAV))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Remove the comments for the tests, and show pipes in the code of a table as a code host does."""
    text = _FOR_TESTS.sub("", markdown)
    return _ROW.sub(lambda row: _CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), text)


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Turn paths into links if the site has a page for them."""
    if page.file.src_uri.startswith("source/"):
        return html

    def link(code: str, target: str, anchor: str = "") -> str:
        address = relpath(f"source/{target}.html", Path(page.file.dest_uri).parent.as_posix())
        return f'<a href="{address}{anchor}">{code}</a>'

    def path(found: re.Match[str]) -> str:
        directory = next(each for each in SHOWN if found[1].startswith(each))
        inside = found[1].removeprefix(directory).strip("/")
        return link(found[0], directory, f"#{_anchor(inside)}" if inside else "")

    changelog = "<code>CHANGELOG.md</code>"
    return _PATH.sub(path, html).replace(changelog, link(changelog, "CHANGELOG"))


def listing(directory: str, root: Path = _ROOT) -> str:
    """Return a page with the files of a directory, each below its name."""
    parts = [f"# {directory}", "These files are in Taproof's repository."]
    for path in sorted((root / directory).rglob("*")):
        name = path.relative_to(root / directory)
        is_shown = path.suffix in _LANGUAGES or path.name in _PLAIN
        if not is_shown or not path.is_file() or _NOT_OURS & set(name.parts):
            continue
        text = path.read_text(encoding="utf-8").rstrip("\n")
        if text:
            language = _LANGUAGES.get(path.suffix, "text")
            parts.append(f"## {name} {{ #{_anchor(name.as_posix())} }}\n\n````{language}\n{text}\n````")
    return "\n\n".join(parts) + "\n"


def _anchor(name: str) -> str:
    return re.sub(r"\W+", "-", name).strip("-").lower()
