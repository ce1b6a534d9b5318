"""The errors of the control API, declared in the same way as those in `core/errors.py`."""

from starlette.responses import JSONResponse

from taproof.core.errors import TaproofError


class SandboxError(TaproofError, code="sandbox_error", status=400):
    """The base class of the control API's errors."""

    def response(self) -> JSONResponse:
        """Return the response: only `{"error": sentence}`, with the code in a header."""
        headers = {"X-Error-Code": self.code, "Cache-Control": "no-store"}
        return JSONResponse({"error": self.sentence}, self.status, headers)


class HostNotAllowed(SandboxError, code="host_not_allowed"):
    sentence = (
        "The sandbox answers only at its own address: http://localhost, or the base URL that it was started with."
    )


class InvalidSandboxRequest(SandboxError, code="invalid_sandbox_request"):
    sentence = "The request is not valid."


class SandboxBodyTooLarge(SandboxError, code="sandbox_body_too_large", status=413):
    sentence = "The request body is larger than 16 KiB. Send a smaller one."


class SandboxPathNotFound(SandboxError, code="sandbox_path_not_found", status=404):
    sentence = (
        "There is no page or API call at this address. The phone is at /sandbox/phone, the users are at /sandbox/users."
    )


class SandboxMethodNotAllowed(SandboxError, code="sandbox_method_not_allowed", status=405):
    sentence = "This address does not support this method. The Allow header lists the supported methods."


class UserNotFound(SandboxError, code="user_not_found", status=404):
    sentence = (
        "There is no such simulated user. List them with GET /sandbox/users, or add one with POST /sandbox/users."
    )


class UsernameTaken(SandboxError, code="username_taken"):
    sentence = "Another simulated user has this username. Choose another one, or leave it out."


class TooManyUsers(SandboxError, code="too_many_users"):
    sentence = "The sandbox can have at most 1,000 users. Change an existing one by its id, or restart the sandbox."


class BotNotFound(SandboxError, code="bot_not_found", status=404):
    sentence = "There is no bot with this name. List them with GET /sandbox/bots, or add one with POST /sandbox/bots."


class BotUsernameTaken(SandboxError, code="bot_username_taken"):
    sentence = "Another bot or a simulated user has this username. Choose another one."


class TooManyBots(SandboxError, code="too_many_bots"):
    sentence = "The sandbox can have at most 1,000 bots. Use an existing one, or restart the sandbox."


class ManagerNotAllowed(SandboxError, code="manager_not_allowed"):
    sentence = "This bot may not manage bots. Turn its management on with POST /sandbox/bots/{username}/manage."


class TooManyFaults(SandboxError, code="too_many_faults"):
    sentence = "100 faults are already pending. Clear them with DELETE /sandbox/faults."


class DeeplinkInvalid(SandboxError, code="deeplink_invalid"):
    sentence = (
        "The deeplink must be the one that generate returned, with a start parameter of 1 to 64 characters from A-Z "
        "a-z 0-9 _ -."
    )


class BotBlocked(SandboxError, code="bot_blocked"):
    sentence = "This user has blocked the bot. Unblock it first: POST /sandbox/users/{id}/unblock with {}."


class ButtonNotFound(SandboxError, code="button_not_found", status=404):
    sentence = (
        "There is no message with buttons in the chat with this bot. Open a deeplink first "
        '(POST /sandbox/users/{id}/open), or name the bot that the deeplink opens: {"bot": "its username", …}.'
    )


class MessageNotFound(SandboxError, code="message_not_found", status=404):
    sentence = "The bot has no such message in this chat. Read the chat with GET /sandbox/users/{id}/messages."


class ReplyButtonNotFound(SandboxError, code="reply_button_not_found", status=404):
    sentence = "There is no keyboard below the message field: the bot has sent none, or has removed it."


class ButtonNotTappable(SandboxError, code="button_not_tappable"):
    sentence = "This button sends nothing to the bot. Only buttons with callback_data can be tapped."


class SandboxFailed(SandboxError, code="internal_error", status=500):
    sentence = "Internal error."
