"""A stand-in for the service: the session endpoints of a project whose `same_device` is `require`.

tests/slow/sdk_js/test_relays.py has the real service and messenger. Here, a test chooses each answer.
"""

import asyncio
import hashlib
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import Any

from aiohttp import web


def error(status: int, code: str) -> web.Response:
    return web.json_response({"error": f"{code}."}, status=status, headers={"X-Error-Code": code})


@dataclass
class Session:
    challenge: str
    return_url: str
    match_code: str | None
    status: str = "pending"
    hint: str = "waiting"
    return_code: str | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def become(self, hint: str, status: str = "pending") -> None:
        self.status, self.hint = status, hint
        self.changed.set()
        self.changed = asyncio.Event()

    def confirm(self) -> str:
        """Confirm as the user; return the address that *Back to …* opens."""
        self.return_code = token_urlsafe(24)
        self.become("return")
        return f"{self.return_url}#taproof_return={self.return_code}"


@dataclass
class StandIn:
    """Set `answer` as the `mode` of the proxy.

    Args:
        proof: what a finished sign-in gets.
        accepts_return: whether generate accepts a `return_url`.
        returns: what generate answers about it; of another policy, if a test changes this.
    """

    proof: str = "eyJ.proof.x"
    accepts_return: bool = True
    returns: dict[str, bool] = field(default_factory=lambda: {"return_required": True})
    match_code: str | None = None
    sessions: dict[str, Session] = field(default_factory=dict)

    @property
    def last(self) -> Session:
        return list(self.sessions.values())[-1]

    async def answer(self, verb: str, body: dict[str, Any]) -> web.Response:
        if verb == "generate":
            return self._generate(body)
        session = self.sessions.get(body["session_token"])
        digest = hashlib.sha256(body["code_verifier"].encode()).digest()
        if session is None or session.challenge != urlsafe_b64encode(digest).rstrip(b"=").decode():
            return error(404, "session_not_found")
        if verb == "cancel":
            if session.status == "pending":
                session.become(session.hint, "cancelled")
            return web.json_response({"status": session.status})
        is_finished = session.return_code is not None and body.get("return_code") == session.return_code
        if not is_finished and session.status == "pending" and session.hint == body["seen_hint"] and body["wait"]:
            await session.changed.wait()
        if is_finished and session.status in {"pending", "used"}:
            session.become("return", "used")
            user = {"messenger_id": "1001", "messenger_name": "Ada", "messenger_username": None}
            confirmed = {"status": "confirmed", **user, "proof": self.proof, "confirmed_at": "2026-11-20T22:44:03.127Z"}
            return web.json_response(confirmed)
        if session.status == "pending":
            return web.json_response({"status": "pending", "hint": session.hint})
        return web.json_response({"status": session.status})

    def _generate(self, body: dict[str, Any]) -> web.Response:
        if not self.accepts_return and "return_url" in body:
            return error(400, "return_url_not_allowed")
        token = token_urlsafe(32)
        self.sessions[token] = Session(body["code_challenge"], body.get("return_url", ""), self.match_code)
        answer = {"session_token": token, "deeplink": f"https://t.me/shop_bot?start={token}"}
        answer |= {} if self.match_code is None else {"match_code": self.match_code}
        return web.json_response(answer | (self.returns if "return_url" in body else {}))
