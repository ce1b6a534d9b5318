"""The commands `login`, `logout` and `token`: sign in to a service from a terminal, with the messenger."""
# ruff: noqa: PLC0415 — only the command that needs a slow module imports it, so that `--help` is fast.

import contextlib
import io
import re
import sys
import time
from dataclasses import dataclass, replace
from typing import Annotated, Final, cast
from urllib.parse import urlsplit

import typer

from taproof.cli.command import AsJson, Given, command
from taproof.cli.credentials import Credential, CredentialsUnusable, open_credentials
from taproof.cli.output import print_json, show_status
from taproof.cli.remote import (
    WAIT,
    CallFailed,
    RemoteService,
    call_failed,
    open_remote,
    service_address,
    signed_in_service,
)
from taproof.contract.access_token import ACCESS_TOKEN_ID
from taproof.core.errors import TaproofError
from taproof.core.identifiers import is_key
from taproof.core.names import visible_name
from taproof.core.webhook_url import is_loopback
from taproof.sdk.api_errors import (
    ConnectionFailed,
    RateLimited,
    ServiceUnavailable,
    TaproofApiError,
    UnexpectedAnswer,
)
from taproof.sdk.developer_calls import delete_access_token
from taproof.sdk.exchange import Request
from taproof.sdk.reading import read

_MATCH_CODE: Final = re.compile(r"[0-9]{2}")
_SESSION_TOKEN: Final = re.compile(r"\?start=([A-Za-z0-9_-]{43})\Z")
_TEXT_LIMIT: Final = 2_000
"""The maximum number of characters in a link, a device code or an e-mail address from a service."""
_DAY: Final = 86_400
"""Seconds."""
_TOKEN_ID: Final = re.compile(ACCESS_TOKEN_ID.pattern)
_NOT_VALID: Final = frozenset({"invalid_access_token", "access_token_not_found"})
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
    with open_remote(address) as remote:
        got, days = _sign_in(remote, as_json=as_json)
        try:
            credentials.replace(address, got)
        except CredentialsUnusable:
            _revoke_quietly(remote, got)
            raise
        if before is not None:
            _revoke_quietly(remote, before)
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
    is_revoked = True
    with open_remote(address) as remote:
        try:
            _revoke(remote, known)
        except TaproofApiError as error:
            if error.code not in _NOT_VALID:
                raise CallFailed(
                    f"{call_failed(address, error, 'did not revoke the access token').sentence} You are still signed "
                    f"in. Try again later, or remove the token from {credentials.file}."
                ) from None
            is_revoked = False
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


def _revoke_quietly(remote: RemoteService, lost: Credential) -> None:
    """Try to revoke a token that is about to be lost. It may already be invalid, so a failure is ignored."""
    with contextlib.suppress(TaproofApiError):
        _revoke(remote, lost)


def _revoke(remote: RemoteService, ended: Credential) -> None:
    """Revoke this token only. The tokens that were created with it belong to programs, and stay valid."""
    service = replace(remote.service, access_token=ended.access_token)
    request = cast("Request", next(delete_access_token(service, ended.token_id, keep_created=True)))
    if remote.ask(request).get("deleted") is not True:
        raise UnexpectedAnswer("The token was not deleted.", status=200)


# ---- signing in


@dataclass(frozen=True, slots=True)
class _Started:
    verification_uri_complete: str
    device_code: str
    match_code: str
    expires_in: int
    interval: int


@dataclass(frozen=True, slots=True)
class _SignedIn:
    access_token: str
    token_id: str
    email: str
    expires_in: int


def _sign_in(remote: RemoteService, *, as_json: bool) -> tuple[Credential, int]:
    """Sign in, and return the access token with the number of days that it is valid."""
    address = remote.service.address
    try:
        started = read(_Started, remote.ask(Request(method="POST", path="/api/v1/login", body={})))
    except TaproofApiError as error:
        raise call_failed(address, error, "did not start a sign-in") from None
    link, match_code = started.verification_uri_complete, started.match_code
    if not _is_link(link):
        raise CallFailed(f"{address} did not answer with a sign-in link.")
    if _MATCH_CODE.fullmatch(match_code) is None:
        raise CallFailed(f"{address} did not answer with a number to tap.")
    if min(started.expires_in, started.interval) < 0 or not 0 < len(started.device_code) <= _TEXT_LIMIT:
        raise CallFailed(f"{address} does not answer like a Taproof service.")
    seconds, interval = min(max(1, started.expires_in), 3_600), min(max(1, started.interval), 60)
    typer.echo(
        f"Open this link, and tap the number {match_code} in the messenger. Any other number cancels.\n", err=as_json
    )
    typer.echo(f"  {link}\n", err=as_json)
    if sys.stdout.isatty() and not as_json:
        typer.echo(f"Or scan it with your phone:\n\n{_qr_code(link)}")
    if found := _SESSION_TOKEN.search(link):
        typer.echo("If the messenger does not ask you anything, send this line to the bot:\n", err=as_json)
        typer.echo(f"  /start {found[1]}\n", err=as_json)
    waiting = f"Waiting for your tap. The link works for {seconds / 60:.0f} minutes."
    if not sys.stderr.isatty():
        typer.echo(waiting, err=True)
    with show_status(waiting):
        return _wait(remote, started.device_code, seconds, interval)


def _wait(remote: RemoteService, device_code: str, seconds: float, interval: float) -> tuple[Credential, int]:
    """Poll until the sign-in is decided or its link expires. Lost connections are ignored."""
    deadline = time.monotonic() + seconds
    while True:
        asked_at = time.monotonic()
        left = max(0.0, deadline - asked_at)
        body = {"device_code": device_code, "wait": min(WAIT, left)}
        try:
            answer = remote.ask(Request(method="POST", path="/api/v1/login/token", body=body))
            return _credential(remote.service.address, read(_SignedIn, answer))
        except TaproofApiError as error:
            if error.code == "expired_token" or (not left and error.code == "authorization_pending"):
                raise LoginFailed(f"The number was not tapped in time. {_RUN_AGAIN}") from None
            if error.code == "access_denied":
                # The service names the API call to repeat; a person repeats the command.
                raise LoginFailed(_START_ANEW.sub(_RUN_AGAIN, visible_name(error.sentence))) from None
            passes = isinstance(error, ConnectionFailed | RateLimited | ServiceUnavailable)
            if not left or not (passes or error.code == "authorization_pending"):
                raise call_failed(remote.service.address, error, "returned no access token") from None
        # The service answers immediately while it is starting, or if too many calls wait.
        time.sleep(max(0.0, min(interval, left) - (time.monotonic() - asked_at)))


def _credential(address: str, got: _SignedIn) -> tuple[Credential, int]:
    is_usable = got.expires_in >= 0 and 0 < len(got.email) <= _TEXT_LIMIT
    if not is_usable or not is_key(got.access_token, "tap") or _TOKEN_ID.fullmatch(got.token_id) is None:
        raise CallFailed(f"{address} did not answer with an access token.")
    days = round(min(max(_DAY, got.expires_in), 3_650 * _DAY) / _DAY)
    return Credential(got.access_token, got.token_id, got.email), days


def _is_link(text: str) -> bool:
    """Return whether a link is safe to print and open. The service may be hostile."""
    if not (text.isascii() and text.isprintable()) or " " in text or len(text) > _TEXT_LIMIT:
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
