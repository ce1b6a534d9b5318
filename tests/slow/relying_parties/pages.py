"""The page of the relying parties that are written in Python."""

from collections.abc import Mapping
from hashlib import sha256
from html import escape

_SIGNED_OUT = '<a href="/sign-in">Sign in</a>'
_SIGNED_IN = '{fields}<form method="post" action="{sign_out}"><button>Sign out</button></form>'
_REFRESH = '<form method="post" action="/refresh"><button>Refresh</button></form>'


def fingerprint(token: str) -> str:
    """Return a hash of a token, with which a page shows whether the token changed."""
    return sha256(token.encode()).hexdigest()[:16]


def page(user: Mapping[str, object] | None, *, sign_out: str = "/sign-out", can_refresh: bool = False) -> str:
    """Return the page: the fields of the signed-in user, each in an element with its name as id, or a link."""
    body = _SIGNED_OUT
    if user is not None:
        fields = "".join(f'<p id="{name}">{escape(str(value))}</p>' for name, value in user.items())
        body = _SIGNED_IN.format(fields=fields, sign_out=escape(sign_out)) + (_REFRESH if can_refresh else "")
    return f'<!doctype html><html lang="en"><title>Application</title>{body}</html>'
