"""Run axe-core in a page: the rules for each theme, and a check in every theme and size."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from playwright.async_api import Page, ViewportSize

Theme = Literal["light", "dark"]
DESKTOP: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 320, "height": 640}
_AXE = Path(__file__).parent / "npm/node_modules/axe-core/axe.min.js"
# Between the themes only the colours of a page differ.
_RULES: dict[Theme, dict[str, object]] = {
    "light": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]},
    "dark": {"type": "rule", "values": ["color-contrast"]},
}


async def violations(page: Page, theme: Theme) -> list[dict[str, Any]]:
    """Return what axe-core finds in a page as it is displayed; the page's context has `bypass_csp`."""
    await page.emulate_media(color_scheme=theme)
    if not await page.evaluate("'axe' in window"):
        await page.add_script_tag(path=_AXE)
    found: list[dict[str, Any]] = await page.evaluate(
        "async runOnly => (await axe.run(document, {runOnly, resultTypes: ['violations']})).violations", _RULES[theme]
    )
    return found


async def assert_accessible(page: Page, sizes: Iterable[ViewportSize] = (DESKTOP, PHONE)) -> None:
    """Check a page with axe-core in each size and theme, and assert that it is no wider than the window."""
    for size in sizes:
        await page.set_viewport_size(size)
        for theme in _RULES:
            found = [
                f"{violation['id']}: {violation['help']}: {node['html'][:200]} {node['failureSummary'][:300]}"
                for violation in await violations(page, theme)
                for node in violation["nodes"]
            ]
            assert found == [], f"{page.url} {size} {theme}: {json.dumps(found, indent=1)}"
        too_wide = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert too_wide <= 0, f"{page.url} scrolls sideways by {too_wide} px at {size['width']} px"
