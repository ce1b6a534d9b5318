"""Encryption at rest: each value is bound to its row, encrypted with the master key, and unreadable if changed."""

import base64
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.errors import DecryptionFailed

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
GOOD = base64.b64encode(bytes(range(32))).decode()
ENCRYPTOR = Encryptor(GOOD)


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8"), max_size=60))
def test_what_was_encrypted_is_opened_again(plaintext: str, associated_data: str) -> None:
    """Any text is decrypted again at any place."""
    assert (
        ENCRYPTOR.decrypt(ENCRYPTOR.encrypt(plaintext, associated_data, system_entropy), associated_data) == plaintext
    )


def test_the_plaintext_is_not_in_the_encrypted_value_and_no_two_are_alike() -> None:
    """A dump of the store shows no secret, and does not show that two rows hold the same one."""
    first, second = (ENCRYPTOR.encrypt(SECRET, "row:1", system_entropy) for _ in range(2))
    assert first != second
    assert b"whsec" not in first


def test_a_value_moved_to_another_row_does_not_open() -> None:
    """After two rows are swapped in the store, neither project's secret decrypts."""
    encrypted = ENCRYPTOR.encrypt(SECRET, "webhook_secret:proj_1", system_entropy)
    for associated_data in ("webhook_secret:proj_2", "event_body:proj_1", "", "webhook_secret:proj_1 "):
        with pytest.raises(DecryptionFailed):
            ENCRYPTOR.decrypt(encrypted, associated_data)


def test_every_flipped_bit_is_noticed() -> None:
    """One flipped bit in version, key id, nonce, ciphertext or tag makes decryption fail."""
    encrypted = ENCRYPTOR.encrypt("short", "row:1", system_entropy)
    for place in range(len(encrypted)):
        for bit in range(8):
            altered = bytearray(encrypted)
            altered[place] ^= 1 << bit
            with pytest.raises(DecryptionFailed):
                ENCRYPTOR.decrypt(bytes(altered), "row:1")


def test_every_shortened_value_is_noticed() -> None:
    """A value that was cut off at any length or extended fails to decrypt with the usual error."""
    encrypted = ENCRYPTOR.encrypt(SECRET, "row:1", system_entropy)
    for length in range(len(encrypted)):
        with pytest.raises(DecryptionFailed):
            ENCRYPTOR.decrypt(encrypted[:length], "row:1")
    with pytest.raises(DecryptionFailed):
        ENCRYPTOR.decrypt(encrypted + b"\0", "row:1")


def keys(count: int) -> list[str]:
    return [new_master_key(system_entropy) for _ in range(count)]


@pytest.mark.parametrize("between", [",", "\n", " , ", "\r\n"])
def test_of_several_keys_the_first_seals_and_all_open(between: str) -> None:
    """Keys are separated by commas or line ends. The first encrypts, and the key id selects the one that decrypts."""
    old, new, other = keys(3)
    both = Encryptor(f"{new}{between}{old}\n")
    for encryptor in (Encryptor(old), Encryptor(new)):
        assert both.decrypt(encryptor.encrypt(SECRET, "row:1", system_entropy), "row:1") == SECRET
    encrypted = both.encrypt(SECRET, "row:1", system_entropy)
    assert Encryptor(new).decrypt(encrypted, "row:1") == SECRET
    for encryptor in (Encryptor(old), Encryptor(other)):
        with pytest.raises(DecryptionFailed):
            encryptor.decrypt(encrypted, "row:1")
    with pytest.raises(DecryptionFailed):
        both.decrypt(Encryptor(other).encrypt(SECRET, "row:1", system_entropy), "row:1")
    with pytest.raises(DecryptionFailed):
        both.decrypt(encrypted, "row:2")


def test_a_value_contains_the_id_of_its_key() -> None:
    """A rotation skips values under the first key, and re-encrypts those under another known key."""
    old, new, other = keys(3)
    both = Encryptor(f"{new},{old}")
    by_new, by_old, by_other = (Encryptor(key).encrypt(SECRET, "row:1", system_entropy) for key in (new, old, other))
    assert [both.is_current(each) for each in (by_new, by_old, by_other, b"", b"real")] == [True, *[False] * 4]
    assert [both.knows(each) for each in (by_new, by_old, by_other, b"", b"real")] == [True, True, *[False] * 3]
    assert both.key_count == 2


def test_keys_that_change_while_serving_hold_from_the_next_use_on() -> None:
    """A change of keys holds from the next use: the new first key encrypts, and a removed key decrypts nothing."""
    old, new = keys(2)
    changes: list[str | None] = []
    encryptor = Encryptor(old, lambda: changes.pop(0) if changes else None)
    by_old = encryptor.encrypt(SECRET, "row:1", system_entropy)
    changes.append(f"{new}\n{old}")
    by_new = encryptor.encrypt(SECRET, "row:1", system_entropy)
    assert Encryptor(new).decrypt(by_new, "row:1") == SECRET
    assert encryptor.decrypt(by_old, "row:1") == SECRET
    changes.append(new)
    with pytest.raises(DecryptionFailed):
        encryptor.decrypt(by_old, "row:1")
    changes.append(f"{new}\n{old}")
    assert encryptor.is_current(by_new)
    assert encryptor.derive_all("x") == [Encryptor(new).derive("x"), Encryptor(old).derive("x")]


@pytest.mark.parametrize(
    "key",
    ["", "A", "A" * 43, "A" * 44, "not base64!", base64.b64encode(bytes(31)).decode(), "é" * 44, "\ud800" * 44]
    + [between.join((GOOD, bad)) for bad in ("A" * 43, "é" * 44) for between in (",", ", ", "\n")]
    + [f",{GOOD}", f"{GOOD},", f"{GOOD},,{GOOD}", f"{GOOD};{GOOD}", f"{GOOD} {GOOD}"],
)
def test_a_key_of_another_form_is_refused_with_a_sentence(key: str) -> None:
    """Anything but the base64 of 32 bytes is refused at once, without repeating the key."""
    with pytest.raises(ValueError, match="base64 of exactly 32 bytes") as refusal:
        Encryptor(key)
    assert not key or key not in str(refusal.value)


def test_both_base64_alphabets_and_a_final_newline_are_accepted() -> None:
    """A key made by `openssl rand -base64 32` works as well as our own, read from a file or not."""
    raw = bytes([0xFB, 0xFF] * 16)
    ours, theirs = base64.urlsafe_b64encode(raw).decode(), base64.b64encode(raw).decode()
    encrypted = Encryptor(ours).encrypt(SECRET, "row:1", system_entropy)
    assert Encryptor(f"{theirs}\n").decrypt(encrypted, "row:1") == SECRET
    assert Encryptor(f"{ours},{theirs}").key_count == 1


def test_derived_secrets_differ_by_purpose_and_by_key_and_are_the_same_on_every_node() -> None:
    """Nodes with one master key derive the same secret. Of several keys, all are accepted, and the first is used."""
    twin = Encryptor(base64.b64encode(bytes(range(32))).decode())
    assert ENCRYPTOR.derive("telegram webhook") == twin.derive("telegram webhook")
    assert ENCRYPTOR.derive("telegram webhook") != ENCRYPTOR.derive("another")
    assert len(ENCRYPTOR.derive("x")) == 64
    old, new = keys(2)
    for first, second in ((old, new), (new, old)):
        assert Encryptor(f"{first},{second}").derive_all("x") == [Encryptor(key).derive("x") for key in (first, second)]
    assert Encryptor(old).derive("x") != Encryptor(new).derive("x")


def test_a_encryptor_does_not_show_its_key(caplog: pytest.LogCaptureFixture) -> None:
    """An encryptor in a log line or a traceback does not show its key."""
    logging.getLogger().warning("%r %s", ENCRYPTOR, ENCRYPTOR)
    assert base64.b64encode(bytes(range(32))).decode() not in caplog.text
    assert repr(bytes(range(32))) not in caplog.text
