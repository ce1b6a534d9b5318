"""Why an attempt to deliver a webhook event got no answer: every code, and the sentence that a developer reads."""

from typing import Final, Literal

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

SENTENCES: Final[dict[AttemptError, str]] = {
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
}
