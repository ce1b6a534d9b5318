"""What is known about a sign-in request. It helps users to recognize a request that is not their own."""

import json
from typing import Final, NamedTuple

from taproof.core.origins import NotAnOrigin, read_origin

USER_AGENT_LIMIT: Final = 300
"""The maximum number of stored characters of a User-Agent header. Browsers send fewer."""


class Requester(NamedTuple):
    """The sender of a request for a session, as the request describes it. Only the IP address is verified."""

    origin: str | None = None
    user_agent: str = ""
    address: str = ""


class RequestContext(NamedTuple):
    """The details of a request that a prompt may show. Unknown ones are "". `user_agent` may be cut.

    `place` is approximate, such as "Berlin, Germany". `hides_page`: a browser sent an origin that identifies no page.
    """

    domain: str = ""
    user_agent: str = ""
    place: str = ""
    hides_page: bool = False


NOTHING_KNOWN: Final = RequestContext()
_ENCODE: Final = json.JSONEncoder(ensure_ascii=False).encode


def origin_domain(origin: str | None) -> str:
    """Return the host and port of an origin (RFC 6454), without a default port; "" if it is not an origin.

    The sender controls this text. So it is shown only as browsers write an origin, and never as free text.
    """
    if origin is None or not origin.startswith(("https://", "http://")):
        return ""
    scheme, _, rest = origin.partition("://")
    try:
        return read_origin(f"https://{rest.removesuffix(':80') if scheme == 'http' else rest}").partition("://")[2]
    except NotAnOrigin:
        return ""


def dump_context(context: RequestContext) -> str | None:
    """Return a context in its stored form; None if nothing is known."""
    if not any(context):
        return None
    return _ENCODE({name: value for name, value in context._asdict().items() if value})


def load_context(stored: str | None) -> RequestContext:
    """Return the context from the result of `dump_context`. Fields that a newer release stored are ignored."""
    known = json.loads(stored) if stored else {}
    return RequestContext(**{name: known[name] for name in RequestContext._fields if name in known})
