"""Connect to the Bot API: one pool of connections for all bots of a process."""

import functools
import os
import ssl

from taproof.config.settings import Settings
from taproof.core.errors import TaproofError
from taproof.messengers.telegram.bot_api import BotApiClient
from taproof.sdk.environment_proxy import EnvironmentProxy, UnusableProxy, find_proxy
from taproof.sdk.http_request import client_context

# Loading the system's certificates takes 50 ms, and all bots of a process can share them.
_client_context = functools.cache(client_context)


class ProxyUnusable(TaproofError, code="proxy_unusable"):
    """The environment names a proxy that cannot be used."""


def proxy_to(url: str) -> EnvironmentProxy | None:
    """Return the proxy of the environment for this address, if any."""
    try:
        return find_proxy(url, os.environ)
    except UnusableProxy as error:
        raise ProxyUnusable(str(error)) from None


def open_bot_api(settings: Settings) -> BotApiClient:
    """Return a client for the Bot API of the messenger or of the sandbox."""
    if not settings.sandbox:
        environment, trusted = settings.telegram_environment, _client_context()
        proxy = None if settings.role == "worker" else proxy_to(settings.bot_api_url)
        return BotApiClient(settings.bot_api_url, environment=environment, tls=trusted, proxy=proxy)
    tls = None
    if settings.tls_cert is not None:
        # The sandbox's bot calls this process over loopback, so the certificate need not be verified.
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    return BotApiClient(f"{settings.own_address}/sandbox", tls=tls)
