"""The errors that API calls raise. `except TaproofApiError` catches all of them; each subclass is one cause."""

import re
from typing import Final

_LONGEST_SENTENCE: Final = 500
_SECRET: Final = re.compile(
    r"\b(?:tap|sk|ocs|whsec)_[A-Za-z0-9+/=_-]+|[A-Za-z0-9._~-]{43,}|[0-9]{3,}:[A-Za-z0-9_-]{20,}"
)
"""Possible credentials, session tokens, code verifiers, proofs and bot tokens: a response may echo the request."""


class TaproofApiError(Exception):
    """A call failed. No message contains a credential, a token or a proof.

    Attributes:
        sentence: the problem and the remedy, in the service's words if it sent any.
        status: the HTTP status of the response; None if there was no response.
        code: the response's `X-Error-Code`, such as "project_not_found" or "plan_limit_reached"; "" if it has none.
        retry_after: the seconds to wait before a retry, as the service requests; None if it sent no `Retry-After`.
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
    """The service refuses the request (400 and most other 4xx): the sentence names the field or the reason."""


class AuthenticationFailed(TaproofApiError):
    """The access token or secret key is not valid, or the project's public access is off (401, 403)."""


class NotFound(TaproofApiError):
    """The object does not exist, or it belongs to another project or developer (404)."""


class RateLimited(TaproofApiError):
    """Too many requests (429), even after the retries."""


class ServiceUnavailable(TaproofApiError):
    """The service, or a proxy in front of it, failed or is not ready (5xx), even after the retries."""


class ConnectionFailed(TaproofApiError):
    """No response arrived: no connection, an invalid certificate, or a connection that was lost or too slow.

    The service may have received and carried out the call. Check before you repeat a call that changes something.
    """


class UnexpectedAnswer(TaproofApiError):
    """The response is not from a Taproof service: a redirect, not JSON, too long, or with a field of the wrong type."""


_KINDS: Final = {401: AuthenticationFailed, 403: AuthenticationFailed, 404: NotFound, 429: RateLimited}


def error_of(
    status: int, said: object, *, code: str = "", retry_after: float | None = None, address: str
) -> TaproofApiError:
    """Return the error for a response with a status other than 200.

    `said` is the `error` field of the response's body. It is untrusted: another server may have answered.
    """
    kind: type[TaproofApiError] = UnexpectedAnswer
    if 400 <= status < 500:
        kind = _KINDS.get(status, InvalidRequest)
    elif 500 <= status < 600:
        kind = ServiceUnavailable
    printable = re.sub(r"[^\x20-\x7e\xa0-\u2027\u202f-\U0010ffff]+", " ", said) if isinstance(said, str) else ""
    sentence = _SECRET.sub("…", printable.encode(errors="replace").decode())[:_LONGEST_SENTENCE].strip()
    if kind is UnexpectedAnswer:
        sentence = f"{address} returned HTTP status {status}. Is base_url exactly the address of the service?"
    elif not sentence:
        sentence = f"{address} returned HTTP status {status} and no reason."
    return kind(
        sentence,
        status=status,
        code=code if re.fullmatch(r"[a-z0-9_]{1,60}", code) else "",
        retry_after=retry_after,
    )
