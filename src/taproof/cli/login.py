"""The commands `login`, `logout` and `token`: sign in to a service from a terminal, with the messenger."""
# ruff: noqa: PLC0415 — only the command that needs a slow module imports it, so that `--help` is fast.

import contextlib
import io
import re
import sys
import time
from collections.abc import Iterator
from typing import Annotated, Final
from urllib.parse import urlsplit

import typer

from taproof.cli.command import AsJson, Given, command
from taproof.cli.credentials import Credential, CredentialsUnusable, open_credentials
from taproof.cli.output import print_json
from taproof.cli.remote import (
    WAIT,
    Answer,
    RemoteService,
    ServiceUnusable,
    open_remote,
    service_address,
    signed_in_service,
)
from taproof.contract.access_token import ACCESS_TOKEN_ID
from taproof.core.errors import TaproofError
from taproof.core.identifiers import is_key
from taproof.core.names import visible_name
from taproof.core.webhook_url import is_loopback

_MATCH_CODE: Final = re.compile(r"[0-9]{2}")
_SESSION_TOKEN: Final = re.compile(r"\?start=([A-Za-z0-9_-]{43})\Z")
_DAY: Final = 86_400
"""Seconds."""
_TOKEN_ID: Final = re.compile(ACCESS_TOKEN_ID.pattern)
_ENDED: Final = frozenset({"invalid_access_token", "access_token_not_found"})
"""The error codes of a service for an access token that is already revoked or expired."""
_START_ANEW: Final = re.compile(r"Start a new (?:one|sign-in) with POST /api/v1/login\.")
_RUN_AGAIN: Final = "Run taproof login again."

commands: Final = typer.Typer()

_Url = Annotated[str, typer.Argument(metavar="URL", help="The service's address, such as https://signin.example.com.")]
_KnownUrl = Annotated[
    str | None,
    typer.Argument(metavar="URL", help="The service's address. Default: the only service that you are signed in to."),
]


class LoginFailed(TaproofError, code="login_failed"):
    """The sign-in failed."""


@command(commands, "login")
def login(_given: Given, url: _Url, *, as_json: AsJson = False) -> None:
    """Sign in to a service with the messenger.

    It stores an access token on this machine. You do not need an account on the service's machine. The token is
    stored in ~/.config/taproof/credentials.json.
    """
    address = service_address(url)
    credentials = open_credentials()
    before = credentials.read().get(address)
    with open_remote(address) as service:
        got, days = _sign_in(service, address, as_json=as_json)
        try:
            credentials.replace(address, got)
        except CredentialsUnusable:
            _revoke_quietly(service, got)
            raise
        if before is not None:
            _revoke_quietly(service, before)
    if as_json:
        print_json(_fields(address, got) | {"expires_in_days": days})
        return
    typer.echo(
        f"Signed in to {address} as {visible_name(got.email)}. The access token is in {credentials.file}. It is valid "
        f"for {days} days; after that, run this command again. To revoke it earlier: taproof logout {address}"
    )
    typer.echo(f"Try it: taproof projects list --service {address}")


@command(commands, "logout")
def logout(_given: Given, url: _KnownUrl = None, *, as_json: AsJson = False) -> None:
    """Revoke and delete the access token of `taproof login`.

    Tokens that were created with it stay valid.
    """
    credentials = open_credentials()
    address, known = signed_in_service(credentials, url)
    with open_remote(address) as service:
        answer = _revoke(service, known)
    is_revoked = answer.status == 200 and answer.body.get("deleted") is True
    if not is_revoked and answer.code not in _ENDED:
        raise ServiceUnusable(
            f"{address} did not revoke the access token: {answer.sentence} You are still signed in. Try again later, "
            f"or remove the token from {credentials.file}."
        )
    credentials.replace(address, None)
    if as_json:
        print_json({"service": address, "revoked": is_revoked})
        return
    ended = "" if is_revoked else " The access token was already invalid."
    typer.echo(f"Signed out of {address}.{ended}")


@command(commands, "token")
def token(_given: Given, url: _KnownUrl = None, *, as_json: AsJson = False) -> None:
    """Print the access token of `taproof login`, for scripts.

    For example: curl -H "Authorization: Bearer $(taproof token)" https://signin.example.com/api/v1/dev/me
    """
    address, known = signed_in_service(open_credentials(), url)
    if as_json:
        print_json(_fields(address, known) | {"access_token": known.access_token})
    else:
        typer.echo(known.access_token)


def _fields(address: str, known: Credential) -> dict[str, str]:
    return {"service": address, "email": known.email, "token_id": known.token_id}


def _revoke_quietly(service: RemoteService, lost: Credential) -> None:
    """Try to revoke a token that is about to be lost. It may already be invalid, so a failure is ignored."""
    with contextlib.suppress(ServiceUnusable):
        _revoke(service, lost)


def _revoke(service: RemoteService, ended: Credential) -> Answer:
    """Revoke this token only. The tokens that were created with it belong to programs, and stay valid."""
    return service.call("DELETE", f"/api/v1/dev/tokens/{ended.token_id}?created=keep", bearer=ended.access_token)


# ---- signing in


def _sign_in(service: RemoteService, address: str, *, as_json: bool) -> tuple[Credential, int]:
    """Sign in, and return the access token with the number of days that it is valid.

    The link is printed on stderr if stdout is for JSON.
    """
    started = service.call("POST", "/api/v1/login", {})
    if started.status != 200:
        raise ServiceUnusable(f"{address} did not start a sign-in: {started.sentence}")
    link, device_code = started.text("verification_uri_complete"), started.text("device_code")
    if not _is_link(link):
        raise ServiceUnusable(f"{address} did not answer with a sign-in link.")
    seconds = started.number("expires_in", 1, 3_600)
    interval = started.number("interval", 1, 60)
    match_code = started.text("match_code")
    if _MATCH_CODE.fullmatch(match_code) is None:
        raise ServiceUnusable(f"{address} did not answer with a number to tap.")
    typer.echo(
        f"Open this link, and tap the number {match_code} in the messenger. Any other number cancels.\n", err=as_json
    )
    typer.echo(f"  {link}\n", err=as_json)
    if sys.stdout.isatty() and not as_json:
        typer.echo(f"Or scan it with your phone:\n\n{_qr_code(link)}")
    if found := _SESSION_TOKEN.search(link):
        typer.echo("If the messenger does not ask you anything, send this line to the bot:\n", err=as_json)
        typer.echo(f"  /start {found[1]}\n", err=as_json)
    with _progress(f"Waiting for your tap. The link works for {seconds / 60:.0f} minutes."):
        return _wait(service, device_code, seconds, interval)


def _wait(service: RemoteService, device_code: str, seconds: float, interval: float) -> tuple[Credential, int]:
    """Poll until the sign-in is decided or its link expires. Lost connections are ignored."""
    deadline = time.monotonic() + seconds
    while True:
        asked_at = time.monotonic()
        left = max(0.0, deadline - asked_at)
        try:
            answer = service.call("POST", "/api/v1/login/token", {"device_code": device_code, "wait": min(WAIT, left)})
        except ServiceUnusable:
            if not left:
                raise
        else:
            if answer.status == 200:
                return _credential(service, answer)
            if answer.code == "expired_token" or (not left and answer.code == "authorization_pending"):
                raise LoginFailed(f"The number was not tapped in time. {_RUN_AGAIN}")
            if answer.code == "access_denied":
                # The service names the API call to repeat; a person repeats the command.
                raise LoginFailed(_START_ANEW.sub(_RUN_AGAIN, answer.sentence))
            passes = answer.code == "authorization_pending" or answer.status == 429 or answer.status >= 500
            if not passes or not left:
                raise ServiceUnusable(f"{service.address} returned no access token: {answer.sentence}")
        # The service answers immediately while it is starting, or if too many calls wait.
        time.sleep(max(0.0, min(interval, left) - (time.monotonic() - asked_at)))


def _credential(service: RemoteService, answer: Answer) -> tuple[Credential, int]:
    found = Credential(answer.text("access_token"), answer.text("token_id"), answer.text("email"))
    if not is_key(found.access_token, "tap") or _TOKEN_ID.fullmatch(found.token_id) is None:
        raise ServiceUnusable(f"{service.address} did not answer with an access token.")
    return found, round(answer.number("expires_in", _DAY, 3_650 * _DAY) / _DAY)


def _is_link(text: str) -> bool:
    """Return whether a link is safe to print and open. The service may be hostile."""
    if not (text.isascii() and text.isprintable()) or " " in text:
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))


def _qr_code(link: str) -> str:
    """Return a QR code for a terminal: two modules per character, black on white with any colour scheme."""
    import segno

    drawn = io.StringIO()
    segno.make_qr(link, error="l").terminal(drawn, compact=True, border=2)
    return "".join(f"\x1b[97;40m{line}\x1b[0m\n" for line in drawn.getvalue().splitlines())


@contextlib.contextmanager
def _progress(sentence: str) -> Iterator[None]:
    if not sys.stderr.isatty():
        typer.echo(sentence, err=True)
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(sentence):
        yield
