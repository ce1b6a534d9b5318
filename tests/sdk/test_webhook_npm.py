"""The npm package of Standard Webhooks accepts what Taproof signs, so a receiver in Node needs no SDK."""

import base64
import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from taproof.core.signature import signature_headers

NPM = Path(__file__).parent.parent / "npm"
OLD = "whsec_" + base64.b64encode(bytes(range(32))).decode()
NEW = "whsec_" + base64.b64encode(bytes(range(32, 64))).decode()
EVENT: dict[str, Any] = {
    "id": "evt_1",
    "event": "auth.confirmed",
    "project_id": "proj_0123456789abcdefABCDEF",
    "session_token": "T" * 42 + "A",
    "messenger_id": "1001",
    "messenger_name": "Зоя 👩‍💻 \u2028",
    "messenger_username": None,
    "confirmed_at": "2026-11-20T22:44:03.127Z",
}
BODY = json.dumps(EVENT, ensure_ascii=False).encode()


def verify(*requests: tuple[str, dict[str, str], bytes]) -> list[Any]:
    """Return the package's result for each secret, headers and body."""
    node = shutil.which("node")
    assert node is not None, "Install node: the npm package is run with it."
    assert (NPM / "node_modules").exists(), "Run scripts/setup.sh test, which installs the npm package."
    asked = [
        {"secret": secret, "headers": headers, "body": base64.b64encode(body).decode()}
        for secret, headers, body in requests
    ]
    done = subprocess.run(
        [node, "verify.mjs"], cwd=NPM, input=json.dumps(asked), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    answers: list[Any] = json.loads(done.stdout)
    return answers


def signed(*secrets: str, age: float = 0) -> dict[str, str]:
    return signature_headers("evt_1", BODY, secrets, int((time.time() - age) * 1000))


def test_the_npm_package_takes_what_is_signed() -> None:
    """Any name survives, and during a rotation a receiver may hold the old secret or the new one."""
    assert verify((OLD, signed(OLD), BODY), (OLD, signed(OLD, NEW), BODY), (NEW, signed(OLD, NEW), BODY)) == [EVENT] * 3


def test_the_npm_package_refuses_what_was_changed() -> None:
    """Body, id, time and secret are all signed, and an old request cannot be replayed."""
    changed = signed(OLD) | {"webhook-id": "evt_2"}
    later = signed(OLD) | {"webhook-timestamp": str(int(time.time()) + 100)}
    assert verify(
        (OLD, signed(OLD), BODY.replace(b"1001", b"1002")),
        (OLD, signed(OLD), BODY + b" "),
        (OLD, changed, BODY),
        (OLD, later, BODY),
        (NEW, signed(OLD), BODY),
        (OLD, signed(OLD, age=400), BODY),
    ) == [None] * 6  # fmt: skip
