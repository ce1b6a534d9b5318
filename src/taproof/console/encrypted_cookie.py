"""Cookies whose content the browser can neither read nor change."""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from taproof.core.clock import SECOND, Clock
from taproof.core.encryption import Encryptor
from taproof.core.entropy import Entropy
from taproof.core.errors import DecryptionFailed
from taproof.http.cookies import delete_cookie, read_cookie, set_cookie

_UNTIL: Final = "until"


@dataclass(frozen=True, slots=True)
class EncryptedCookie:
    """A cookie that contains a JSON object, encrypted with the master key, for a limited time and one purpose."""

    name: str
    """Part of the associated data, so that content from a cookie with another name cannot be read."""
    seconds: int
    """The lifetime. It is sent to the browser and also checked on each read."""
    encryptor: Encryptor
    clock: Clock
    entropy: Entropy

    def give(self, request: Request, response: Response, content: Mapping[str, Any], associated_data: str = "") -> None:
        """Store `content` in the browser; it can be read only with the same `associated_data`."""
        text = json.dumps({**content, _UNTIL: self.clock() + self.seconds * SECOND})
        encrypted = self.encryptor.encrypt(text, self._associated_data(associated_data), self.entropy)
        set_cookie(request, response, self.name, base64.urlsafe_b64encode(encrypted).decode(), max_age=self.seconds)

    def read(self, request: Request, associated_data: str = "") -> dict[str, Any]:
        """Return the stored content: {} if there is none, it has expired, or `associated_data` differs."""
        try:
            encrypted = base64.b64decode(read_cookie(request, self.name) or "", altchars=b"-_", validate=True)
            content: dict[str, Any] = json.loads(
                self.encryptor.decrypt(encrypted, self._associated_data(associated_data))
            )
        except (binascii.Error, ValueError, DecryptionFailed):
            return {}
        return content if self.clock() < content.pop(_UNTIL) else {}

    def take_away(self, request: Request, response: Response) -> None:
        """Delete the cookie from the browser."""
        if read_cookie(request, self.name) is not None:
            delete_cookie(request, response, self.name)

    def _associated_data(self, given: str) -> str:
        return f"console_{self.name}:{given}"
