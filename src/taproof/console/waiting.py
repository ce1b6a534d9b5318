"""The endpoint that a waiting page's script polls for the status of the sign-in."""

from functools import partial
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from taproof.contract.session import SignInStatus
from taproof.core.errors import InvalidRequest, SignInNotFound
from taproof.http.requester import until_gone
from taproof.service.console.sign_in import DeveloperSignIns, Purpose, Trial

COOKIE_SECONDS: Final = 660
"""The lifetime of a sign-in cookie: a minute longer than a sign-in, so that the page can show the outcome."""
WAIT_LIMIT: Final = 25
"""The longest time in seconds that one call waits for the decision."""


async def show_state(
    request: Request, sign_ins: DeveloperSignIns, encrypted: str, purpose: Purpose | Trial
) -> Response:
    """Answer `{"status": …}` within `?wait=` seconds. Only the page itself consumes the sign-in."""
    asked = request.query_params.get("wait", "0")
    if not (asked.isascii() and asked.isdigit() and len(asked) <= 2 and int(asked) <= WAIT_LIMIT):
        raise InvalidRequest(f"wait must be a whole number of seconds from 0 to {WAIT_LIMIT}.")
    status: SignInStatus = "pending"
    try:
        if await sign_ins.wait(encrypted, purpose, int(asked), partial(until_gone, request.receive)) != "gone":
            status = (await sign_ins.read(encrypted, purpose)).status
    except SignInNotFound:
        status = "expired"
    return JSONResponse({"status": status})
