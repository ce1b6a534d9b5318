"""Who sends a request, as far as it says, and when they have gone away."""

from starlette.types import Receive, Scope

from taproof.core.request_context import Requester


async def until_gone(receive: Receive) -> None:
    """Return when the client has closed its connection.

    The end of the body may not have been received yet: `body.py` does not wait for it. Granian reports a closed
    connection at once, unless the client has already sent the beginning of its next request: unread bytes hide the end
    of the connection. Such a client keeps its place until its time is over. What is read for it then is lost.
    """
    while (await receive())["type"] == "http.request":
        pass


def requester_of(scope: Scope) -> Requester:
    """Return the origin, browser and address that a request gives: for the user to see, never to be relied on."""
    origins, user_agent = [], b""
    for name, value in scope["headers"]:
        if name == b"origin":
            origins.append(value.decode("latin-1"))
        elif name == b"user-agent":
            user_agent = value
    # Several are no origin, and so no allowed one either.
    origin = ", ".join(origins) if origins else None
    return Requester(origin, user_agent.decode("latin-1"), scope["client"][0] if scope.get("client") else "")
