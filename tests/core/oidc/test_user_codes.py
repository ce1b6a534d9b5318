"""The codes that a user types (RFC 8628, sections 5.1 and 6.1)."""

from functools import partial

import pytest

from taproof.core.entropy import system_entropy
from taproof.core.oidc.user_codes import ALPHABET, LENGTH, new_user_code, read_user_code, show_user_code


def _repeated(byte: int, size: int) -> bytes:
    return bytes([250, byte] * size)


def test_a_code_in_every_spelling(subtests: pytest.Subtests) -> None:
    """Case, spaces, hyphens and dots do not matter."""
    for typed in (
        "WDJB-MJHT",
        "wdjbmjht",
        "WDJB MJHT",
        " wdjb-mjht ",
        "W.D.J.B.M.J.H.T",
        "WDJB\u2010MJHT",
        "wdjb\u2013mjht",
    ):
        with subtests.test(typed=typed):
            assert read_user_code(typed) == "WDJBMJHT"
    for typed in (
        "",
        "WDJB",
        "WDJB-MJHTX",
        "WDJB-MJHA",
        "WDJB-MJH1",
        "WDJB/MJHT",
        "WDJBMJH\x00",
        " " * 64 + "WDJBMJHT",
    ):
        with subtests.test(typed=typed):
            assert read_user_code(typed) is None


def test_new_codes() -> None:
    """A new code has eight letters of the alphabet, can be typed as shown, and is not predictable."""
    codes = {new_user_code(system_entropy) for _ in range(100)}
    assert len(codes) == 100
    for code in codes:
        assert len(code) == LENGTH
        assert read_user_code(show_user_code(code)) == code


def test_every_letter_is_equally_likely() -> None:
    """Each letter belongs to 12 bytes; the remaining 16 bytes, which would prefer some letters, are skipped."""
    letters = [new_user_code(partial(_repeated, byte))[0] for byte in range(240)]
    assert {letter: letters.count(letter) for letter in ALPHABET} == dict.fromkeys(ALPHABET, 12)
