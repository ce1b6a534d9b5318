"""The webhooks: what holds, and each way in which one does not."""

# ruff: noqa: INP001 — a script and its parts, no package.

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from signing import (
    NOW,
    OTHER_SECRET,
    PROJECT,
    SECRET,
    SECRET_KEY,
    TOKEN,
    changed,
    inserted,
    service_header,
    standard_headers,
)

CONFIRMED: Final[dict[str, Any]] = {
    "id": "evt_1",
    "event": "auth.confirmed",
    "project_id": PROJECT,
    "session_token": TOKEN,
    "messenger_id": "1001",
    "messenger_name": "Ada Lovelace",
    "messenger_username": "ada",
    "confirmed_at": "2026-11-20T22:44:03.127Z",
}
CANCELLED: Final[dict[str, Any]] = {
    "id": "evt_1",
    "event": "auth.cancelled",
    "project_id": PROJECT,
    "session_token": TOKEN,
    "cancelled_at": "2026-11-20T22:44:03.127Z",
}
EXPIRED: Final[dict[str, Any]] = {
    "id": "evt_1",
    "event": "auth.expired",
    "project_id": PROJECT,
    "session_id": "sess_1",
    "session_token_sha256": "ab" * 32,
    "created_at": "2026-11-20T22:34:03.127Z",
    "expired_at": "2026-11-20T22:44:03.127Z",
}
REPORTED: Final[dict[str, Any]] = {
    "id": "evt_1",
    "event": "auth.reported",
    "project_id": PROJECT,
    "session_id": "sess_1",
    "session_token_sha256": "ab" * 32,
    "messenger_id": "1001",
    "was_used": True,
    "reported_at": "2026-11-20T22:44:03.127Z",
}
TEST: Final[dict[str, Any]] = {
    "id": "evt_1",
    "event": "webhook.test",
    "project_id": PROJECT,
    "created_at": "2026-11-20T22:44:03.127Z",
}
MALFORMED: Final = "WebhookMalformed"
INVALID: Final = "WebhookSignatureInvalid"
BODY: Final = changed(CONFIRMED, {})


def body_of(event: Mapping[str, Any] = CONFIRMED, /, **changes: Any) -> bytes:
    """Return the body of an event with changes; `...` leaves a field out."""
    return changed(event, changes)


def good(name: str, body: bytes = BODY, headers: dict[str, str] | None = None, **inputs: Any) -> dict[str, Any]:
    """Return a case that holds; what the event holds otherwise than the good one stands in `event`."""
    event = {
        "id": "evt_1",
        "type": "auth.confirmed",
        "project_id": PROJECT,
        "is_test": False,
        "session_token": TOKEN,
        "session_token_sha256": None,
        "messenger_id": "1001",
        "messenger_name": "Ada Lovelace",
        "messenger_username": "ada",
        "messenger_phone": None,
        "was_used": None,
        "occurred_at": 1_795_214_643.127,
        "signed_at": NOW,
    } | inputs.pop("event", {})
    return case(name, body, headers, {"event": event}, **inputs)


def bad(
    name: str, error: str, body: bytes = BODY, headers: dict[str, str] | None = None, **inputs: Any
) -> dict[str, Any]:
    """Return a case that does not hold."""
    return case(name, body, headers, {"error": error}, **inputs)


def case(
    name: str, body: bytes, headers: dict[str, str] | None, expected: dict[str, Any], **inputs: Any
) -> dict[str, Any]:
    """Return a case in the form that README.md describes. Without headers it has the three that its body needs."""
    given = {"secret": SECRET, "now": NOW, **inputs}
    sent = standard_headers(body) if headers is None else headers
    return {"name": name, "body": base64.b64encode(body).decode(), "headers": sent, **given, "expected": expected}


def webhooks() -> list[dict[str, Any]]:
    """Return all cases, in the order of the file."""
    return [*good_ones(), *by_headers(), *by_time(), *by_signature(), *by_text(), *by_fields(), *by_setting()]


def good_ones() -> list[dict[str, Any]]:
    """Webhooks that hold, by either kind of signature."""
    nobody = {"messenger_id": None, "messenger_name": None, "messenger_username": None}
    by_hash = {"session_token": None, "session_token_sha256": "ab" * 32}
    reported = {"type": "auth.reported", **by_hash, **nobody, "messenger_id": "1001"}
    odd = "א\u202e<b>🦊\u0000\u2028\"\\'👩‍💻"
    both = standard_headers(BODY, [SECRET, OTHER_SECRET])
    own = standard_headers(BODY)
    newer = body_of({"id": "evt_1", "event": "project.paused", "project_id": PROJECT, "session_token": 7, "x": [1]})
    unknown = {"session_token": None, **nobody, "occurred_at": None}
    signature = own["webhook-signature"]
    return [
        good("the event that the service sends", headers=own | service_header(BODY)),
        good("the three standard headers alone"),
        good(
            "X-Service-Signature alone, at any time", BODY, service_header(BODY), now=NOW * 2, event={"signed_at": None}
        ),
        good("header names in any case", headers={name.upper(): value for name, value in own.items()}),
        good(
            "other headers beside", headers={"Host": "a", "__proto__": "b", **own, "Content-Type": "application/json"}
        ),
        good("another X-Service-Signature beside", headers=own | {"X-Service-Signature": "00"}),
        good("two signatures, the old secret", headers=both),
        good("two signatures, the new secret", headers=both, secret=OTHER_SECRET),
        good(
            "the secret after a rotation, of two",
            headers=standard_headers(BODY, [OTHER_SECRET]),
            secret=[SECRET, OTHER_SECRET],
        ),
        good(
            "X-Service-Signature by the second of two secrets",
            BODY,
            service_header(BODY, OTHER_SECRET),
            secret=[SECRET, OTHER_SECRET],
            event={"signed_at": None},
        ),
        good(
            "signatures of other versions beside", headers=own | {"webhook-signature": f"v1a,AAAA v2 {signature}  v1,"}
        ),
        good("no username", body_of(messenger_username=None), event={"messenger_username": None}),
        good("an empty username", body_of(messenger_username=""), event={"messenger_username": None}),
        good("an empty name", body_of(messenger_name=""), event={"messenger_name": ""}),
        good("any name, as it is", body_of(messenger_name=odd), event={"messenger_name": odd}),
        good(
            "a name in UTF-8 and not in escapes",
            json.dumps(CONFIRMED | {"messenger_name": odd}, ensure_ascii=False).encode(),
            event={"messenger_name": odd},
        ),
        good("cancelled", body_of(CANCELLED), event={"type": "auth.cancelled", **nobody}),
        good("expired", body_of(EXPIRED), event={"type": "auth.expired", **by_hash, **nobody}),
        good("reported", body_of(REPORTED), event={**reported, "was_used": True}),
        good("reported, not used", body_of(REPORTED, was_used=False), event={**reported, "was_used": False}),
        good(
            "reported, never confirmed",
            body_of(REPORTED, messenger_id=None, was_used=False),
            event={**reported, "messenger_id": None, "was_used": False},
        ),
        good("a test", body_of(TEST), event={"type": "webhook.test", "is_test": True, "session_token": None, **nobody}),
        good("a test of an event", body_of(test=True), event={"is_test": True}),
        *[good(f"not a test: {json.dumps(each)}", body_of(test=each)) for each in (False, None, 1, "true", [True])],
        good("an event of a newer service", newer, event={"type": "project.paused", **unknown}),
        good(
            "an event that is named like what every object has",
            body_of(TEST, event="constructor"),
            event={"type": "constructor", **unknown},
        ),
        good("a field of a later version", body_of(phone={"number": [1, 2.5, None, True]})),
        good("a field named __proto__", inserted(BODY, b'"__proto__":{"id":"evt_2"}')),
        good("white space around", b" \t\r\n" + BODY + b"\n"),
        good("500 brackets", inserted(BODY, b'"x":' + b"[" * 499 + b"]" * 499)),
        good("numbers of any kind in other fields", inserted(BODY, b'"x":[1e999,-0,1.5E-7,9007199254740993]')),
        *[
            good(f"confirmed_at {text}", body_of(confirmed_at=text), event={"occurred_at": seconds})
            for text, seconds in {
                "2026-11-20T22:44:03Z": 1_795_214_643.0,
                "2026-11-20T22:44:03.1Z": 1_795_214_643.1,
                "2026-11-20T22:44:03.127456Z": 1_795_214_643.127456,
                "1970-01-01T00:00:00.000Z": 0.0,
                "1969-12-31T23:59:59.500Z": -0.5,
                "0001-01-01T00:00:00Z": -62_135_596_800.0,
                "9999-12-31T23:59:59.999999Z": 253_402_300_799.999999,
                "2028-02-29T00:00:00Z": 1_835_395_200.0,
            }.items()
        ],
    ]


def by_headers() -> list[dict[str, Any]]:
    """Headers that are missing or that say something else."""
    own = standard_headers(BODY)
    service = service_header(BODY)
    cases = [
        bad("not signed at all", MALFORMED, headers={"Content-Type": "application/json"}),
        bad("no headers", MALFORMED, headers={}),
    ]
    for name in own:
        rest = {other: value for other, value in own.items() if other != name}
        cases += [
            bad(f"no {name}", MALFORMED, headers=rest),
            bad(f"no {name}, with X-Service-Signature", MALFORMED, headers=rest | service),
            bad(f"{name} empty", MALFORMED, headers=own | {name: ""} | service),
            bad(f"{name} twice", MALFORMED, headers=own | {name.title(): own[name]}),
        ]
    return [
        *cases,
        bad("X-Service-Signature twice", MALFORMED, headers=service | {"x-service-signature": "00"}),
        *[
            bad(f"webhook-timestamp {text!r}", MALFORMED, headers=standard_headers(BODY, timestamp=text))
            for text in [
                f"{NOW}.0", f"-{NOW}", f"+{NOW}", f" {NOW}", f"{NOW} ", f"{NOW}\n", "1e9", "0x10", "NaN", "9" * 13,
                "１７９５２１４６４３",
            ]
        ],
        bad("webhook-id of another event", MALFORMED, headers=standard_headers(BODY, event_id="evt_2")),
        bad("webhook-id with a blank behind it", MALFORMED, headers=standard_headers(BODY, event_id="evt_1 ")),
        bad("another webhook-id than was signed", INVALID, headers=own | {"webhook-id": "evt_2"}),
        bad("another webhook-timestamp than was signed", INVALID, headers=own | {"webhook-timestamp": str(NOW + 1)}),
        bad("a zero before webhook-timestamp", INVALID, headers=own | {"webhook-timestamp": f"0{NOW}"}),
        good("a zero that was signed", headers=standard_headers(BODY, timestamp=f"0{NOW}")),
        bad("what was signed, shifted", INVALID, headers=own | {"webhook-id": f"evt_1.{NOW}"}),
    ]  # fmt: skip


def by_time() -> list[dict[str, Any]]:
    """The window around webhook-timestamp, on both sides of its borders."""
    service = service_header(BODY)
    return [
        good("300 s old", now=NOW + 300),
        bad("more than 300 s old", "WebhookTooOld", now=NOW + 300.5),
        good("300 s ahead", now=NOW - 300),
        bad("more than 300 s ahead", "WebhookFromFuture", now=NOW - 300.5),
        bad(
            "too old, with X-Service-Signature",
            "WebhookTooOld",
            headers=standard_headers(BODY) | service,
            now=NOW + 301,
        ),
        good("no tolerance, at the instant", tolerance=0),
        bad("no tolerance, a little later", "WebhookTooOld", tolerance=0, now=NOW + 0.001),
        bad("no tolerance, a little earlier", "WebhookFromFuture", tolerance=0, now=NOW - 0.001),
        bad("a negative tolerance", "WebhookTooOld", tolerance=-1),
        good("a tolerance without end", tolerance="Infinity", now=0),
        bad("a tolerance that is no number", "WebhookTooOld", tolerance="NaN"),
        bad("a clock that is no number", "WebhookTooOld", now="NaN"),
        bad(
            "the signature comes before the time",
            INVALID,
            headers=standard_headers(BODY, [OTHER_SECRET]),
            now=NOW + 301,
        ),
        bad("the time comes before the body", "WebhookTooOld", b"[]", now=NOW + 301),
    ]


def by_signature() -> list[dict[str, Any]]:
    """Signatures that fit nothing."""
    own = standard_headers(BODY)
    service = service_header(BODY)["X-Service-Signature"]
    signature = own["webhook-signature"]
    raw_key = base64.b64decode(SECRET[6:])
    wrong = {
        "of another version": signature.replace("v1,", "v2,"),
        "without its version": signature.removeprefix("v1,"),
        "of an empty version": signature.replace("v1,", ","),
        "in capital letters": signature.replace("v1,", "V1,"),
        "without padding": signature.rstrip("="),
        "with more padding": f"{signature}=",
        "in base64url": signature.replace("+", "-").replace("/", "_").rstrip("="),
        "cut short": signature[:20],
        "with more behind it": f"{signature}A",
        "after a comma": f"v1,x,{signature}",
        "after a tab": f"v1,x\t{signature}",
        "that is nothing": "v1,",
        "that is a blank": " ",
        "that is not ASCII": "v1,é\udcff",
        "in hex": f"v1,{service}",
    }
    service_wrong = {
        "in capital letters": service.upper(),
        "cut short": service[:63],
        "with more behind it": f"{service}0",
        "with a blank behind it": f"{service} ",
        "with a prefix": f"sha256={service}",
        "that is empty": "",
        "of the other kind": signature,
    }
    return [
        bad("a byte of the body changed", INVALID, BODY.replace(b"1001", b"1002"), own),
        bad("a blank behind the body", INVALID, BODY + b" ", own),
        bad("the body written again", INVALID, json.dumps(CONFIRMED).encode(), own),
        bad("wrong secret", INVALID, headers=standard_headers(BODY, [OTHER_SECRET])),
        bad("none of two secrets", INVALID, secret=[OTHER_SECRET, OTHER_SECRET]),
        bad(
            "wrong secret, right X-Service-Signature",
            INVALID,
            headers=standard_headers(BODY, [OTHER_SECRET]) | service_header(BODY),
        ),
        *[
            bad(f"webhook-signature {name}", INVALID, headers=own | {"webhook-signature": text})
            for name, text in wrong.items()
        ],
        bad("X-Service-Signature of a changed body", INVALID, BODY + b" ", service_header(BODY)),
        bad("X-Service-Signature by another secret", INVALID, headers=service_header(BODY, OTHER_SECRET)),
        bad("X-Service-Signature by the key's bytes", INVALID, headers=service_header(BODY, raw_key.decode("latin-1"))),
        bad("X-Service-Signature by the secret key", INVALID, headers=service_header(BODY, SECRET_KEY)),
        *[
            bad(f"X-Service-Signature {name}", INVALID, headers={"X-Service-Signature": text})
            for name, text in service_wrong.items()
        ],
    ]


def by_text() -> list[dict[str, Any]]:
    """Bodies that are not the JSON of an event, or that two readers could take differently."""
    texts = {
        "nothing": b"",
        "not JSON": b"id=evt_1",
        "JSON cut off": BODY[:-1],
        "two documents": BODY + b"{}",
        "a comma too many": BODY[:-1] + b",}",
        "a list": b"[" + BODY + b"]",
        "a string": json.dumps(BODY.decode()).encode(),
        "null": b"null",
        "a number": b"7",
        "not UTF-8": BODY.replace(b"Ada", b"\xff"),
        "surrogates in UTF-8": BODY.replace(b"Ada", b"\xed\xa0\x80"),
        "a byte order mark": b"\xef\xbb\xbf" + BODY,
        "UTF-16": BODY.decode().encode("utf-16"),
        "a raw tab in a string": BODY.replace(b"Ada", b"A\tda"),
        "a field twice": b'{"id":"evt_2",' + BODY[1:],
        "a field twice, once in escapes": b'{"i\\u0064":"evt_2",' + BODY[1:],
        "a field twice, inside": inserted(BODY, b'"x":[{"a":1,"a":2}]'),
        "NaN": inserted(BODY, b'"x":NaN'),
        "Infinity": inserted(BODY, b'"x":Infinity'),
        "a number of 4301 digits": inserted(BODY, b'"x":' + b"9" * 4301),
        "501 brackets": inserted(BODY, b'"x":' + b"[" * 500 + b"]" * 500),
        "brackets without end": b'{"a":' * 5000,
        "too long": body_of(messenger_name="a" * 65_536),
    }
    return [bad(f"body: {name}", MALFORMED, text) for name, text in texts.items()]


def by_fields() -> list[dict[str, Any]]:
    """Fields that are missing or of another type; what an event does not need is not looked at."""
    times = [
        "2026-13-20T22:44:03.127Z", "2026-02-29T22:44:03.127Z", "2026-04-31T22:44:03Z", "2026-11-00T22:44:03Z",
        "2026-11-20T24:00:00Z", "2026-11-20T22:60:03Z", "2026-11-20T22:44:60Z", "0000-11-20T22:44:03Z",
        "2026-11-20T22:44:03.127", "2026-11-20T22:44:03.127+01:00", "2026-11-20T22:44:03.127z", "2026-11-20t22:44:03Z",
        "2026-11-20 22:44:03Z", "2026-11-20", "2026-11-20T22:44Z", "2026-11-20T22:44:03.Z",
        "2026-11-20T22:44:03.1234567Z",
        "2026-11-20T22:44:03,127Z", "2026-11-20T22:44:03.127Z\n", " 2026-11-20T22:44:03.127Z",
        "+002026-11-20T22:44:03Z",
        "٢٠٢٦-11-20T22:44:03.127Z", "1795214643", "now",
    ]  # fmt: skip
    return [
        *[bad(f"no {name}", MALFORMED, body_of(**{name: ...})) for name in CONFIRMED],
        *[bad(f"{name} 7", MALFORMED, body_of(**{name: 7})) for name in CONFIRMED],
        *[bad(f"{name} a list", MALFORMED, body_of(**{name: ["x"]})) for name in CONFIRMED],
        *[bad(f"{name} half a surrogate pair", MALFORMED, body_of(**{name: "a\udc00"})) for name in CONFIRMED],
        *[
            bad(f"{name} null", MALFORMED, body_of(**{name: None}))
            for name in CONFIRMED
            if name != "messenger_username"
        ],
        *[bad(f"{name} empty", MALFORMED, body_of(**{name: ""})) for name in CONFIRMED if not name.endswith("name")],
        *[bad(f"cancelled, no {name}", MALFORMED, body_of(CANCELLED, **{name: ...})) for name in CANCELLED],
        *[bad(f"expired, no {name}", MALFORMED, body_of(EXPIRED, **{name: ...})) for name in needed(EXPIRED)],
        *[bad(f"reported, no {name}", MALFORMED, body_of(REPORTED, **{name: ...})) for name in needed(REPORTED)],
        *[bad(f"reported, {name} 7", MALFORMED, body_of(REPORTED, **{name: 7})) for name in needed(REPORTED)],
        *[bad(f"test, no {name}", MALFORMED, body_of(TEST, **{name: ...})) for name in TEST],
        *[bad(f"confirmed_at {json.dumps(text)}", MALFORMED, body_of(confirmed_at=text)) for text in times],
        bad("all fields inside __proto__", MALFORMED, b'{"__proto__":' + BODY + b"}"),
        bad("a field that every object has", MALFORMED, body_of(TEST, event="toString", project_id=...)),
    ]


def needed(event: Mapping[str, Any]) -> list[str]:
    """Return the fields that an SDK returns, and therefore checks."""
    return [name for name in event if name not in {"session_id", "created_at"}]


def by_setting() -> list[dict[str, Any]]:
    """Mistakes of the application, told apart from a bad request."""
    secrets: list[Any] = [
        "", [], "whsec_", "whsec_=", "whsec_====", "whsec_a", "whsec_-_-_", SECRET_KEY, [SECRET, ""], f"{SECRET}\n",
        SECRET[6:], SECRET.rstrip("="), [None], 7, {"secret": SECRET},
    ]  # fmt: skip
    return [bad(f"secret {json.dumps(each)}", "WrongSetting", secret=each) for each in secrets]
