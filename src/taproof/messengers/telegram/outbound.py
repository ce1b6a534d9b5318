"""Reaches the Bot API directly or through the HTTP proxy of the network, and names the proxy in failures."""

import re
from typing import Any, Final
from urllib.parse import quote

from aiohttp import ClientHttpProxyError, ClientProxyConnectionError

from taproof.sdk.environment_proxy import EnvironmentProxy

_LOGIN: Final = re.compile(r"://[^\s/]*@")


def session_options(proxy: EnvironmentProxy | None) -> dict[str, Any]:
    """Return the options with which an aiohttp session uses this proxy. It ignores the environment itself."""
    if proxy is None:
        return {}
    login = f"{quote(proxy.username, safe='')}:{quote(proxy.password, safe='')}@"
    return {"proxy": proxy.address.replace("://", f"://{login}", 1) if len(login) > len(":@") else proxy.address}


def name_failure(error: Exception, proxy: EnvironmentProxy | None) -> str:
    """Return what failed, in words for the operator. The text may contain the URL."""
    if isinstance(error, ClientHttpProxyError):
        asks = ", so it asks for a user and password" if error.status == 407 else ""
        return f"the proxy {proxy} refuses the connection with HTTP status {error.status}{asks}"
    if isinstance(error, ClientProxyConnectionError):
        return f"the proxy {proxy} cannot be reached"
    # Found by its place in the URL, because a URL escapes only some of its characters.
    text = _LOGIN.sub("://<login>@", f"{type(error).__name__}: {error}")
    through = f" through the proxy {proxy}" if proxy is not None else ""
    if isinstance(error, TimeoutError):
        return f"no response in time{through}"
    return f"{text}{through}"


def name_strange_response(status: int, proxy: EnvironmentProxy | None) -> str:
    """Return what failed if a response is not the Bot API's: for example, a proxy's error page."""
    if proxy is None:
        return f"a response with HTTP status {status} that is not the Bot API's"
    asks = ", which asks for a user and password" if status == 407 else ""
    return f"a response with HTTP status {status} that is not the Bot API's, through the proxy {proxy}{asks}"
