"""What a call of the API raises. One `except TaproofApiError` is enough; the kinds tell what to do about it."""

import re
from typing import Final

_LONGEST_SENTENCE: Final = 500
_SECRET: Final = re.compile(r"\b(?:tap|sk|whsec)_[A-Za-z0-9+/=_-]+|[A-Za-z0-9._~-]{43,}|[0-9]{3,}:[A-Za-z0-9_-]{20,}")
"""What may be a credential, a session token, a code verifier, a proof or a bot's token: what was sent may be echoed."""


class TaproofApiError(Exception):
    """A call did not succeed. No message holds a credential, a token or a proof.

    Attributes:
        sentence: what went wrong and what to do, as the service said it where it did.
        status: the answer's HTTP status; None when no answer came.
        code: the answer's `X-Error-Code`, such as "project_not_found" or "plan_limit_reached"; "" when it has none.
        retry_after: the seconds after which the service asks to come again; None when it did not say.
    """

    def __init__(
        self, sentence: str, *, status: int | None = None, code: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.status = status
        self.code = code
        self.retry_after = retry_after


class InvalidRequest(TaproofApiError):
    """The service refuses what was asked (400 and most of 4xx): the sentence names the field, or why not now."""


class AuthenticationFailed(TaproofApiError):
    """The access token or secret key is not valid, or the project's public access is off (401, 403)."""


class NotFound(TaproofApiError):
    """There is no such thing, or it belongs to another project or developer (404)."""


class RateLimited(TaproofApiError):
    """Too many requests (429), also after the retries."""


class ServiceUnavailable(TaproofApiError):
    """The service, or a proxy before it, failed or is not ready (5xx), also after the retries."""


class ConnectionFailed(TaproofApiError):
    """No answer came: no connection, a certificate that does not hold, or a connection that was lost or too slow.

    What a call other than a read asked for may have been done all the same: look before you repeat it.
    """


class UnexpectedAnswer(TaproofApiError):
    """What answered is no Taproof service: a redirect, not JSON, too long, or a field that is not as it must be."""


def error_of(
    status: int, said: object, *, code: str = "", retry_after: float | None = None, address: str
) -> TaproofApiError:
    """Return the error that an answer other than 200 stands for.

    Args:
        status: the answer's HTTP status.
        said: the field `error` of its body, or anything: it may not have come from the service.
        code: its `X-Error-Code`.
        retry_after: its `Retry-After`, in seconds.
        address: the service's.
    """
    kind = _kind(status)
    printable = re.sub(r"[^\x20-\x7e\xa0-\u2027\u202f-\U0010ffff]+", " ", said) if isinstance(said, str) else ""
    sentence = _SECRET.sub("…", printable.encode(errors="replace").decode())[:_LONGEST_SENTENCE].strip()
    if kind is UnexpectedAnswer:
        sentence = f"{address} answered with HTTP status {status}. Is base_url exactly the address of the service?"
    elif not sentence:
        sentence = f"{address} answered with HTTP status {status} and no reason."
    return kind(
        sentence,
        status=status,
        code=code if re.fullmatch(r"[a-z0-9_]{1,60}", code) else "",
        retry_after=retry_after,
    )


def _kind(status: int) -> type[TaproofApiError]:
    if status in {401, 403}:
        return AuthenticationFailed
    if status == 404:
        return NotFound
    if status == 429:
        return RateLimited
    if 400 <= status < 500:
        return InvalidRequest
    return ServiceUnavailable if 500 <= status < 600 else UnexpectedAnswer
