"""The data of Mini Apps: only what Telegram signed for this bot, in one reading.

Telegram's documentation describes the check and publishes the keys
(https://core.telegram.org/bots/webapps#validating-data-for-third-party-use), but no signed example. The examples below
are from public libraries that use Telegram's production environment. Their hash matches too, with the bot's token.
"""

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from tests.mini_apps import BOT_ID, KEY, PUBLIC_KEY, USER, encoded, fields_at, init_data, signed

from taproof.core.clock import MINUTE, SECOND
from taproof.core.errors import InitDataExpired, InitDataInvalid
from taproof.core.identifiers import session_key
from taproof.core.identity import MessengerIdentity
from taproof.core.mini_apps import (
    CLOCK_SKEW,
    PRODUCTION_KEY,
    TEST_KEY,
    InitData,
    read_init_data,
    require_fresh,
)

START = 1_795_214_643
ACCEPTED = Ed25519PublicKey.from_public_bytes(PUBLIC_KEY)
_USER_OF_TELEGRAM = (
    "user=%7B%22id%22%3A279058397%2C%22first_name%22%3A%22Vladislav%20%2B%20-%20%3F%20%5C%2F%22%2C%22last_name%22%3A%22"
    "Kibenko%22%2C%22username%22%3A%22vdkfrost%22%2C%22language_code%22%3A%22ru%22%2C%22is_premium%22%3Atrue%2C%22"
    "allows_write_to_pm%22%3Atrue%2C%22photo_url%22%3A%22https%3A%5C%2F%5C%2Ft.me%5C%2Fi%5C%2Fuserpic%5C%2F320%5C%2F"
    "4FPEE4tmP3ATHa57u6MqTDih13LTOiMoKoLDRG4PnSA.svg%22%7D&chat_instance=8134722200314281151&chat_type=private"
)
# The tests of @telegram-apps/init-data-node, and the README of Telegram-Mini-Apps/init-data-golang.
OF_TELEGRAM = {
    1_733_584_787: "&signature=zL-ucjNyREiHDE8aihFwpfR9aggP2xiAo3NSpfe-p7IbCisNlDKlo7Kb6G4D0Ao2mBrSgEk4maLSdv6MLIlADQ"
    "&hash=2174df5b000556d044f3f020384e879c8efcab55ddea2ced4eb752e93e7080d6",
    1_733_509_682: "&signature=TYJxVcisqbWjtodPepiJ6ghziUL94-KNpG8Pau-X7oNNLNBM72APCpi_RKiUlBvcqo5L-LAxIc3dnTzcZX_PDg"
    "&hash=a433d8f9847bd6addcc563bff7cc82c89e97ea0d90c11fe5729cae6796a36d73",
}
BOT_OF_TELEGRAM = 7_342_037_359


def read(text: str, bot_id: int = BOT_ID) -> InitData:
    return read_init_data(text, bot_id, ACCEPTED)


def is_refused(text: str, bot_id: int = BOT_ID) -> bool:
    try:
        read(text, bot_id)
    except InitDataInvalid:
        return True
    return False


def test_data_of_telegram(subtests: pytest.Subtests) -> None:
    """Data that Telegram signed is accepted with the key of its environment, and only for its bot."""
    production, test = map(Ed25519PublicKey.from_public_bytes, (PRODUCTION_KEY, TEST_KEY))
    for auth_date, rest in OF_TELEGRAM.items():
        with subtests.test(auth_date=auth_date):
            text = f"{_USER_OF_TELEGRAM}&auth_date={auth_date}{rest}"
            data = read_init_data(text, BOT_OF_TELEGRAM, production)
            assert data.identity == MessengerIdentity("279058397", "Vladislav + - ? / Kibenko", "vdkfrost")
            assert data.auth_date == auth_date * SECOND
            for bot_id, key in ((BOT_OF_TELEGRAM + 1, production), (BOT_OF_TELEGRAM, test)):
                with pytest.raises(InitDataInvalid, match="did not sign"):
                    read_init_data(text, bot_id, key)


def test_every_spelling_is_the_same_session() -> None:
    """Order, encoding and hash can be changed by anyone, so they do not change the session's token."""
    text = init_data(START * SECOND)
    data = read(text)
    spellings = {
        "&".join(reversed(text.split("&"))),
        text.replace("%20", "+").replace("%3A", ":"),
        text.replace("hash=0", "hash=1"),
        text.partition("&hash=")[0],
        text.replace("%7B", "%7b"),
        text.replace("%22", '"').replace("%7B", "{"),
    } - {text}
    assert len(spellings) == 6
    assert {read(spelling) for spelling in spellings} == {data}
    key = session_key(data.session_token)
    assert key is not None
    assert key.day == START // 86_400
    others = [read(init_data(START * SECOND, 1002)), read(init_data((START + 1) * SECOND))]
    others.append(read(init_data(START * SECOND, bot_id=5), 5))
    assert len({data.session_token, *(other.session_token for other in others)}) == 4


def test_user(subtests: pytest.Subtests) -> None:
    """Names are those that the bot would see; a person without a username has ""."""
    for user, identity in (
        (USER, MessengerIdentity("1001", "Ada Lovelace", "ada")),
        ({"id": 2**52 - 1, "first_name": "Зоя 👩‍💻"}, MessengerIdentity(str(2**52 - 1), "Зоя 👩‍💻", "")),
        (
            USER | {"last_name": "", "is_bot": False, "is_premium": True, "x": [1]},
            MessengerIdentity("1001", "Ada", "ada"),
        ),
    ):
        with subtests.test(user=user):
            assert read(signed(fields_at(START, user))).identity == identity


_USERS: list[Any] = [
    "null",
    "[]",
    "{",
    '{"id": 1001, "first_name": "Ada", "id": 1002}',
    '{"id": 1001, "first_name": "Ada", "x": NaN}',
    "[" * 2_000,
    f'{{"id": {"9" * 1_500}, "first_name": "Ada"}}',
    *({key: value for key, value in USER.items() if key != missing} for missing in ("id", "first_name")),
    *(USER | {"id": each} for each in ("1001", 1001.0, True, 0, -1, 2**52, None)),
    *(USER | {"is_bot": each} for each in (True, 1, "false", None)),
    *(USER | {"first_name": each} for each in ("", None, 5, "x" * 257)),
    *(USER | {"last_name": each} for each in (None, 5, "x" * 257)),
    *(USER | {"username": each} for each in (None, 7, ["ada"])),
]
SIGNED_BUT_REFUSED: dict[str, dict[str, str]] = {
    "no user": fields_at(START) | {"user": ""},
    "no auth_date": {name: value for name, value in fields_at(START).items() if name != "auth_date"},
    **{f"user {user!s:.60}": fields_at(START, user) for user in _USERS},
    **{
        f"auth_date {each!r}": fields_at(START) | {"auth_date": each}
        for each in ("", "0", "-1", "1e9", "٣" * 10, "9" * 10, "9" * 12)
    },
    **{f"chat {each}": fields_at(START, chat_type=each) for each in ("group", "supergroup", "channel", "Private", "")},
    "a group of the attachment menu": fields_at(START, chat='{"id":-100,"type":"group","title":"x"}', chat_type=None),
}
TEXT = init_data(START * SECOND)
NOT_SIGNED: dict[str, str] = {
    "empty": "",
    "another bot": init_data(START * SECOND, bot_id=BOT_ID + 1),
    "another key": signed(fields_at(START), key=Ed25519PrivateKey.from_private_bytes(bytes(32))),
    "no signature": encoded(fields_at(START) | {"hash": "0" * 64}),
    "an empty signature": TEXT.replace("signature=", "signature=&x="),
    "a padded signature": TEXT.replace("&hash", "%3D%3D&hash"),
    "a short signature": TEXT.replace("&hash", "&hash", 1).replace("signature=", "signature=A", 1),
    "a zero signature": f"{TEXT.partition('&signature=')[0]}&signature={'A' * 86}",
    "a repeated field": f"{TEXT}&auth_date={START}",
    "a repeated user": f"user=%7B%7D&{TEXT}",
    "a field more": f"{TEXT}&query_id=1",
    "an empty field": f"{TEXT}&",
    "a field without a value": f"{TEXT}&x",
    "an unnamed field": f"{TEXT}&=x",
    "an encoded name": TEXT.replace("auth_date=", "auth%5Fdate="),
    "a name in capitals": TEXT.replace("auth_date=", "AUTH_DATE="),
    "a NUL": TEXT.replace("private", "private%00"),
    "a line feed": TEXT.replace("private", "private%0Ax=1"),
    "a broken escape": TEXT.replace("%7B", "%7G", 1),
    "half an escape": f"{TEXT}&x=%7",
    "no UTF-8": f"{TEXT}&x=%FF",
    "an overlong UTF-8": f"{TEXT}&x=%C0%AF",
    "a surrogate": f"{TEXT}&x=%ED%A0%80",
    "a space": f" {TEXT}",
    "a letter beyond ASCII": TEXT.replace("private", "privaté"),
    "a separator of old": TEXT.replace("&", ";"),
    "too long": f"{TEXT}&x={'1' * 4_096}",
    "too many fields": "&".join(f"{chr(97 + number % 26)}{'x' * (number // 26)}=1" for number in range(40)),
}


def test_signed_data_that_is_refused(subtests: pytest.Subtests) -> None:
    """Correctly signed data is refused if it does not describe a person in a private chat."""
    for name, fields in SIGNED_BUT_REFUSED.items():
        with subtests.test(name):
            assert is_refused(signed(fields))
    # What the refusals above change is accepted as it was.
    assert read(signed(fields_at(START, chat_type=None))).identity.messenger_id == "1001"
    later = fields_at(START, chat_type="sender", a_field_of_2030="1", receiver='{"id":5}')
    assert read(signed(later)).identity.messenger_id == "1001"


def test_hostile_texts(subtests: pytest.Subtests) -> None:
    """Every text that differs from what was signed is refused, however it differs."""
    for name, text in NOT_SIGNED.items():
        with subtests.test(name):
            assert is_refused(text)


def test_a_value_cannot_pass_for_two_fields() -> None:
    """The signed text has a line per field. A line feed in a value would allow two readings, so it is refused."""
    fields = fields_at(START, start_param=f"x\nuser={json.dumps(USER | {'id': 5})}")
    assert is_refused(signed(fields))


def test_age(subtests: pytest.Subtests) -> None:
    """Data signs in from half a minute before `auth_date` until five minutes after it."""
    data = read(TEXT)
    at = START * SECOND
    for now, is_fresh in (
        (at - CLOCK_SKEW - 1, False),
        (at - CLOCK_SKEW, True),
        (at + 5 * MINUTE - 1, True),
        (at + 5 * MINUTE, False),
        (at + 365 * 24 * 60 * MINUTE, False),
    ):
        with subtests.test(now=now):
            if is_fresh:
                require_fresh(data, now)
            else:
                with pytest.raises(InitDataExpired):
                    require_fresh(data, now)
    assert data.expires_at == at + 5 * MINUTE


def test_no_altered_text_signs_in_anybody_else() -> None:
    """A text with a changed or missing character is refused, or is another spelling of the same data."""
    original = read(TEXT)
    for position, character in enumerate(TEXT):
        for other in {"", "a", "Z", "9", "%", "&", "="} - {character}:
            text = TEXT[:position] + other + TEXT[position + 1 :]
            assert is_refused(text) or read(text) == original, text


def test_the_signature_is_of_the_exact_bytes() -> None:
    """A second valid encoding of the signature's number is refused, although it does not create a second session."""
    signature = base64.urlsafe_b64decode(TEXT.partition("signature=")[2][:86] + "==")
    order = 2**252 + 27742317777372353535851937790883648493
    larger = (int.from_bytes(signature[32:], "little") + order).to_bytes(32, "little")
    other = base64.urlsafe_b64encode(signature[:32] + larger).rstrip(b"=").decode()
    assert is_refused(f"{TEXT.partition('&signature=')[0]}&signature={other}")
    assert KEY.public_key() == ACCEPTED
