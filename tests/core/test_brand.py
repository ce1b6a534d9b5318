"""The files that an operator can use as a logo."""

from tests.core.logos import PNG, SVG

from taproof.core.brand import LOGO_BYTES, Logo, read_logo

IMAGES = {
    PNG: "image/png",
    SVG: "image/svg+xml",
    b"\xef\xbb\xbf" + SVG: "image/svg+xml",
    b'<?xml version="1.0"?>\n' + SVG: "image/svg+xml",
    b"\n<!-- drawn by hand -->\n" + SVG: "image/svg+xml",
    PNG + b"\0" * (LOGO_BYTES - len(PNG)): "image/png",
}
OTHERS = [
    b"",
    b"GIF89a",
    b"\xff\xd8\xff\xe0",
    b"<!doctype html><svg></svg>",
    b"<script>alert(1)</script>",
    b"<?xml version='1.0'?><html/>",
    b"<svg>\xff</svg>",
    PNG + b"\0" * LOGO_BYTES,
]


def test_images_by_their_content() -> None:
    """The type is detected from the content, whatever the file's name; other files are refused."""
    assert {content: read_logo(content) for content in IMAGES} == {
        content: Logo(content, media_type) for content, media_type in IMAGES.items()
    }
    accepted = []
    for content in OTHERS:
        try:
            accepted.append(read_logo(content))
        except ValueError:
            continue
    assert accepted == []
