"""The programs of the webhook pages accept only what is sent, and their numbers are those of the code."""

import base64
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
from scripts.docs_reference import openapi
from tests.impostor import Impostor, impostor

import taproof
from taproof import WebhookError, verify_webhook
from taproof.api.parameters import PAGE_LIMIT
from taproof.api.projects import RotateWebhookSecret
from taproof.contract.delivery import ATTEMPTS_SHOWN, SENTENCES, DeliveryState, EventType
from taproof.contract.project import OVERLAP_LIMIT
from taproof.core.clock import DAY, HOUR, MINUTE, SECOND
from taproof.core.retry_schedule import RETRY_DELAYS, next_attempt_at
from taproof.core.signature import signature_headers
from taproof.service.webhooks import ANSWER_KEPT, FAILING_LIMIT, SEND_TIMEOUT
from taproof.webhooks import scheduler

__all__ = ["impostor"]  # The fixture.
ROOT = Path(__file__).parent.parent.parent
PAGES = [
    "docs/how-to/webhooks.md",
    "docs/reference/events.md",
]
ROTATION = (ROOT / "docs/how-to/rotate-secrets.md").read_text(encoding="utf-8").partition("\n## The secret key\n")[0]
PAGE = "\n".join([*((ROOT / page).read_text(encoding="utf-8") for page in PAGES), ROTATION])
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
    """The examples have each type of event once, and verify_webhook accepts them."""
    events = [verify_webhook(body, signed(body), SECRET) for body in BODIES]
    assert [event.type for event in events] == list(get_args(EventType))
    assert EVENT.keys() - {"id", "event"} == {
        "project_id", "session_token", "messenger_id", "messenger_name", "messenger_username", "confirmed_at",
    }  # fmt: skip


# ---- the programs


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> httpx.AsyncClient:
    """The page's receiver, as it stands."""
    monkeypatch.setenv("TAPROOF_WEBHOOK_SECRET", f"{SECRET}, {OTHER_SECRET}")
    program = programs("python")[0]
    # FastAPI looks for the type of `request` in the module that the function says to be from.
    names: dict[str, Any] = {"__name__": "receiver_of_the_docs"}
    exec(compile(program, PAGES[0], "exec"), names)  # noqa: S102 — it is this repository's own.
    return httpx.AsyncClient(transport=httpx.ASGITransport(names["app"]), base_url="http://receiver.test")


async def test_the_receiver_handles_each_event_once(
    receiver: httpx.AsyncClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """A repeated event is accepted and skipped, even under the other secret; each type is accepted."""
    for secrets in ([SECRET], [SECRET], [OTHER_SECRET], [SECRET, OTHER_SECRET]):
        answer = await receiver.post("/hooks/taproof", content=BODY, headers=signed(secrets=secrets))
        assert answer.status_code == 204
    for body in BODIES:
        assert (await receiver.post("/hooks/taproof", content=body, headers=signed(body))).is_success
    lines = [f"{each['event']} {each['id']}" for each in map(json.loads, BODIES)]
    assert capsys.readouterr().out.splitlines() == [lines[0], f"{EVENT['messenger_id']} signed in.", *lines[1:]]


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
    """The receiver answers 401 with the reason, and does nothing."""
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
        env=os.environ | {"TAPROOF_WEBHOOK_SECRET": SECRET, "REQUEST": request},
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
    settings = os.environ | {"SIGNATURE": signature, "TAPROOF_WEBHOOK_SECRET": secret} | environment
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
    for secrets in (f"{OTHER_SECRET} {SECRET}", f"{SECRET},{OTHER_SECRET}", f"{OTHER_SECRET}, {SECRET}"):
        assert openssl(tmp_path, body, good, secrets).returncode == 0


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
        (BODY, GOOD, {"secret": f"{OTHER_SECRET} {OTHER_SECRET}"}),
        (BODY, GOOD, {"secret": ""}),
        (BODY, GOOD, {"secret": " "}),
        (BODY, "", {"secret": ""}),
        (BODY, "", {"secret": " "}),
        (None, GOOD, {}),
        (None, "", {}),
        (BODY, GOOD, {"PATH": "/nowhere"}),
        (BODY, "", {"PATH": "/nowhere"}),
    ],
)
def test_openssl_refuses_everything_else(
    tmp_path: Path, body: bytes | None, signature: str, changes: dict[str, str]
) -> None:
    """OpenSSL accepts nothing if the signature is wrong, or if the body, the secret or the program is missing."""
    assert openssl(tmp_path, body, signature, **changes).returncode != 0


SINCE = "2026-11-20T22:00:00.000Z"
BEFORE = "2026-11-20T21:59:59.999Z"


@pytest.fixture
def stand_in(impostor: Impostor) -> Impostor:
    """A fake of the developer API with the calls that the page needs."""
    impostor.default = (200, {}, b"{}")
    return impostor


def run_with(stand_in: Impostor, command: list[str]) -> str:
    """Run a program whose calls all have the access token, and return its output."""
    variables = {
        "TAPROOF_BASE_URL": stand_in.url,
        "TAPROOF_PROJECT_ID": "P",
        "ACCESS_TOKEN": "T",
        "TAPROOF_WEBHOOK_SECRET": SECRET,
    }
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert all(dict(call.headers)["Authorization"] == "Bearer T" for call in stand_in.received)
    return done.stdout


def calls(stand_in: Impostor) -> list[str]:
    """Return the calls since the last time, without the prefix that all paths share."""
    lines = [line.replace(" /api/v1/dev/", " ") for line in stand_in.lines]
    stand_in.received.clear()
    return lines


def pages(stand_in: Impostor, **found: Any) -> None:
    stand_in.answers = {f"/api/v1/dev/{path}": [(200, {}, json.dumps(page).encode())] for path, page in found.items()}


def page_of(cursor: str | None, *events: tuple[str, str, str]) -> dict[str, Any]:
    deliveries = [
        {"id": event_id, "event": kind, "created_at": at, "session_id": None if kind == "webhook.test" else "sess_1"}
        for event_id, kind, at in events
    ]
    return {"deliveries": deliveries, "next_cursor": cursor}


def test_the_program_after_an_outage_resends_what_was_lost_in_it(stand_in: Impostor) -> None:
    """The program resends events that were given up or ended since the time at its top, on every page.

    It resends no older ones and no tests.
    """
    program = programs("python")[1]
    assert f'SINCE = "{SINCE}"' in program
    query = "projects/P/deliveries?limit=200&status="
    found = {
        f"{query}failed": page_of("c1", ("evt_9", "auth.confirmed", SINCE), ("evt_8", "webhook.test", SINCE)),
        f"{query}failed&cursor=c1": page_of(
            "c2", ("evt_7", "auth.cancelled", SINCE), ("evt_6", "auth.confirmed", BEFORE)
        ),
        f"{query}ended": page_of(None, ("evt_5", "auth.confirmed", SINCE)),
    }
    pages(stand_in, **found)
    printed = run_with(stand_in, [sys.executable, "-c", program])
    resent = ["evt_9", "evt_7", "evt_5"]
    asked = calls(stand_in)
    assert [call for call in asked if call.startswith("POST")] == [f"POST deliveries/{each}/resend" for each in resent]
    assert [call.removeprefix("GET ") for call in asked if call.startswith("GET")] == list(found)
    assert [line.split()[0] for line in printed.splitlines()] == resent


def test_the_program_after_an_outage_may_find_nothing(stand_in: Impostor) -> None:
    """If there is nothing to resend, the program succeeds and sends nothing."""
    query = "projects/P/deliveries?limit=200&status="
    pages(stand_in, **{f"{query}{status}": page_of(None) for status in ("failed", "ended")})
    assert run_with(stand_in, [sys.executable, "-c", programs("python")[1]]) == ""
    assert calls(stand_in) == [f"GET {query}failed", f"GET {query}ended"]


def test_the_commands_make_the_calls_that_the_page_says(stand_in: Impostor) -> None:
    """Each section's commands work with only the README's variables, whatever the shell has as `project`."""
    secrets, first_event, choose, deliveries, rotate, promote = programs("bash")
    secret_path = "projects/P/webhook-secret"
    pages(stand_in, **{secret_path: {"webhook_secret": SECRET}})
    printed = run_with(stand_in, ["bash", "-euc", f"{secrets}\nprintenv TAPROOF_WEBHOOK_SECRET\n{first_event}"])
    assert printed.startswith(f"{SECRET}\n")
    assert calls(stand_in) == [f"GET {secret_path}", "PATCH projects/P", "POST projects/P/webhook-test"]
    project_url = secrets.splitlines()[0]
    run_with(stand_in, ["bash", "-euc", f"{project_url}\n{choose}"])
    assert calls(stand_in) == ["PATCH projects/P"]
    run_with(stand_in, ["bash", "-euc", f"project='{{}}'\n{deliveries}"])
    run_with(stand_in, ["bash", "-euc", f"{rotate}\n{promote}"])
    assert calls(stand_in) == [
        "GET projects/P/deliveries?status=failed&limit=50",
        "POST projects/P/webhook-secret/rotate",
        "POST projects/P/webhook-secret/promote",
    ]


# ---- the numbers and names


def duration(milliseconds: int) -> str:
    size, unit = next(each for each in ((HOUR, "h"), (MINUTE, "min"), (SECOND, "s")) if milliseconds % each[0] == 0)
    return f"{milliseconds // size} {unit}"


def test_the_schedule_is_the_codes() -> None:
    """The page's schedule, its jitter and its total duration are those of the code."""
    *most, last = map(duration, RETRY_DELAYS)
    assert f"{', '.join(most)} and {last}, each lengthened by a random amount of up to a fifth" in TEXT
    latest = sum(next_attempt_at(stage, 0, lambda n: b"\xff" * n) or 0 for stage in range(len(RETRY_DELAYS)))
    assert f"After the ninth attempt, {round(sum(RETRY_DELAYS) / HOUR)} to {round(latest / HOUR)} hours" in TEXT
    assert len(RETRY_DELAYS) == 8


def test_the_limits_are_the_codes() -> None:
    """The time-outs, failing servers, pages and overlaps on the page are those of the code."""
    assert f"any 2xx within {SEND_TIMEOUT} seconds" in TEXT
    assert FAILING_LIMIT == 5 * DAY
    assert "every attempt of the last five days has failed" in TEXT
    assert f"It gets {scheduler.FIRST_LIMIT} requests at a time" in TEXT
    assert f"up to {scheduler.HIGHEST_LIMIT}, and half as many" in TEXT
    assert f"After {scheduler.FAILURES_TO_OPEN} failures in a row" in TEXT
    assert f"for {scheduler.OPEN_SECONDS:.0f} s, then one event as a probe" in TEXT
    assert f"up to {scheduler.LONGEST_OPEN_SECONDS / 60:.0f} minutes" in TEXT
    assert ANSWER_KEPT == 1024
    assert f"`attempts` | the latest {ATTEMPTS_SHOWN} |" in TEXT
    assert f"`limit` is at most {PAGE_LIMIT}" in TEXT
    default = RotateWebhookSecret().model_dump()["overlap_hours"]
    assert f"by default {default} and at most {OVERLAP_LIMIT}" in TEXT


def test_the_error_codes_are_the_codes() -> None:
    """The table has every code of a failed attempt with the API's sentence, and no other."""
    rows = table("| `error_code` | `error` |")
    assert rows == [[f"`{code}`", sentence] for code, sentence in SENTENCES.items()]


def test_the_exceptions_and_fields_are_those_of_the_sdk() -> None:
    """The tables name each exception of verify_webhook and each attribute of its event."""
    known = {name: getattr(taproof, name) for name in taproof.__all__}
    exceptions = {name for name, each in known.items() if inspect.isclass(each) and issubclass(each, WebhookError)}
    assert {row[0].strip("`") for row in table("| exception | when |")} == exceptions
    fields = [name for row in table("| `event.` | |") for name in re.findall(r"\w+", row[0])]
    assert fields == list(taproof.WebhookEvent.__dataclass_fields__)


def test_the_calls_and_what_they_answer_are_the_apis() -> None:
    """The service answers each address on the page, with each field and status that the page names."""
    known = {re.sub(r"\{\w+\}", ":id", path) for path in openapi()["paths"]}
    # The program after an outage puts its addresses together; it is run above.
    text = PAGE.replace(programs("python")[1], "").replace("$project_url", "/api/v1/dev/projects/:id")
    named = re.sub(r"\$TAPROOF_PROJECT_ID\b", ":id", text)
    addresses = set(re.findall(r"/api/v1/[\w/:-]*[\w]", named))
    assert len(addresses) >= 8
    assert addresses <= known
    for title, answer in ("event", taproof.Delivery), ("attempt", taproof.DeliveryAttempt):
        fields = [name for row in table(f"| field of an {title} | |") for name in re.findall(r"`(\w+)`", row[0])]
        assert set(fields) == answer.__dataclass_fields__.keys() - {"id", "event", "project_id", "created_at"}
    assert all(f"`{state}`" in PAGE for state in get_args(DeliveryState))
