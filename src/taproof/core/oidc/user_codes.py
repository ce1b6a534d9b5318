"""The codes that a user types to sign in a device (RFC 8628, section 6.1)."""

from typing import Final

from taproof.core.entropy import Entropy

ALPHABET: Final = "BCDFGHJKLMNPQRSTVWXZ"
"""Letters that spell no words and do not look alike. Eight of them hold 34 bits."""
LENGTH: Final = 8
_SEPARATORS: Final = str.maketrans("", "", " -\N{HYPHEN}\N{EN DASH}_.")


def new_user_code(entropy: Entropy) -> str:
    """Return a new code of eight letters, without the hyphen."""
    # A byte below 240 maps to each of the 20 letters equally often.
    letters: list[str] = []
    while len(letters) < LENGTH:
        letters += [ALPHABET[byte % 20] for byte in entropy(16) if byte < 240]
    return "".join(letters[:LENGTH])


def read_user_code(typed: str) -> str | None:
    """Return the code that a user typed, in any case and with any separators; None if it cannot be one."""
    code = typed[:64].translate(_SEPARATORS).upper()
    return code if len(code) == LENGTH and all(letter in ALPHABET for letter in code) else None


def show_user_code(code: str) -> str:
    """Return a code as it is displayed: `WDJB-MJHT`."""
    return f"{code[:4]}-{code[4:]}"
