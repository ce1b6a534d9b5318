"""Take the pictures of the demo: docs/images/demo.png, docs/images/phone.png, and the animation docs/images/demo.webp.

Each has a dark version, such as docs/images/demo-dark.png.
`scripts/screenshots.py` calls this. Chromium encodes the frames of the animation, so no other program is needed.
"""

import base64
import struct
from pathlib import Path
from typing import Final, Literal

from playwright.async_api import Browser, BrowserContext, Locator, Page, expect

FIREFOX: Final = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
"""The demo browser's user agent, so that the prompt names a common browser."""
_SIZE: Final = (1280, 800)
_ANIMATION: Final = (960, 600)
_QUALITY: Final = 0.82
_ENCODE: Final = """async ([source, width, height, quality]) => {
    const image = new Image();
    image.src = `data:image/png;base64,${source}`;
    await image.decode();
    const canvas = new OffscreenCanvas(width, height);
    const context = canvas.getContext("2d", { alpha: false });
    context.imageSmoothingQuality = "high";
    context.drawImage(image, 0, 0, width, height);
    const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: "image/webp", quality })).arrayBuffer());
    return btoa(String.fromCharCode(...bytes));
}"""
_POINT: Final = """([x, y, isPressed]) => {
    const dot = document.getElementById("pointer") ?? document.body.appendChild(document.createElement("div"));
    dot.id = "pointer";
    Object.assign(dot.style, {
        position: "fixed", left: `${x - 16}px`, top: `${y - 16}px`, width: "32px", height: "32px",
        borderRadius: "50%", border: "3px solid #0f766e", background: isPressed ? "#0f766e88" : "#0f766e22",
        pointerEvents: "none", zIndex: 9,
    });
}"""


class Animation:
    """Collects frames of a page, and writes them as an animated WebP (https://developers.google.com/speed/webp)."""

    def __init__(self, page: Page, encoder: Page) -> None:
        self._page = page
        self._encoder = encoder
        self._frames: list[tuple[bytes, int]] = []

    async def add(self, milliseconds: int) -> None:
        """Add what the page shows now, for this long."""
        shown = base64.b64encode(await self._page.screenshot()).decode()
        encoded = base64.b64decode(await self._encoder.evaluate(_ENCODE, [shown, *_ANIMATION, _QUALITY]))
        self._frames.append((_picture_of(encoded), milliseconds))

    async def press(self, target: Locator) -> None:
        """Move the pointer to a control, show it there, and press the control."""
        box = await target.bounding_box()
        if box is None:
            raise RuntimeError(f"{target} is not shown.")
        x, y = box["x"] + box["width"] * 0.75, box["y"] + box["height"] / 2
        for is_pressed, milliseconds in ((False, 700), (True, 250)):
            await self._page.evaluate(_POINT, [x, y, is_pressed])
            await self.add(milliseconds)
        await target.click()

    def write(self, path: Path) -> None:
        """Write the file. It repeats for ever."""
        width, height = (struct.pack("<I", side - 1)[:3] for side in _ANIMATION)
        chunks = [_chunk(b"VP8X", b"\x02\0\0\0" + width + height), _chunk(b"ANIM", b"\xff\xff\xff\xff\0\0")]
        for frame, milliseconds in self._frames:
            duration = struct.pack("<I", milliseconds)[:3]
            chunks.append(_chunk(b"ANMF", bytes(6) + width + height + duration + b"\x02" + frame))
        content = b"WEBP" + b"".join(chunks)
        path.write_bytes(b"RIFF" + struct.pack("<I", len(content)) + content)


def _picture_of(file: bytes) -> bytes:
    """Return the chunk of a WebP file that has the picture, without the header, the colour profile and so on."""
    at = 12
    while (name := file[at : at + 4]) != b"VP8 ":
        if not name:
            raise RuntimeError("Chromium has encoded no lossy WebP.")
        (length,) = struct.unpack_from("<I", file, at + 4)
        at += 8 + length + length % 2
    (length,) = struct.unpack_from("<I", file, at + 4)
    return file[at : at + 8 + length + length % 2]


def _chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content + bytes(len(content) % 2)


async def _new_context(browser: Browser, scheme: Literal["light", "dark"]) -> BrowserContext:
    return await browser.new_context(
        viewport={"width": _SIZE[0], "height": _SIZE[1]},
        color_scheme=scheme,
        reduced_motion="reduce",
        locale="en-GB",
        user_agent=FIREFOX,
    )


async def take_demo_pictures(browser: Browser, base_url: str, images: Path, scheme: Literal["light", "dark"]) -> None:
    """Sign in as a new user would, once for the animation and the picture, and once on a phone of its own.

    The service must be new, because the chat of the demo's user begins empty.
    """
    suffix = "-dark" if scheme == "dark" else ""
    context = await _new_context(browser, scheme)
    page, encoder = await context.new_page(), await context.new_page()
    await page.goto(f"{base_url}/demo")
    shop, phone = page.frame_locator("#shop"), page.frame_locator("#phone")
    animation = Animation(page, encoder)
    button = shop.get_by_role("button", name="Sign in with Telegram")
    await expect(button).to_be_visible()
    await expect(phone.locator("#user option")).not_to_have_count(0)
    await animation.add(1_200)
    await animation.press(button)
    confirm = phone.locator("[data-buttons]").last.get_by_role("button", name="Confirm", exact=True)
    await expect(confirm).to_be_visible()
    await animation.add(1_800)
    await animation.press(confirm)
    await expect(shop.locator("#who")).to_be_visible()
    await expect(page.locator("#guide")).to_have_attribute("data-state", "done")
    await page.evaluate("document.getElementById('pointer').remove()")
    await animation.add(4_000)
    animation.write(images / f"demo{suffix}.webp")
    await page.screenshot(path=images / f"demo{suffix}.png")

    grace = {"first_name": "Grace", "last_name": "Hopper", "username": "grace_h"}
    user = await (await context.request.post(f"{base_url}/sandbox/users", data=grace)).json()
    await page.goto(f"{base_url}/demo/shop")
    await page.get_by_role("button", name="Sign out").click()
    await page.get_by_role("button", name="Sign in with Telegram").click()
    async with page.expect_popup() as opened:
        await page.get_by_role("link", name="Open Telegram").click()
    own = await opened.value
    await own.set_viewport_size({"width": 420, "height": 800})
    await own.select_option("#user", str(user["id"]))  # This user's chat is empty.
    await own.click("#start")
    await expect(own.locator("[data-buttons] button").last).to_have_text("This wasn’t me")
    await own.screenshot(path=images / f"phone{suffix}.png")
    await context.close()
