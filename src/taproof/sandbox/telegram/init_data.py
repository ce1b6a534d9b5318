"""The signed data that a simulated Mini App receives (https://core.telegram.org/bots/webapps#webappinitdata)."""

import base64
import hmac
import json
from typing import Final
from urllib.parse import quote

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from taproof.core.clock import SECOND, Clock
from taproof.core.entropy import Entropy
from taproof.sandbox.telegram.bots import SandboxBot
from taproof.sandbox.telegram.people import Person

CHAT_TYPES: Final = ("sender", "private", "group", "supergroup", "channel")
"""The values of `chat_type`."""


class InitDataSigner:
    """Signs data with a key of its own, as Telegram does with its own."""

    def __init__(self, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._entropy = entropy
        self._key = Ed25519PrivateKey.from_private_bytes(entropy(32))
        self.public_key: Final = self._key.public_key().public_bytes_raw()

    def sign(
        self, person: Person, bot: SandboxBot, chat_type: str, start_param: str | None, auth_date: int | None
    ) -> str:
        """Return the data for a person who opens the Mini App of a bot.

        The default of `auth_date` (s) is the current time.
        """
        user = {name: value for name, value in person.as_user().items() if name != "is_bot"}
        user["allows_write_to_pm"] = bot.messenger.chat(person.id).has_started
        fields = {
            # Telegram's own JSON escapes the slash.
            "user": json.dumps(user, ensure_ascii=False, separators=(",", ":")).replace("/", "\\/"),
            "chat_instance": str(int.from_bytes(self._entropy(8)) >> 1),
            "chat_type": chat_type,
            **({} if start_param is None else {"start_param": start_param}),
            "auth_date": str(self._clock() // SECOND if auth_date is None else auth_date),
        }
        signature = self._key.sign(f"{bot.id}:WebAppData\n{_checked_text(fields)}".encode())
        fields["signature"] = base64.urlsafe_b64encode(signature).rstrip(b"=").decode()
        # Unlike the signature, the hash covers the signature.
        secret = hmac.digest(b"WebAppData", bot.token.encode(), "sha256")
        fields["hash"] = hmac.new(secret, _checked_text(fields).encode(), "sha256").hexdigest()
        return "&".join(f"{name}={quote(value, safe='')}" for name, value in fields.items())


def _checked_text(fields: dict[str, str]) -> str:
    return "\n".join(f"{name}={value}" for name, value in sorted(fields.items()))
