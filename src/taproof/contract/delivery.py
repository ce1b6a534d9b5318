"""Webhook events, and the attempts to deliver them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, Literal, TypedDict, get_args

from taproof.contract.fields import TIME, Field
from taproof.contract.project import PROJECT_ID, ProjectEvent
from taproof.contract.session import SESSION_ID

EventType = Literal[ProjectEvent, "webhook.test"]
"""The type of a webhook event."""
DeliveryState = Literal["due", "delivered", "failed", "ended"]
"""The state of an event: to be sent, accepted by the receiver, given up after the last retry (dead letter), or ended
because the project's webhook was removed or turned off."""
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
ATTEMPTS_SHOWN: Final = 50
"""The number of latest attempts kept per delivery: a schedule has nine, but an event can be resent without limit."""
EVENT_ID: Final = Field(
    "The event's id.", example="evt_3Qm8ZsVd71LxKcTnYpRw0B", limits={"pattern": "^evt_[A-Za-z0-9]{16,40}$"}
)


class WebhookTest(TypedDict, total=False):
    """A webhook test."""

    event: Annotated[
        EventType,
        Field(
            "The type of the event. Any other type than webhook.test has the fields of a real event with made-up "
            "values, and `test`: true. It is sent even if the project has not chosen it.",
            example="auth.confirmed",
            default="webhook.test",
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryAttempt:
    """One attempt to deliver an event."""

    number: Annotated[int, Field("Counted from 1, across all resends.", example=1)]
    started_at: Annotated[datetime, TIME]
    duration_ms: Annotated[int, Field(example=184)]
    status: Annotated[
        int | None, Field("The HTTP status of the receiver's response; null if there was no response.", example=503)
    ]
    error: Annotated[
        str | None,
        Field(
            "The reason for the failure, and the next step; null if the receiver accepted the event.",
            example=SENTENCES["not_accepted"],
        ),
    ]
    error_code: Annotated[
        str | None,
        Field(
            "The code of the error, from the table under Webhooks; null if a newer release recorded an error that this "
            "release does not know.",
            example="not_accepted",
            limits={"enum": list(get_args(ShownError))},
        ),
    ]
    answer: Annotated[
        str | None,
        Field(
            "The beginning of the response body, at most 1 KiB; null if it is empty. A run of 43 or more characters "
            "from A-Z a-z 0-9 _ - could be a session token and is replaced by …, as is a run of 20 or more at the end "
            "of a truncated body.",
            example="Service Unavailable",
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A webhook event and the attempts to deliver it, without the body that was sent."""

    id: Annotated[str, EVENT_ID]
    event: Annotated[str, Field(limits={"enum": list(get_args(EventType))})]
    project_id: Annotated[str, PROJECT_ID]
    session_id: Annotated[
        str | None,
        Field("The session that the event is about; null for a test.", example=SESSION_ID.example),
    ]
    status: Annotated[
        str,
        Field(
            "due: waiting to be sent or sent again. delivered: the receiver accepted the event. failed: no attempts "
            "are left. ended: the webhook was removed or turned off first.",
            limits={"enum": list(get_args(DeliveryState))},
        ),
    ]
    created_at: Annotated[datetime, TIME]
    next_attempt_at: Annotated[
        datetime | None, Field("null while the event is being sent, or if its status is not due.")
    ]
    sending: Annotated[bool, Field("true while the event is being sent.", example=False)]
    finished_at: Annotated[datetime | None, Field("null while the status is due.", example=None)]
    interrupted_attempts: Annotated[
        int,
        Field(
            "Attempts that were interrupted when the sending process stopped. Some of them may have been sent.",
            example=0,
        ),
    ]
    attempts: Annotated[tuple[DeliveryAttempt, ...], Field(f"The latest {ATTEMPTS_SHOWN} attempts, oldest first.")]
