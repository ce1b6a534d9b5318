"""Return codes: the proof that a sign-in's own browser was opened from the messenger, after Confirm.

The messenger's *Back to …* button opens the return URL with the code in its fragment, which browsers send to no server
(RFC 9110, section 4.2.5). Only the hash of a code is stored.
"""

import base64
import hashlib
import hmac
import re
from typing import Final

from taproof.core.clock import MINUTE
from taproof.core.entropy import Entropy

RETURN_LIFETIME: Final = 5 * MINUTE
"""The time for which a confirmed session waits for its return code, in milliseconds (contract.md, Policy)."""
FRAGMENT: Final = "taproof_return"
"""The name of the parameter in the fragment of the return URL."""
RETURN_CODE_PATTERN: Final = "^[A-Za-z0-9_-]{32}$"
_BYTES: Final = 24
_CODE: Final = re.compile(RETURN_CODE_PATTERN.strip("^$"))


def new_return_code(entropy: Entropy) -> str:
    """Return a new code of 192 random bits."""
    return base64.urlsafe_b64encode(entropy(_BYTES)).decode()


def return_code_hash(code: str) -> bytes:
    """Return the hash under which a code is stored."""
    return hashlib.sha256(code.encode()).digest()


def has_returned(return_hash: bytes | None, return_code: object) -> bool:
    """Return whether `return_code`, any value that a client sent, is the code with this hash."""
    if return_hash is None or not isinstance(return_code, str) or _CODE.fullmatch(return_code) is None:
        return False
    return hmac.compare_digest(return_code_hash(return_code), return_hash)


def return_link(return_url: str, code: str) -> str:
    """Return the link of the *Back to …* button."""
    return f"{return_url}#{FRAGMENT}={code}"
