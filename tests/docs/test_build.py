"""The documentation builds as a site without a network, uses no other host, and has no dead link."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from scripts import docs_hooks
from tests.chromium import open_chromium
from tests.docs.blocks import DOCS, ROOT, block_of

SCHEMES = {"only-light", "only-dark"}
"""The theme shows a picture with this fragment in one scheme only."""


@dataclass
class Page(HTMLParser):
    """The links, resources and anchors of a page."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") not in {"canonical", "next", "prev"}:
            self.loads.append(given["href"])
        self.loads += [given[name] for name in ("src", "srcset", "data", "poster") if name in given]
        self.loads += re.findall(r"url\(([^)]*)\)", given.get("style", ""))


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    """Return every page of the site, by path."""
    found = {}
    for path in site.glob("**/*.html"):
        page = found[path.relative_to(site).as_posix()] = Page()
        page.feed(path.read_text(encoding="utf-8"))
    assert len(found) > 40
    return found


def test_every_page_is_in_the_navigation() -> None:
    """Every page is in the navigation."""

    def walk(node: object) -> Iterator[str]:
        if isinstance(node, str):
            yield node
        for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else []:
            yield from walk(each)

    class Loader(yaml.SafeLoader):
        """Loads mkdocs.yml without the function that makes anchors."""

    Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    nav = list(walk(yaml.load(text, Loader)["nav"]))  # noqa: S506 — a SafeLoader of this repository's own file.
    assert sorted(nav) == sorted(path.relative_to(DOCS).as_posix() for path in DOCS.glob("**/*.md"))


def test_every_link_of_the_site_leads_somewhere(site: Path, pages: dict[str, Page]) -> None:
    """Every link to a page, picture or anchor has a target."""
    broken = []
    for name, page in pages.items():
        for link in page.links + page.loads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or name == "404.html":
                continue  # The 404 page has links relative to the root of a host.
            target = (site / name).parent / unquote(parts.path) if parts.path else site / name
            target = target / "index.html" if target.is_dir() else target
            path = target.resolve()
            page_there = pages.get(path.relative_to(site.resolve()).as_posix())
            known = {"", *(page_there.anchors if page_there else ())}
            if not path.exists() or unquote(parts.fragment) not in known | SCHEMES:
                broken.append(f"{name}: {link}")
    assert broken == []


def test_nothing_is_loaded_from_another_host(site: Path, pages: dict[str, Page]) -> None:
    """No script, style, font or picture is loaded from another host, for the reader's privacy and offline use."""
    foreign = [f"{name}: {load}" for name, page in pages.items() for load in page.loads if "//" in load]
    for path in site.glob("**/*.css"):
        css = path.read_text(encoding="utf-8")
        loads = re.findall(r"url\(\s*[\"']?([^\"')]+)|@import\s+[\"']([^\"']+)", css)
        foreign += [f"{path.name}: {load}" for pair in loads for load in pair if re.match(r"(https?:)?//", load)]
    assert foreign == []


def test_no_comment_is_shown(pages: dict[str, Page], site: Path) -> None:
    """Comments for the tests do not appear on the site, and every fence became a block."""
    for name in pages:
        html = (site / name).read_text(encoding="utf-8")
        assert "```" not in re.sub(r"<code>.*?</code>", "", html, flags=re.DOTALL), name
        assert name.startswith("source/") or "&lt;!--" not in html, name
        assert not re.search(r"<!-- (same as|run by|not run|before)", html), name
        assert "\\|" not in re.sub(r"<pre>.*?</pre>", "", html, flags=re.DOTALL), name


def test_commands_are_copied_without_their_prompts(site: Path) -> None:
    """The copy button copies commands without their prompts."""

    async def copied() -> str:
        async with open_chromium() as browser:
            context = await browser.new_context(permissions=["clipboard-read", "clipboard-write"])
            page = await context.new_page()
            await page.goto((site / "how-to/upgrade.html").as_uri())
            await page.locator(".md-code__button, .md-clipboard").first.click()
            await page.wait_for_function("async () => (await navigator.clipboard.readText()) !== ''")
            text: str = await page.evaluate("navigator.clipboard.readText()")
            return text

    block = block_of("how-to/upgrade.md", "console", "git pull").text
    assert asyncio.run(copied()) == "\n".join(line.removeprefix("$ ") for line in block.splitlines())


def test_paths_lead_to_the_files(pages: dict[str, Page]) -> None:
    """A path of an example or of deploy/, even of one file, is a link; so is the changelog."""
    assert "../source/examples/express.html" in pages["how-to/express.html"].links
    assert "../source/deploy/compose.html#compose-yaml" in pages["how-to/deploy-docker.html"].links
    assert "../source/CHANGELOG.html" in pages["how-to/upgrade.html"].links
    for directory in docs_hooks.SHOWN:
        assert f"source/{directory}.html" in pages


def test_no_secret_gets_into_the_site(tmp_path: Path) -> None:
    """Filled-in settings, keys and databases next to the shown files do not get into the site."""
    directory = tmp_path / "deploy/compose"
    directory.mkdir(parents=True)
    for name in (".env", "secret.env", "taproof.db", "taproof.db.key", "privkey.pem", ".env.example"):
        (directory / name).write_text(f"in {name}", encoding="utf-8")
    listing = docs_hooks.listing("deploy/compose", tmp_path)
    assert "in .env.example" in listing
    assert listing.count("````text") == 1
