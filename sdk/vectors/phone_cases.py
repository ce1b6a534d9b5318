"""The phone number, of a proof and of a webhook: the one thing in either that may be missing."""

# ruff: noqa: INP001 — a script and its parts, no package.

from typing import Any, Final

import proof_cases
import webhook_cases
from signing import OTHER_PROJECT, encoded, inserted, service_header, signed_proof, standard_headers

PHONE: Final = "+4915123456789"
PHONES: Final = {"a phone number": PHONE, "the shortest": "+12345", "the longest": "+123456789012345"}
NO_PHONES: Final[dict[str, Any]] = {
    "null": None, "true": True, "a number": 4915123456789, "a list": [PHONE], "an object": {"number": PHONE},
    "an empty one": "", "a plus alone": "+", "without its plus": PHONE[1:], "with 00 for the plus": f"00{PHONE[1:]}",
    "that begins with 0": "+04915123456", "of 4 digits": "+4915", "of 16 digits": "+" + "1" * 16,
    "that is huge": "+" + "1" * 5000, "with a blank": "+49 15123456789", "with a blank before it": f" {PHONE}",
    "with a line break behind it": f"{PHONE}\n", "with a hyphen": "+49-15123456789", "with letters": "+49151TAPROOF",
    "in full-width digits": "+４９１５１２３４５６７８９", "in Arabic digits": "+٤٩١٥١٢٣٤٥٦٧٨٩",
    "with a full-width plus": f"＋{PHONE[1:]}", "with an extension": f"{PHONE};ext=1", "as a URI": f"tel:{PHONE}",
    "with half a surrogate pair": f"{PHONE}\ud800", "of two numbers": f"{PHONE},{PHONE}",
}  # fmt: skip
"""What is no phone number in E.164, by what is wrong with it."""


def phone_proofs() -> list[dict[str, Any]]:
    """The one claim that may be missing; where it is there, it is checked as the others are."""
    phone = proof_cases.claims(messenger_phone=PHONE)
    return [
        *[
            proof_cases.good(
                f"messenger_phone: {name}",
                signed_proof(proof_cases.claims(messenger_phone=text)),
                identity={"messenger_phone": text},
            )
            for name, text in PHONES.items()
        ],
        proof_cases.good(
            "messenger_phone written with an escape",
            signed_proof(phone.replace(b"+49", b"\\u002b49")),
            identity={"messenger_phone": PHONE},
        ),
        proof_cases.good(
            "messenger_phone inside __proto__", signed_proof(inserted(proof_cases.claims(), b'"__proto__":' + phone))
        ),
        proof_cases.good(
            "messenger_phone inside another claim", signed_proof(proof_cases.claims(x={"messenger_phone": 7}))
        ),
        proof_cases.good("messengerPhone is another claim", signed_proof(proof_cases.claims(messengerPhone=7))),
        *[
            proof_cases.bad(
                f"messenger_phone {name}",
                signed_proof(proof_cases.claims(messenger_phone=value)),
                proof_cases.MALFORMED,
            )
            for name, value in NO_PHONES.items()
        ],
        proof_cases.bad(
            "messenger_phone twice",
            signed_proof(inserted(phone, f'"messenger_phone":"{PHONE}"'.encode())),
            proof_cases.MALFORMED,
        ),
        proof_cases.bad(
            "messenger_phone twice, first null",
            signed_proof(b'{"messenger_phone":null,' + phone[1:]),
            proof_cases.MALFORMED,
        ),
        proof_cases.bad(
            "messenger_phone twice, once in escapes",
            signed_proof(inserted(phone, b'"messenger_phon\\u0065":"+15550001111"')),
            proof_cases.MALFORMED,
        ),
        proof_cases.bad(
            "messenger_phone comes before the project",
            signed_proof(proof_cases.claims(messenger_phone=None, project_id=OTHER_PROJECT)),
            proof_cases.MALFORMED,
        ),
        proof_cases.bad("messenger_phone that was added", tampered(PHONE), proof_cases.INVALID),
    ]


def tampered(phone: str) -> str:
    """Return a proof that was signed without a phone number."""
    head, _, signature = signed_proof(proof_cases.claims()).split(".")
    return f"{head}.{encoded(proof_cases.claims(messenger_phone=phone))}.{signature}"


def phone_webhooks() -> list[dict[str, Any]]:
    """The one field that may be missing; it is looked at in a confirmation only."""
    phone = webhook_cases.body_of(messenger_phone=PHONE)
    nobody = {"messenger_id": None, "messenger_name": None, "messenger_username": None}
    return [
        *[
            webhook_cases.good(
                f"messenger_phone: {name}", webhook_cases.body_of(messenger_phone=text), event={"messenger_phone": text}
            )
            for name, text in PHONES.items()
        ],
        webhook_cases.good(
            "messenger_phone, X-Service-Signature alone",
            phone,
            service_header(phone),
            event={"messenger_phone": PHONE, "signed_at": None},
        ),
        webhook_cases.good("messenger_phone inside __proto__", inserted(webhook_cases.BODY, b'"__proto__":' + phone)),
        webhook_cases.good("messenger_phone inside another field", webhook_cases.body_of(x={"messenger_phone": 7})),
        webhook_cases.good(
            "messenger_phone of a cancellation is not looked at",
            webhook_cases.body_of(webhook_cases.CANCELLED, messenger_phone=7),
            event={"type": "auth.cancelled", **nobody},
        ),
        *[
            webhook_cases.bad(
                f"messenger_phone {name}", webhook_cases.MALFORMED, webhook_cases.body_of(messenger_phone=value)
            )
            for name, value in NO_PHONES.items()
        ],
        webhook_cases.bad(
            "messenger_phone twice", webhook_cases.MALFORMED, inserted(phone, f'"messenger_phone":"{PHONE}"'.encode())
        ),
        webhook_cases.bad(
            "messenger_phone twice, first null", webhook_cases.MALFORMED, b'{"messenger_phone":null,' + phone[1:]
        ),
        webhook_cases.bad(
            "messenger_phone that was added", webhook_cases.INVALID, phone, standard_headers(webhook_cases.BODY)
        ),
    ]
