"""Cookies of pages: limited to this host (`__Host-`) over HTTPS. Plain HTTP is served on loopback only."""

from collections.abc import Iterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response


def _cookie_name(request: Request, name: str) -> str:
    return f"__Host-taproof_{name}" if request.scope["scheme"] == "https" else f"taproof_{name}"


def read_cookie(request: Request, name: str) -> str | None:
    """Return a cookie; None if there is none, or more than one with that name.

    The name must match byte for byte. Python's `strip()` removes more white space than browsers do: it would accept a
    name that begins with byte A0, which any host in the same domain can set.
    """
    wanted = _cookie_name(request, name).encode()
    found = [content for key, content in _cookies(request, wanted) if key == wanted]
    if len(found) != 1:
        return None
    content = found[0]
    if len(content) >= 2 and content.startswith(b'"') and content.endswith(b'"'):
        content = content[1:-1]  # Python quotes a cookie value with `=` in it, such as base64 padding.
    return content.decode("latin-1")


def list_cookies(request: Request, beginning: str) -> list[str]:
    """Return the names that begin with `beginning`, and continue with letters and digits only.

    Browsers send the cookies of one path in the order of their creation (RFC 6265, section 5.4).
    """
    prefix = _cookie_name(request, "")
    keys = (key.decode("latin-1") for key, _ in _cookies(request, (prefix + beginning).encode()))
    names = (key.removeprefix(prefix) for key in keys)
    return [name for name in names if (rest := name.removeprefix(beginning)).isascii() and rest.isalnum()]


def _cookies(request: Request, beginning: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the name and content of each cookie whose name begins like that."""
    # HTTP/2 clients can send each cookie in its own header.
    headers = b";".join([*(value for header, value in request.scope["headers"] if header == b"cookie"), b""])
    # Do not split the whole header: a request head of 16 KB can contain 16,000 cookies without a name.
    at = headers.find(beginning)
    while at >= 0:
        end = headers.index(b";", at)
        key, _, content = headers[headers.rfind(b";", 0, at) + 1 : end].partition(b"=")
        key = key.strip(b" \t")
        if key.startswith(beginning):
            yield key, content.strip(b" \t")
        at = headers.find(beginning, end)


def set_cookie(request: Request, response: Response, name: str, value: str, *, max_age: int | None = None) -> None:
    """Set a cookie that scripts cannot read. Without `max_age` (seconds), it lasts until the browser session ends."""
    response.set_cookie(_cookie_name(request, name), value, max_age=max_age, **_attributes(request))


def delete_cookie(request: Request, response: Response, name: str) -> None:
    """Delete a cookie from the browser."""
    response.delete_cookie(_cookie_name(request, name), **_attributes(request))


def _attributes(request: Request) -> dict[str, Any]:
    return {"path": "/", "secure": request.scope["scheme"] == "https", "httponly": True, "samesite": "lax"}
