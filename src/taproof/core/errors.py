"""The errors that a caller can cause or must handle, each declared once.

The API, the OpenAPI document and the reference read these attributes:

- `code`: the stable name, sent in `X-Error-Code`.
- `status`: the HTTP status of the response. 500 marks an internal fault: the API returns `InternalError` instead.
- `sentence`: the text for the caller, unless the code that raises the error passes a more specific one.
- `meaning`: the condition for the error, shown in the reference. Errors that no endpoint returns have no meaning.

They are attributes instead of docstrings, because `python -OO` removes docstrings.
"""

from collections.abc import Sequence
from typing import ClassVar, Final


class TaproofError(Exception):
    """The base class of all errors with a code and a sentence. A subclass without a `status` inherits it."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    sentence: str = "Something went wrong."
    meaning: ClassVar[str] = ""

    def __init_subclass__(cls, *, code: str, status: int | None = None) -> None:
        cls.code = code
        if status is not None:
            cls.status = status

    def __init__(self, sentence: str | None = None) -> None:
        """Replace the class's sentence with `sentence`, if given."""
        if sentence is not None:
            self.sentence = sentence
        super().__init__(self.sentence)


class InvalidRequest(TaproofError, code="invalid_request", status=400):
    sentence = "The request is not valid. Compare it with /docs."
    meaning = "The request is not valid; the sentence names the problem."


class ProjectPaused(TaproofError, code="project_paused", status=400):
    sentence = (
        "This project is paused, so no sign-in can be started. Its developer can set is_active to true, or turn on "
        "Active in the project's settings in the console."
    )
    meaning = "The project is paused: its is_active is false."


class OriginNotAllowed(TaproofError, code="origin_not_allowed", status=400):
    sentence = "Pages of this origin cannot start this project's sign-ins. Its developer can add it to allowed_origins."
    meaning = "The page's origin is not among the project's allowed_origins."


class ReturnUrlNotAllowed(TaproofError, code="return_url_not_allowed", status=400):
    sentence = (
        "This project's sign-ins cannot return to this return_url. Its developer can add the page's origin to "
        "allowed_origins, or name the pages to return to in return_urls, which then allows only these exact URLs."
    )
    meaning = (
        "return_url is malformed, or not exactly one of the project's return_urls, or, if there are none, not of one "
        "of its allowed_origins. Unless same_device is off, also: its host has no dot, so Telegram does not open it, "
        "or it is a page of this service."
    )


class SameDeviceRequired(TaproofError, code="same_device_required", status=400):
    sentence = (
        "This project's sign-ins must end in the browser in which they began, so send a code_challenge and a "
        "return_url. Its developer can change same_device."
    )
    meaning = "The project's same_device is require, and the request has no code_challenge or no return_url."


class BotBroken(TaproofError, code="bot_broken", status=400):
    sentence = (
        "The messenger no longer accepts the token of this project's bot, so no sign-in can be started. Its developer "
        "can set another bot_token, or \"\" for the service's own bot, in the project's settings."
    )
    meaning = "The messenger no longer accepts the token of the project's bot: bot_broken_at is set."


class BotTaken(TaproofError, code="bot_taken", status=400):
    sentence = "This bot already serves another project. Create a separate bot for each project with @BotFather."
    meaning = "The bot with this bot_token serves another project, or is the service's own bot."


class BotTokenRefused(TaproofError, code="bot_token_refused", status=400):
    sentence = "The messenger does not recognise this bot token. Copy the whole token from @BotFather into bot_token."
    meaning = "The messenger does not recognise this bot_token."


class InitDataInvalid(TaproofError, code="init_data_invalid", status=400):
    sentence = "The init_data is not valid. Send Telegram.WebApp.initData unchanged, as one string."
    meaning = (
        "init_data is malformed, was not signed by Telegram for the project's bot, or does not describe a person in a "
        "private chat."
    )


class InitDataExpired(TaproofError, code="init_data_expired", status=400):
    sentence = "This init_data is more than five minutes old. Close the Mini App and open it again."
    meaning = "auth_date in init_data is five minutes old or older, or more than 30 seconds in the future."


class InitDataUsed(TaproofError, code="init_data_used", status=400):
    sentence = "This init_data has already signed its user in. Close the Mini App and open it again."
    meaning = "init_data has already been used: each one signs in once."


class ProjectBotNeeded(TaproofError, code="project_bot_needed", status=400):
    sentence = (
        "Mini Apps sign in only to projects with a bot of their own. The developer can set bot_token to the token of "
        "the Mini App's bot."
    )
    meaning = "The project uses the service's bot, so there is no bot whose Mini App could sign in."


class PhoneNeeded(TaproofError, code="phone_needed", status=400):
    sentence = (
        "This project requires a phone number, which a Mini App does not provide. Use the sign-in link, or let the "
        "developer set phone_required to false."
    )
    meaning = "The project requires phone numbers, and a Mini App provides none."


class SignInBlocked(TaproofError, code="sign_in_blocked", status=400):
    sentence = "You have blocked sign-ins to this project. To allow them again, send /unblock to the bot."
    meaning = "The user of the Mini App has blocked the project."


class TooManyClients(TaproofError, code="too_many_clients", status=400):
    sentence = "This project has reached the maximum number of OpenID Connect clients. Delete some that are not in use."
    meaning = "The project has 50 OpenID Connect clients."


class PlanLimitReached(TaproofError, code="plan_limit_reached", status=400):
    sentence = (
        "The developer's plan allows no more projects, or no more sign-ins this month. Delete an unused project, wait "
        "for the next month (UTC), or ask the operator of this service for another plan."
    )
    meaning = "The developer's plan allows no more projects, or no more sign-ins this month."


class TooManyAccessTokens(TaproofError, code="too_many_access_tokens", status=400):
    sentence = "You have reached the maximum number of access tokens. Revoke some that you no longer use."
    meaning = "The developer has 100 access tokens that have not expired."


class TooManyProjects(TaproofError, code="too_many_projects", status=400):
    sentence = "You have reached the maximum number of projects. Delete or leave some that you no longer use."
    meaning = "The developer has 1,000 projects of their own, or is a member of 2,000."


class InvalidAccessToken(TaproofError, code="invalid_access_token", status=401):
    sentence = (
        "Send a valid access token (Authorization: Bearer tap_…). Create one on the console's page Access tokens, or "
        "with: taproof tokens create --developer EMAIL."
    )
    meaning = "The access token is missing, malformed, expired or revoked."


class InvalidSecretKey(TaproofError, code="invalid_secret_key", status=401):
    sentence = "Send the project's current secret key: Authorization: Bearer sk_… in the header."
    meaning = "The secret key is missing, malformed or no longer current."


class PublicAccessDisabled(TaproofError, code="public_access_disabled", status=401):
    sentence = "Public access is off for this project. Call /api/v1/generate and /api/v1/verify with its secret key."
    meaning = "Public access is off for this project."


class InsufficientScope(TaproofError, code="insufficient_scope", status=403):
    sentence = "This access token lacks the scope that the call needs. Use a token that has it."
    meaning = "The access token lacks the scope that the call needs; WWW-Authenticate names the scope."

    def __init__(self, scope: str = "write") -> None:
        """Name the missing `scope` in the sentence."""
        super().__init__(f"This needs the scope {scope}, which your access token lacks. Use a token that has it.")
        self.scope = scope


class InsufficientRole(TaproofError, code="insufficient_role", status=400):
    sentence = "Your role in this project does not permit this. Ask an owner of the project."
    meaning = "The developer is a member of the project, but their role does not permit the call."

    def __init__(self, role: str = "viewer", needed: Sequence[str] = ("owner",)) -> None:
        """Name the developer's `role` and the `needed` ones in the sentence."""
        roles = " or ".join(needed)
        super().__init__(
            f"This needs the role {roles} in the project, and yours is {role}. Ask an owner of the project."
        )


class LastOwner(TaproofError, code="last_owner", status=400):
    sentence = "A project needs an owner, and this is its only one. Make another member an owner first."
    meaning = "The member is the project's only owner, so they cannot be removed or get another role."


class AlreadyMember(TaproofError, code="already_member", status=400):
    sentence = "You are a member of this project already. An owner can change your role."
    meaning = "The developer who accepts the invitation is a member of the project already."


class TooManyMembers(TaproofError, code="too_many_members", status=400):
    sentence = "This project has reached the maximum number of members or open invitations. Remove some first."
    meaning = "The project has 100 members or 100 open invitations."


class SignedOut(TaproofError, code="signed_out", status=401):
    sentence = "You were signed out before the change was made, so nothing was changed. Sign in and try again."
    meaning = "The console session ended before the change was made."


class HttpsRequired(TaproofError, code="https_required", status=400):
    sentence = "Use https://. The service accepts plain HTTP only on its own machine's loopback address."
    meaning = "The request came over plain HTTP from another machine."


class HostRequired(TaproofError, code="host_required", status=400):
    sentence = "Send exactly one Host header, with the name of this service. A proxy must send it too."
    meaning = "The request has no Host header, several, or one that is empty or not a host."


class NotFound(TaproofError, code="not_found", status=404):
    sentence = "There is no endpoint at this address. See the list at /docs."
    meaning = "There is no endpoint at this address."


class ProjectNotFound(TaproofError, code="project_not_found", status=404):
    sentence = "There is no such project. Check the project id."
    meaning = "There is no project with this project_id, or it is not yours."


class ClientNotFound(TaproofError, code="client_not_found", status=404):
    sentence = "There is no such client. List a project's with GET /api/v1/dev/projects/:id/clients."
    meaning = "There is no OpenID Connect client with this client_id in the project, or it is not yours."


class GrantNotFound(TaproofError, code="grant_not_found", status=404):
    sentence = "There is no such grant. List a client's with GET /api/v1/dev/projects/:id/clients/:client_id/grants."
    meaning = "The client holds no grant with this id, or it has ended."


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


class CodeChallengeRequired(TaproofError, code="code_challenge_required", status=400):
    sentence = (
        "This session was created without a code_challenge, so anyone with its link could cancel it. Cancel it with "
        "the secret key, or create sessions with a code_challenge."
    )
    meaning = "The session was created without a code_challenge, so it cannot be cancelled without the secret key."


class MemberNotFound(TaproofError, code="member_not_found", status=404):
    sentence = "There is no such member. List a project's with GET /api/v1/dev/projects/:id/members."
    meaning = "The project has no member with this developer_id, or it is not yours."


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
    sentence = "There is no such console session; it may have ended. Reload the list of your sessions."
    meaning = "There is no console session with this id, or it is not yours."


class InvitationNotFound(TaproofError, code="invitation_not_found", status=404):
    sentence = "This invitation is not valid: it was used, was revoked or has expired. Ask for a new one."
    meaning = "The invitation is unknown, used, revoked or expired."


class OwnerOnly(TaproofError, code="owner_only", status=404):
    sentence = "Only an owner of this installation can do this. Ask an owner."
    meaning = "Only owners of the installation can make this call, and you are not one."


class MessengerOnly(TaproofError, code="messenger_only", status=403):
    sentence = "Sign in with the messenger to do this: an access token cannot be used to invite others."
    meaning = (
        "The call was made with an access token; only a developer who signed in with the messenger can invite others."
    )


class IdentityTaken(TaproofError, code="identity_taken", status=400):
    sentence = "This messenger account is already linked to another developer. Sign in with it, or use another account."
    meaning = "The messenger account is already linked to another developer."


class NotTheFirst(TaproofError, code="not_the_first", status=400):
    sentence = (
        "This installation already has a developer, so this link no longer works. Ask an owner for an invitation."
    )
    meaning = "The invitation is for the first developer, and the installation already has one."


class SignInNotFound(TaproofError, code="sign_in_not_found", status=404):
    sentence = "There is no such sign-in. Start a new one."
    meaning = "This service did not issue the device_code, or no longer stores its sign-in."


class AuthorizationPending(TaproofError, code="authorization_pending", status=400):
    sentence = "Not confirmed yet. Open verification_uri_complete in the messenger, tap match_code, and try again."
    meaning = "The sign-in is neither confirmed nor cancelled yet. Try again."


class AccessDenied(TaproofError, code="access_denied", status=400):
    sentence = "The sign-in was cancelled, or a wrong number was tapped. Start a new one with POST /api/v1/login."
    meaning = "The sign-in was cancelled or reported, or the account that confirmed it is not linked to a developer."


class ExpiredToken(TaproofError, code="expired_token", status=400):
    sentence = "This device_code has expired. Start a new sign-in with POST /api/v1/login."
    meaning = "The device_code has expired, or was already exchanged for an access token."


class MethodNotAllowed(TaproofError, code="method_not_allowed", status=405):
    sentence = "This address does not support the request's method. The Allow header lists the supported methods."
    meaning = "The address does not support this method."


class PayloadTooLarge(TaproofError, code="payload_too_large", status=413):
    sentence = "The request body is larger than 16 KiB. Send a smaller one."
    meaning = "The body is larger than 16 KiB."


class UnsupportedContentEncoding(TaproofError, code="unsupported_content_encoding", status=415):
    sentence = "The request body is compressed. Send it uncompressed, without the header Content-Encoding."
    meaning = "The body has a Content-Encoding, such as gzip."


class RateLimited(TaproofError, code="rate_limited", status=429):
    sentence = "Too many requests. Wait for the number of seconds in the Retry-After header, then try again."
    meaning = (
        "There were too many calls from this client address or developer, or for this session or project, or this "
        "developer tried too many bot tokens. The call had no effect."
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
        "The messenger cannot be reached right now, so no deeplink can be created and no bot_token can be checked."
    )


class ErasedMeanwhile(TaproofError, code="erased_meanwhile", status=503):
    sentence = "Some of this data was erased during the export, so the export is not complete. Start it again."
    meaning = "Some of the data was erased during the export. If the response has begun already, it breaks off instead."


class NotReady(TaproofError, code="not_ready", status=503):
    sentence = "This process cannot start sign-ins yet."
    meaning = (
        "The store does not answer or is read-only, or the username of the service's bot is not known yet. The "
        "sentences name each missing part."
    )


class ProjectsNeedOwner(TaproofError, code="projects_need_owner"):
    sentence = "The developer is the only owner of projects. Transfer or delete these projects."

    def __init__(self, email: str = "The developer", names: Sequence[str] = ()) -> None:
        """Name the developer and the projects in the sentence."""
        super().__init__(
            f"{email} is the only owner of: {', '.join(names)}. Add --transfer-to EMAIL to give these projects to "
            "another developer, or --delete-projects to delete them."
        )
        self.names = names


class InternalError(TaproofError, code="internal_error"):
    sentence = "Internal error."
    meaning = "A bug in the service."


class MasterKeyWrong(TaproofError, code="master_key_wrong"):
    sentence = (
        "The master key does not belong to this database. Set TAPROOF_MASTER_KEY to the key that the other nodes use, "
        "or, with SQLite, restore the key file next to the database file."
    )


class DecryptionFailed(TaproofError, code="decryption_failed"):
    sentence = (
        "A stored secret cannot be decrypted: it was altered, moved to another row, or encrypted under another key."
    )


API_ERRORS: Final = tuple(
    error for error in TaproofError.__subclasses__() if error.status != TaproofError.status or error is InternalError
)
"""The errors that the API returns. It returns `InternalError` in place of all other errors."""
