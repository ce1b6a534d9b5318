"""Every error that a caller can cause or must be told of.

An error's `code` is stable and goes into `X-Error-Code`; its docstring is the sentence that the caller reads,
unless the raiser has a more exact one. `http/errors.py` maps each class to an HTTP status (contract.md, Everywhere).
"""

import re


class TaproofError(Exception):
    """Something went wrong."""

    code: str = "error"

    def __init_subclass__(cls) -> None:
        cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    def __init__(self, sentence: str | None = None) -> None:
        self.sentence = sentence if sentence is not None else " ".join((type(self).__doc__ or "").split())
        super().__init__(self.sentence)


class InvalidRequest(TaproofError):
    """The request is not valid. Compare it with /docs."""


class ProjectPaused(TaproofError):
    """This project is paused and starts no new sign-ins.

    Its developer can set is_active to true, or turn on Active in its settings in the console.
    """


class OriginNotAllowed(TaproofError):
    """This project starts no sign-ins from pages of this origin. Its developer can add it to allowed_origins."""


class BotBroken(TaproofError):
    """The messenger does not accept the token of this project's bot any more, so no sign-in can be started.

    Its developer can set another bot_token, or "" for the service's own bot, in the project's settings.
    """


class BotTaken(TaproofError):
    """This bot serves another project already. Make a bot of its own for each project, with @BotFather."""


class BotTokenRefused(TaproofError):
    """The messenger knows no bot with this token. Copy the whole token from @BotFather into bot_token."""


class PlanLimitReached(TaproofError):
    """The developer's plan has room for no more projects, or in this month for no more sign-ins.

    Delete a project that is not in use any more, wait for the next month (UTC), or ask the operator of this service for
    another plan.
    """


class TooManyAccessTokens(TaproofError):
    """You have as many access tokens as one developer may have. Revoke some that are not in use any more."""


class TooManyProjects(TaproofError):
    """You have as many projects as one developer may have. Delete some that are not in use any more."""


class InvalidAccessToken(TaproofError):
    """Send a valid access token (Authorization: Bearer tap_…).

    Make one in the console, on the page Access tokens, or with: taproof tokens create EMAIL.
    """


class InvalidSecretKey(TaproofError):
    """Send the project's current secret key: Authorization: Bearer sk_… in the header."""


class PublicAccessDisabled(TaproofError):
    """Public access is off for this project. Call /api/v1/generate and /api/v1/verify with its secret key."""


class InsufficientScope(TaproofError):
    """This access token does not have the scope that the call needs. Use one that has it."""

    def __init__(self, scope: str = "write") -> None:
        """`scope`: the one that is missing."""
        super().__init__(f"This needs the scope {scope}, which your access token does not have. Use one that has it.")
        self.scope = scope


class SignedOut(TaproofError):
    """You were signed out before this was done, so nothing was changed. Sign in, and send it again."""


class HttpsRequired(TaproofError):
    """Use https:// — plain HTTP is only answered on this machine's own loopback address."""


class NotFound(TaproofError):
    """There is nothing at this address. The endpoints are listed at /docs."""


class ProjectNotFound(TaproofError):
    """There is no such project. Check the project id."""


class SessionNotFound(TaproofError):
    """There is no such session in this project. Check the session token, or start a new session."""


class CodeVerifierMissing(TaproofError):
    """This session was made with a code_challenge. Send its code_verifier, as only the client that made it can."""


class AccessTokenNotFound(TaproofError):
    """There is no such access token. List yours with GET /api/v1/dev/tokens."""


class DeliveryNotFound(TaproofError):
    """There is no such delivery. List a project's with GET /api/v1/dev/projects/:id/deliveries."""


class WebhookNotSet(TaproofError):
    """This project has no webhook URL, so there is nowhere to send to. Set its webhook_url first."""


class SignInReported(TaproofError):
    """The user has said that this sign-in was not theirs, so it is not sent again. End the session that you opened."""


class RotationUnderWay(TaproofError):
    """A rotation of this project's webhook secret is under way. Promote the next secret, or wait for it to end."""


class NoRotation(TaproofError):
    """No rotation of this project's webhook secret is under way, so there is no next secret to promote."""


class DeveloperExists(TaproofError):
    """A developer with this e-mail address exists already."""


class DeveloperNotFound(TaproofError):
    """There is no developer with this e-mail address. Add one with: taproof developers add EMAIL."""


class ConsoleSessionNotFound(TaproofError):
    """There is no such console session of yours: it has ended. Reload the list of your sessions."""


class InvitationNotFound(TaproofError):
    """This invitation is not valid: it was used or revoked, or its time is over. Ask for a new one."""


class OwnerOnly(TaproofError):
    """Only an owner of this installation may do this. Ask one of them."""


class MessengerOnly(TaproofError):
    """Sign in with the messenger to do this: an access token cannot invite anybody."""


class IdentityTaken(TaproofError):
    """This messenger account signs in another developer already. Sign in with it, or use another account."""


class NotTheFirst(TaproofError):
    """There is a developer here already, so this link makes none any more. Ask an owner for an invitation."""


class SignInNotFound(TaproofError):
    """There is no such sign-in. Start a new one."""


class AuthorizationPending(TaproofError):
    """Nobody has confirmed yet. Open verification_uri_complete in the messenger, tap match_code, and ask again."""


class AccessDenied(TaproofError):
    """The sign-in was cancelled, or a wrong number was tapped. Start a new one with POST /api/v1/login."""


class ExpiredToken(TaproofError):
    """The time of this device_code is over. Start a new sign-in with POST /api/v1/login."""


class MethodNotAllowed(TaproofError):
    """This address does not answer that method. The Allow header says which it does."""


class PayloadTooLarge(TaproofError):
    """The request body is larger than 16 KiB. Send a smaller one."""


class RateLimited(TaproofError):
    """Too many requests. Wait for as many seconds as the header Retry-After says, then try again."""

    def __init__(self, retry_after: int | None = None) -> None:
        """`retry_after` in seconds."""
        unit = "second" if retry_after == 1 else "seconds"
        super().__init__(None if retry_after is None else f"Too many requests. Try again in {retry_after} {unit}.")
        self.retry_after = 1 if retry_after is None else retry_after


class StoreUnavailable(TaproofError):
    """The store cannot be reached just now. Try again in a moment."""


class MessengerUnavailable(TaproofError):
    """The messenger cannot be reached just now, so no sign-in can be started. Try again in a moment."""


class InternalError(TaproofError):
    """Internal error."""


class MasterKeyWrong(TaproofError):
    """The master key does not fit this database.

    Set TAPROOF_MASTER_KEY to the key that the other nodes have, or with SQLite put back the key file beside it.
    """


class DecryptionFailed(TaproofError):
    """A stored secret cannot be decrypted: it was altered, moved to another row, or encrypted under another key."""
