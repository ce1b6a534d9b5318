"""Match codes: the sign-in page shows a number, and the user picks it out of three in the messenger.

A user who only received a link does not know the number, so a careless tap is wrong two times out of three. It does not
stop an attacker who sends the number to the victim (docs/explanation/threat-model.md).
"""

from typing import Final

from taproof.core.entropy import Entropy

CHOICES: Final = 3
_LOWEST: Final = 10
_CODES: Final = 90
"""Two-digit numbers without a leading zero, because every user can read them."""


def new_match_code(entropy: Entropy) -> tuple[str, tuple[str, ...]]:
    """Return a code, and three different codes in random order that include it."""
    codes: list[int] = []
    while len(codes) < CHOICES:
        # 32 random bits, so that the 90 codes are equally likely to one part in 47 million.
        code = _LOWEST + int.from_bytes(entropy(4)) % _CODES
        if code not in codes:
            codes.append(code)
    right = codes[int.from_bytes(entropy(4)) % CHOICES]
    return str(right), tuple(map(str, codes))
