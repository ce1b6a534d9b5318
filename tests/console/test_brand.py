"""The operator's name and logo on the console's pages."""

from pathlib import Path

import pytest
from tests.api.conftest import ManualClock
from tests.console.conftest import open_console
from tests.core.logos import PNG, SVG

from taproof.core.brand import Brand, Logo


@pytest.mark.parametrize("logo", [Logo(PNG, "image/png"), Logo(SVG, "image/svg+xml")])
async def test_the_name_and_the_logo(tmp_path: Path, clock: ManualClock, logo: Logo) -> None:
    """Titles, header and sign-in page show them. The logo has its own type and cannot run as a page."""
    async with open_console(tmp_path, clock, brand=Brand("Acme <b> & Söhne", logo)) as console:
        browser = await console.browser()
        page = await browser.get("/console/sign-in")
        assert "Sign in to Acme <b> & Söhne" in page.text
        assert page.one(".//title").text == "Sign in · Acme <b> & Söhne"
        assert page.one(".//a[@class='home']/bdi").text == "Acme <b> & Söhne"
        sources = {page.one(".//a[@class='home']/img").get("src"), page.one(".//link[@rel='icon']").get("href")}
        [source] = sources
        assert source is not None
        served = await browser.client.get(source)
    assert (served.content, served.headers["content-type"]) == (logo.content, logo.media_type)
    assert served.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in served.headers["content-security-policy"]
    assert "script-src" not in served.headers["content-security-policy"]


async def test_without_a_brand(tmp_path: Path, clock: ManualClock) -> None:
    """The software's own name and icon are shown, and there is no logo to load."""
    async with open_console(tmp_path, clock) as console:
        browser = await console.browser()
        page = await browser.get("/console/sign-in")
        assert "Sign in to Taproof" in page.text
        assert (page.one(".//link[@rel='icon']").get("href") or "").startswith("/console/static/icon.svg?")
        assert (await browser.client.get("/console/logo")).status_code == 404
