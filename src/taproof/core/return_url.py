"""Return URLs: the page to which the messenger leads the user back after Confirm (contract.md, Return code)."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from taproof.contract.project import ENTRY_LENGTH, RETURN_URLS_LIMIT
from taproof.core.errors import InvalidRequest, ReturnUrlNotAllowed
from taproof.core.origins import NotAnOrigin, read_origin
from taproof.core.projects import Project, ProjectChanges, SignInProject

RETURN_URL_LENGTH: Final = 2048
"""The maximum number of characters in a return URL."""
NO_RETURN_PAGE: Final = (
    "same_device cannot be offer or require without a page to return to. Add one to return_urls or, if it is empty, to "
    "allowed_origins. Its host must have a dot, because Telegram opens no other. Or create an OpenID Connect client, "
    "or set same_device to off."
)
_NOT_OPENABLE: Final = (
    "Telegram opens no page whose host has no dot, such as localhost. Open the page as http://127.0.0.1, with its port."
)
_OWN_ORIGIN: Final = (
    "return_url cannot be a page of this service, because its pages redirect to other sites, and the return code would "
    "go along. Use a page of your own."
)
_NOT_LISTED: Final = (
    "This return_url is not one of the project's return_urls, which match exactly, with the query string. Its "
    "developer can add it there."
)


class NotAReturnUrl(ValueError):
    """The text is not a valid return URL. The message is the rest of a sentence that begins with the field's name."""


def read_return_url(text: str) -> str:
    """Return the origin of a return URL, as browsers write it. The URL itself is used unchanged.

    Raises:
        NotAReturnUrl: the text is not an absolute https:// URL, or http:// to a loopback host, without a fragment.
    """
    if len(text) > RETURN_URL_LENGTH:
        raise NotAReturnUrl(f"must have at most {RETURN_URL_LENGTH:,} characters")
    # Browsers read a backslash as a slash, and remove tabs and line breaks.
    if not text.isascii() or not text.isprintable() or " " in text or "\\" in text:
        raise NotAReturnUrl("must be plain ASCII without spaces or backslashes; percent-encode the rest")
    if "#" in text:
        raise NotAReturnUrl("must not contain a fragment, because the return code is sent there")
    try:
        parts = urlsplit(text)
        return read_origin(text[: len(parts.scheme) + len("://") + len(parts.netloc)])
    except NotAnOrigin as error:
        raise NotAReturnUrl(str(error)) from None
    except ValueError:
        raise NotAReturnUrl("must be a URL, such as https://shop.example/sign-in") from None


def is_openable(url: str) -> bool:
    """Return whether Telegram accepts a URL in a button: it refuses host names without a dot, such as `localhost`."""
    host = urlsplit(url).hostname or ""
    return "." in host or ":" in host


def has_openable_pages(base_url: str) -> bool:
    """Return whether Telegram opens the pages of a service with this base URL."""
    try:
        return is_openable(read_origin(base_url))
    except NotAnOrigin:
        return False


def lacks_return_page(settings: Project | ProjectChanges, changes: ProjectChanges) -> bool:
    """Return whether changes of `settings` leave a policy without any page that Telegram opens."""
    names = ("same_device", "allowed_origins", "return_urls")
    after = {name: getattr(settings, name) for name in names} | changes.given()
    return after["same_device"] != "off" and not any(map(is_openable, after["return_urls"] or after["allowed_origins"]))


def require_allowed_return(project: SignInProject, return_url: str, *, own_origin: str) -> None:
    """Raise ReturnUrlNotAllowed for a return URL to which the project's sign-ins may not lead.

    If the project has `return_urls`, only these exact URLs are allowed: another page of an allowed origin may redirect
    to any address, and browsers would take the return code along. The pages of `own_origin`, of this service, redirect
    to the applications of all developers, so no project can allow them.
    """
    try:
        origin = read_return_url(return_url)
    except NotAReturnUrl as error:
        raise ReturnUrlNotAllowed(f"return_url {error}.") from None
    if project.same_device != "off" and not is_openable(origin):
        raise ReturnUrlNotAllowed(_NOT_OPENABLE)
    if project.same_device != "off" and origin == own_origin:
        raise ReturnUrlNotAllowed(_OWN_ORIGIN)
    if project.return_urls:
        if return_url not in project.return_urls.split():
            raise ReturnUrlNotAllowed(_NOT_LISTED)
        return
    origins = project.allowed_origins.split()
    # With "offer" and "require", the code must not go to just any page, so an empty list allows none.
    if origin not in origins and (origins or project.same_device != "off"):
        raise ReturnUrlNotAllowed


def read_return_urls(texts: Sequence[str]) -> tuple[str, ...]:
    """Return a project's return URLs without duplicates. Raise InvalidRequest, which names the invalid one."""
    if len(texts) > RETURN_URLS_LIMIT:
        raise InvalidRequest(f"return_urls must contain at most {RETURN_URLS_LIMIT} URLs.")
    for place, text in enumerate(texts, 1):
        if len(text) > ENTRY_LENGTH:
            raise InvalidRequest(
                f"return_urls: number {place} of the list must have at most {ENTRY_LENGTH} characters."
            )
        try:
            read_return_url(text)
        except NotAReturnUrl as error:
            raise InvalidRequest(f"return_urls: number {place} of the list {error}.") from None
    return tuple(dict.fromkeys(texts))
