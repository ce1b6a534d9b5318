"""Match codes: a number that the page shows, to be picked out of three in the messenger.

Who was only sent a link does not know the number, so a tap that is made without looking is wrong two times of three.
It does not stop an attacker who tells the victim the number meanwhile (docs/explanation/threat-model.md).
"""

from typing import Final

from taproof.core.entropy import Entropy

CHOICES: Final = 3
_LOWEST: Final = 10
_CODES: Final = 90
"""Two digits, none of which is a leading zero: they read alike in every language."""


def new_match_code(entropy: Entropy) -> tuple[str, tuple[str, ...]]:
    """Return a code, and three different ones in random order, of which it is one."""
    codes: list[int] = []
    while len(codes) < CHOICES:
        # By 32 bits, of which 90 takes an equal share to one part in 47 million.
        code = _LOWEST + int.from_bytes(entropy(4)) % _CODES
        if code not in codes:
            codes.append(code)
    right = codes[int.from_bytes(entropy(4)) % CHOICES]
    return str(right), tuple(map(str, codes))
