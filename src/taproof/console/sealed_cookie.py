"""What a browser keeps for the console without being able to read or change it."""

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from taproof.console.access import delete_cookie, read_cookie, set_cookie
from taproof.core.clock import SECOND, Clock
from taproof.core.encryption import Sealer
from taproof.core.entropy import Entropy
from taproof.core.errors import SealBroken

_UNTIL: Final = "until"


class SealedCookie:
    """A cookie with a JSON object, sealed under the master key, that is good for a time and for one purpose.

    Args:
        name: of the cookie; one with another name does not open, whatever it holds.
        seconds: how long it is good. The browser is told so, and not believed.
        sealer: seals it.
        clock: returns the time in ms.
        entropy: returns random bytes.
    """

    def __init__(self, name: str, seconds: int, sealer: Sealer, clock: Clock, entropy: Entropy) -> None:
        self._name = name
        self._seconds = seconds
        self._sealer = sealer
        self._clock = clock
        self._entropy = entropy

    def give(self, request: Request, response: Response, content: Mapping[str, Any], binding: str = "") -> None:
        """Let the browser keep `content`, which can be read under the same `binding` only."""
        text = json.dumps({**content, _UNTIL: self._clock() + self._seconds * SECOND})
        sealed = self._sealer.seal(text, self._place(binding), self._entropy)
        set_cookie(request, response, self._name, base64.urlsafe_b64encode(sealed).decode(), max_age=self._seconds)

    def read(self, request: Request, binding: str = "") -> dict[str, Any]:
        """Return what the browser keeps: {} when that is nothing, is over, or was given under another binding."""
        try:
            sealed = base64.b64decode(read_cookie(request, self._name) or "", altchars=b"-_", validate=True)
            content: dict[str, Any] = json.loads(self._sealer.unseal(sealed, self._place(binding)))
        except (binascii.Error, ValueError, SealBroken):
            return {}
        return content if self._clock() < content.pop(_UNTIL) else {}

    def take_away(self, request: Request, response: Response) -> None:
        """Let the browser forget it."""
        if read_cookie(request, self._name) is not None:
            delete_cookie(request, response, self._name)

    def _place(self, binding: str) -> str:
        return f"console_{self._name}:{binding}"
