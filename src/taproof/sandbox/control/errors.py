"""The errors of the control API. Each has a stable code, a status and a sentence that tells the caller what to do."""

from typing import Final

from starlette.responses import JSONResponse

_ERRORS: Final = {
    "host_not_allowed": (
        400,
        "The sandbox answers only under its own address: http://localhost, or the base URL that it was started with.",
    ),
    "invalid_sandbox_request": (400, "The request is not valid."),
    "sandbox_body_too_large": (413, "The request body is larger than 16 KiB. Send a smaller one."),
    "sandbox_path_not_found": (
        404,
        "There is nothing at this address. The phone is at /sandbox/phone, the users are at /sandbox/users.",
    ),
    "sandbox_method_not_allowed": (
        405,
        "This address does not answer that method. The Allow header lists the methods that it answers.",
    ),
    "user_not_found": (
        404,
        "There is no such pretend user. List them with GET /sandbox/users, or add one with POST /sandbox/users.",
    ),
    "username_taken": (400, "Another pretend user has this username. Choose another one, or leave it out."),
    "too_many_users": (
        400,
        "The sandbox holds 1,000 users at most. Change an old one by its id, or restart the sandbox.",
    ),
    "bot_not_found": (
        404,
        "There is no bot of that name. List them with GET /sandbox/bots, or add one with POST /sandbox/bots.",
    ),
    "bot_username_taken": (400, "Another bot or a pretend user has this username. Choose another one."),
    "too_many_bots": (400, "The sandbox holds 1,000 bots at most. Use an old one, or restart the sandbox."),
    "too_many_faults": (400, "100 faults wait already. Clear them with DELETE /sandbox/faults."),
    "deeplink_invalid": (
        400,
        "The deeplink must be the one that generate returned, with a start parameter of 1 to 64 of A-Z a-z 0-9 _ -.",
    ),
    "bot_blocked": (400, "This user has blocked the bot. Unblock it first: POST /sandbox/users/{id}/unblock with {}."),
    "button_not_found": (
        404,
        (
            "There is no message with buttons in the chat with this bot. Open a deeplink first "
            '(POST /sandbox/users/{id}/open), or name the bot that it leads to: {"bot": "its username", …}.'
        ),
    ),
    "message_not_found": (
        404,
        "The bot has no such message in this chat. Read the chat with GET /sandbox/users/{id}/messages.",
    ),
    "reply_button_not_found": (
        404,
        "There is no keyboard below the message field: the bot has sent none, or has taken it away.",
    ),
    "button_not_tappable": (
        400,
        "This button does not ask the bot anything: only buttons with callback_data can be tapped here.",
    ),
    "internal_error": (500, "Internal error."),
}
"""The status and the sentence of each code. The code that raises an error may give a more exact sentence."""


class SandboxError(Exception):
    """The refusal of a request, with a code of the table above."""

    def __init__(self, code: str, sentence: str | None = None) -> None:
        self.code = code
        self.status, usual_sentence = _ERRORS[code]
        self.sentence = sentence or usual_sentence
        super().__init__(self.sentence)

    def response(self) -> JSONResponse:
        """Return the answer: only `{"error": sentence}`, with the code in a header."""
        headers = {"X-Error-Code": self.code, "Cache-Control": "no-store"}
        return JSONResponse({"error": self.sentence}, self.status, headers)


def invalid_request(sentence: str) -> SandboxError:
    """Return the refusal of a request that is not valid."""
    return SandboxError("invalid_sandbox_request", sentence)
