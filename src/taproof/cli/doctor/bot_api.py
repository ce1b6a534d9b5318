"""Check that the Bot API accepts the bot token, the bot's settings, that updates arrive, and that the clocks agree."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
from pydantic import ValidationError

from taproof.cli.doctor.finding import Finding, from_sentences, ok, problem, warning
from taproof.config.logging import redact_text
from taproof.config.options import called, no_messenger
from taproof.config.settings import BOT_API, WEBHOOK_PATH, Settings
from taproof.core.clock import SECOND, Clock
from taproof.core.names import visible_name
from taproof.core.webhook_url import is_loopback
from taproof.messengers.telegram.bot_settings import missing_updates, wrong_settings
from taproof.messengers.telegram.outbound import name_failure, session_options
from taproof.messengers.telegram.types import BotFullInfo, WebhookInfo
from taproof.sdk.environment_proxy import EnvironmentProxy, UnusableProxy, find_proxy
from taproof.sdk.http_request import client_context

_ANSWER_LIMIT: Final = 64 * 1024
_SKEW: Final = 30 * SECOND
_MANY_WAITING: Final = 1_000
"""More updates than wait after a short outage."""
_WEBHOOK_PORTS: Final = frozenset({443, 80, 88, 8443})
"""The only ports that the Bot API posts updates to (core.telegram.org/bots/webhooks)."""


@dataclass(frozen=True, slots=True)
class _BotApiAnswer:
    """A Bot API answer; `skew` is how far this machine's clock is ahead, in ms."""

    status: int
    body: dict[str, Any]
    skew: int | None

    @property
    def result(self) -> dict[str, Any]:
        found = self.body.get("result")
        return found if isinstance(found, dict) else {}


async def check_messenger(
    settings: Settings, environment: Mapping[str, str], clock: Clock, seconds: float = 5
) -> list[Finding]:
    """Check the bot with at most two Bot API calls, each of which may take `seconds`. In the sandbox, make none."""
    if settings.sandbox:
        return [ok("messenger", "the sandbox, which needs no bot token and no network")]
    if not settings.needs_bot:
        return [ok("messenger", f"not used by a node with {called('role')} {settings.role}")]
    if settings.bot_token is None:
        return [from_sentences("messenger", "problem", no_messenger(settings.role, settings.bot_updates))]
    try:
        proxy = find_proxy(settings.bot_api_url, environment)
    except UnusableProxy as error:
        return [from_sentences("messenger", "problem", str(error))]
    connector = aiohttp.TCPConnector(ssl=client_context())
    timeout = aiohttp.ClientTimeout(total=seconds)
    try:
        async with aiohttp.ClientSession(timeout=timeout, connector=connector, **session_options(proxy)) as client:
            me = await _ask(client, settings, "getMe", clock)
            webhook = await _ask(client, settings, "getWebhookInfo", clock) if me.body.get("ok") is True else None
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        reason = _without_token(str(error) if isinstance(error, ValueError) else name_failure(error, proxy), settings)
        advice = f"Check the network, the firewall, {'the proxy, ' if proxy else ''}and {called('bot_api_url')}."
        return [problem("messenger", f"{settings.bot_api_url} cannot be used: {reason}", advice)]
    checks = [_check_bot(settings, me, proxy)]
    if webhook is not None:
        checks += [*_check_bot_settings(me), _check_updates(settings, webhook)]
    checks.append(_check_clock(me))
    return checks


async def _ask(client: aiohttp.ClientSession, settings: Settings, method: str, clock: Clock) -> _BotApiAnswer:
    token = settings.service_bot_token
    folder = "test/" if settings.telegram_environment == "test" else ""
    address = f"{settings.bot_api_url}/bot{token}/{folder}{method}"
    asked = clock()
    async with client.get(address, allow_redirects=False) as answer:
        answered = clock()
        content = b""
        async for chunk in answer.content.iter_any():
            content += chunk
            if len(content) > _ANSWER_LIMIT:
                raise ValueError("the response is too long for the Bot API")
        skew = _skew(answer.headers.get("Date"), (asked + answered) // 2)
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict) or "ok" not in body:
        raise ValueError(f"the response (HTTP status {answer.status}) is not from the Bot API")
    return _BotApiAnswer(answer.status, body, skew)


def _skew(date: str | None, now: int) -> int | None:
    try:
        server_time = parsedate_to_datetime(date or "")
    except ValueError:
        return None
    # A Date header has no fraction, so on average it is half a second late (RFC 9110, section 5.6.7).
    return now - (int(server_time.timestamp() * SECOND) + SECOND // 2)


def _check_bot(settings: Settings, me: _BotApiAnswer, proxy: EnvironmentProxy | None) -> Finding:
    if me.body["ok"] is not True:
        if me.status in {401, 404}:
            advice = f"Copy it again from @BotFather into {called('bot_token')}."
            return problem("messenger", "the Bot API does not recognise this bot token", advice)
        said = _said(me.body.get("description"), settings)
        return problem("messenger", f"getMe failed: {said}", "Try again in a minute.")
    name = f"the bot is @{_said(me.result.get('username'), settings)}"
    if proxy is not None:
        name += f", reached through the proxy {proxy}"
    api = urlsplit(settings.bot_api_url)
    if api.scheme == "http" and not is_loopback(api.hostname or ""):
        detail = f"{name}, but its token is sent over plain HTTP to {settings.bot_api_url}"
        return warning("messenger", detail, "Keep that network private, or put TLS in front of the Bot API server.")
    return ok("messenger", name)


def _check_bot_settings(me: _BotApiAnswer) -> list[Finding]:
    try:
        found = wrong_settings(BotFullInfo.model_validate(me.result))
    except ValidationError:
        advice = f"Check {called('bot_api_url')}: the answer is not the Bot API's."
        return [problem("bot settings", "getMe does not describe a bot", advice)]
    return [
        (problem if each.is_fatal else warning)("bot settings", f"{each.name}: {each.detail}", each.advice)
        for each in found
    ] or [ok("bot settings", "as Taproof needs them")]


def _check_updates(settings: Settings, webhook: _BotApiAnswer) -> Finding:
    url = str(webhook.result.get("url") or "")
    waiting = webhook.result.get("pending_update_count")
    if webhook.body["ok"] is not True:
        said = _said(webhook.body.get("description"), settings)
        return problem("updates", f"getWebhookInfo failed: {said}", "Try again in a minute.")
    if isinstance(waiting, int) and waiting > _MANY_WAITING:
        advice = "Nobody receives them, or too slowly: see the log of taproof serve, and taproof status."
        return warning("updates", f"{waiting} are waiting", advice)
    if settings.bot_updates == "polling":
        if not url:
            return ok("updates", f"polled, {waiting} waiting")
        return warning(
            "updates",
            f"sent to a webhook at {_said(urlsplit(url).netloc, settings)}, but {called('bot_updates')} is polling",
            "taproof serve will remove that webhook. If another installation uses it, use a separate bot for each.",
        )
    wanted = f"{settings.base_url}{WEBHOOK_PATH}"
    if settings.bot_api_url == BOT_API and (urlsplit(wanted).port or 443) not in _WEBHOOK_PORTS:
        advice = f"Use 443, 80, 88 or 8443 in {called('base_url')}, or use polling."
        return problem("updates", f"the messenger does not post to port {urlsplit(wanted).port}", advice)
    if url != wanted:
        now = _said(urlsplit(url).netloc, settings) if url else "not set"
        advice = "taproof serve sets the webhook when it starts. If it is already running, see its log."
        return warning("updates", f"the webhook is {now}, not {wanted}", advice)
    if missing := _missing_updates(webhook):
        return problem(
            "updates",
            f"the messenger does not send these kinds to the webhook: {', '.join(missing)}",
            "Another program has set the webhook: stop it. taproof serve sets it again within a minute.",
        )
    if error := webhook.result.get("last_error_message"):
        return warning(
            "updates",
            f"the webhook is set, {waiting} waiting; the last failure was: {_said(error, settings)}",
            "If this failure is recent, check that the messenger can reach this address and trusts its certificate.",
        )
    return ok("updates", f"the webhook is set, {waiting} waiting")


def _missing_updates(webhook: _BotApiAnswer) -> Sequence[str]:
    try:
        return missing_updates(WebhookInfo.model_validate(webhook.result))
    except ValidationError:
        return []


def _check_clock(answer: _BotApiAnswer) -> Finding:
    if answer.skew is None:
        return warning("clock", "the Bot API did not send its time", "Compare the clock with: date -u")
    seconds = abs(answer.skew) / SECOND
    if abs(answer.skew) <= _SKEW:
        return ok("clock", f"within {max(1, round(seconds))} s of the messenger's")
    side = "ahead of" if answer.skew > 0 else "behind"
    advice = "Turn on time synchronisation: timedatectl set-ntp true. Proofs and expiry depend on it."
    return problem("clock", f"this machine is {seconds:.0f} s {side} the messenger", advice)


def _said(text: object, settings: Settings) -> str:
    """Return text from the messenger, made safe to print."""
    return visible_name(_without_token(str(text), settings))[:200]


def _without_token(text: str, settings: Settings) -> str:
    token = settings.service_bot_token
    return redact_text(text.replace(token, "<token>") if token else text)
