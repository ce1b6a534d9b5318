"""A minimal browser for page tests: sends the cookies, headers and forms of a page."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from xml.etree.ElementTree import Element, TreeBuilder

import httpx

_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)


class _Parser(HTMLParser):
    """Builds a tree; every element except void ones must be closed in order, so that none is left open by mistake."""

    def __init__(self) -> None:
        super().__init__()
        self.tree = TreeBuilder()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"an attribute of <{tag}> is there twice"
        self.tree.start(tag, {name: value or "" for name, value in attrs})
        if tag in _VOID:
            self.tree.end(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.tree.end(tag)

    def handle_endtag(self, tag: str) -> None:
        self.tree.end(tag)

    def handle_data(self, data: str) -> None:
        self.tree.data(data)


def parse_html(text: str) -> Element:
    """Return the root element; raise AssertionError if the elements are not nested correctly."""
    assert text.startswith("<!doctype html>"), text[:100]
    parser = _Parser()
    parser.feed(text.removeprefix("<!doctype html>").strip())
    parser.close()
    return parser.tree.close()


def text_of(element: Element) -> str:
    """Return the text of an element as it is read out, with single spaces."""
    return " ".join("".join(element.itertext()).split())


@dataclass
class Shown:
    """An answer. Its HTML is queried with paths of `xml.etree`, such as `.//a[@href='/docs']`."""

    response: httpx.Response
    _root: Element | None = field(default=None, repr=False)

    @property
    def status(self) -> int:
        return self.response.status_code

    @property
    def location(self) -> str:
        """Return the path that the answer redirects to; "" if it does not redirect."""
        return str(self.response.headers.get("location", ""))

    @property
    def html(self) -> str:
        return self.response.text

    @property
    def root(self) -> Element:
        if self._root is None:
            self._root = parse_html(self.html)
        return self._root

    @property
    def text(self) -> str:
        """Return the text of the page's main part."""
        return text_of(self.one(".//main"))

    @property
    def alert(self) -> str:
        """Return the text of the page's only alert."""
        return text_of(self.one(".//p[@role='alert']"))

    @property
    def heading(self) -> str:
        return text_of(self.one(".//h1"))

    def all(self, path: str) -> list[Element]:
        return self.root.findall(path)

    def one(self, path: str) -> Element:
        found = self.all(path)
        assert len(found) == 1, f"{len(found)} of {path}"
        return found[0]

    def texts(self, path: str) -> list[str]:
        return [text_of(element) for element in self.all(path)]

    def rows(self, table: str = ".//table") -> list[list[str]]:
        """Return the texts of the cells of a table's body."""
        return [[text_of(cell) for cell in row] for row in self.one(table).findall(".//tbody/tr")]

    @property
    def deeplink(self) -> str:
        """Return the link to the messenger on the page that waits for a tap."""
        return self.one(".//a[@target='_blank']").get("href", "")

    def form(self, action: str) -> Element:
        return self.one(f".//form[@action='{action}']")

    def fields(self, action: str) -> dict[str, str]:
        """Return the fields that a browser sends for an untouched form."""
        sent: dict[str, str] = {}
        for control in self.form(action).iter():
            name = control.get("name", "")
            if control.tag == "input" and name and "disabled" not in control.attrib:
                kind = control.get("type", "text")
                if kind not in {"checkbox", "radio"} or "checked" in control.attrib:
                    sent[name] = control.get("value", "on" if kind == "checkbox" else "")
            elif control.tag == "textarea" and name:
                sent[name] = control.text or ""
            elif control.tag == "select" and name:
                options = control.findall(".//option")
                chosen = [option for option in options if "selected" in option.attrib] or options[:1]
                sent[name] = chosen[0].get("value", text_of(chosen[0]))
        return sent


class Browsing:
    """One browser; it does not follow redirects automatically."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client

    async def get(self, path: str, **query: str) -> Shown:
        return Shown(await self.client.get(path, params=query or None))

    async def post(self, path: str, fields: dict[str, str] | None = None, **headers: str) -> Shown:
        """Send a form; it says that it came from a page of the console unless `headers` say otherwise."""
        sent = {"Sec-Fetch-Site": "same-origin"} | headers
        return Shown(await self.client.post(path, data=fields or {}, headers=sent | _form(fields)))

    async def follow(self, shown: Shown) -> Shown:
        """Follow the redirect that answers a form."""
        assert shown.status == 303, (shown.status, shown.html)
        return await self.get(shown.location)

    async def submit(self, path: str, action: str, **typed: str) -> Shown:
        """Open a page and send the form that has this `action`, with what is typed or chosen in it."""
        shown = await self.get(path)
        assert shown.status == 200, (shown.status, shown.html)
        form = shown.form(action)
        assert form.get("method") == "post"
        names = {control.get("name") for control in form.iter()}
        assert set(typed) <= names, f"the form has no field {set(typed) - names}"
        return await self.post(action, shown.fields(action) | typed)


def _form(fields: dict[str, str] | None) -> dict[str, str]:
    # A browser names the type of a form without any field, too; httpx does not.
    return {} if fields else {"Content-Type": "application/x-www-form-urlencoded"}
