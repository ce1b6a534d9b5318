"""The programs of docs/reference/proof.md, run unchanged, accept a valid proof and refuse each kind of bad one."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jwt
import pytest

import taproof
from taproof.core.identity import MessengerIdentity
from taproof.core.proof import sign_proof

PAGE = (Path(__file__).parent.parent.parent / "docs/reference/proof.md").read_text(encoding="utf-8")
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw3Rk0vWq7n1c="
OTHER_SECRET = "whsec_AAAQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw3Rk0vWq7n1c="
PROJECT = "proj_0123456789abcdefABCDEF"
IDENTITY = MessengerIdentity("123456789", "Ada Lovelace", "")
AGAIN = {"python": 'check_proof(os.environ["PROOF"])', "js": "checkProof(PROOF);"}


def signed(changes: dict[str, Any], secret: str = SECRET, algorithm: str = "HS256") -> str:
    """Sign the claims of a valid proof with these changes; a claim changed to None is left out."""
    now = int(time.time())
    good = jwt.decode(proof(), options={"verify_signature": False}) | {"iat": now, "exp": now + 300}
    claims = {name: value for name, value in (good | changes).items() if value is not None}
    return jwt.encode(claims, "" if algorithm == "none" else secret, algorithm=algorithm)


def proof() -> str:
    return sign_proof(IDENTITY, PROJECT, "T" * 42 + "A", SECRET, int(time.time() * 1000))


def run(language: str, the_proof: str, more: str = "", secrets: str = SECRET) -> subprocess.CompletedProcess[str]:
    """Run the page's last program in a language, with `more` after it."""
    program = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)[-1] + more
    node = shutil.which("node")
    assert node is not None, "Install node: the page's JavaScript is run with it."
    command = [sys.executable, "-c", program] if language == "python" else [node, "-e", program]
    settings = {"PROOF": the_proof, "TAPROOF_WEBHOOK_SECRET": secrets, "TAPROOF_PROJECT_ID": PROJECT}
    return subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("language", ["python", "js"])
def test_a_good_proof_is_accepted_once(language: str) -> None:
    """The program prints the user; the same proof again is refused (the page's check 5)."""
    done = run(language, proof())
    assert (done.returncode, done.stdout) == (0, "123456789\n"), done.stderr
    again = run(language, proof(), AGAIN[language])
    assert (again.returncode, again.stdout) == (1, "123456789\n")
    assert "used already" in again.stderr


@pytest.mark.parametrize("language", ["python", "js"])
@pytest.mark.parametrize(
    ("bad", "word"),
    [
        (lambda: signed({}, OTHER_SECRET), "signature"),
        (lambda: signed({}, algorithm="none"), "signature|alg"),
        (lambda: signed({}, algorithm="HS384"), "signature|alg"),
        (lambda: proof()[:-4] + "AAAA", "signature"),
        (lambda: signed({"exp": int(time.time()) - 10}), "expired"),
        (lambda: signed({"iss": "somebody"}), "issuer"),
        (lambda: signed({"project_id": "proj_" + "9" * 22}), "another project"),
        (lambda: signed({"iat": int(time.time()) + 600}), "future|not yet valid"),
        *[(lambda name=name: signed({name: None}), "missing") for name in ("session_token", "messenger_id", "exp")],
        (lambda: "no.proof", "JWT|segments"),
    ],
    ids=[
        "another secret", "unsigned", "HS384", "altered", "expired", "issuer", "project", "future",
        "no session_token", "no messenger_id", "no exp", "no JWT",
    ],
)  # fmt: skip
def test_a_bad_proof_is_refused(language: str, bad: Any, word: str) -> None:
    """The programs make each check that the page requires, and name it."""
    done = run(language, bad())
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert re.search(word, done.stderr, re.IGNORECASE), done.stderr


@pytest.mark.parametrize("language", ["python", "js"])
def test_during_a_rotation_either_secret_will_do(language: str) -> None:
    """Each of several secrets is tried; without a secret, or with an empty one, nothing is accepted."""
    for secrets in (f"{SECRET},{OTHER_SECRET}", f"{OTHER_SECRET} {SECRET}", f"{OTHER_SECRET}, {SECRET}"):
        done = run(language, proof(), secrets=secrets)
        assert (done.returncode, done.stdout) == (0, "123456789\n"), done.stderr
    forged = signed({}, "\0" * 32)  # HMAC pads its key with zeros, so to it this is the empty one.
    for secrets in ("", " ", f"{OTHER_SECRET} {OTHER_SECRET}"):
        done = run(language, forged, secrets=secrets)
        assert (done.returncode, done.stdout) == (1, "")
        assert "signature" in done.stderr


def test_the_claims_and_the_exceptions_are_those_of_the_code() -> None:
    """The page's two tables name each claim of a proof and each exception of verify_proof."""
    claims = jwt.decode(proof(), options={"verify_signature": False})
    assert re.findall(r"^\| `(\w+)` \| (?:string|integer) \|", PAGE, re.MULTILINE) == list(claims)
    errors = {name for name in taproof.__all__ if name.startswith("Proof") and isinstance(getattr(taproof, name), type)}
    assert set(re.findall(r"^\| `(\w*Error|Proof\w+)` \|", PAGE, re.MULTILINE)) == errors | {"ValueError"}
