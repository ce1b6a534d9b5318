"""The name of a browser, read from its User-Agent header: `Chrome on Windows`.

The sender can write anything into the header, and the prompt shows the name above the Confirm button. The result is
therefore one of the names below or nothing, so a stranger's text never reaches the user.
"""

import asyncio
import functools
from typing import Final, NamedTuple

_AGENT_LIMIT: Final = 300
_REMEMBERED: Final = 1024

_KEPT_PROGRAMS: Final = (
    *("Amazon Silk", "Brave", "Chrome", "Chromium", "Coc Coc", "DuckDuckGo", "Edge", "Facebook", "Firefox", "curl"),
    *("Go-http-client", "Huawei Browser", "Instagram", "Opera", "Opera GX", "Opera Mini", "Python Requests"),
    *("Python aiohttp", "QQ Browser", "Safari", "Samsung Internet", "UC Browser", "Vivaldi", "Whale", "Yandex Browser"),
)
_KEPT_SYSTEMS: Final = ("Android", "FreeBSD", "KaiOS", "Linux", "Windows", "Windows Phone", "iOS")
"""The names that are shown as the parser returns them."""
_PROGRAMS: Final = {
    **{name: name for name in _KEPT_PROGRAMS},
    "Android": "Android Browser",
    "Chrome Mobile": "Chrome",
    "Chrome Mobile WebView": "Chrome",
    "Chrome Mobile iOS": "Chrome",
    "DuckDuckGo Mobile": "DuckDuckGo",
    "Ecosia Android": "Ecosia",
    "Ecosia iOS": "Ecosia",
    "Edge Mobile": "Edge",
    "Firefox Mobile": "Firefox",
    "Firefox iOS": "Firefox",
    "HeadlessChrome": "Headless Chrome",
    "IE": "Internet Explorer",
    "MiuiBrowser": "Mi Browser",
    "Mobile Safari": "Safari",
    "Mobile Safari UI/WKWebView": "Safari",
    "Opera Mobile": "Opera",
    "Opera Touch": "Opera",
    "QQ Browser Mobile": "QQ Browser",
    "okhttp": "OkHttp",
}
_SYSTEMS: Final = {
    **{name: name for name in _KEPT_SYSTEMS},
    "Chrome OS": "ChromeOS",
    "Debian": "Linux",
    "Fedora": "Linux",
    "Gentoo": "Linux",
    "Mac OS X": "macOS",
    "Red Hat": "Linux",
    "Ubuntu": "Linux",
}
_COMMAND_LINE: Final = "taproof-login/"


class Browser(NamedTuple):
    """Names that are safe to show; a name is "" if it is unknown."""

    program: str = ""
    system: str = ""


UNKNOWN_BROWSER: Final = Browser()


async def name_browser(user_agent: str) -> Browser:
    """Return the browser that a User-Agent header names.

    Loading the parser takes most of a second and 30 MB. The first call loads it, in a thread.
    """
    if not user_agent:
        return UNKNOWN_BROWSER
    cut = user_agent[:_AGENT_LIMIT]
    return _name(cut) if _name.cache_info().currsize else await asyncio.to_thread(_name, cut)


@functools.lru_cache(maxsize=_REMEMBERED)
def _name(user_agent: str) -> Browser:
    from ua_parser import parse_os, parse_user_agent  # noqa: PLC0415 — see above.

    program, system = parse_user_agent(user_agent), parse_os(user_agent)
    if user_agent.startswith(_COMMAND_LINE):
        shown = "taproof login"
    else:
        shown = "" if program is None else _PROGRAMS.get(program.family, "")
    return Browser(shown, "" if system is None else _SYSTEMS.get(system.family, ""))
