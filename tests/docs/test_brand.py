"""The site has the console's icon and colours, light and dark; a phone shows tables row by row."""

import asyncio
import re
from pathlib import Path
from typing import Literal

import pytest
from scripts import docs_brand
from tests.chromium import open_chromium
from tests.docs.blocks import DOCS, ROOT

CONSOLE = ROOT / "src/taproof/console/static"


@pytest.mark.parametrize(("scheme", "place"), [("light", 0), ("dark", 1)])
def test_the_colours_are_those_of_the_console(site: Path, scheme: Literal["light", "dark"], place: int) -> None:
    """The background, the text and the links have the console's colours in both schemes."""
    css = (CONSOLE / "console.css").read_text(encoding="utf-8")

    async def look() -> dict[str, str]:
        async with open_chromium() as browser:
            page = await browser.new_page(color_scheme=scheme)
            await page.goto((site / "index.html").as_uri())
            shown: dict[str, str] = await page.evaluate(
                """() => {
                    const style = (selector) => getComputedStyle(document.querySelector(selector));
                    return {
                        "surface-raised": style("body").backgroundColor,
                        ink: style(".md-content h1").color,
                        accent: style(".md-content td a").color,
                    };
                }"""
            )
            return shown

    for name, colour in asyncio.run(look()).items():
        wanted = re.findall(rf"--{name}: #([0-9a-f]{{6}});", css)[place]
        assert colour == f"rgb({', '.join(str(byte) for byte in bytes.fromhex(wanted))})", name


def test_every_colour_exists(site: Path) -> None:
    """The stylesheet uses only colours that the console defines, for both schemes."""
    used = set(re.findall(r"var\((--(?!md-)[\w-]+)\)", (DOCS / "stylesheets/taproof.css").read_text(encoding="utf-8")))
    for block in (site / "stylesheets/colours.css").read_text(encoding="utf-8").split("}")[:2]:
        assert used <= set(re.findall(r"(--[\w-]+):", block))


def test_cells_are_labelled_on_a_phone() -> None:
    """The cells of a table with more than two columns name their column, except in the first column."""
    head, row = "<tr><th>a</th><th><code>b</code></th><th></th></tr>", "<tr><td>1</td><td>2</td><td>3</td></tr>"
    labelled = docs_brand.on_page_content(f"<table>{head}{row}</table>")
    assert re.findall(r"<td[^>]*>", labelled) == ["<td>", '<td data-label="b">', "<td>"]
    narrow = "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>"
    assert docs_brand.on_page_content(narrow) == narrow
