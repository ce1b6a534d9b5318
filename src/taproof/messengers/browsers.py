"""The name of a browser, read from its User-Agent header: `Chrome on Windows`.

The sender can write anything into the header, and the prompt shows the name above the Confirm button. The result is
therefore one of the names below or nothing, so a stranger's text never reaches the user.
"""

import asyncio
import functools
from typing import Final, NamedTuple

_AGENT_LIMIT: Final = 300
_REMEMBERED: Final = 1024

_PROGRAMS: Final = {
    "Amazon Silk": "Amazon Silk",
    "Android": "Android Browser",
    "Brave": "Brave",
    "Chrome": "Chrome",
    "Chrome Mobile": "Chrome",
    "Chrome Mobile WebView": "Chrome",
    "Chrome Mobile iOS": "Chrome",
    "Chromium": "Chromium",
    "Coc Coc": "Coc Coc",
    "DuckDuckGo": "DuckDuckGo",
    "DuckDuckGo Mobile": "DuckDuckGo",
    "Ecosia Android": "Ecosia",
    "Ecosia iOS": "Ecosia",
    "Edge": "Edge",
    "Edge Mobile": "Edge",
    "Facebook": "Facebook",
    "Firefox": "Firefox",
    "Firefox Mobile": "Firefox",
    "Firefox iOS": "Firefox",
    "Go-http-client": "Go-http-client",
    "HeadlessChrome": "Headless Chrome",
    "Huawei Browser": "Huawei Browser",
    "IE": "Internet Explorer",
    "Instagram": "Instagram",
    "MiuiBrowser": "Mi Browser",
    "Mobile Safari": "Safari",
    "Mobile Safari UI/WKWebView": "Safari",
    "Opera": "Opera",
    "Opera GX": "Opera GX",
    "Opera Mini": "Opera Mini",
    "Opera Mobile": "Opera",
    "Opera Touch": "Opera",
    "Python Requests": "Python Requests",
    "Python aiohttp": "Python aiohttp",
    "QQ Browser": "QQ Browser",
    "QQ Browser Mobile": "QQ Browser",
    "Safari": "Safari",
    "Samsung Internet": "Samsung Internet",
    "UC Browser": "UC Browser",
    "Vivaldi": "Vivaldi",
    "Whale": "Whale",
    "Yandex Browser": "Yandex Browser",
    "curl": "curl",
    "okhttp": "OkHttp",
}
_COMMAND_LINE: Final = "taproof-login/"
_SYSTEMS: Final = {
    "Android": "Android",
    "Chrome OS": "ChromeOS",
    "Debian": "Linux",
    "Fedora": "Linux",
    "FreeBSD": "FreeBSD",
    "Gentoo": "Linux",
    "KaiOS": "KaiOS",
    "Linux": "Linux",
    "Mac OS X": "macOS",
    "Red Hat": "Linux",
    "Ubuntu": "Linux",
    "Windows": "Windows",
    "Windows Phone": "Windows Phone",
    "iOS": "iOS",
}


class Browser(NamedTuple):
    """Names that are safe to show; a name is "" if it is unknown."""

    program: str = ""
    system: str = ""


UNKNOWN_BROWSER: Final = Browser()


async def name_browser(user_agent: str) -> Browser:
    """Return the browser that a User-Agent header names.

    The parser takes most of a second and 30 MB to load. The first call loads it, in a thread.
    """
    if not user_agent:
        return UNKNOWN_BROWSER
    if _name.cache_info().currsize == 0:
        return await asyncio.to_thread(_name, user_agent[:_AGENT_LIMIT])
    return _name(user_agent[:_AGENT_LIMIT])


@functools.lru_cache(maxsize=_REMEMBERED)
def _name(user_agent: str) -> Browser:
    from ua_parser import parse_os, parse_user_agent  # noqa: PLC0415 — see above.

    program, system = parse_user_agent(user_agent), parse_os(user_agent)
    if user_agent.startswith(_COMMAND_LINE):
        shown = "taproof login"
    else:
        shown = "" if program is None else _PROGRAMS.get(program.family, "")
    return Browser(
        shown,
        "" if system is None else _SYSTEMS.get(system.family, ""),
    )
