"""sdk/vectors: the Python SDK gives the required result for each proof and webhook."""

import base64
import json
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest

import taproof

VECTORS = Path(__file__).parent.parent.parent / "sdk/vectors"
TOKEN = "T" * 42 + "A"
"""The session token of every case."""


def cases(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((VECTORS / name).read_text("ascii"))
    assert len(found) > 100
    return found


def number(value: Any) -> float:
    """Read a number; JSON has no "NaN" and "Infinity", so they are strings there."""
    return float(value) if isinstance(value, str) else value


class Guard:
    """Answers as the case says, and remembers whether it was called. It is falsy, as an empty container is."""

    def __init__(self, answer: bool) -> None:  # noqa: FBT001
        self.answer = answer
        self.asked: list[tuple[str, int]] = []

    def take(self, session_token: str, expires_at: int) -> bool:
        self.asked.append((session_token, expires_at))
        return self.answer

    def __len__(self) -> int:
        return 0


def told(error: Exception, kind: type[Exception], case: dict[str, Any]) -> dict[str, Any]:
    """Return an error as the vectors name it. Its traceback shows neither the input nor a secret."""
    text = f"{error!r}" + "".join(traceback.format_exception_only(error))
    secrets = case["secret"] if isinstance(case["secret"], list) else [case["secret"]]
    given = [each for each in (TOKEN, "Lovelace", case.get("proof"), *secrets) if isinstance(each, str)]
    hidden = [each.removeprefix("whsec_").strip() for each in given]
    assert not [each for each in hidden if len(each) > 4 and each in text]
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    return {"error": type(error).__name__ if isinstance(error, kind) else "WrongSetting"}


def test_proofs(subtests: pytest.Subtests) -> None:
    """Each proof gives this identity or this error; the guard is called only for a valid one."""
    for case in cases("proofs.json"):
        with subtests.test(case["name"]):
            expected = case["expected"]
            guard = Guard(case.get("guard", True))
            times = {name: number(case[name]) for name in ("now", "leeway") if name in case}
            outcome: dict[str, Any]
            try:
                identity = taproof.verify_proof(
                    case["proof"], case["secret"], project_id=case.get("project_id"), guard=guard, **times
                )
            except (taproof.ProofError, ValueError) as error:
                outcome = told(error, taproof.ProofError, case)
            else:
                outcome = {"identity": {name: getattr(identity, name) for name in taproof.Identity.__slots__}}
            assert outcome == expected
            assert len(guard.asked) == ("identity" in expected or expected["error"] == "ProofAlreadyUsed")


def test_webhooks(subtests: pytest.Subtests) -> None:
    """Each webhook gives this event or this error; `data` is the parsed body."""
    for case in cases("webhooks.json"):
        with subtests.test(case["name"]):
            body = base64.b64decode(case["body"], validate=True)
            times = {name: number(case[name]) for name in ("now", "tolerance") if name in case}
            outcome: dict[str, Any]
            try:
                event = taproof.verify_webhook(body, case["headers"], case["secret"], **times)
            except (taproof.WebhookError, ValueError) as error:
                outcome = told(error, taproof.WebhookError, case)
            else:
                fields = [name for name in taproof.WebhookEvent.__slots__ if name != "data"]
                outcome = {"event": {name: getattr(event, name) for name in fields}}
                assert event.data == json.loads(body)
            assert outcome == case["expected"]


def test_the_files_are_those_that_the_script_makes(tmp_path: Path) -> None:
    """Cases are changed in the script and never in a file: the script writes the same bytes each time."""
    for script in VECTORS.glob("*.py"):
        (tmp_path / script.name).write_bytes(script.read_bytes())
    subprocess.run([sys.executable, "-B", "make.py"], cwd=tmp_path, check=True, timeout=60)
    for name in ("proofs.json", "webhooks.json"):
        assert (tmp_path / name).read_bytes() == (VECTORS / name).read_bytes(), f"Run {VECTORS.name}/make.py."


def test_every_kind_of_outcome_is_there() -> None:
    """The vectors include each error of the SDK, and valid cases."""
    outcomes = {
        case["expected"].get("error", f"good {name}")
        for name in ("proofs.json", "webhooks.json")
        for case in json.loads((VECTORS / name).read_text("ascii"))
    }
    kinds = {each.__name__ for base in (taproof.ProofError, taproof.WebhookError) for each in base.__subclasses__()}
    assert outcomes == kinds | {"WrongSetting", "good proofs.json", "good webhooks.json"}


def plain_proofs(outcome: str) -> list[dict[str, Any]]:
    """Return the cases with this outcome that are for one secret, without leeway and guard, and say HS256."""
    every = json.loads((VECTORS / "proofs.json").read_text("ascii"))
    plain = [case for case in every if isinstance(case["secret"], str) and not {"leeway", "guard"} & case.keys()]
    chosen = [case for case in plain if outcome in {*case["expected"], case["expected"].get("error")}]
    return [case for case in chosen if jwt.get_unverified_header(case["proof"]).get("alg") == "HS256"]


def pyjwt_takes(case: dict[str, Any]) -> bool:
    # Of the claims PyJWT judges by the machine's clock, and of made-up types, nothing is asked here.
    options: Any = {"verify_exp": False, "verify_iat": False, "verify_nbf": False, "verify_aud": False}
    options |= {"verify_sub": False, "verify_jti": False, "require": ["iat", "exp", "iss"]}
    try:
        claims = jwt.decode(case["proof"], case["secret"], algorithms=["HS256"], issuer="taproof", options=options)
    except jwt.InvalidSignatureError:
        return False
    return bool(claims)


def openssl_takes(case: dict[str, Any]) -> bool:
    signed, _, signature = case["proof"].rpartition(".")
    command = ["openssl", "dgst", "-sha256", "-hmac", case["secret"], "-binary"]
    made = subprocess.run(command, input=signed.encode(), capture_output=True, check=True, timeout=60).stdout
    return bool(base64.urlsafe_b64encode(made).rstrip(b"=").decode() == signature)


@pytest.mark.parametrize("takes", [pyjwt_takes, openssl_takes])
def test_others_take_the_same(takes: Callable[[dict[str, Any]], bool]) -> None:
    """A proof is an ordinary JWT: PyJWT and OpenSSL alone accept each valid one and refuse forged ones.

    `jose` and `jsonwebtoken` do so in sdk/js/test/libraries.test.js.
    """
    good, forged = plain_proofs("identity"), plain_proofs("ProofSignatureInvalid")
    assert [case["name"] for case in good if not takes(case)] == []
    assert [case["name"] for case in forged if takes(case)] == []
    assert len(good) > 20
    assert len(forged) > 8
