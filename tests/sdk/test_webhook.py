"""verify_webhook: which webhooks hold, which do not, and that no error gives anything away."""

import base64
import hashlib
import hmac
import json
import time
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from email.message import Message
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook
from starlette.datastructures import Headers

from taproof import (
    WebhookError,
    WebhookEvent,
    WebhookFromFuture,
    WebhookMalformed,
    WebhookSignatureInvalid,
    WebhookTooOld,
    verify_webhook,
)
from taproof.core.signature import signature_headers

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER_SECRET = "whsec_" + base64.b64encode(bytes(range(32, 64))).decode()
PROJECT = "proj_0123456789abcdefABCDEF"
TOKEN = "T" * 42 + "A"
NOW = 1_795_214_643
CONFIRMED: dict[str, Any] = {
    "id": "evt_1",
    "event": "auth.confirmed",
    "project_id": PROJECT,
    "session_token": TOKEN,
    "messenger_id": "1001",
    "messenger_name": "Ada Lovelace",
    "messenger_username": "ada",
    "confirmed_at": "2026-11-20T22:44:03.127Z",
}
CANCELLED = {
    "id": "evt_1",
    "event": "auth.cancelled",
    "project_id": PROJECT,
    "session_token": TOKEN,
    "cancelled_at": "2026-11-20T22:44:03.127Z",
}
TEST = {"id": "evt_1", "event": "webhook.test", "project_id": PROJECT, "created_at": "2026-11-20T22:44:03.127Z"}
STANDARD = ("webhook-id", "webhook-timestamp", "webhook-signature")


def body_of(event: dict[str, Any] = CONFIRMED, /, **changes: Any) -> bytes:
    """Write an event with changes; `...` leaves a field out."""
    fields = {name: value for name, value in (event | changes).items() if value is not ...}
    return json.dumps(fields, ensure_ascii=False).encode(errors="surrogatepass")


BODY = body_of()


def signed(body: bytes = BODY, *secrets: str, event_id: str = "evt_1", at: float = NOW) -> dict[str, str]:
    return signature_headers(event_id, body, secrets or (SECRET,), int(at * 1000))


def service_signed(body: bytes, secret: str = SECRET) -> dict[str, str]:
    return {"X-Service-Signature": hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}


def without(headers: dict[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in names}


def verify(body: Any = BODY, headers: Any = None, secret: Any = SECRET, **options: Any) -> WebhookEvent:
    return verify_webhook(body, signed(body) if headers is None else headers, secret, **{"now": NOW, **options})


def test_a_confirmed_event_gives_the_identity() -> None:
    """What core/signature.py signs, the SDK verifies, and every field comes out (contract.md, Webhooks)."""
    assert verify() == WebhookEvent(
        id="evt_1",
        type="auth.confirmed",
        project_id=PROJECT,
        session_token=TOKEN,
        messenger_id="1001",
        messenger_name="Ada Lovelace",
        messenger_username="ada",
        occurred_at=datetime(2026, 11, 20, 22, 44, 3, 127000, UTC).timestamp(),
        signed_at=NOW,
        data=CONFIRMED,
    )


def test_a_user_without_a_username_has_none() -> None:
    """contract.md, Webhooks: messenger_username is null when there is none."""
    assert verify(body_of(messenger_username=None)).messenger_username is None


def test_a_cancelled_event_has_no_identity() -> None:
    """It tells of the session and of the time, and of nobody."""
    event = verify(body_of(CANCELLED))
    assert (event.type, event.session_token, event.occurred_at) == ("auth.cancelled", TOKEN, 1_795_214_643.127)
    assert (event.messenger_id, event.messenger_name, event.messenger_username) == (None, None, None)


def test_a_test_event_is_about_nobody() -> None:
    """It has the time at which it was made, and no session."""
    event = verify(body_of(TEST))
    assert (event.type, event.session_token, event.occurred_at) == ("webhook.test", None, 1_795_214_643.127)


@pytest.mark.parametrize("event_type", ["project.paused", "auth.confirmed.v2"])
def test_events_of_a_newer_service_are_returned(event_type: str) -> None:
    """They are the application's to pass over: nothing is asked of their form but an id and a project."""
    event = verify(body_of({"id": "evt_1", "event": event_type, "project_id": PROJECT, "session_token": 7, "new": [1]}))
    assert (event.id, event.type, event.session_token, event.occurred_at) == ("evt_1", event_type, None, None)
    assert event.data["new"] == [1]


def test_the_service_signature_alone_is_enough() -> None:
    """service-spec.md, Authentication: a receiver may go by X-Service-Signature; then no time was signed."""
    event = verify(headers=service_signed(BODY), now=NOW + 1_000_000)
    assert (event.messenger_id, event.signed_at) == ("1001", None)
    with pytest.raises(WebhookSignatureInvalid):
        verify(headers=service_signed(BODY, OTHER_SECRET))


@pytest.mark.parametrize("missing", STANDARD)
def test_the_standard_headers_decide_when_any_of_them_is_there(missing: str) -> None:
    """A request with some of the three is not let through on X-Service-Signature."""
    with pytest.raises(WebhookMalformed, match=missing):
        verify(headers=without(signed(), missing))
    with pytest.raises(WebhookMalformed, match=missing):
        verify(headers=signed() | {missing: ""})
    good = service_signed(BODY)
    with pytest.raises(WebhookSignatureInvalid):
        verify(headers=signed(BODY, OTHER_SECRET) | good)
    with pytest.raises(WebhookTooOld):
        verify(headers=signed(at=NOW - 301) | good)


@pytest.mark.parametrize("secret", [SECRET, OTHER_SECRET, [SECRET, OTHER_SECRET], (OTHER_SECRET, SECRET)])
def test_during_a_rotation_either_secret_holds(secret: Any) -> None:
    """Two signatures are sent during the overlap: a receiver may know the old secret, the new one or both."""
    assert verify(headers=signed(BODY, SECRET, OTHER_SECRET), secret=secret).id == "evt_1"


def test_several_secrets_hold_for_either_header() -> None:
    """A receiver that was given both secrets takes what either has signed, whichever header it is signed in."""
    for signing in (SECRET, OTHER_SECRET):
        assert verify(headers=signed(BODY, signing), secret=[SECRET, OTHER_SECRET]).id == "evt_1"
        assert verify(headers=service_signed(BODY, signing), secret=[SECRET, OTHER_SECRET]).id == "evt_1"


def test_signatures_of_other_versions_are_passed_over() -> None:
    """Standard Webhooks: a sender may add signatures of another kind; one good v1 signature is enough."""
    headers = signed()
    headers["webhook-signature"] = f"v1a,AAAA v2 {headers['webhook-signature']}  v1,"
    assert verify(headers=headers).id == "evt_1"
    headers["webhook-signature"] = signed()["webhook-signature"].replace("v1,", "v2,")
    with pytest.raises(WebhookSignatureInvalid):
        verify(headers=headers)


@pytest.mark.parametrize(
    ("ahead", "tolerance", "error"),
    [
        (-300, 300, None),
        (-301, 300, WebhookTooOld),
        (300, 300, None),
        (301, 300, WebhookFromFuture),
        (0, 0, None),
        (-1, 0, WebhookTooOld),
        (1, 0, WebhookFromFuture),
        (-NOW, float("inf"), None),
        (0, float("nan"), WebhookTooOld),
    ],
)
def test_the_replay_window(ahead: int, tolerance: float, error: type[WebhookError] | None) -> None:
    """A request is taken up to `tolerance` seconds before and after the time that was signed with it."""
    headers = signed(at=NOW + ahead)
    if error is None:
        assert verify(headers=headers, tolerance=tolerance).signed_at == NOW + ahead
    else:
        with pytest.raises(error):
            verify(headers=headers, tolerance=tolerance)


def test_the_machines_clock_is_the_default() -> None:
    """Without `now` a fresh webhook holds and one of the past does not."""
    assert verify_webhook(BODY, signed(at=time.time()), SECRET).id == "evt_1"
    with pytest.raises(WebhookTooOld):
        verify_webhook(BODY, signed(at=time.time() - 400), SECRET)


def test_the_pypi_package_and_the_sdk_take_the_same() -> None:
    """Both ways: standardwebhooks verifies the sender's headers, verify_webhook those that standardwebhooks makes."""
    at = datetime.now(UTC)
    body = body_of(messenger_name="Зоя 👩‍💻")
    assert Webhook(SECRET).verify(body, signed(body, at=at.timestamp()))["messenger_name"] == "Зоя 👩‍💻"
    rotating = signed(body, OTHER_SECRET, SECRET, at=at.timestamp())
    assert Webhook(SECRET).verify(body, rotating) == Webhook(OTHER_SECRET).verify(body, rotating)
    made = {
        "Webhook-Id": "evt_1",
        "Webhook-Timestamp": str(int(at.timestamp())),
        "Webhook-Signature": Webhook(SECRET).sign("evt_1", at, body.decode()),
    }
    assert verify_webhook(body, made, SECRET).messenger_name == "Зоя 👩‍💻"


def spelled(name: str) -> st.SearchStrategy[str]:
    cases = st.lists(st.booleans(), min_size=len(name), max_size=len(name))
    return cases.map(lambda upper: "".join(c.upper() if up else c for c, up in zip(name, upper, strict=True)))


@given(st.data())
def test_headers_come_in_any_order_and_case(data: st.DataObject) -> None:
    """HTTP header names have no case and no order, and there are others among them."""
    items = [*signed().items(), ("Content-Type", "application/json"), ("X-Other", "x")]
    shuffled = data.draw(st.permutations(items))
    assert verify(headers={data.draw(spelled(name)): value for name, value in shuffled}).id == "evt_1"


@pytest.mark.parametrize("secrets", [(SECRET,), (SECRET, OTHER_SECRET)])
def test_every_frameworks_headers_will_do(secrets: tuple[str, ...]) -> None:
    """Starlette's, http.server's and a plain dict: whatever has names and values."""
    headers = signed(BODY, *secrets)
    message = Message()
    for name, value in headers.items():
        message[name] = value
    for each in (headers, Headers(headers), message):
        assert verify(headers=each).id == "evt_1"


@given(st.data(), st.booleans())
def test_any_change_fails(data: st.DataObject, only_service_signature: bool) -> None:  # noqa: FBT001
    """One changed, added or missing byte in the body, in a header that decides or in the secret: it does not hold."""
    headers = service_signed(BODY) if only_service_signature else without(signed(), "X-Service-Signature")
    what = data.draw(st.sampled_from(["body", "secret", *headers]))
    before = {"body": BODY.decode(), "secret": SECRET, **headers}[what]
    at = data.draw(st.integers(0, len(before) - 1))
    letter = data.draw(st.characters(max_codepoint=127 if what == "body" else 255))
    changes = [
        before[:at] + letter + before[at + 1 :],
        before[:at] + letter + before[at:],
        before[:at] + before[at + 1 :],
    ]
    # Blanks around a header's value are no part of it (RFC 9110, 5.5).
    after = data.draw(
        st.sampled_from(changes).filter(lambda text: (text.strip(" ") if what in headers else text) != before)
    )
    body = after.encode() if what == "body" else BODY
    secret = after if what == "secret" else SECRET
    with pytest.raises((WebhookError, ValueError) if what == "secret" else WebhookError):
        verify(body, headers | {what: after} if what in headers else headers, secret)


BAD_BODIES: list[Any] = [
    pytest.param(b"", id="empty"),
    pytest.param(b"not JSON", id="not JSON"),
    pytest.param(b"\xff\xfe", id="not UTF-8"),
    pytest.param(b"\xef\xbb\xbf" + BODY, id="byte order mark"),
    pytest.param(BODY.decode().encode("utf-16"), id="UTF-16"),
    pytest.param(b"[]", id="a list"),
    pytest.param(b"null", id="null"),
    pytest.param(BODY + b"{}", id="two documents"),
    pytest.param(b"[" * 60_000, id="nested deep"),
    pytest.param(b'{"a":' * 10_000, id="objects nested deep"),
    pytest.param(body_of(more=1)[:-2] + b"9" * 60_000 + b"}", id="a huge number"),
    pytest.param(body_of(more=float("nan")), id="NaN"),
    pytest.param(b'{"id": "evt_2", ' + BODY[1:], id="a field twice"),
    pytest.param(body_of(more=[{"a": 1}])[:-3] + b', "a": 2}]}', id="a field twice, inside"),
    pytest.param(body_of(messenger_name="a" * 65_536), id="too long"),
    pytest.param(body_of(id="evt_2"), id="another id than webhook-id"),
    *[pytest.param(body_of(**{name: ...}), id=f"no {name}") for name in CONFIRMED],
    *[pytest.param(body_of(**{name: 7}), id=f"{name} 7") for name in CONFIRMED],
    *[pytest.param(body_of(**{name: ["x"]}), id=f"{name} a list") for name in CONFIRMED],
    *[pytest.param(body_of(**{name: None}), id=f"{name} null") for name in CONFIRMED if name != "messenger_username"],
    *[pytest.param(body_of(**{name: ""}), id=f"{name} empty") for name in CONFIRMED if not name.endswith("name")],
    *[pytest.param(body_of(CANCELLED, **{name: ...}), id=f"cancelled, no {name}") for name in CANCELLED],
    *[pytest.param(body_of(TEST, **{name: ...}), id=f"test, no {name}") for name in TEST],
    *[
        pytest.param(body_of(confirmed_at=value), id=f"confirmed_at {value}")
        for value in [
            "2026-13-20T22:44:03.127Z", "2026-11-20T22:44:03.127", "2026-11-20T22:44:03.127+01:00", "2026-11-20",
            "0000-11-20T22:44:03.127Z", "٢٠٢٦-11-20T22:44:03.127Z", "2026-11-20T22:44:03.127Z\n", "1795214643",
        ]
    ],
]  # fmt: skip


def test_bodies_that_are_no_event(subtests: pytest.Subtests) -> None:
    """Also behind a good signature nothing but an event is taken, and the error's traceback holds nothing of it."""
    for case in BAD_BODIES:
        (body,) = case.values
        with subtests.test(str(case.id)):
            for headers in (signed(body), service_signed(body)):
                if headers.keys() != signed().keys() and body == body_of(id="evt_2"):
                    continue  # X-Service-Signature brings no other id to compare with.
                with pytest.raises(WebhookMalformed) as caught:
                    verify(body, headers)
                told = f"{caught.value!r}" + "".join(traceback.format_exception_only(caught.value))
                assert SECRET not in told
                assert TOKEN not in told
                assert "Ada" not in told
                assert caught.value.__cause__ is None
                assert caught.value.__context__ is None or caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"webhook-timestamp": "1795214643.0"}, WebhookMalformed),
        ({"webhook-timestamp": "-1"}, WebhookMalformed),
        ({"webhook-timestamp": "１７９５２１４６４３"}, WebhookMalformed),
        ({"webhook-timestamp": "9" * 5000}, WebhookMalformed),
        ({"webhook-timestamp": "1795214643\n"}, WebhookMalformed),
        ({"Webhook-Timestamp": str(NOW)}, WebhookMalformed),
        ({"webhook-id": "evt_\udcff"}, WebhookSignatureInvalid),
        ({"webhook-signature": "\udcff\ud800 é v1"}, WebhookSignatureInvalid),
        ({"webhook-signature": "v1,"}, WebhookSignatureInvalid),
        ({"webhook-signature": " "}, WebhookSignatureInvalid),
    ],
)
def test_hostile_headers(changes: dict[str, str], error: type[WebhookError]) -> None:
    """A header may hold anything; one that comes twice is refused, since others may have gone by the other value."""
    with pytest.raises(WebhookError) as caught:
        verify(headers=signed() | changes)
    assert type(caught.value) is error


def test_a_request_that_is_not_signed() -> None:
    """Without any signature there is nothing to check, and the sentence says so."""
    with pytest.raises(WebhookMalformed, match="not signed"):
        verify(headers={"Content-Type": "application/json"})


@given(st.binary(), st.dictionaries(st.sampled_from([*signed(), "X-Other"]), st.text()))
def test_whatever_comes_the_answer_is_a_webhook_error(body: bytes, headers: Mapping[str, str]) -> None:
    """No request makes the SDK raise anything else: an application catches WebhookError and is done."""
    with pytest.raises(WebhookError):
        verify(body, headers)


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=5))
def test_whatever_was_signed_the_answer_is_an_event_or_a_webhook_error(value: Any) -> None:
    """Whatever a field holds, also behind a good signature, the event is of its types or there is none."""
    for name in CONFIRMED:
        body = json.dumps(CONFIRMED | {name: value}).encode()
        try:
            event = verify(body, service_signed(body))
        except WebhookError:
            continue
        assert isinstance(event.id, str)
        assert isinstance(event.messenger_name, str | None)


@pytest.mark.parametrize(
    "secret",
    ["", [], "whsec_", "whsec_=", "whsec_====", "whsec_a", "whsec_-_-_", "sk_" + "a" * 49, [SECRET, ""], f"{SECRET}\n",
     SECRET.removeprefix("whsec_"), SECRET.encode(), [None], None, 7],
)  # fmt: skip
def test_a_secret_that_is_none_is_the_applications_mistake(secret: Any) -> None:
    """A wrong setting is told apart from a bad request, before any request is looked at, and is not shown."""
    with pytest.raises(ValueError, match="secret") as caught:
        verify(secret=secret)
    assert SECRET.removeprefix("whsec_") not in str(caught.value)


@pytest.mark.parametrize("body", ["{}", None, {}, bytearray(BODY), memoryview(BODY)])
def test_a_body_that_was_decoded_is_the_applications_mistake(body: Any) -> None:
    """Only the bytes that came can be checked; a server that gives anything else is told so at its first request."""
    with pytest.raises(TypeError, match="bytes"):
        verify(body, signed())


@pytest.mark.parametrize(
    "headers",
    [None, [("webhook-id", "evt_1")], {"webhook-id": ["evt_1"]}, {"webhook-id": b"evt_1"}, {b"webhook-id": "evt_1"}],
)
def test_headers_that_are_no_strings_are_the_applications_mistake(headers: Any) -> None:
    """Lists of values and raw bytes are refused with a sentence, not taken for missing headers."""
    with pytest.raises(TypeError, match="header"):
        verify_webhook(BODY, headers, SECRET)


def test_the_session_token_stays_out_of_the_repr() -> None:
    """An event may be logged, and kept in a set: the token of the session is not in what is shown."""
    event = verify()
    assert TOKEN not in repr(event)
    assert hash(event) == hash(verify())
