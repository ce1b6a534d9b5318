"""The doctor's look at the Bot API: does it know the bot, where do updates go, and do the clocks agree."""

import json
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp

from taproof.cli.doctor.finding import Finding, from_sentences
from taproof.config.logging import redact_text
from taproof.config.options import called, no_messenger
from taproof.config.settings import BOT_API, WEBHOOK_PATH, Settings
from taproof.core.clock import SECOND, Clock
from taproof.core.names import visible_name
from taproof.core.webhook_url import is_loopback

_TIMEOUT: Final = aiohttp.ClientTimeout(total=5)
_ANSWER_LIMIT: Final = 64 * 1024
_SKEW: Final = 30 * SECOND
_WEBHOOK_PORTS: Final = frozenset({443, 80, 88, 8443})
"""The only ports that the Bot API posts updates to (core.telegram.org/bots/webhooks)."""


@dataclass(frozen=True, slots=True)
class _BotApiAnswer:
    """What the Bot API said; `skew` is how far this machine's clock is ahead of it, in ms."""

    status: int
    body: dict[str, Any]
    skew: int | None

    @property
    def result(self) -> dict[str, Any]:
        found = self.body.get("result")
        return found if isinstance(found, dict) else {}


async def check_messenger(settings: Settings, clock: Clock) -> list[Finding]:
    """Ask the Bot API, twice at most; in the sandbox nothing is asked."""
    if settings.sandbox:
        return [Finding("messenger", "ok", "the sandbox's own: no bot token and no network are needed")]
    if not settings.needs_bot:
        return [Finding("messenger", "ok", f"not called by a node with {called('role')} {settings.role}")]
    if settings.bot_token is None:
        return [from_sentences("messenger", "problem", no_messenger(settings.role, settings.bot_updates))]
    try:
        async with aiohttp.ClientSession(timeout=_TIMEOUT) as client:
            me = await _ask(client, settings, "getMe", clock)
            webhook = await _ask(client, settings, "getWebhookInfo", clock) if me.body.get("ok") is True else None
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        trouble = "no answer within 5 s" if isinstance(error, TimeoutError) else _without_token(str(error), settings)
        return [
            Finding(
                "messenger",
                "problem",
                f"{settings.bot_api_url} cannot be asked: {trouble}",
                f"Check the network, the firewall and {called('bot_api_url')}.",
            )
        ]
    checks = [_check_bot(settings, me)]
    if webhook is not None:
        checks.append(_check_updates(settings, webhook))
    checks.append(_check_clock(me))
    return checks


async def _ask(client: aiohttp.ClientSession, settings: Settings, method: str, clock: Clock) -> _BotApiAnswer:
    token = settings.bot_token.get_secret_value() if settings.bot_token else ""
    address = f"{settings.bot_api_url}/bot{token}/{method}"
    asked = clock()
    async with client.get(address, allow_redirects=False) as answer:
        answered = clock()
        content = b""
        async for chunk in answer.content.iter_any():
            content += chunk
            if len(content) > _ANSWER_LIMIT:
                raise ValueError("the answer is too long to be the Bot API's")
        skew = _skew(answer.headers.get("Date"), (asked + answered) // 2)
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict) or "ok" not in body:
        raise ValueError(f"the answer (HTTP status {answer.status}) is not the Bot API's")
    return _BotApiAnswer(answer.status, body, skew)


def _skew(date: str | None, now: int) -> int | None:
    try:
        told = parsedate_to_datetime(date or "")
    except ValueError:
        return None
    # A Date header is cut to the second, so it lies half a second back on average (RFC 9110, section 5.6.7).
    return now - (int(told.timestamp() * SECOND) + SECOND // 2)


def _check_bot(settings: Settings, me: _BotApiAnswer) -> Finding:
    if me.body["ok"] is not True:
        if me.status in {401, 404}:
            return Finding(
                "messenger",
                "problem",
                "the Bot API does not know this bot token",
                f"Copy it again from @BotFather into {called('bot_token')}.",
            )
        said = _said(me.body.get("description"), settings)
        return Finding("messenger", "problem", f"getMe failed: {said}", "Try again in a minute.")
    name = f"the bot is @{_said(me.result.get('username'), settings)}"
    if urlsplit(settings.bot_api_url).scheme == "http" and not is_loopback(
        urlsplit(settings.bot_api_url).hostname or ""
    ):
        return Finding(
            "messenger",
            "warning",
            f"{name}, but its token goes over plain HTTP to {settings.bot_api_url}",
            "Keep that network private, or put TLS in front of the Bot API server.",
        )
    return Finding("messenger", "ok", name)


def _check_updates(settings: Settings, webhook: _BotApiAnswer) -> Finding:
    url = str(webhook.result.get("url") or "")
    waiting = webhook.result.get("pending_update_count")
    if webhook.body["ok"] is not True:
        said = _said(webhook.body.get("description"), settings)
        return Finding("updates", "problem", f"getWebhookInfo failed: {said}", "Try again in a minute.")
    if settings.bot_updates == "polling":
        if not url:
            return Finding("updates", "ok", f"polled, {waiting} waiting")
        return Finding(
            "updates",
            "warning",
            f"they go to a webhook at {_said(urlsplit(url).netloc, settings)}, but {called('bot_updates')} is polling",
            "taproof serve will take that webhook away. If another installation uses it, give each its own bot.",
        )
    wanted = f"{settings.base_url}{WEBHOOK_PATH}"
    if settings.bot_api_url == BOT_API and (urlsplit(wanted).port or 443) not in _WEBHOOK_PORTS:
        return Finding(
            "updates",
            "problem",
            f"the messenger does not post to port {urlsplit(wanted).port}",
            f"Use 443, 80, 88 or 8443 in {called('base_url')}, or poll.",
        )
    if url != wanted:
        now = f"to {_said(urlsplit(url).netloc, settings)}" if url else "nowhere"
        return Finding(
            "updates",
            "warning",
            f"the webhook leads {now}, not to {wanted}",
            "taproof serve sets it when it starts. If it runs already, see its log.",
        )
    if trouble := webhook.result.get("last_error_message"):
        return Finding(
            "updates",
            "warning",
            f"the webhook is set, {waiting} waiting; the last failure was: {_said(trouble, settings)}",
            "If that is recent, check that the messenger reaches this address and trusts its certificate.",
        )
    return Finding("updates", "ok", f"the webhook is set, {waiting} waiting")


def _check_clock(answer: _BotApiAnswer) -> Finding:
    if answer.skew is None:
        return Finding("clock", "warning", "the Bot API did not tell the time", "Compare it by hand with: date -u")
    seconds = abs(answer.skew) / SECOND
    if abs(answer.skew) <= _SKEW:
        return Finding("clock", "ok", f"within {max(1, round(seconds))} s of the messenger's")
    side = "ahead of" if answer.skew > 0 else "behind"
    return Finding(
        "clock",
        "problem",
        f"this machine is {seconds:.0f} s {side} the messenger",
        "Turn time synchronisation on: timedatectl set-ntp true. Proofs and expiry depend on it.",
    )


def _said(text: object, settings: Settings) -> str:
    """Return what a remote end said, as it may be printed."""
    return visible_name(_without_token(str(text), settings))[:200]


def _without_token(text: str, settings: Settings) -> str:
    token = settings.bot_token.get_secret_value() if settings.bot_token else ""
    return redact_text(text.replace(token, "<token>") if token else text)
