"""Phone numbers, bot tokens and all other secrets never appear where they must not.

`canary_walk.py` exercises everything that handles them once, with `canary_walker.py` as its client. `canary_search.py`
looks for them in every encoding. The walk here is on SQLite; tests/slow/e2e/test_canaries_postgres.py runs the same
tests on PostgreSQL.
"""

import contextlib
import dataclasses
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import apsw
import httpx
import pytest
from tests.e2e.canary_search import (
    Canary,
    hits,
    phone_canary,
    postgres_cells,
    secret_canary,
    sqlite_bytes,
    sqlite_cells,
    text_canary,
)
from tests.e2e.canary_walk import Erased, sign_in_and_erase, walk_through
from tests.e2e.canary_walker import MASTER_KEYS, PHONES, Walk, Walker
from tests.e2e.conftest import Service, launch
from tests.otlp_receiver import OtlpReceiver
from tests.postgres_server import fresh_database

COLLECTED = ("own contact", "own contact, no plus")


@dataclass
class Ran:
    """A service after the walk, still running."""

    kind: str
    walk: Walk
    canaries: list[Canary]
    traces: OtlpReceiver

    def cells(self) -> dict[str, bytes]:
        database = self.walk.service.database
        return sqlite_cells(database) if self.kind == "sqlite" else postgres_cells(self.walk.database)


@pytest.fixture(scope="module")
def kind() -> str:
    return "sqlite"


@pytest.fixture(scope="module")
def ran(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """Return a separate service, at the debug log level, behind a proxy, with two master keys and traces."""
    directory = tmp_path_factory.mktemp("canaries")
    with contextlib.ExitStack() as kept:
        database = f"sqlite:///{directory / 'taproof.db'}" if kind == "sqlite" else kept.enter_context(fresh_database())
        traces = kept.enter_context(OtlpReceiver())
        service = launch(
            directory,
            *("--database", database),
            OTEL_BSP_SCHEDULE_DELAY="200",
            OTEL_EXPORTER_OTLP_ENDPOINT=traces.url,
            TAPROOF_TRACES="link",
            TAPROOF_LOG_LEVEL="debug",
            TAPROOF_MASTER_KEY=",".join(MASTER_KEYS),
            TAPROOF_TRUSTED_PROXY="127.0.0.1/32",
        )
        kept.callback(service.stop)
        walk = Walk(service, database)
        walk_through(walk)
        yield Ran(kind, walk, walk.canaries(), traces)


def log_places(service: Service, outputs: list[str]) -> dict[str, bytes]:
    """Return the output of the service and the commands: the log, the screen, and what each command printed."""
    printed = {f"command {index}": text.encode() for index, text in enumerate(outputs)}
    return {"stderr": service.log().encode(), "stdout": service.screen().encode(), **printed}


def answer_places(answers: list[httpx.Response]) -> dict[str, bytes]:
    """Return the body and the headers of each answer."""
    return {
        f"answer {index}: {answer.status_code} to {answer.request.method}": answer.content
        + b"".join(b"\n%s: %s" % field for field in answer.headers.raw)
        for index, answer in enumerate(answers)
    }


# ---- the walk covered everything


def test_the_walk_had_everything(ran: Ran) -> None:
    """The walk covered everything: numbers sent, bot broken, calls refused. Otherwise the tests below prove nothing."""
    walk = ran.walk
    sent = {event.get("messenger_phone") for event in walk.events}
    assert sent == {PHONES["own contact"], f"+{PHONES['own contact, no plus']}", None}
    codes = Counter(answer.headers.get("x-error-code") for answer in walk.errors())
    for code in (
        "bot_broken",
        "bot_taken",
        "bot_token_refused",
        "code_verifier_missing",
        "invalid_access_token",
        "invalid_request",
        "invalid_secret_key",
        "messenger_unavailable",
        "not_found",
        "origin_not_allowed",
        "payload_too_large",
        "rate_limited",
        "session_not_found",
    ):
        assert codes[code] > 0, code
    assert len(walk.errors()) > 150
    kinds = {name.rstrip(" 0123456789") for name in walk.secrets}
    assert {"client secret", "code", "device code", "id_token of OpenID", "pushed request", "secret key"} <= kinds
    assert {"bot token", "code verifier", "cookie taproof_session", "master key", "proof", "webhook secret"} <= kinds
    log = walk.service.log()
    assert '"debug"' in log
    for event in ("webhooks.attempt", "sign_in_decided", "bot_broken"):
        assert event in log, event


# ---- where the canaries must not be


def test_database(ran: Ran) -> None:
    """No phone number, token, key or verifier is in any column of any table, in the clear or encoded (issue)."""
    cells = ran.cells()
    assert len(cells) > 15
    assert hits(ran.canaries, cells) == []


def test_database_files(ran: Ran) -> None:
    """The bytes of the SQLite file and its journal contain none of them, not even in deleted rows."""
    if ran.kind == "postgres":
        assert not ran.walk.service.database.exists()
        return
    places = sqlite_bytes(ran.walk.service.database)
    assert set(places) == {"taproof.db", "taproof.db-wal"}
    assert hits(ran.canaries, places) == []


def test_log(ran: Ran) -> None:
    """At debug level none of them is logged or printed, except the sandbox's access token, once (issue)."""
    places = log_places(ran.walk.service, ran.walk.outputs)
    places["stdout"] = places["stdout"].replace(ran.walk.service.access_token.encode(), b"", 1)
    assert hits(ran.walk.texts(), places) == []
    for line in ran.walk.service.log().splitlines():
        assert isinstance(json.loads(line), dict)


def test_metrics(ran: Ran) -> None:
    """/metrics contains none of them, and no name or id of a bot, project or session (issue)."""
    metrics = httpx.get(f"{ran.walk.service.base_url}/metrics").content
    assert b"taproof_rate_limited_total" in metrics
    assert hits([*ran.walk.texts(), text_canary("bot", "canary_own_bot")], {"/metrics": metrics}) == []
    assert not re.search(rb"(?:proj|sess|dev|tok|evt)_[A-Za-z0-9]{16,}", metrics)


def test_errors(ran: Ran) -> None:
    """No error repeats any of them, whatever is wrong with the call (issue)."""
    assert hits(ran.walk.texts(), answer_places(ran.walk.errors())) == []


def test_what_is_never_answered(ran: Ran) -> None:
    """No answer contains a bot token, verifier or master key. A phone number is only in answers meant to have it."""
    never = [canary for canary in ran.canaries if canary.name.startswith(("bot token", "code verifier", "master key"))]
    assert len(never) > 4
    assert hits(never, answer_places(ran.walk.answers)) == []
    for name in PHONES:
        canary = next(each for each in ran.canaries if each.name == name)
        told = {answer.request.url.path for answer in ran.walk.answers if hits([canary], answer_places([answer]))}
        if name not in COLLECTED:
            assert not told, name
            continue
        assert told >= {"/api/v1/verify/public", "/api/v1/dev/sessions"}, name
        # A developer sees a receiver's answer. This receiver repeated what it was sent.
        where = r"/api/v1/(verify/public|dev/sessions|dev/projects/\w+/deliveries)|/console/sessions(/\w+)?"
        assert not [path for path in told if re.fullmatch(where, path) is None], name


# ---- erasing a user


@pytest.fixture(scope="module")
def erased(ran: Ran) -> list[Erased]:
    """Return two erased users: one erased by the developer, the other by the operator."""
    with httpx.Client(base_url=ran.walk.service.base_url, timeout=60) as client:
        walker = Walker(client, ran.walk)
        return [
            sign_in_and_erase(walker, 7_340_912_586, lambda user: walker.developer.ask("DELETE", f"/users/{user}")),
            sign_in_and_erase(walker, 6_218_459_037, lambda user: walker.command("users", "erase", user, "--yes")),
        ]


def test_erased_users(ran: Ran, erased: list[Erased]) -> None:
    """No column and no log line contains the id, a name or the number of an erased user."""
    number = phone_canary("number", PHONES["own contact of who was erased"])
    for each in erased:
        assert hits([*each.canaries, number], ran.cells()) == []
        assert hits([*each.canaries, number], {"stderr": ran.walk.service.log().encode()}) == []


def test_erased_bytes(ran: Ran, erased: list[Erased]) -> None:
    """After a checkpoint SQLite's file contains nothing of them. PostgreSQL keeps deleted data until VACUUM."""
    database = ran.walk.service.database
    with contextlib.closing(apsw.Connection(str(database))) as connection:
        connection.set_busy_timeout(20_000)
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0] == 0
    # Other users are not affected: their names are still stored.
    assert b"Somebody" in sqlite_bytes(database)["taproof.db"]
    for each in erased:
        assert hits(each.canaries, sqlite_bytes(database)) == []


def test_after_the_end(ran: Ran, erased: list[Erased]) -> None:
    """After the service has stopped and the journal is merged, the file, the log and all exported traces are clean."""
    ran.walk.service.stop()
    places = log_places(ran.walk.service, ran.walk.outputs)
    places["stdout"] = places["stdout"].replace(ran.walk.service.access_token.encode(), b"", 1)
    files = sqlite_bytes(ran.walk.service.database)
    assert bool(files) is (ran.kind == "sqlite")
    traces = {"traces": b"\n".join(ran.traces.bodies)}
    names = {span.name for span in ran.traces.spans}
    assert names >= {
        "POST webhook",
        "process message",
        "sendMessage",
        "consume_session",
        "GET /console/sessions/{session_id}",
    }
    assert hits(ran.walk.canaries(), places | files | traces) == []
    for each in erased:
        assert hits(each.canaries, files | traces) == []


# ---- the search finds what is there

PLANTED = [
    phone_canary("phone", "+4915117304921"),
    secret_canary("bot token", "3810233140:0d72096da7b54414d8d338af4aad1124sbx"),
    secret_canary("webhook secret", "whsec_gVsxT2AIKx01LAbGkQjVmInFgl4be1qxJ2JiZwJhGq8="),
    secret_canary("session token", "USuT9hjaoUSRbZYREPRqpeEmpG0nxC51G-yEoFBYXhc"),
    text_canary("name", "Qwrtzuiop"),
]
WRITINGS = [(canary, writing) for canary in PLANTED for writing in canary.literals]


@pytest.fixture
def planted(tmp_path: Path) -> Iterator[tuple[Path, apsw.Connection]]:
    """Return a database in WAL mode with one table, and a connection to it that stays open."""
    path = tmp_path / "taproof.db"
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0").fetchall()
        connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, note ANY) STRICT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        yield path, connection


def test_the_search_finds_every_writing_in_sqlite(planted: tuple[Path, apsw.Connection]) -> None:
    """The search finds every encoding: in a column, in the journal before a checkpoint, and in the file after one."""
    path, connection = planted
    for canary, writing in WRITINGS:
        connection.execute("DELETE FROM notes")
        connection.execute("INSERT INTO notes (note) VALUES (?)", (b"before " + canary.literals[writing] + b" after",))
        assert hits([canary], {"notes.note": sqlite_cells(path)["notes.note"]}), writing
        assert hits([canary], {"wal": sqlite_bytes(path)["taproof.db-wal"]}), writing
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        assert hits([canary], {"file": sqlite_bytes(path)["taproof.db"]}), writing


def test_the_search_finds_deleted_rows(planted: tuple[Path, apsw.Connection]) -> None:
    """The search finds a deleted row in the file's bytes, and `secure_delete` removes it."""
    path, connection = planted
    phone, *_ = PLANTED
    for secure, found in (("OFF", True), ("ON", False)):
        connection.execute(f"PRAGMA secure_delete = {secure}").fetchall()
        connection.execute("INSERT INTO notes (note) VALUES ('+4915117304921'), (4915117304921)")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        assert len(hits([phone], sqlite_bytes(path))) == 1
        connection.execute("DELETE FROM notes")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        assert hits([phone], sqlite_cells(path)) == []
        assert bool(hits([phone], sqlite_bytes(path))) is found
        connection.execute("PRAGMA secure_delete = ON; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


@pytest.mark.parametrize(
    "grouped", ["+49 151 17304921", "0151/173 049 21", "%2B49%20151%2017304921", "(151) 17-30-49-21"]
)
def test_the_search_finds_grouped_digits(grouped: str) -> None:
    """The search finds a number whose digits are grouped."""
    assert hits(PLANTED[:1], {"text": grouped.encode()})
    assert not hits(PLANTED[:1], {"text": grouped.replace("21", "22").encode()})


def test_the_search_finds_what_was_logged_and_answered(ran: Ran, tmp_path: Path) -> None:
    """A canary in stderr, stdout, a command's output, an error's body or its headers is one hit each."""
    service = dataclasses.replace(ran.walk.service, directory=tmp_path)
    number = PHONES["own contact"]
    (tmp_path / "stderr").write_text(f'{{"event": "x", "phone": "{number}"}}\n')
    (tmp_path / "stdout").write_text(f"{number[1:]}\n")
    assert len(hits(ran.canaries, log_places(service, [f"Erased {number}"]))) == 3
    request = httpx.Request("GET", "http://127.0.0.1/metrics")
    answers = [
        httpx.Response(400, json={"error": f"{MASTER_KEYS[0]} is no token."}, request=request),
        httpx.Response(404, headers={"Location": f"/{number}"}, request=request),
        httpx.Response(200, text=f'taproof_x{{bot="{ran.walk.secrets["bot token 1"]}"}} 1', request=request),
    ]
    assert len(hits(ran.canaries, answer_places(answers))) == 3
