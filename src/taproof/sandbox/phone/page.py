"""The phone: a web page that shows one person's chat with a bot. It acts only through the control API."""

from pathlib import Path
from typing import Final

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from taproof.sandbox.telegram.bots import NEW_BOT_PATH, PHONE_PATH

_STATIC: Final = Path(__file__).parent
_SCRIPTS: Final = ("phone.js", "phone_contact.js", "phone_keyboard.js", "phone_messages.js", "phone_new_bot.js")
_HEADERS: Final = {
    # The demo's page embeds the phone in a frame.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; frame-ancestors 'self'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    # The page's address contains the session token of the deeplink.
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def phone_routes() -> list[Route]:
    """Return the routes of the page and its files, and /sandbox, which redirects to the page."""
    return [
        Route("/sandbox", RedirectResponse(PHONE_PATH), methods=["GET"]),
        _file_route(PHONE_PATH, "phone.html", "text/html"),
        # The same page: it opens the chat with the bot that its address names.
        _file_route(f"{PHONE_PATH}/{{username}}", "phone.html", "text/html"),
        # The same page: it offers to create the bot that its address suggests.
        _file_route(f"{NEW_BOT_PATH}/{{manager}}/{{username}}", "phone.html", "text/html"),
        *(_file_route(f"/sandbox/{name}", name, "text/javascript") for name in _SCRIPTS),
        _file_route(f"{PHONE_PATH}.css", "phone.css", "text/css"),
    ]


def _file_route(path: str, name: str, media_type: str) -> Route:
    answer = Response((_STATIC / name).read_bytes(), media_type=media_type, headers=_HEADERS)
    return Route(path, answer, methods=["GET"])
