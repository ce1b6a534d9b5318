"""Too many attempts to sign in are refused with a page (docs: Limits)."""

from typing import Any

import pytest
import segno
from tests.console.browsing import Shown
from tests.console.conftest import Installation

SIGN_IN = "/console/sign-in"
ADA, GRACE = "203.0.113.7", "198.51.100.9"


def assert_refused(shown: Shown) -> None:
    assert shown.status == 429
    assert shown.response.headers["retry-after"] == "3"
    assert "Too many requests. Try again in 3 seconds." in shown.text
    assert shown.response.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (SIGN_IN, {"next": ""}),
        (f"{SIGN_IN}/token", {"next": "", "access_token": "tap_x"}),
        ("/console/invite", {"code": "x"}),
    ],
)
async def test_too_many_tries_of_one_address(console: Installation, path: str, fields: dict[str, str]) -> None:
    """Twenty attempts at once, then one each three seconds; other addresses and this machine are not affected."""
    ada = await console.browser(ADA)
    for _ in range(20):
        assert (await ada.post(path, fields)).status != 429
    assert_refused(await ada.post(path, fields))
    assert_refused(await (await console.browser(ADA)).post(path, fields))
    assert (await ada.get(SIGN_IN)).status == 200, "only attempts are counted"
    assert (await (await console.browser(GRACE)).post(path, fields)).status != 429
    here = await console.browser()
    for _ in range(25):
        assert (await here.post(path, fields)).status != 429
    console.clock.now += 3_000
    assert (await ada.post(path, fields)).status != 429
    assert_refused(await ada.post(path, fields))


async def test_a_qr_code_is_drawn_once(console: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    """The QR code is drawn when the sign-in starts, which is limited, not on each view of the waiting page."""
    drawn = []
    make_qr = segno.make_qr

    def noting(content: str, **options: Any) -> segno.QRCode:
        drawn.append(content)
        return make_qr(content, **options)

    monkeypatch.setattr(segno, "make_qr", noting)
    ada = await console.browser(ADA)
    waiting = await ada.follow(await ada.post(SIGN_IN, {"next": ""}))
    for _ in range(10):
        assert (await ada.get(waiting.response.url.path)).all(".//svg[@class='qr-code']")
    assert len(drawn) == 1
