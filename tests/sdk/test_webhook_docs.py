"""docs/webhooks.md: its programs, run as they stand, take what is sent and nothing else; its numbers are the code's."""

import base64
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast, get_args

import httpx
import pytest
from prometheus_client import CollectorRegistry

import taproof.sdk
from taproof.core.attempt_errors import SENTENCES
from taproof.core.clock import DAY, HOUR, MINUTE, SECOND
from taproof.core.model import DeliveryState, EventType
from taproof.core.retry_schedule import RETRY_DELAYS, next_attempt_at
from taproof.core.signature import signature_headers
from taproof.sdk import verify_webhook
from taproof.service.projects import OVERLAP_LIMIT
from taproof.service.webhooks import ANSWER_KEPT, FAILING_LIMIT, SEND_TIMEOUT
from taproof.web.developer_api import PAGE_LIMIT, build_developer_api
from taproof.web.metrics import Metrics
from taproof.web.openapi import build_openapi
from taproof.web.schemas import AttemptAnswer, RotateWebhookSecret
from taproof.worker import endpoints

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/webhooks.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())
SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER_SECRET = "whsec_" + base64.b64encode(bytes(range(32, 64))).decode()


def programs(language: str) -> list[str]:
    """Return the page's programs in a language; those in a list are indented."""
    return re.findall(rf"^ *```{language}\n(.*?)^ *```$", PAGE, re.DOTALL | re.MULTILINE)


def table(heading: str) -> list[list[str]]:
    """Return the cells of the table that has this first line."""
    (rows,) = re.findall(rf"^{re.escape(heading)}\n\|[-|]+\|\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows.splitlines()]


BODIES = [program.encode() for program in programs("json")]
BODY = BODIES[0]
EVENT = json.loads(BODY)


def signed(body: bytes = BODY, secrets: Sequence[str] = (SECRET,), age: float = 0) -> dict[str, str]:
    return signature_headers(json.loads(body)["id"], body, secrets, int((time.time() - age) * 1000))


def test_the_bodies_are_those_of_the_events() -> None:
    """One example of each type of event, which verify_webhook takes."""
    events = [verify_webhook(body, signed(body), SECRET) for body in BODIES]
    assert [event.type for event in events] == list(get_args(EventType))
    assert EVENT.keys() - {"id", "event"} == {
        "project_id", "session_token", "messenger_id", "messenger_name", "messenger_username", "confirmed_at",
    }  # fmt: skip


# ---- the programs


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> httpx.AsyncClient:
    """The page's receiver, as it stands."""
    monkeypatch.setenv("WEBHOOK_SECRETS", f"{SECRET} {OTHER_SECRET}")
    (program,) = programs("python")
    # FastAPI looks for the type of `request` in the module that the function says to be from.
    names: dict[str, Any] = {"__name__": "receiver_of_the_docs"}
    exec(compile(program, "docs/webhooks.md", "exec"), names)  # noqa: S102 — it is this repository's own.
    return httpx.AsyncClient(transport=httpx.ASGITransport(names["app"]), base_url="http://receiver.test")


async def test_the_receiver_handles_each_event_once(
    receiver: httpx.AsyncClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """An event that comes again is taken and passed over, also under the other secret; one of each type is taken."""
    for secrets in ([SECRET], [SECRET], [OTHER_SECRET], [SECRET, OTHER_SECRET]):
        answer = await receiver.post("/hooks/taproof", content=BODY, headers=signed(secrets=secrets))
        assert answer.status_code == 204
    for body in BODIES:
        assert (await receiver.post("/hooks/taproof", content=body, headers=signed(body))).is_success
    assert capsys.readouterr().out == f"{EVENT['messenger_id']} signed in.\n"


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (BODY + b" ", signed()),
        (BODY, signed() | {"webhook-id": "evt_2"}),
        (BODY, signed(secrets=["whsec_" + base64.b64encode(bytes(32)).decode()])),
        (BODY, signed(age=400)),
        (BODY, {}),
        (b"", signed()),
    ],
    ids=["changed body", "changed id", "another secret", "too old", "unsigned", "empty"],
)
async def test_the_receiver_refuses_what_does_not_hold(
    receiver: httpx.AsyncClient, body: bytes, headers: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """It answers 401 with the reason, and does nothing."""
    answer = await receiver.post("/hooks/taproof", content=body, headers=headers)
    assert answer.status_code == 401
    assert answer.text.endswith(".")
    assert capsys.readouterr().out == ""


def javascript(body: bytes, headers: dict[str, str]) -> subprocess.CompletedProcess[str]:
    node = shutil.which("node")
    assert node is not None, "Install node: the page's JavaScript is run with it."
    (program,) = programs("js")
    program += "const { body, headers } = JSON.parse(process.env.REQUEST);"
    program += "console.log(checkWebhook(Buffer.from(body, 'base64'), headers).id);"
    request = json.dumps({"body": base64.b64encode(body).decode(), "headers": headers})
    return subprocess.run(
        [node, "--input-type=module", "-e", program],
        cwd=ROOT / "tests/npm",
        env=os.environ | {"WEBHOOK_SECRET": SECRET, "REQUEST": request},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_javascript_takes_what_is_sent_and_nothing_else() -> None:
    """The page's function returns the event, and throws when the body was changed."""
    done = javascript(BODY, signed())
    assert (done.returncode, done.stdout) == (0, f"{EVENT['id']}\n"), done.stderr
    changed = javascript(BODY + b" ", signed())
    assert (changed.returncode, changed.stdout) == (1, "")
    assert "No matching signature" in changed.stderr


def openssl(
    place: Path, body: bytes | None, signature: str, secret: str = SECRET, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the page's lines of shell, as they stand, with a POSIX shell."""
    (place / "body").unlink(missing_ok=True)
    if body is not None:
        (place / "body").write_bytes(body)
    (program,) = programs("sh")
    settings = os.environ | {"SIGNATURE": signature, "WEBHOOK_SECRET": secret} | environment
    return subprocess.run(
        ["/bin/sh", "-c", program], cwd=place, env=settings, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("body", [*BODIES, b"", b"\n\n", bytes(range(256)), BODY * 500])
def test_openssl_takes_the_service_signature(tmp_path: Path, body: bytes) -> None:
    """Plain OpenSSL verifies X-Service-Signature over any bytes, and prints nothing."""
    good = signature_headers("evt_1", body, [SECRET], 0)["X-Service-Signature"]
    done = openssl(tmp_path, body, good)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert openssl(tmp_path, body + b"\n", good).returncode != 0


GOOD = signed()["X-Service-Signature"]


@pytest.mark.parametrize(
    ("body", "signature", "changes"),
    [
        (BODY, "", {}),
        (BODY, GOOD[:-1], {}),
        (BODY, f"{GOOD}\n", {}),
        (BODY, GOOD.upper(), {}),
        (BODY, GOOD[:-1] + ("0" if GOOD[-1] != "0" else "1"), {}),
        (BODY, GOOD, {"secret": OTHER_SECRET}),
        (BODY, GOOD, {"secret": ""}),
        (BODY, "", {"secret": ""}),
        (None, GOOD, {}),
        (None, "", {}),
        (BODY, GOOD, {"PATH": "/nowhere"}),
        (BODY, "", {"PATH": "/nowhere"}),
    ],
)
def test_openssl_refuses_everything_else(
    tmp_path: Path, body: bytes | None, signature: str, changes: dict[str, str]
) -> None:
    """Nothing is taken when the signature is wrong, nor when there is no body, no secret or no OpenSSL at all."""
    assert openssl(tmp_path, body, signature, **changes).returncode != 0


@pytest.mark.parametrize("failed", [[], ["evt_1"], ["evt_1", "evt_2"]])
def test_the_lines_after_an_outage_resend_each_event(tmp_path: Path, failed: list[str]) -> None:
    """They ask for what was given up, and send each of these events again; nothing, when there is none."""
    page = json.dumps({"deliveries": [{"id": each, "status": "failed"} for each in failed], "next_cursor": None})
    (tmp_path / "page.json").write_text(page, encoding="utf-8")
    curl = tmp_path / "curl"
    curl.write_text('#!/bin/sh\necho "$*" >> called\ncase "$*" in *resend*) ;; *) cat page.json ;; esac\n', "utf-8")
    curl.chmod(0o755)
    variables, program = programs("bash")[:2]
    settings = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "BASE": "B", "PROJECT_ID": "P", "ACCESS_TOKEN": "T"}
    program = f"{variables.splitlines()[0]}\n{program}"
    subprocess.run(["bash", "-euc", program], cwd=tmp_path, env=os.environ | settings, timeout=60, check=True)
    asked, *resent = (tmp_path / "called").read_text("utf-8").splitlines()
    bearer = "-H Authorization: Bearer T"
    assert asked == f"-sS B/api/v1/dev/projects/P/deliveries?status=failed&limit=200 {bearer}"
    assert resent == [f"-sS -X POST B/api/v1/dev/deliveries/{each}/resend {bearer}" for each in failed]


# ---- the numbers and names


def duration(milliseconds: int) -> str:
    size, unit = next(each for each in ((HOUR, "h"), (MINUTE, "min"), (SECOND, "s")) if milliseconds % each[0] == 0)
    return f"{milliseconds // size} {unit}"


def test_the_schedule_is_the_codes() -> None:
    """The retries, how much later they may be, and how long they take in all."""
    *most, last = map(duration, RETRY_DELAYS)
    assert f"{', '.join(most)} and {last} after the attempt before, each up to a fifth later" in TEXT
    latest = sum(next_attempt_at(stage, 0, lambda n: b"\xff" * n) or 0 for stage in range(len(RETRY_DELAYS)))
    assert f"After the ninth attempt, {round(sum(RETRY_DELAYS) / HOUR)} to {round(latest / HOUR)} hours" in TEXT
    assert len(RETRY_DELAYS) == 8


def test_the_limits_are_the_codes() -> None:
    """What is said of time-outs, failing servers, pages and overlaps holds."""
    assert f"any 2xx within {SEND_TIMEOUT} seconds" in TEXT
    assert FAILING_LIMIT == 5 * DAY
    assert "five days of nothing but failures" in TEXT
    assert f"It gets {endpoints.FIRST_LIMIT} requests at a time" in TEXT
    assert f"up to {endpoints.HIGHEST_LIMIT}, and half as many" in TEXT
    assert f"After {endpoints.FAILURES_TO_OPEN} failures in a row" in TEXT
    assert f"for {endpoints.OPEN_SECONDS:.0f} s, then one event as a probe" in TEXT
    assert f"up to {endpoints.LONGEST_OPEN_SECONDS / 60:.0f} minutes" in TEXT
    assert ANSWER_KEPT == 1024
    assert f"`limit` is at most {PAGE_LIMIT}" in TEXT
    assert f"{RotateWebhookSecret().overlap_hours} unless given, {OVERLAP_LIMIT} at most" in TEXT


def test_the_error_codes_are_the_codes() -> None:
    """The table has every code of a failed attempt, with the sentence that the API answers, and no other."""
    rows = table("| `error_code` | `error` |")
    assert rows == [[f"`{code}`", sentence] for code, sentence in SENTENCES.items()]


def test_the_exceptions_and_fields_are_those_of_the_sdk() -> None:
    """The tables name each exception of verify_webhook and each attribute of its event."""
    exceptions = {name for name in taproof.sdk.__all__ if name.startswith("Webhook")} - {"WebhookEvent"}
    assert {row[0].strip("`") for row in table("| exception | when |")} == exceptions
    fields = [name for row in table("| `event.` | |") for name in re.findall(r"\w+", row[0])]
    assert fields == list(taproof.sdk.WebhookEvent.__dataclass_fields__)


def test_the_calls_and_what_they_answer_are_the_apis() -> None:
    """Each address on the page is answered by the service, and each field and status that it names is there."""
    unused = cast("Any", None)
    metrics = Metrics(CollectorRegistry(), "0.1.0")
    paths = build_openapi(build_developer_api(*[unused] * 5, metrics=metrics))["paths"]
    known = {re.sub(r"\{\w+\}", ":id", path) for path in paths}
    named = re.sub(r"\$(?:PROJECT_ID|id)\b", ":id", PAGE.replace("$project", "/api/v1/dev/projects/:id"))
    addresses = set(re.findall(r"/api/v1/[\w/:-]*[\w]", named))
    assert len(addresses) >= 8
    assert addresses <= known
    for name in ("started_at", "duration_ms", "status", "error_code", "error", "answer"):
        assert name in AttemptAnswer.model_fields
    assert all(f"`{state}`" in PAGE for state in get_args(DeliveryState))
