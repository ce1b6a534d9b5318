"""Hooks of MkDocs (see `hooks` in mkdocs.yml) for the look of the site.

The site has dark pictures, tables that a phone can show row by row, and the console's icon and colours. The console's
files are the only source of both, so that the site and the console cannot differ.
"""

import re
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

_ROOT: Final = Path(__file__).parent.parent
_CONSOLE: Final = _ROOT / "src/taproof/console/static"
_COLOUR: Final = re.compile(r"^\s*(--[\w-]+: (?:#[0-9a-f]+|rgb\([^)]*\));)$", re.MULTILINE)
_TABLE: Final = re.compile(r"<table>.*?</table>", re.DOTALL)
_ROW: Final = re.compile(r"<tr>.*?</tr>", re.DOTALL)
_CELL: Final = re.compile(r"<td(?=[ >])")
_PICTURE: Final = re.compile(r'<img\b[^>]*\bsrc="[^"]*images/([\w-]+)\.png"[^>]*>')


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the console's icon, and its colours as a stylesheet for the two schemes of the theme."""
    added = {
        "images/icon.svg": (_CONSOLE / "icon.svg").read_text(encoding="utf-8"),
        "stylesheets/colours.css": colours((_CONSOLE / "console.css").read_text(encoding="utf-8")),
    }
    for name, content in added.items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_content(html: str, **_: Any) -> str:
    """Show a picture's dark version, NAME-dark.png, in the dark scheme, and label the cells of wide tables."""
    return _TABLE.sub(_labelled, _PICTURE.sub(_in_both_schemes, html))


def colours(console: str) -> str:
    """Return the colours of the console's stylesheet under the names of the theme's schemes.

    Raises ValueError if the stylesheet does not begin with the light colours, followed by the dark ones.
    """
    light, dark = (_COLOUR.findall(block) for block in re.findall(r":root \{(.*?)\}", console, re.DOTALL)[:2])
    return "".join(
        f'[data-md-color-scheme="{scheme}"] {{\n  ' + "\n  ".join(found) + "\n}\n"
        for scheme, found in (("default", light), ("slate", dark))
    )


def _in_both_schemes(found: re.Match[str]) -> str:
    light, name = found[0], found[1]
    if not (_ROOT / f"docs/images/{name}-dark.png").exists():
        return light
    dark = light.replace(f"{name}.png", f"{name}-dark.png#only-dark")
    return light.replace(f"{name}.png", f"{name}.png#only-light") + dark


def _labelled(found: re.Match[str]) -> str:
    """Give the cells of a table with more than two columns their column's name, except those of the first column."""
    names = [re.sub(r"<[^>]+>", "", name) for name in re.findall(r"<th[^>]*>(.*?)</th>", found[0], re.DOTALL)]
    if len(names) < 3:
        return found[0]

    def row(line: re.Match[str]) -> str:
        labels = iter(f' data-label="{name}"' if name and place else "" for place, name in enumerate(names))
        return _CELL.sub(lambda cell: cell[0] + next(labels), line[0])

    return _ROW.sub(row, found[0])
