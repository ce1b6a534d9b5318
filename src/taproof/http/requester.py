"""Describe a request's client, and detect when it disconnects."""

from starlette.types import Receive, Scope

from taproof.core.request_context import Requester


async def until_gone(receive: Receive) -> None:
    """Return when the client has closed its connection.

    The end of the body may not have been received yet, because `body.py` does not wait for it. Granian reports a closed
    connection immediately, unless the client has already sent the beginning of its next request: the unread bytes hide
    the end of the connection. Such a client keeps its place until its wait ends, and the response is lost.
    """
    while (await receive())["type"] == "http.request":
        pass


def requester_of(scope: Scope) -> Requester:
    """Return the origin, browser and address from a request, for display only. They can be forged."""
    origins, user_agent = [], b""
    for name, value in scope["headers"]:
        if name == b"origin":
            origins.append(value.decode("latin-1"))
        elif name == b"user-agent":
            user_agent = value
    # Several origins joined together are not a valid origin, so they match no allowed origin.
    origin = ", ".join(origins) if origins else None
    return Requester(origin, user_agent.decode("latin-1"), scope["client"][0] if scope.get("client") else "")
