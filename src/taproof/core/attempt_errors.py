"""The errors of webhook deliveries: each code, and its sentence for the developer."""

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
"""The reason for a missing answer. It is stored with the attempt."""
Refusal = Literal["redirected", "gone", "not_accepted"]
"""The reason why an answer does not accept the event. It is derived from the status whenever it is shown."""
ShownError = Literal[AttemptError, Refusal]

SENTENCES: Final[dict[ShownError, str]] = {
    "timeout": "The receiver did not answer to the end within 10 seconds. Answer first, and work afterwards.",
    "dns_failed": "The host name cannot be resolved. Check the webhook URL and the name's DNS records.",
    "connection_refused": "The connection was refused: nothing listens there. Check that the receiver runs.",
    "connection_failed": "No connection could be made. Check that the receiver can be reached from the internet.",
    "connection_lost": "The connection was closed before the answer was whole. Check the receiver's log.",
    "tls_failed": "The receiver's certificate cannot be verified. Check that it is current, whole and for this host.",
    "address_not_allowed": "The host's address is internal, and nothing is sent there. Use a public address, or ask"
    " the operator of this service to allow it.",
    "port_not_allowed": "Nothing is sent to this port. Use 443, or ask the operator of this service which others"
    " are allowed.",
    "invalid_answer": "What came back is not an HTTP answer. Check that a web server listens there.",
    "circuit_open": "Not sent: the attempts just before it all failed. A probe is made now and then; this event is"
    " tried again as its schedule says.",
    "not_signed": "The stored event or secret cannot be decrypted, so nothing was sent. Ask the operator of this"
    " service to check the master key.",
    "redirected": "The receiver answered with a redirect, and redirects are not followed. Set webhook_url to the"
    " address that it leads to.",
    "gone": "The receiver answered 410 Gone, which turns the webhook off, except in answer to a test. Set webhook_url"
    " again to turn it on.",
    "not_accepted": "The receiver answered with a status that is no 2xx, so the event does not count as taken. Read its"
    " answer, or its log, for the reason.",
}

_OF_A_NEWER_RELEASE: Final = (
    "No answer came, for a reason that only a newer release of this service knows. Look again when its update is done."
)


def attempt_sentence(status: int | None, error: str | None) -> str | None:
    """Return the sentence on a failed attempt, from its stored status and error; None if the event was accepted."""
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
    return "redirected" if 300 <= status < 400 else "not_accepted"
