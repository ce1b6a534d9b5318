"""Draw the QR code of a link for a page."""

import functools
from typing import Final

import segno
from markupsafe import Markup

_CACHED: Final = 1024
"""The number of drawings that a process keeps for pending sign-ins, at 2 KB each."""


def qr_code(link: str, label: str = "QR code of the link") -> Markup:
    """Draw `link` as a QR code in SVG, with a white margin so that it can also be scanned from a dark page.

    `label` describes the drawing to screen readers.
    """
    return Markup('<svg role="img" aria-label="{}"{}').format(label, _rest_of_svg(link))


def qr_code_file(link: str) -> bytes:
    """Draw `link` as an SVG file."""
    return f'<svg xmlns="http://www.w3.org/2000/svg"{_rest_of_svg(link)}'.encode()


@functools.lru_cache(maxsize=_CACHED)
def _rest_of_svg(link: str) -> Markup:
    # Drawing blocks the event loop, so each link is drawn once, with a fixed mask. Trying all eight masks takes 6 ms.
    drawing = segno.make_qr(link, error="l", boost_error=False, mask=0)
    drawn = drawing.svg_inline(omitsize=True, svgclass="qr-code", lineclass=None, dark="#000")
    tag, _, dark = drawn.removeprefix("<svg").partition(">")
    # For a `light` background, segno would compile a pattern.
    size, _ = drawing.symbol_size()
    light = f'<path fill="#fff" d="M0 0h{size}v{size}h-{size}z"/>'
    # Safe without escaping: the SVG contains only digits and fixed names, not `link` itself.
    return Markup(f"{tag}>{light}{dark}")  # noqa: S704
