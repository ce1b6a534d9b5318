"""Over TLS and with an operator's brand, in a real browser: the console's cookies are bound to their host."""

from collections.abc import Iterator

import httpx
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from playwright.async_api import Browser, expect
from tests.core.logos import SVG
from tests.e2e.conftest import Service, make_phone
from tests.e2e.console_browser import accept, confirm, heading, invitation_link, watched
from tests.e2e.test_process_https import issue, start

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, str]]:
    """Return a sandbox over TLS, and its address."""
    directory = tmp_path_factory.mktemp("console_tls")
    certificate, key = issue("localhost", issue("Test authority", None))
    (directory / "cert.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    (directory / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (directory / "logo.svg").write_bytes(SVG)
    brand = ("--console-name", "Acme & Co", "--console-logo", "logo.svg")
    yield from start(directory, "--tls-cert", "cert.pem", "--tls-key", "key.pem", *brand, scheme="https")


async def test_cookies_are_bound_to_the_host(browser: Browser, tls: tuple[Service, str]) -> None:
    """Every cookie is `__Host-`, Secure and HttpOnly, and a browser that enforces those rules can sign in."""
    service, base_url = tls
    with httpx.Client(base_url=base_url, verify=False, timeout=60) as client:  # noqa: S501 — on loopback, for a phone.
        phone = make_phone(client, "Ada")
        # This browser does not know the authority of the test's certificate.
        async with watched(browser, base_url, ignore_https_errors=True) as context:
            page = await context.new_page()
            await accept(page, invitation_link(service), phone)
            await page.get_by_role("link", name="New project").click()
            await page.get_by_label("Name", exact=True).fill("Over TLS")
            await page.get_by_role("button", name="Create the project").click()
            await expect(page.locator(".secrets code")).to_have_count(2)
            await page.get_by_role("button", name="Sign out", exact=True).click()
            await heading(page, "Sign in to Acme & Co")
            await page.get_by_role("button", name="Sign in with your messenger").click()
            await expect(page.get_by_text("The simulated phone opens in a second tab")).to_be_visible()
            assert {cookie.get("name") for cookie in await context.cookies()} == {"__Host-taproof_signin"}
            await confirm(page, phone)
            await heading(page, "Projects")
            cookies = await context.cookies()
            assert [cookie.get("name") for cookie in cookies] == ["__Host-taproof_session"]
            for cookie in cookies:
                assert cookie.get("secure")
                assert cookie.get("httpOnly")
                assert cookie.get("sameSite") == "Lax"
                assert cookie.get("path") == "/"
                assert cookie.get("expires") == -1


async def test_the_operators_brand_is_drawn(browser: Browser, tls: tuple[Service, str]) -> None:
    """The browser draws the logo beside the name, in the console and on the pages of the OpenID provider."""
    _, base_url = tls
    async with watched(browser, base_url, ignore_https_errors=True) as context:
        page = await context.new_page()
        for path, place in (("/console/sign-in", "a.home"), ("/device", "footer")):
            await page.goto(path)
            await expect(page.locator(place)).to_have_text("Acme & Co")
            logo = page.locator(f"{place} img")
            assert await logo.evaluate("image => image.decode().then(() => image.naturalWidth > 0)")
