"""The errors that a caller can cause or needs to know.

Each error is declared here once. The API, the OpenAPI document and the reference pages read these attributes:

- `code`: the stable name that goes into `X-Error-Code`.
- `status`: the HTTP status of the response. 500 marks a fault of the service: the API returns `InternalError` instead.
- `sentence`: the text for the caller, unless the code that raises the error gives a more exact one.
- `meaning`: the condition for the error, for the reference. Errors that no endpoint returns have none.

They are attributes and not docstrings, because `python -OO` removes docstrings.
"""

from typing import ClassVar, Final


class TaproofError(Exception):
    """The base of all errors with a code and a sentence. A subclass without a `status` has that of its base class."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    sentence: str = "Something went wrong."
    meaning: ClassVar[str] = ""

    def __init_subclass__(cls, *, code: str, status: int | None = None) -> None:
        cls.code = code
        if status is not None:
            cls.status = status

    def __init__(self, sentence: str | None = None) -> None:
        """Use `sentence` instead of the class's sentence, if given."""
        if sentence is not None:
            self.sentence = sentence
        super().__init__(self.sentence)


class InvalidRequest(TaproofError, code="invalid_request", status=400):
    sentence = "The request is not valid. Compare it with /docs."
    meaning = "The request is not valid; the sentence names what is wrong."


class ProjectPaused(TaproofError, code="project_paused", status=400):
    sentence = (
        "This project is paused and starts no new sign-ins. Its developer can set is_active to true, or turn on Active "
        "in its settings in the console."
    )
    meaning = "The project is paused: its is_active is false."


class OriginNotAllowed(TaproofError, code="origin_not_allowed", status=400):
    sentence = "This project starts no sign-ins from pages of this origin. Its developer can add it to allowed_origins."
    meaning = "The page's origin is not among the project's allowed_origins."


class BotBroken(TaproofError, code="bot_broken", status=400):
    sentence = (
        "The messenger no longer accepts the token of this project's bot, so no sign-in can be started. Its developer "
        "can set another bot_token, or \"\" for the service's own bot, in the project's settings."
    )
    meaning = "The messenger refuses the token of the project's bot: its bot_broken_at is set."


class BotTaken(TaproofError, code="bot_taken", status=400):
    sentence = "This bot already serves another project. Create a separate bot for each project with @BotFather."
    meaning = "The bot with this bot_token serves another project, or is the service's own bot."


class BotTokenRefused(TaproofError, code="bot_token_refused", status=400):
    sentence = "The messenger knows no bot with this token. Copy the whole token from @BotFather into bot_token."
    meaning = "The messenger knows no bot with this bot_token."


class PlanLimitReached(TaproofError, code="plan_limit_reached", status=400):
    sentence = (
        "The developer's plan allows no more projects, or no more sign-ins this month. Delete a project that is no "
        "longer used, wait for the next month (UTC), or ask the operator of this service for another plan."
    )
    meaning = "The developer's plan allows no more projects, or no more sign-ins this month."


class TooManyAccessTokens(TaproofError, code="too_many_access_tokens", status=400):
    sentence = "You have as many access tokens as one developer may have. Revoke some that you no longer use."
    meaning = "The developer has 100 access tokens that have not expired."


class TooManyProjects(TaproofError, code="too_many_projects", status=400):
    sentence = "You have as many projects as one developer may have. Delete some that you no longer use."
    meaning = "The developer has 1,000 projects."


class InvalidAccessToken(TaproofError, code="invalid_access_token", status=401):
    sentence = (
        "Send a valid access token (Authorization: Bearer tap_…). Make one in the console, on the page Access tokens, "
        "or with: taproof tokens create EMAIL."
    )
    meaning = "The access token is missing, malformed, expired or revoked."


class InvalidSecretKey(TaproofError, code="invalid_secret_key", status=401):
    sentence = "Send the project's current secret key: Authorization: Bearer sk_… in the header."
    meaning = "The secret key is missing, malformed or replaced."


class PublicAccessDisabled(TaproofError, code="public_access_disabled", status=401):
    sentence = "Public access is off for this project. Call /api/v1/generate and /api/v1/verify with its secret key."
    meaning = "Public access is off for this project."


class InsufficientScope(TaproofError, code="insufficient_scope", status=403):
    sentence = "This access token does not have the scope that the call needs. Use one that has it."
    meaning = "The access token does not have the scope that the call needs; WWW-Authenticate names it."

    def __init__(self, scope: str = "write") -> None:
        """Name the missing `scope` in the sentence."""
        super().__init__(f"This needs the scope {scope}, which your access token does not have. Use one that has it.")
        self.scope = scope


class SignedOut(TaproofError, code="signed_out", status=401):
    sentence = "You were signed out before this was done, so nothing was changed. Sign in and try again."
    meaning = "The console session ended before the change was made."


class HttpsRequired(TaproofError, code="https_required", status=400):
    sentence = "Use https://. Plain HTTP is answered only on the loopback address of the service's own machine."
    meaning = "The request came over plain HTTP from another machine."


class NotFound(TaproofError, code="not_found", status=404):
    sentence = "There is nothing at this address. The endpoints are listed at /docs."
    meaning = "No endpoint has this address."


class ProjectNotFound(TaproofError, code="project_not_found", status=404):
    sentence = "There is no such project. Check the project id."
    meaning = "There is no project with this project_id, or it is not yours."


class SessionNotFound(TaproofError, code="session_not_found", status=404):
    sentence = "There is no such session in this project. Check the session token, or start a new session."
    meaning = (
        "There is no session with this session_token or session_id, it is not yours, or the code_verifier is that of "
        "another session."
    )


class CodeVerifierMissing(TaproofError, code="code_verifier_missing", status=400):
    sentence = (
        "This session was created with a code_challenge. Send its code_verifier, which only the client that created it "
        "has."
    )
    meaning = "The session was created with a code_challenge, and the call has no code_verifier."


class AccessTokenNotFound(TaproofError, code="access_token_not_found", status=404):
    sentence = "There is no such access token. List yours with GET /api/v1/dev/tokens."
    meaning = "There is no access token with this token_id, or it is not yours."


class DeliveryNotFound(TaproofError, code="delivery_not_found", status=404):
    sentence = "There is no such delivery. List a project's with GET /api/v1/dev/projects/:id/deliveries."
    meaning = "There is no delivery with this delivery_id, or it is not yours."


class WebhookNotSet(TaproofError, code="webhook_not_set", status=400):
    sentence = "This project has no webhook URL, so there is nowhere to send to. Set its webhook_url first."
    meaning = "The project has no webhook_url."


class SignInReported(TaproofError, code="sign_in_reported", status=400):
    sentence = (
        "The user has reported that this sign-in was not theirs, so it is not sent again. End the session that you "
        "opened."
    )
    meaning = "The user has reported the sign-in, so its auth.confirmed event is not sent again."


class RotationUnderWay(TaproofError, code="rotation_under_way", status=400):
    sentence = (
        "A rotation of this project's webhook secret is already under way. Promote the next secret, or wait for it to "
        "end."
    )
    meaning = "The webhook secret is already being rotated."


class NoRotation(TaproofError, code="no_rotation", status=400):
    sentence = "No rotation of this project's webhook secret is under way, so there is no next secret to promote."
    meaning = "The webhook secret is not being rotated."


class DeveloperExists(TaproofError, code="developer_exists", status=400):
    sentence = "A developer with this e-mail address already exists."
    meaning = "A developer has this e-mail address already."


class DeveloperNotFound(TaproofError, code="developer_not_found", status=404):
    sentence = "There is no developer with this e-mail address. Add one with: taproof developers add EMAIL."
    meaning = "There is no developer with this e-mail address."


class ConsoleSessionNotFound(TaproofError, code="console_session_not_found", status=404):
    sentence = "You have no such console session; it has ended. Reload the list of your sessions."
    meaning = "There is no console session with this id, or it is not yours."


class InvitationNotFound(TaproofError, code="invitation_not_found", status=404):
    sentence = "This invitation is not valid: it was used, was revoked or has expired. Ask for a new one."
    meaning = "The invitation is unknown, used, revoked or expired."


class OwnerOnly(TaproofError, code="owner_only", status=404):
    sentence = "Only an owner of this installation may do this. Ask one of them."
    meaning = "The call is for owners of the installation, and you are none."


class MessengerOnly(TaproofError, code="messenger_only", status=403):
    sentence = "Sign in with the messenger to do this: an access token cannot invite anybody."
    meaning = "An access token invites somebody; only a developer who signed in with the messenger can."


class IdentityTaken(TaproofError, code="identity_taken", status=400):
    sentence = "This messenger account already signs in another developer. Sign in with it, or use another account."
    meaning = "The messenger account signs in another developer."


class NotTheFirst(TaproofError, code="not_the_first", status=400):
    sentence = (
        "This installation already has a developer, so this link no longer works. Ask an owner for an invitation."
    )
    meaning = "The invitation is for the first developer, and the installation already has one."


class SignInNotFound(TaproofError, code="sign_in_not_found", status=404):
    sentence = "There is no such sign-in. Start a new one."
    meaning = "This service did not issue the device_code, or it expired long ago."


class AuthorizationPending(TaproofError, code="authorization_pending", status=400):
    sentence = (
        "Nobody has confirmed yet. Open verification_uri_complete in the messenger, tap match_code, and ask again."
    )
    meaning = "Nobody has confirmed or cancelled yet. Ask again."


class AccessDenied(TaproofError, code="access_denied", status=400):
    sentence = "The sign-in was cancelled, or a wrong number was tapped. Start a new one with POST /api/v1/login."
    meaning = "The sign-in was cancelled or reported, or the account that confirmed signs in no developer."


class ExpiredToken(TaproofError, code="expired_token", status=400):
    sentence = "This device_code has expired. Start a new sign-in with POST /api/v1/login."
    meaning = "The device_code has expired, or has already given its access token."


class MethodNotAllowed(TaproofError, code="method_not_allowed", status=405):
    sentence = "This address does not answer that method. The Allow header lists the methods that it answers."
    meaning = "The address does not answer this method."


class PayloadTooLarge(TaproofError, code="payload_too_large", status=413):
    sentence = "The request body is larger than 16 KiB. Send a smaller one."
    meaning = "The body is larger than 16 KiB."


class RateLimited(TaproofError, code="rate_limited", status=429):
    sentence = "Too many requests. Wait for the number of seconds in the Retry-After header, then try again."
    meaning = (
        "There were too many calls from this client address or developer, or for this session or project, or this "
        "developer tried too many bot tokens. Nothing was done, and nothing was used up."
    )

    def __init__(self, retry_after: int | None = None) -> None:
        """Store `retry_after`, in seconds."""
        unit = "second" if retry_after == 1 else "seconds"
        super().__init__(None if retry_after is None else f"Too many requests. Try again in {retry_after} {unit}.")
        self.retry_after = 1 if retry_after is None else retry_after


class StoreUnavailable(TaproofError, code="store_unavailable", status=503):
    sentence = "The store cannot be reached right now. Try again in a moment."
    meaning = "The store cannot be reached right now."


class MessengerUnavailable(TaproofError, code="messenger_unavailable", status=503):
    sentence = "The messenger cannot be reached right now, so no sign-in can be started. Try again in a moment."
    meaning = (
        "The messenger cannot be reached right now, so there is no deeplink to show, or a bot_token cannot be checked."
    )


class InternalError(TaproofError, code="internal_error"):
    sentence = "Internal error."
    meaning = "A bug in the service."


class MasterKeyWrong(TaproofError, code="master_key_wrong"):
    sentence = (
        "The master key does not fit this database. Set TAPROOF_MASTER_KEY to the key that the other nodes have, or "
        "with SQLite put the key file back beside it."
    )


class DecryptionFailed(TaproofError, code="decryption_failed"):
    sentence = (
        "A stored secret cannot be decrypted: it was altered, moved to another row, or encrypted under another key."
    )


API_ERRORS: Final = tuple(
    error for error in TaproofError.__subclasses__() if error.status != TaproofError.status or error is InternalError
)
"""The errors that the API returns. `InternalError` represents all other errors."""
