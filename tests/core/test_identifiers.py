"""The form of identifiers, tokens and keys (contract.md, Identifiers and secrets)."""

import base64
import hashlib
import re

from hypothesis import given
from hypothesis import strategies as st

from taproof.core.clock import DAY
from taproof.core.entropy import system_entropy
from taproof.core.identifiers import (
    ALPHABET,
    is_key,
    is_project_id,
    key_hash,
    key_preview,
    new_event_id,
    new_id,
    new_key,
    new_session_id,
    new_session_token,
    new_webhook_secret,
    session_created_at,
    session_key,
)

NOW = 1_795_214_643_127
BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
PREFIXES = st.sampled_from(["sk", "tap"])


@given(st.integers(0, 65_536 * DAY - 1), st.binary(min_size=30, max_size=30))
def test_a_session_token_carries_its_utc_day_and_thirty_random_bytes(now: int, noise: bytes) -> None:
    """The first two bytes are the day of creation, so that a read touches one daily partition."""
    token = new_session_token(now, lambda size: noise[:size])
    raw = base64.urlsafe_b64decode(token + "=")
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", token)
    assert int.from_bytes(raw[:2]) == now // DAY
    assert raw[2:] == noise
    key = session_key(token)
    assert key is not None
    assert key == (now // DAY, hashlib.sha256(token.encode()).digest())


def test_the_day_changes_at_utc_midnight_exactly() -> None:
    """The last millisecond of a day still belongs to it."""
    days = [session_key(new_session_token(instant, system_entropy)) for instant in (DAY - 1, DAY, DAY + 1)]
    assert [key and key.day for key in days] == [0, 1, 1]


@given(st.binary(min_size=32, max_size=32), st.sampled_from(BASE64URL))
def test_only_one_spelling_of_a_token_leads_to_a_session(raw: bytes, last: str) -> None:
    """The last character has two unused bits; a token that sets them is refused."""
    token = base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
    other = token[:-1] + last
    canonical = BASE64URL.index(last) % 4 == 0
    assert (session_key(other) is not None) == canonical


def test_malformed_tokens_are_refused() -> None:
    """Any text that is not a token gives None, never an exception."""
    stem = "A" * 42
    texts = ["", stem, stem + "AA", stem + "A\n", stem + "A=", stem + "+", stem + "/", stem + "\0", " " + stem]
    texts += ["À" + stem, "\ud800" + stem, "A" * 1_000_000]
    texts.append("\u0660" * 43)  # Digits, but not ASCII ones.
    assert [text[:50] for text in texts if session_key(text) is not None] == []


@given(st.binary(min_size=18, max_size=18))
def test_ids_are_letters_and_digits_that_carry_their_randomness(noise: bytes) -> None:
    """Each of the 22 characters spells six random bits: one of 64 values, of which two pairs look the same."""
    made = new_id("proj", lambda size: noise[:size])
    assert is_project_id(made)
    spelled = base64.b64encode(noise).decode()[:22]
    assert made == "proj_" + spelled.replace("+", "A").replace("/", "z")


def test_project_ids_are_recognized_by_their_form() -> None:
    """A malformed id is refused before the store is read."""
    assert is_project_id("proj_" + "a" * 22)
    assert is_project_id("proj_" + "a" * 16)
    stem = "proj_" + "a" * 21
    malformed = ["", "proj_" + "a" * 15, "proj_" + "a" * 41, "PROJ_" + "a" * 22, "sess_" + "a" * 22]
    malformed += [stem + "a\n", stem + "-", stem + "\0", stem + "\ud800", "proj_" + "é" * 22]
    assert [text for text in malformed if is_project_id(text)] == []


@given(PREFIXES, st.binary(min_size=32, max_size=32))
def test_a_new_key_is_a_key_of_its_kind_only(prefix: str, noise: bytes) -> None:
    """The checksum covers the prefix: a secret key cannot pass for an access token."""
    key = new_key(prefix, lambda size: noise[:size])
    other = {"sk": "tap", "tap": "sk"}[prefix]
    assert re.fullmatch(rf"{prefix}_[A-Za-z0-9]{{49}}", key)
    assert is_key(key, prefix)
    assert not is_key(key, other)
    assert not is_key(key.replace(prefix, other, 1), other)


@given(PREFIXES, st.binary(min_size=32, max_size=32), st.data())
def test_every_corruption_of_one_character_is_noticed(prefix: str, noise: bytes, data: st.DataObject) -> None:
    """The checksum refuses a mistyped key, at every place and for every other letter."""
    key = new_key(prefix, lambda size: noise[:size])
    place = data.draw(st.integers(0, len(key) - 1))
    for letter in (*ALPHABET, "_", "-", " ", "\0", "é"):
        if letter != key[place]:
            assert not is_key(key[:place] + letter + key[place + 1 :], prefix)


@given(PREFIXES, st.binary(min_size=32, max_size=32), st.integers(0, 50))
def test_dropping_and_swapping_characters_is_noticed(prefix: str, noise: bytes, place: int) -> None:
    """The checksum refuses the two most common typing errors: a missing character and two swapped neighbours."""
    key = new_key(prefix, lambda size: noise[:size])
    assert not is_key(key[:place] + key[place + 1 :], prefix)
    swapped = key[:place] + key[place : place + 2][::-1] + key[place + 2 :]
    assert swapped == key or not is_key(swapped, prefix)


def test_a_preview_shows_eight_characters_at_most() -> None:
    """The preview does not reveal the rest of the key."""
    key = new_key("sk", system_entropy)
    preview = key_preview(key)
    assert preview == f"sk_{key[3:7]}…{key[-4:]}"
    assert key[7:-4] not in preview


def test_a_key_is_stored_as_its_sha256() -> None:
    """The hash covers the whole key, prefix included."""
    assert key_hash("sk_abc") == hashlib.sha256(b"sk_abc").digest()


def test_a_webhook_secret_has_the_standard_webhooks_form() -> None:
    """A webhook secret is `whsec_` and the base64 of exactly 32 bytes."""
    secret = new_webhook_secret(lambda size: bytes(range(size)))
    assert base64.b64decode(secret.removeprefix("whsec_"), validate=True) == bytes(range(32))


@given(st.integers(0, 62**7 - 2), st.integers(1, 1_000), st.binary(min_size=12, max_size=12))
def test_event_ids_sort_by_time_and_keep_their_randomness(now: int, later: int, noise: bytes) -> None:
    """Ids of one time are adjacent in the store; the fifteen characters after the time are random."""
    first = new_event_id(now, lambda size: noise[:size])
    second = new_event_id(min(now + later, 62**7 - 1), lambda size: noise[:size])
    assert re.fullmatch(r"evt_[A-Za-z0-9]{22}", first)
    assert first < second
    assert first[11:] == second[11:]
    assert first[:11] != second[:11]
    ids = {new_event_id(now, system_entropy) for _ in range(200)}
    assert len({each[11:] for each in ids}) == 200


@given(st.integers(0, 62**7 - 1), st.binary(min_size=15, max_size=15))
def test_a_session_id_contains_its_time_of_creation(now: int, noise: bytes) -> None:
    """An id contains its time of creation exactly, followed by all of the random bytes."""
    made = new_session_id(now, lambda size: noise[:size])
    assert re.fullmatch(r"sess_[A-Za-z0-9]{27}", made)
    assert session_created_at(made) == now
    assert made[12:] == base64.b64encode(noise, b"Az").decode()


def test_malformed_session_ids_have_no_time() -> None:
    """Any text that is not a session id gives None, without a query."""
    stem = "sess_" + "a" * 26
    texts = ["", "sess_", stem, stem + "aa", stem + "-", stem + "a\n", stem + "\0", stem + "\ud800"]
    texts += ["SESS_" + "a" * 27, "proj_" + "a" * 27, "sess_" + "a" * 1_000_000]
    texts.append("sess_" + "a" * 22)  # An id without a time.
    texts.append("sess_" + "\u0660" * 27)  # Digits, but not ASCII ones.
    assert [text[:50] for text in texts if session_created_at(text) is not None] == []
