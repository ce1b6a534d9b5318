"""What can go wrong in the control API: a sentence that says what to do next, a stable code, a status."""

from collections.abc import Iterable
from typing import ClassVar

from starlette.responses import JSONResponse

from taproof.core.errors import TaproofError


class SandboxError(TaproofError):
    """The sandbox cannot do that."""

    status: ClassVar[int] = 400


class HostNotAllowed(SandboxError):
    """The sandbox answers only under its own address: http://localhost, or the base URL that it was started with."""


class InvalidSandboxRequest(SandboxError):
    """The request is not valid."""


class SandboxBodyTooLarge(SandboxError):
    """The request body is larger than 16 KiB. Send a smaller one."""

    status = 413


class SandboxPathNotFound(SandboxError):
    """There is nothing at this address. The phone is at /sandbox/phone, the users are at /sandbox/users."""

    status = 404


class SandboxMethodNotAllowed(SandboxError):
    """This address does not answer that method. The Allow header says which it does."""

    status = 405


class UserNotFound(SandboxError):
    """There is no such pretend user. List them with GET /sandbox/users, or add one with POST /sandbox/users."""

    status = 404


class UsernameTaken(SandboxError):
    """Another pretend user has this username. Choose another one, or leave it out."""


class TooManyUsers(SandboxError):
    """The sandbox holds 1,000 users at most. Change an old one by its id, or restart the sandbox."""


class BotNotFound(SandboxError):
    """There is no bot of that name. List them with GET /sandbox/bots, or add one with POST /sandbox/bots."""

    status = 404


class BotUsernameTaken(SandboxError):
    """Another bot or a pretend user has this username. Choose another one."""


class TooManyBots(SandboxError):
    """The sandbox holds 1,000 bots at most. Use an old one, or restart the sandbox."""


class TooManyFaults(SandboxError):
    """100 faults wait already. Clear them with DELETE /sandbox/faults."""


class DeeplinkInvalid(SandboxError):
    """The deeplink must be the one that generate returned, with a start parameter of 1 to 64 of A-Z a-z 0-9 _ -."""


class BotBlocked(SandboxError):
    """This user has blocked the bot. Unblock it first: POST /sandbox/users/{id}/unblock with {}."""


class ButtonNotFound(SandboxError):
    """There is no such button."""

    status = 404

    def __init__(self, labels: Iterable[str]) -> None:
        there = ", ".join(labels)
        super().__init__(
            f"There is no such button. The buttons are: {there}."
            if there
            else "There is no message with buttons in the chat with this bot. Open a deeplink first (POST "
            '/sandbox/users/{id}/open), or name the bot that it leads to: {"bot": "its username", …}.'
        )


class MessageNotFound(SandboxError):
    """The bot has no such message in this chat. Read the chat with GET /sandbox/users/{id}/messages."""

    status = 404


class ReplyButtonNotFound(SandboxError):
    """There is no such button on the keyboard below the message field, or no keyboard."""

    status = 404

    def __init__(self, labels: Iterable[str]) -> None:
        there = ", ".join(labels)
        super().__init__(
            f"There is no such button on the keyboard below the message field. Its buttons are: {there}."
            if there
            else "There is no keyboard below the message field: the bot has sent none, or has taken it away."
        )


class ButtonNotTappable(SandboxError):
    """This button does not ask the bot anything: only buttons with callback_data can be tapped here."""


def error_response(error: SandboxError, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return the answer to a failed request: `{"error": sentence}` and nothing else, the code in a header."""
    return JSONResponse(
        {"error": error.sentence},
        error.status,
        {"X-Error-Code": error.code, "Cache-Control": "no-store"} | (headers or {}),
    )
