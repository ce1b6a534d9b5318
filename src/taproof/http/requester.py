"""Describe the client of a request, and notice when it disconnects."""

from starlette.types import Receive, Scope

from taproof.core.request_context import Requester


async def until_gone(receive: Receive) -> None:
    """Return when the client has closed its connection.

    The end of the body may not have been received yet: `body.py` does not wait for it. Granian reports a closed
    connection at once, unless the client has already sent the beginning of its next request: unread bytes hide the end
    of the connection. Such a client keeps its place until its time is over. An answer that it gets then is lost.
    """
    while (await receive())["type"] == "http.request":
        pass


def requester_of(scope: Scope) -> Requester:
    """Return the origin, browser and address that a request gives, only to show them. They may be forged."""
    origins, user_agent = [], b""
    for name, value in scope["headers"]:
        if name == b"origin":
            origins.append(value.decode("latin-1"))
        elif name == b"user-agent":
            user_agent = value
    # Several origins together are not a valid origin, so they match no allowed one.
    origin = ", ".join(origins) if origins else None
    return Requester(origin, user_agent.decode("latin-1"), scope["client"][0] if scope.get("client") else "")
