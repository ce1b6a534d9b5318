"""Run the messenger's side of a process: its bot, the project bots, and the endpoints for updates."""

import asyncio
import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from taproof.config.settings import WEBHOOK_PATH, Settings
from taproof.core.clock import MINUTE, system_clock
from taproof.core.errors import DecryptionFailed
from taproof.core.rate_limit import Rate
from taproof.core.service_bot import SERVICE_BOT
from taproof.messengers.reply_limits import ReplyLimits
from taproof.messengers.telegram.account_watch import ServiceBotWatch
from taproof.messengers.telegram.bot_api import Bot, TelegramAPIError
from taproof.messengers.telegram.bot_settings import ASK_SECONDS, check_settings
from taproof.messengers.telegram.commands import announce_commands
from taproof.messengers.telegram.connection import Reconnection
from taproof.messengers.telegram.ended_prompts import EndedPrompts
from taproof.messengers.telegram.handlers import Conversation
from taproof.messengers.telegram.polling import LongPolling
from taproof.messengers.telegram.project_bot_webhooks import ProjectBotWebhooks
from taproof.messengers.telegram.project_bots import PACE_SECONDS, ProjectBots
from taproof.messengers.telegram.signed_buttons import PURPOSE, ButtonSigner
from taproof.messengers.telegram.updates import UpdateIntake
from taproof.messengers.telegram.user_control import user_control_handlers
from taproof.messengers.telegram.webhook import WebhookEndpoint, keep_webhook
from taproof.runtime.services import Services
from taproof.service.bots import Bots
from taproof.service.user_control import UserControl

_UNHURRIED: Final = Rate(100_000, MINUTE)


@dataclass(frozen=True, slots=True)
class BotRuntime:
    """The bot of this process, and everything that receives its updates."""

    bot: Bot
    watch: ServiceBotWatch
    """Keeps the bot's links up to date, in every process that has its token."""
    webhook: WebhookEndpoint
    """Answers the messenger's webhook calls, if updates arrive by webhook."""
    project_bots: ProjectBots
    """Runs the project bots, in the one process that holds the lease."""
    project_bot_webhooks: ProjectBotWebhooks
    """The same as `webhook`, for project bots. It works in any process."""
    ended_prompts: EndedPrompts
    """Edits the prompts of sessions that their application cancelled. It works in any process."""
    _polled: UpdateIntake
    """Handles the updates that are received by long polling."""
    _webhook_secrets: Callable[[], list[str]]
    """The webhook secrets: the messenger gets the first; the others are valid while the master key is rotated."""
    _settings: Settings
    _show_failing: Callable[[int], None]

    async def receive_updates(self, since: int) -> None:
        """Receive updates until cancelled, by polling or webhook. No other process has polled since `since` (ms)."""
        preparing = asyncio.create_task(self._prepare())
        try:
            await self._receive_updates(since)
        finally:
            preparing.cancel()
            self._show_failing(0)  # Another process receives the updates now.

    async def _receive_updates(self, since: int) -> None:
        reconnection = Reconnection(self._show_failing)
        if self._settings.bot_updates == "polling":
            await LongPolling(self.bot, self._polled, since, reconnection).run()
        else:
            url = f"{self._settings.base_url}{WEBHOOK_PATH}"
            await keep_webhook(self.bot, url, self._webhook_secrets, reconnection)

    async def _prepare(self) -> None:
        # The task that receives the updates logs why the messenger cannot be reached.
        with contextlib.suppress(TelegramAPIError):
            await check_settings(self.bot, await self.bot.get_me(seconds=ASK_SECONDS))
        await announce_commands(self.bot)


def connect_messenger(settings: Settings, services: Services, token: str) -> BotRuntime:
    """Return the messenger's side of this process, with the service's bot that has this token."""
    storage, encryptor, decisions = services.storage, services.encryptor, services.decisions
    tracing = services.tracing
    bot = Bot(services.bot_api, token)
    handlers = user_control_handlers(UserControl(storage, decisions, system_clock), decisions)
    # A developer who tries the sandbox signs in repeatedly, as the same few users.
    limits = ReplyLimits(system_clock, _UNHURRIED, _UNHURRIED) if settings.sandbox else ReplyLimits(system_clock)
    signer = ButtonSigner(functools.partial(encryptor.derive_all, PURPOSE))
    conversation = Conversation(
        decisions, signer, system_clock, handlers, limits, prompts=services.prompts, managed_bots=services.managed_bots
    )
    make_intake = functools.partial(
        UpdateIntake,
        react=conversation.on_update,
        claims=storage.bots,
        clock=system_clock,
        observe_tap=services.metrics.observe_tap,
        count_refused_tap=services.metrics.count_refused_tap,
    )
    intake = make_intake(bot)
    secrets = functools.partial(encryptor.derive_all, f"telegram webhook secret {bot.id}")

    def connect(project_bot_token: str) -> Bot:
        return Bot(services.bot_api, project_bot_token)

    def project_bot_intake(project_bot: Bot) -> UpdateIntake:
        return make_intake(project_bot, bot_id=project_bot.id)

    def project_bot_secrets(bot_id: int) -> list[str]:
        return encryptor.derive_all(f"telegram webhook secret of project bot {bot_id}")

    async def receive(project_bot: Bot, reconnection: Reconnection) -> None:
        if settings.bot_updates == "polling":
            updates = tracing.updates(project_bot_intake(project_bot))
            await LongPolling(project_bot, updates, system_clock(), reconnection, pace=PACE_SECONDS).run()
        else:
            url = f"{settings.base_url}{WEBHOOK_PATH}/{project_bot.id}"
            await keep_webhook(project_bot, url, functools.partial(project_bot_secrets, project_bot.id), reconnection)

    return BotRuntime(
        bot=bot,
        watch=ServiceBotWatch(
            bot, token, services.bots, know=services.deeplinks.know, is_known=lambda: services.deeplinks.is_known
        ),
        webhook=WebhookEndpoint(intake.handle, secrets),
        project_bots=ProjectBots(services.bots, connect, receive, bot, services.metrics.show_project_bots),
        project_bot_webhooks=ProjectBotWebhooks(
            services.bots, lambda project_bot_token: project_bot_intake(connect(project_bot_token)), project_bot_secrets
        ),
        ended_prompts=EndedPrompts(
            services.prompts, functools.partial(_find_bot, services.bots, bot, connect), signer, services.prompt_ended
        ),
        _polled=tracing.updates(intake),
        _webhook_secrets=secrets,
        _settings=settings,
        _show_failing=services.metrics.show_bot_failing,
    )


async def _find_bot(bots: Bots, service_bot: Bot, connect: Callable[[str], Bot], bot_id: int) -> Bot | None:
    """Return the bot with this id; None if it is a project bot that cannot be used now."""
    if bot_id == SERVICE_BOT:
        return service_bot
    project_bot = await bots.read_bot(bot_id)
    if project_bot is None or project_bot.broken_at is not None:
        return None
    try:
        return connect(bots.open_token(project_bot))
    except DecryptionFailed:
        return None
