"""The parts that `--sandbox` adds to the service: the simulated messenger with its bot, the demo, and their data."""

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp

from taproof.config.settings import Settings
from taproof.console.sandbox_sign_in import SandboxDeveloper
from taproof.core.accounts import AccessToken, Actor, Developer
from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.runtime.services import Services
from taproof.runtime.token_file import read_token, token_file, write_token
from taproof.sandbox.demo.id_tokens import IdTokens
from taproof.sandbox.demo.server import Demo
from taproof.sandbox.hosts import OwnHosts
from taproof.sandbox.seed import Seed, seed
from taproof.sandbox.server import Sandbox


@dataclass(frozen=True, slots=True)
class RunningSandbox:
    """The sandbox messenger, its bot, its initial data, and the applications that it adds, by path."""

    messenger: Sandbox
    bot_id: int
    bot_token: str
    seed: Seed
    apps: Mapping[str, ASGIApp]
    link_base: str
    developer: SandboxDeveloper
    """The developer as whom one click opens the console."""
    invitation: str | None
    """The code of an invitation that links a messenger account to the developer; None if one is linked."""


async def start_sandbox(settings: Settings, services: Services) -> RunningSandbox:
    """Create the sandbox messenger and the demo, with their own developer and project."""
    # Each start has a new bot, because update ids of an earlier run mean nothing to this one.
    number = 10**9 + int.from_bytes(system_entropy(4))
    token = f"{number}:{system_entropy(16).hex()}sbx"
    messenger = Sandbox(token, "taproof_sandbox_bot", system_clock, system_entropy, settings.base_url)
    kept_in = token_file(settings.database_url)
    kept_token = None if kept_in is None else read_token(kept_in)
    seeded = await seed(services.developers, services.projects, services.clients, settings.base_url, kept_token)
    if kept_in is not None and seeded.access_token != kept_token:
        write_token(kept_in, seeded.access_token)
    actor = Actor(seeded.developer, "service")

    async def read_webhook_secret() -> str:
        return (await services.projects.read_webhook_secret(actor, seeded.project.id)).webhook_secret

    id_tokens = None
    if seeded.client is not None:
        id_tokens = IdTokens(settings.base_url, seeded.client.id, services.openid.keys.read_jwks, system_clock)
    apps: dict[str, ASGIApp] = {
        "/sandbox/*": messenger.app,
        "/demo/*": Demo(seeded.project.id, read_webhook_secret, system_clock, system_entropy, id_tokens).app,
        "/": RedirectResponse("/demo"),
    }
    invitation = None
    if seeded.developer.messenger_id is None:
        invitation = (await services.invitations.invite_again(actor, seeded.developer)).code

    async def authenticate() -> tuple[AccessToken, Developer]:
        return await services.developers.authenticate(seeded.access_token)

    return RunningSandbox(
        messenger=messenger,
        bot_id=number,
        bot_token=token,
        seed=seeded,
        apps=apps,
        link_base=settings.messenger_link_base or f"{settings.base_url}/sandbox/phone",
        developer=SandboxDeveloper(authenticate, OwnHosts(settings.base_url).include_authority),
        invitation=invitation,
    )
