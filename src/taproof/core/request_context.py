"""Where a request to sign in came from, as far as that is known: what helps a user tell their own from a stranger's."""

import json
from dataclasses import dataclass
from typing import Final, NamedTuple

from taproof.core.origins import NotAnOrigin, read_origin

USER_AGENT_LIMIT: Final = 300
"""Characters of a User-Agent that are kept: browsers send fewer."""


class Requester(NamedTuple):
    """Who asks for a session, as the request says: nothing of it is proven but the address.

    `origin` is the Origin header, None when there is none; `address` an IP address, "" when it is not known.
    """

    origin: str | None = None
    user_agent: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class RequestContext:
    """What a prompt may tell of a request; each part is "" when it is not known.

    `domain`: of the page; `user_agent`: what the browser calls itself, cut; `place`: roughly where, such as
    "Berlin, Germany"; `hides_page`: whether a browser sent an origin that names no page.
    """

    domain: str = ""
    user_agent: str = ""
    place: str = ""
    hides_page: bool = False


NOTHING_KNOWN: Final = RequestContext()


def origin_domain(origin: str | None) -> str:
    """Return host and port of an origin (RFC 6454), without a port that is the usual one; "" when it is none.

    It is written by whoever asks, so it is shown only if it has the form in which browsers write one: no free text.
    """
    if origin is None or not origin.startswith(("https://", "http://")):
        return ""
    scheme, _, rest = origin.partition("://")
    try:
        return read_origin(f"https://{rest.removesuffix(':80') if scheme == 'http' else rest}").partition("://")[2]
    except NotAnOrigin:
        return ""


def dump_context(context: RequestContext) -> str | None:
    """Return a context as it is stored; None when there is nothing to tell."""
    known = {name: value for name in context.__slots__ if (value := getattr(context, name))}
    return json.dumps(known, ensure_ascii=False) if known else None


def load_context(stored: str | None) -> RequestContext:
    """Return what `dump_context` made; whatever a newer release stored beside it is left out."""
    known = json.loads(stored) if stored else {}
    return RequestContext(**{name: known[name] for name in RequestContext.__slots__ if name in known})
