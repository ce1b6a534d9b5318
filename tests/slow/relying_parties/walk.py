"""Use an application as a user does: sign in, sign out, and sign in again."""

from collections.abc import Awaitable, Callable

from playwright.async_api import Page, expect
from tests.e2e.conftest import Phone
from tests.slow.relying_parties.at_provider import sign_in_at_provider
from tests.slow.relying_parties.processes import Program
from tests.slow.relying_parties.providers import NAME

Shown = dict[str, str]
Step = Callable[[Page], Awaitable[None]]
_TOKENS = {"access_token", "id_token"}


async def press_sign_in(page: Page) -> None:
    """Press the sign-in link of the application's page."""
    await page.get_by_role("link", name="Sign in").click()


async def press_sign_out(page: Page) -> None:
    """Press the sign-out button of the application's page."""
    await page.get_by_role("button", name="Sign out").click()


async def read_page(page: Page) -> Shown:
    """Return the fields of the signed-in user, once the page shows them."""
    await expect(page.locator("#sub")).to_be_visible()
    return {await each.get_attribute("id") or "": await each.inner_text() for each in await page.locator("p").all()}


async def sign_in_out_and_in_again(
    page: Page,
    party: Program,
    phone: Phone,
    *,
    start: Step = press_sign_in,
    end: Step = press_sign_out,
    read: Callable[[Page], Awaitable[Shown]] = read_page,
) -> None:
    """Sign in twice. Both times the application shows the same user, the second time with new tokens."""
    seen: list[Shown] = []
    for _ in range(2):
        await page.goto(party.base_url)
        await start(page)
        await sign_in_at_provider(page, phone)
        seen.append(await read(page))
        assert page.url.startswith(party.base_url)
        await end(page)
        await expect(page.get_by_text("Sign in").first).to_be_visible()
    first, second = seen
    assert (first["sub"], first["name"]) == (phone.messenger_id, NAME)
    assert {name for name in first if first[name] != second[name]} == _TOKENS & set(first)
