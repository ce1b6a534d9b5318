"""verify_proof: which proofs hold, which do not, and that no error gives anything away."""

import base64
import hashlib
import hmac
import json
import subprocess
import sys
import traceback
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import given
from hypothesis import strategies as st
from phonenumbers import COUNTRY_CODE_TO_REGION_CODE as CODES

import taproof
from taproof import (
    Identity,
    MemoryGuard,
    ProofAlreadyUsed,
    ProofError,
    ProofExpired,
    ProofMalformed,
    ProofNotYetValid,
    ProofSignatureInvalid,
    ProofWrongProject,
    verify_proof,
)
from taproof.core.identity import MessengerIdentity as Confirmed
from taproof.core.proof import sign_proof
from taproof.sdk.strict_json import is_phone
from taproof.service.phones import e164_number

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER_SECRET = "whsec_" + base64.b64encode(bytes(range(32, 64))).decode()
SECRET_KEY = "sk_" + "a" * 49
PROJECT = "proj_0123456789abcdefABCDEF"
TOKEN = "T" * 42 + "A"
NOW = 1_760_000_000
CLAIMS: dict[str, Any] = {
    "messenger_id": "1001",
    "messenger_name": "Ada Lovelace",
    "messenger_username": "ada",
    "project_id": PROJECT,
    "session_token": TOKEN,
    "iss": "taproof",
    "iat": NOW,
    "exp": NOW + 300,
}


def segment(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def handmade(payload: bytes, header: bytes = b'{"alg":"HS256","typ":"JWT"}', secret: str = SECRET) -> str:
    """Sign any bytes, also such as PyJWT refuses to sign."""
    signed = f"{segment(header)}.{segment(payload)}"
    return f"{signed}.{segment(hmac.new(secret.encode(), signed.encode(), hashlib.sha256).digest())}"


def proof_of(secret: str = SECRET, /, **changes: Any) -> str:
    """Sign the good claims with changes; `...` leaves a claim out."""
    claims = {name: value for name, value in (CLAIMS | changes).items() if value is not ...}
    return handmade(json.dumps(claims).encode(), secret=secret)


def verify(proof: Any, secret: Any = SECRET, **options: Any) -> Identity:
    given_options: dict[str, Any] = {"project_id": PROJECT, "now": NOW, **options}
    return verify_proof(proof, secret, **given_options)


def rs256_proof() -> str:
    return jwt.encode(CLAIMS, rsa.generate_private_key(65537, 2048), algorithm="RS256")


def public_key_proof() -> str:
    """The classic confusion: an HMAC keyed with a public RSA key, in the hope that the verifier holds that key."""
    public = rsa.generate_private_key(65537, 2048).public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return handmade(json.dumps(CLAIMS).encode(), secret=pem.decode())


def tampered(proof: str, **changes: Any) -> str:
    head, _, signature = proof.split(".")
    return f"{head}.{segment(json.dumps(CLAIMS | changes).encode())}.{signature}"


def test_a_proof_of_the_service_gives_the_identity() -> None:
    """What core/proof.py signs, the SDK verifies, and all eight claims come out (service-spec.md, Proof)."""
    proof = sign_proof(Confirmed("1001", "Ada Lovelace", "ada"), PROJECT, TOKEN, SECRET, NOW * 1000 + 999)
    assert verify(proof) == Identity(
        messenger_id="1001",
        messenger_name="Ada Lovelace",
        messenger_username="ada",
        project_id=PROJECT,
        session_token=TOKEN,
        issuer="taproof",
        issued_at=NOW,
        expires_at=NOW + 300,
    )


def test_a_phone_number_of_the_service_is_part_of_the_identity() -> None:
    """What core/proof.py signs with a number, the SDK verifies; `repr` keeps it, and the session token, out of logs."""
    confirmed = Confirmed("1001", "Ada Lovelace", "ada", "+4915123456789")
    identity = verify(sign_proof(confirmed, PROJECT, TOKEN, SECRET, NOW * 1000))
    assert identity.messenger_phone == "+4915123456789"
    assert "+49" not in repr(identity)
    assert TOKEN not in repr(identity)
    assert verify(proof_of()).messenger_phone is None


def test_no_phone_number_of_the_service_is_refused() -> None:
    """Whatever the service takes for a number, of any country and length, the SDK does too: or nobody could sign in."""
    given = [f"+{code}{first}{'5' * rest}" for code in CODES for first in "0123456789" for rest in range(18)]
    taken = {number for each in given if (number := e164_number(each)) is not None}
    assert len({number[:3] for number in taken}) > 50
    for number in (min(taken, key=len), max(taken, key=len)):
        assert verify(proof_of(messenger_phone=number)).messenger_phone == number
    assert [number for number in taken if not is_phone(number)] == []


def test_the_machines_clock_is_the_default() -> None:
    """Without `now` a fresh proof holds and one of the past does not."""
    with pytest.raises(ProofExpired):
        verify_proof(proof_of(), SECRET)
    assert verify_proof(proof_of(exp=2**40), SECRET).messenger_id == "1001"


def test_the_sdk_stands_alone() -> None:
    """An application that uses it loads nothing of the server's, and no HTTP client before it makes one."""
    program = "import sys, taproof; [getattr(taproof, name) for name in taproof.__all__]; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    ours = {name for name in loaded if name.partition(".")[0] == "taproof"}
    assert all(name == "taproof" or name.startswith(("taproof.sdk", "taproof.contract")) for name in ours), ours
    assert "taproof.sdk.async_client" in ours
    assert not {"pydantic", "fastapi", "starlette", "aiohttp", "apsw", "httpx", "urllib3"} & set(loaded)


def test_checking_proofs_waits_for_no_client() -> None:
    """Whoever only checks proofs imports no more than that needs, and the bare package nothing at all."""
    program = "import sys, taproof; print(*sys.modules); taproof.verify_proof; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    bare, checking = (set(line.split()) for line in done.stdout.splitlines())
    assert not {"jwt", "taproof.sdk"} & bare
    assert "taproof.sdk.proof" in checking
    assert not {"taproof.sdk.client", "taproof.contract.project"} & checking


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A misspelt import fails as for any other package, and `dir` shows what there is."""
    with pytest.raises(AttributeError, match="verify_prof"):
        _ = taproof.verify_prof  # type: ignore[attr-defined]
    assert set(taproof.__all__) <= set(dir(taproof))


@pytest.mark.parametrize(
    ("proof", "secret", "options"),
    [
        pytest.param(proof_of(), [OTHER_SECRET, SECRET], {}, id="rotation: the new secret first"),
        pytest.param(proof_of(OTHER_SECRET), (OTHER_SECRET, SECRET), {}, id="rotation: either secret"),
        pytest.param(proof_of(), SECRET, {"project_id": None}, id="any project that the secret has signed"),
        pytest.param(proof_of(), SECRET, {"now": NOW + 299.9}, id="until the last moment"),
        pytest.param(proof_of(), SECRET, {"now": NOW + 309, "leeway": 10}, id="leeway after the end"),
        pytest.param(proof_of(), SECRET, {"now": NOW - 60}, id="a clock one minute behind"),
        pytest.param(proof_of(messenger_username=""), SECRET, {}, id="no username"),
        pytest.param(proof_of(messenger_name="א\u202e<b>🦊\u0000"), SECRET, {}, id="any name, as it is"),
        pytest.param(proof_of(a_new_claim=[1]), SECRET, {}, id="a claim of a later version"),
    ],
)
def test_proofs_that_hold(proof: str, secret: Any, options: dict[str, Any]) -> None:
    """A good proof is accepted with the secret before or after a rotation, up to its end."""
    assert verify(proof, secret, **options).messenger_id == "1001"


NO_STRINGS: list[Any] = [None, 1, True, [], {"proof": "x"}]
BAD: list[Any] = [
    pytest.param(proof_of(), {"now": NOW + 300}, ProofExpired, id="expired at its last second"),
    pytest.param(proof_of(exp=0), {}, ProofExpired, id="expired long ago"),
    pytest.param(proof_of(), {"leeway": float("nan")}, ProofExpired, id="a leeway that is no number"),
    pytest.param(proof_of(iat=NOW + 61), {}, ProofNotYetValid, id="issued in the future"),
    pytest.param(proof_of(iat=2**53, exp=2**53), {}, ProofNotYetValid, id="issued in a far future"),
    pytest.param(tampered(proof_of(), messenger_id="1"), {}, ProofSignatureInvalid, id="tampered payload"),
    pytest.param(proof_of()[:-2] + "AA", {}, ProofSignatureInvalid, id="tampered signature"),
    pytest.param(proof_of().rpartition(".")[0] + ".", {}, ProofSignatureInvalid, id="signature cut off"),
    pytest.param(proof_of(OTHER_SECRET), {}, ProofSignatureInvalid, id="wrong secret"),
    pytest.param(proof_of(SECRET_KEY), {}, ProofSignatureInvalid, id="signed with the secret key"),
    pytest.param(proof_of(OTHER_SECRET, exp=0), {}, ProofSignatureInvalid, id="signature before all claims"),
    pytest.param(jwt.encode(CLAIMS, "", algorithm="none"), {}, ProofSignatureInvalid, id="alg none"),
    pytest.param(
        jwt.encode(CLAIMS, SECRET.encode() + b"." * 14, algorithm="HS512"),
        {},
        ProofSignatureInvalid,
        id="alg HS512",
    ),
    pytest.param(rs256_proof(), {}, ProofSignatureInvalid, id="alg RS256"),
    pytest.param(public_key_proof(), {}, ProofSignatureInvalid, id="HMAC with a public key"),
    pytest.param(handmade(b"{}", b'{"alg":["HS256"]}'), {}, ProofSignatureInvalid, id="alg of another type"),
    pytest.param(handmade(b"{}", b'{"typ":"JWT"}'), {}, ProofSignatureInvalid, id="no alg"),
    pytest.param(proof_of(project_id="proj_9999999999999999999999"), {}, ProofWrongProject, id="wrong project"),
    pytest.param(proof_of(), {"project_id": ""}, ProofWrongProject, id="an empty project id is no wildcard"),
    pytest.param(proof_of(iss="other"), {}, ProofMalformed, id="wrong iss"),
    pytest.param(proof_of(iss=["taproof"]), {}, ProofMalformed, id="iss a list"),
    pytest.param(proof_of(messenger_id=""), {}, ProofMalformed, id="empty messenger_id"),
    pytest.param(proof_of(exp=10**400), {"leeway": 0.5}, ProofMalformed, id="exp beyond every float"),
    pytest.param(proof_of(iat=-1), {}, ProofMalformed, id="iat before the epoch"),
    pytest.param(proof_of(exp=True), {}, ProofMalformed, id="exp true"),
    pytest.param(proof_of(exp=float("inf")), {}, ProofMalformed, id="exp infinite"),
    pytest.param(proof_of(exp=str(NOW + 300)), {}, ProofMalformed, id="exp a string"),
    pytest.param(proof_of(iat=NOW + 0.5), {}, ProofMalformed, id="iat a fraction"),
    *[pytest.param(proof_of(**{name: ...}), {}, ProofMalformed, id=f"no {name}") for name in CLAIMS],
    *[pytest.param(proof_of(**{name: None}), {}, ProofMalformed, id=f"{name} null") for name in CLAIMS],
    *[pytest.param(proof_of(**{name: 7}), {}, ProofMalformed, id=f"{name} 7") for name in CLAIMS if len(name) > 3],
    pytest.param(handmade(b"[1]"), {}, ProofMalformed, id="payload a list"),
    pytest.param(handmade(b"\xff"), {}, ProofMalformed, id="payload not UTF-8"),
    pytest.param(handmade(b"[" * 8000), {}, ProofMalformed, id="payload nested deep"),
    pytest.param(handmade(b"{}", b"[" * 8000), {}, ProofMalformed, id="header nested deep"),
    pytest.param(handmade(b"{}", b"9" * 5000), {}, ProofMalformed, id="header a huge number"),
    pytest.param(handmade(b"{}", b'{"alg":"HS256","crit":["x"],"x":1}'), {}, ProofMalformed, id="unknown crit"),
    pytest.param(handmade(b"{}", b'{"alg":"HS256","b64":false}'), {}, ProofMalformed, id="detached payload"),
    pytest.param(handmade(b"{}", b'{"alg":"HS256","kid":1}'), {}, ProofMalformed, id="kid of another type"),
    pytest.param(f"{proof_of()}\n", {}, ProofMalformed, id="line break after it"),
    pytest.param(f"{proof_of()}=", {}, ProofMalformed, id="padding: a second spelling"),
    pytest.param(f"{proof_of()}.x", {}, ProofMalformed, id="a fourth part"),
    pytest.param("", {}, ProofMalformed, id="empty"),
    pytest.param("..", {}, ProofMalformed, id="empty parts"),
    pytest.param("not a proof \ud800\0", {}, ProofMalformed, id="garbage"),
    pytest.param(proof_of(messenger_name="a" * 1_000_000), {}, ProofMalformed, id="huge"),
    pytest.param(proof_of().encode(), {}, ProofMalformed, id="bytes"),
    *[pytest.param(value, {}, ProofMalformed, id=f"{value!r}") for value in NO_STRINGS],
]


def test_proofs_that_do_not_hold(subtests: pytest.Subtests) -> None:
    """Each way in which a proof can be bad has its own error, whose traceback holds neither proof nor secret."""
    for case in BAD:
        proof, options, error = case.values
        with subtests.test(str(case.id)):
            with pytest.raises(ProofError) as caught:
                verify(proof, **options)
            assert type(caught.value) is error
            told = f"{caught.value!r}" + "".join(traceback.format_exception_only(caught.value))
            assert SECRET not in told
            assert TOKEN not in told
            assert not (isinstance(proof, str) and len(proof) > 20 and proof in told)
            assert caught.value.__cause__ is None
            assert caught.value.__context__ is None or caught.value.__suppress_context__


@pytest.mark.parametrize(
    "secret",
    [
        "",
        [],
        "whsec_",
        SECRET_KEY,
        [SECRET, SECRET_KEY],
        [SECRET, ""],
        f"{SECRET}\n",
        f" {SECRET}",
        SECRET.removeprefix("whsec_"),
        "-----BEGIN PUBLIC KEY-----",
        SECRET.encode(),
        [None],
        None,
        7,
    ],
)
def test_a_secret_that_is_none_is_the_applications_mistake(secret: Any) -> None:
    """A wrong setting is told apart from a bad proof, before any proof is looked at, and is not shown."""
    with pytest.raises(ValueError, match="secret") as caught:
        verify(proof_of(), secret)
    assert not isinstance(caught.value, ProofError)
    assert SECRET.removeprefix("whsec_") not in str(caught.value)
    assert SECRET_KEY not in str(caught.value)


def test_the_session_token_stays_out_of_the_repr() -> None:
    """An identity may be logged: the token of the session is not in it."""
    identity = verify(proof_of())
    assert TOKEN not in repr(identity)
    assert identity.session_token == TOKEN


@given(
    st.one_of(st.text(), st.binary(), st.from_regex(r"[A-Za-z0-9_-]{0,40}(\.[A-Za-z0-9_-]{0,40}){2}", fullmatch=True))
)
def test_whatever_comes_the_answer_is_a_proof_error(proof: Any) -> None:
    """No input makes the SDK raise anything else: an application catches ProofError and is done."""
    with pytest.raises(ProofError):
        verify(proof)


@given(st.binary(max_size=60), st.binary(max_size=200))
def test_whatever_was_signed_the_answer_is_a_proof_error(header: bytes, payload: bytes) -> None:
    """Also behind a good signature nothing but the spec's claims is taken."""
    with pytest.raises(ProofError):
        verify(handmade(payload, header))
    with pytest.raises(ProofError):
        verify(handmade(payload))


class NotingGuard:
    """Answers as it is told, and keeps what it was asked."""

    def __init__(self, *, answer: bool = True) -> None:
        self.answer = answer
        self.asked: list[tuple[str, int]] = []

    def take(self, session_token: str, expires_at: int) -> bool:
        self.asked.append((session_token, expires_at))
        return self.answer

    def __len__(self) -> int:
        """Be false when empty, as a container is: the guard must be asked all the same."""
        return 0


def test_a_guard_takes_a_proof_once() -> None:
    """The same proof does not sign in twice; another one of the same user does."""
    guard = MemoryGuard(clock=lambda: NOW)
    assert verify(proof_of(), guard=guard).session_token == TOKEN
    with pytest.raises(ProofAlreadyUsed):
        verify(proof_of(), guard=guard)
    with pytest.raises(ProofAlreadyUsed):
        verify(proof_of(OTHER_SECRET), [SECRET, OTHER_SECRET], guard=guard)
    assert verify(proof_of(session_token="another"), guard=guard).session_token == "another"


def test_the_guard_is_asked_last(subtests: pytest.Subtests) -> None:
    """A proof that does not hold uses nothing up: nobody can spoil the good one with it."""
    for case in BAD:
        proof, options, error = case.values
        with subtests.test(str(case.id)):
            guard = NotingGuard()
            with pytest.raises(error):
                verify(proof, guard=guard, **options)
            assert guard.asked == []


@pytest.mark.parametrize(
    ("leeway", "remembered"), [(0, NOW + 300), (10, NOW + 310), (0.5, NOW + 301), (float("inf"), 2**53)]
)
def test_a_used_proof_is_remembered_for_as_long_as_it_would_hold(leeway: float, remembered: int) -> None:
    """With a leeway a proof is accepted beyond its end, so the guard must remember it for longer too."""
    guard = NotingGuard()
    verify(proof_of(), guard=guard, leeway=leeway)
    assert guard.asked == [(TOKEN, remembered)]
    assert type(guard.asked[0][1]) is int


def test_a_refusing_guard_gives_nothing_away() -> None:
    """The error holds neither the proof nor its token."""
    with pytest.raises(ProofAlreadyUsed) as caught:
        verify(proof_of(), guard=NotingGuard(answer=False))
    assert TOKEN not in repr(caught.value)


def test_a_guard_that_fails_signs_nobody_in() -> None:
    """When the guard cannot know, its error comes out: no identity is returned."""

    class Broken:
        def take(self, session_token: str, expires_at: int) -> bool:  # noqa: ARG002 — the names of the protocol.
            raise OSError("The disk is full.")

    with pytest.raises(OSError, match="disk"):
        verify(proof_of(), guard=Broken())
