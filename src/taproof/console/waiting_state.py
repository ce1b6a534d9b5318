"""Answer the script of a waiting page: whether the sign-in was decided."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from taproof.core.errors import InvalidRequest, SignInNotFound
from taproof.core.model import Status
from taproof.http.requester import until_gone
from taproof.service.console.sign_in import SeenSignIn
from taproof.service.sessions.wait import UntilGone, WaitEnd

WAIT_LIMIT: Final = 25
"""Seconds that a page's script may wait for the decision in one call."""


async def show_state(
    request: Request,
    wait: Callable[[float, UntilGone], Awaitable[WaitEnd]],
    read: Callable[[], Awaitable[SeenSignIn]],
) -> Response:
    """Answer `{"status": …}`, after at most `?wait=` seconds; it consumes nothing, as the page itself does.

    Args:
        request: the script's.
        wait: waits as long as the sign-in is pending.
        read: returns the state of the sign-in.

    Raises:
        InvalidRequest: an impossible `wait`.
    """
    asked = request.query_params.get("wait", "0")
    if not (asked.isascii() and asked.isdigit() and len(asked) <= 2 and int(asked) <= WAIT_LIMIT):
        raise InvalidRequest(f"wait must be a whole number of seconds from 0 to {WAIT_LIMIT}.")
    status: Status = "pending"
    try:
        if await wait(int(asked), partial(until_gone, request.receive)) != "gone":
            status = (await read()).status
    except SignInNotFound:
        status = "expired"
    return JSONResponse({"status": status})
