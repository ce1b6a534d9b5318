"""The parts of the demo's page: the shop and the phone beside it, each in a frame."""

from dataclasses import dataclass

from playwright.async_api import FrameLocator, Locator, Page, expect


@dataclass(frozen=True)
class Demo:
    """The demo in a browser."""

    page: Page

    @property
    def shop(self) -> FrameLocator:
        return self.page.frame_locator("#shop")

    @property
    def phone(self) -> FrameLocator:
        return self.page.frame_locator("#phone")

    @property
    def newest(self) -> Locator:
        """The text of the bot's newest message."""
        return self.phone.locator("[data-from=bot] .bubble > div").last

    def choice(self, label: str) -> Locator:
        """Return a button of the newest prompt."""
        return self.phone.locator("[data-buttons]").last.get_by_role("button", name=label, exact=True)

    def steps(self, part: str = "text") -> Locator:
        """Return the rows of the drawer, or one part of each."""
        return self.page.locator(f"#steps .{part}")

    async def open(self) -> None:
        await self.page.goto("/demo")
        await expect(self.shop.get_by_role("button", name="Sign in with Telegram")).to_be_visible()

    async def be(self, user_id: str) -> None:
        """Switch the phone to another simulated user."""
        await self.phone.locator(f"#user option[value='{user_id}']").wait_for(state="attached")
        await self.phone.locator("#user").select_option(user_id)

    async def press_button(self) -> None:
        await self.shop.get_by_role("button", name="Sign in with Telegram").click()

    async def guides(self, state: str) -> None:
        """Wait until the page shows the instructions for this state."""
        await expect(self.page.locator("#guide")).to_have_attribute("data-state", state)

    async def signs_in(self, name: str) -> None:
        """Wait until the shop greets this user."""
        await expect(self.shop.locator("#who")).to_have_text(f"Welcome, {name}")
