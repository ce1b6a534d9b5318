"""The error codes of webhook deliveries, each with its sentence for the developer."""

from typing import Final, Literal, cast

AttemptError = Literal[
    "timeout",
    "dns_failed",
    "connection_refused",
    "connection_failed",
    "connection_lost",
    "tls_failed",
    "address_not_allowed",
    "port_not_allowed",
    "invalid_answer",
    "circuit_open",
    "not_signed",
]
"""The reason why there was no response. It is stored with the attempt."""
Refusal = Literal["redirected", "gone", "not_accepted"]
"""The reason why a response did not accept the event. It is not stored but derived from the status."""
ShownError = Literal[AttemptError, Refusal]

SENTENCES: Final[dict[ShownError, str]] = {
    "timeout": "The receiver did not complete its response within 10 seconds. Respond first, then process the event.",
    "dns_failed": "The host name cannot be resolved. Check the webhook URL and the name's DNS records.",
    "connection_refused": "The connection was refused. Check that the receiver is running and listens on this port.",
    "connection_failed": "The connection failed. Check that the receiver can be reached from the internet.",
    "connection_lost": "The connection was closed before the response was complete. Check the receiver's log.",
    "tls_failed": "The TLS connection failed. Check the certificate's expiry date, chain and host name, and that the"
    " receiver supports TLS 1.2 or 1.3.",
    "address_not_allowed": "Webhooks are not sent to the host's address, because it is internal. Use a public address,"
    " or ask the operator of this service to allow this one.",
    "port_not_allowed": "Webhooks are not sent to this port. Use 443, or ask the operator of this service which others"
    " are allowed.",
    "invalid_answer": "The response is not valid HTTP, or its headers are longer than 128 KiB or 2,500 lines. Check"
    " that a web server listens on this port.",
    "circuit_open": "The event was not sent, because all recent attempts failed. The service probes the receiver from"
    " time to time and retries this event on schedule.",
    "not_signed": "The stored event or secret cannot be decrypted, so nothing was sent. Ask the operator of this"
    " service to check the master key.",
    "redirected": "The receiver responded with a redirect. Redirects are not followed. Set webhook_url to the"
    " redirect's target.",
    "gone": "The receiver responded with 410 Gone. This turns the webhook off, except in response to a test. To turn it"
    " on, set webhook_url again.",
    "not_accepted": "The receiver did not answer with a 2xx status, so the event was not accepted. Its response or its"
    " log may show the reason.",
}

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
"""The statuses that name another address. The other 3xx statuses, such as 304, are not redirects."""
_OF_A_NEWER_RELEASE: Final = (
    "There was no response, for a reason that only a newer release of this service can name. Check again after the "
    "update."
)


def attempt_sentence(status: int | None, error: str | None) -> str | None:
    """Return the sentence for a failed attempt, from its stored status and error; None if the event was accepted."""
    code = attempt_error(status, error)
    if code is not None:
        return SENTENCES[code]
    return None if error is None else _OF_A_NEWER_RELEASE


def attempt_error(status: int | None, error: str | None) -> ShownError | None:
    """Return the error code of an attempt, from its stored status and error; None if the event was accepted.

    The result is also None for an unknown code, which a node of a newer release may have stored.
    """
    if error is not None:
        return cast("AttemptError", error) if error in SENTENCES else None
    if status is None or 200 <= status < 300:
        return None
    if status == 410:
        return "gone"
    return "redirected" if status in _REDIRECTS else "not_accepted"
