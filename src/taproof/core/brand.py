"""The name and the logo that an operator gives the console and the hosted pages."""

from typing import Final, NamedTuple

LOGO_BYTES: Final = 64 * 1024
"""The maximum size of a logo."""
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_SVG_STARTS: Final = ("<svg", "<?xml", "<!--")


class Logo(NamedTuple):
    """An image with its media type."""

    content: bytes
    media_type: str


class Brand(NamedTuple):
    """The operator's name and logo. `logo` is None for the software's own."""

    name: str = "Taproof"
    logo: Logo | None = None


def read_logo(content: bytes) -> Logo:
    """Return an image. Raise ValueError if it is larger than `LOGO_BYTES`, or neither a PNG nor an SVG file.

    Browsers run no script of an SVG file that a page shows as an image, and its response forbids scripts too.
    """
    if len(content) > LOGO_BYTES:
        raise ValueError("too large")
    if content.startswith(_PNG):
        return Logo(content, "image/png")
    text = content.decode("utf-8-sig").lstrip()
    if text.startswith(_SVG_STARTS) and "<svg" in text:
        return Logo(content, "image/svg+xml")
    raise ValueError("not an image")
