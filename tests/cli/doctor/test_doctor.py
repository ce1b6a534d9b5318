"""The doctor's checks, on real files and against a Bot API server over real HTTP."""

import asyncio
import json
import socket
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.cli.conftest import BOT_TOKEN, Run
from tests.ports import free_port

from taproof.cli.doctor.address import check_port
from taproof.cli.doctor.bot_api import check_messenger
from taproof.cli.doctor.examine import examine
from taproof.cli.doctor.finding import Finding
from taproof.cli.doctor.sqlite import check_sqlite_store
from taproof.config.settings import load_settings
from taproof.core.clock import system_clock

OTHER_TOKEN = "987654321:AAabcdefghijklmnopqrstuvwxyz6543210"
KEY = "A" * 43 + "="
WEBHOOK: dict[str, Any] = {
    "bot_token": BOT_TOKEN,
    "bot_updates": "webhook",
    "base_url": "https://signin.example.com",
    "trusted_proxy": "127.0.0.1/32",
}


async def look(name: str, **given: Any) -> Finding:
    """Return the doctor's result of one check."""
    settings = load_settings({"port": free_port(), **given})
    findings = [found for found in await examine(settings, {}, system_clock) if found.name == name]
    assert len(findings) == 1
    return findings[0]


def assert_problem(found: Finding, says: str) -> None:
    assert found.status == "problem", found
    assert says in found.detail + found.advice
    assert found.advice, "a problem says what to do"


# ---- the whole report


@pytest.mark.usefixtures("shop")
async def test_all_is_well(bot_api: Any, run: Run) -> None:
    """A sound installation has no problems and exits with 0; the output contains no secret."""
    options = ["--bot-api-url", bot_api.url, "--port", str(free_port())]
    result = await asyncio.to_thread(run, "doctor", *options, "--json", TAPROOF_BOT_TOKEN=BOT_TOKEN)
    report = json.loads(result.stdout)
    assert result.exit_code == 0, report
    assert report["ok"] is True
    status = {check["name"]: check["status"] for check in report["checks"]}
    assert status.pop("address") == "warning"  # Nobody but this machine can use it yet.
    assert status.pop("disk") in {"ok", "warning"}
    assert status == dict.fromkeys(
        ("settings", "sqlite", "store", "master key", "messenger", "bot settings", "updates", "clock", "port"), "ok"
    )
    assert BOT_TOKEN.split(":")[1] not in result.output


async def test_a_problem_ends_with_1_and_says_what_to_do(bot_api: Any, run: Run) -> None:
    """The output for people has a line for each check and the advice below it; the exit code is 1."""
    options = ["--bot-api-url", bot_api.url, "--port", str(free_port())]
    result = await asyncio.to_thread(run, "doctor", *options, TAPROOF_BOT_TOKEN=OTHER_TOKEN)
    assert result.exit_code == 1
    assert "problem  messenger: the Bot API does not recognise this bot token" in result.stdout
    assert "-> Copy it again from @BotFather" in result.stdout
    assert OTHER_TOKEN.split(":")[1] not in result.output


def test_settings_that_cannot_be_used_are_the_report(run: Run) -> None:
    """With invalid settings, nothing else can be checked; each is reported as a separate problem."""
    result = run("doctor", "--json", TAPROOF_PORT="canary", TAPROOF_BOT_TOKEN="canary")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert [check["status"] for check in report["checks"]] == ["problem", "problem"]
    assert "canary" not in result.output


async def test_a_misspelt_variable_is_a_warning() -> None:
    """A variable that nothing reads is reported with the nearest name."""
    (found, *_) = await examine(load_settings({"sandbox": True}), {"TAPROOF_BOT_TOKNE": ""}, system_clock)
    assert found.status == "warning"
    assert "TAPROOF_BOT_TOKNE" in found.detail
    assert "TAPROOF_BOT_TOKEN" in found.advice


async def test_looking_changes_nothing(tmp_path: Path) -> None:
    """The doctor creates no database and no key."""
    assert (await look("store", sandbox=True)).status == "ok"
    assert (await look("master key", sandbox=True)).status == "ok"
    assert not any(tmp_path.glob("*"))  # noqa: ASYNC240 — a look at an empty directory.


# ---- the store


async def test_an_old_sqlite_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """A SQLite with the WAL-reset bug can corrupt the database; the advice names the package to install."""
    monkeypatch.setattr("apsw.sqlite_lib_version", lambda: "3.51.2")
    assert_problem(await look("sqlite", sandbox=True), "apsw 3.51.3")


async def test_places_that_cannot_hold_a_database(tmp_path: Path) -> None:
    """A directory in the file's place, no directory, another kind of file, and another program's database."""
    (tmp_path / "taken.db").mkdir()
    assert_problem(await look("store", database_url="sqlite:///taken.db"), "taken.db")
    assert_problem(await look("store", database_url="sqlite:///nowhere/x.db"), "mkdir -p")
    (tmp_path / "letter.db").write_text("Dear Ada, " * 1000)
    assert_problem(await look("store", database_url="sqlite:///letter.db"), "TAPROOF_DATABASE_URL")
    with closing(sqlite3.connect(tmp_path / "taproof.db")) as other:
        other.execute("CREATE TABLE theirs (x)")
    assert_problem(await look("store"), "another program's database")


async def test_damage_is_found(tmp_path: Path, run: Run) -> None:
    """A database with broken pages is a problem, and the advice is a backup."""
    await _in_thread(run, "developers", "add", "ada@example.com")
    path = tmp_path / "taproof.db"
    content = bytearray(path.read_bytes())
    for page in range(4, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = b"\xff" * 64
    path.write_bytes(content)
    assert_problem(await look("store"), "restore a backup")


async def test_a_lock_that_is_held_is_found(tmp_path: Path, run: Run) -> None:
    """A database that another program keeps locked is a problem, reported after a short wait."""
    await _in_thread(run, "migrate")
    # The same SQLite as the doctor's: locks of two SQLites in one process do not see each other.
    other = apsw.Connection(str(tmp_path / "taproof.db"))
    other.execute("BEGIN IMMEDIATE")
    try:
        (found,) = [each for each in await check_sqlite_store(load_settings({}), lock_wait=10) if each.name == "store"]
        assert_problem(found, "locked")
    finally:
        other.close()


async def test_an_older_schema_is_told_and_not_touched(tmp_path: Path) -> None:
    """The doctor of a new release does not migrate the database of a running older one."""
    with closing(sqlite3.connect(tmp_path / "taproof.db")) as old:
        old.execute("CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY)")
        found = await look("store")
        assert (found.status, "taproof migrate" in found.advice) == ("warning", True)
        assert old.execute("SELECT count(*) FROM sqlite_schema WHERE type = 'table'").fetchone() == (1,)


@pytest.fixture
async def shop(run: Run) -> None:
    """A database with a project, and its key file."""
    await _in_thread(run, "developers", "add", "ada@example.com")
    await _in_thread(run, "projects", "create", "Shop")


@pytest.mark.usefixtures("shop")
async def test_files_that_others_can_read_are_told(tmp_path: Path) -> None:
    """The key file must be readable by its owner only, and so should the database."""
    (tmp_path / "taproof.db").chmod(0o644)
    assert (await look("store")).status == "warning"
    (tmp_path / "taproof.db.key").chmod(0o640)
    assert_problem(await look("master key"), "chmod 600")


@pytest.mark.usefixtures("shop")
async def test_a_wrong_or_missing_master_key_is_a_problem(tmp_path: Path) -> None:
    """A key that does not belong to the database and a missing key file are reported; no key is created."""
    assert_problem(await look("master key", master_key=KEY), "does not belong to this database")
    (tmp_path / "taproof.db.key").unlink()
    assert_problem(await look("master key"), "is missing")
    assert not (tmp_path / "taproof.db.key").exists()


async def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little free space is a warning, almost none a problem."""
    monkeypatch.setattr("shutil.disk_usage", lambda _path: SimpleNamespace(free=50 * 1024 * 1024))
    assert_problem(await look("disk", sandbox=True), "50 MiB free")
    monkeypatch.setattr("shutil.disk_usage", lambda _path: SimpleNamespace(free=500 * 1024 * 1024))
    assert (await look("disk", sandbox=True)).status == "warning"


# ---- the messenger


async def test_without_a_bot_token_there_is_no_messenger() -> None:
    """Neither a bot token nor the sandbox is a problem, as `serve` says too."""
    assert_problem(await look("messenger"), "TAPROOF_BOT_TOKEN")


async def test_an_unreachable_bot_api_is_a_problem(closed_port: int) -> None:
    """A refused connection is reported with the address, never with the token."""
    found = await look("messenger", bot_token=BOT_TOKEN, bot_api_url=f"http://127.0.0.1:{closed_port}")
    assert_problem(found, "TAPROOF_BOT_API_URL")
    assert BOT_TOKEN.split(":")[1] not in found.detail + found.advice


@pytest.mark.parametrize(("environment", "folder"), [("production", "/"), ("test", "/test/")])
async def test_the_environment_of_telegram_is_the_one_that_is_asked(
    bot_api: Any, environment: str, folder: str
) -> None:
    """A bot of Telegram's test environment is looked up there only."""
    settings = {"bot_token": BOT_TOKEN, "bot_api_url": bot_api.url, "telegram_environment": environment}
    assert (await look("messenger", **settings)).status != "problem"
    assert bot_api.asked == [f"{folder}getMe", f"{folder}getWebhookInfo"]


async def test_a_silent_bot_api_does_not_hang_the_doctor(bot_api: Any) -> None:
    """Every call has a time limit."""
    bot_api.delay = 0.5
    settings = load_settings({"bot_token": BOT_TOKEN, "bot_api_url": bot_api.url})
    (found,) = await check_messenger(settings, {}, system_clock, seconds=0.05)
    assert_problem(found, "no response")


@pytest.mark.parametrize("page", [b"<html>proxy login</html>", b"[]", b"{}", b"\xff", b"x" * 70_000, b"[" * 60_000])
async def test_an_answer_that_is_not_the_bot_apis_is_a_problem(bot_api: Any, page: bytes) -> None:
    """A proxy's page, malformed JSON and an endless answer are reported, and none breaks the doctor."""
    bot_api.page = page
    assert_problem(await look("messenger", bot_token=BOT_TOKEN, bot_api_url=bot_api.url), "cannot be used")


async def test_a_webhook_that_is_set_while_polling_is_a_warning(bot_api: Any) -> None:
    """A webhook elsewhere is reported by host only, because the path may contain the other installation's secret."""
    bot_api.webhook["url"] = "https://old.example.com/secret-path"
    found = await look("updates", bot_token=BOT_TOKEN, bot_api_url=bot_api.url)
    assert found.status == "warning"
    assert "old.example.com" in found.detail
    assert "secret-path" not in found.detail


async def test_the_webhook_is_held_to_the_base_url(bot_api: Any) -> None:
    """In webhook mode, the webhook must point to this service; its last error is reported."""
    given = WEBHOOK | {"bot_api_url": bot_api.url}
    assert (await look("updates", **given)).status == "warning"
    bot_api.webhook["url"] = "https://signin.example.com/bot/webhook"
    assert (await look("updates", **given)).status == "ok"
    bot_api.webhook["last_error_message"] = "Wrong response from the webhook: 502 Bad Gateway\x1b[2J"
    found = await look("updates", **given)
    assert found.status == "warning"
    assert "502 Bad Gateway" in found.detail
    assert "\x1b" not in found.detail


@pytest.mark.parametrize(
    ("setting", "status"),
    [
        ({"can_join_groups": True, "callback_query_mode": "default", "has_topics_enabled": True}, "ok"),
        ({"callback_query_mode": "inline"}, "problem"),
        ({"callback_query_mode": "auto"}, "problem"),
        ({"callback_query_mode": "of_the_next_version"}, "problem"),
        ({"can_read_all_group_messages": True}, "warning"),
        ({"supports_inline_queries": True}, "warning"),
        ({"supports_guest_queries": True}, "warning"),
        ({"can_connect_to_business": True}, "warning"),
        ({"is_bot": "maybe"}, "problem"),
    ],
)
async def test_the_settings_of_the_bot(setting: dict[str, Any], status: str, bot_api: Any) -> None:
    """A mode that makes taps unreliable is a problem; an ability that the bot does not use is a warning."""
    bot_api.settings = setting
    found = await look("bot settings", bot_token=BOT_TOKEN, bot_api_url=bot_api.url)
    assert found.status == status
    if status != "ok" and "is_bot" not in setting:
        assert next(iter(setting)) in found.detail
        assert "@BotFather" in found.advice


async def test_updates_that_do_not_arrive(bot_api: Any) -> None:
    """A webhook that another program set without button taps is a problem; a thousand waiting updates are a warning."""
    given = WEBHOOK | {"bot_api_url": bot_api.url}
    bot_api.webhook |= {"url": "https://signin.example.com/bot/webhook", "allowed_updates": ["message", "poll"]}
    assert_problem(await look("updates", **given), "callback_query, my_chat_member, managed_bot")
    bot_api.webhook |= {"allowed_updates": [], "pending_update_count": 1_001}
    for mode in ("webhook", "polling"):
        found = await look("updates", **given | {"bot_updates": mode})
        assert (found.status, found.detail) == ("warning", "1001 are waiting")


@pytest.mark.parametrize(("ahead", "status"), [(0, "ok"), (20, "ok"), (40, "problem"), (-40, "problem")])
async def test_the_clock_is_held_to_the_messengers(bot_api: Any, ahead: int, status: str) -> None:
    """A difference of more than 30 s is a problem, because proofs would be refused as not yet valid or as expired."""
    bot_api.date = format_datetime(datetime.now(UTC) - timedelta(seconds=ahead), usegmt=True)
    found = await look("clock", bot_token=BOT_TOKEN, bot_api_url=bot_api.url)
    assert found.status == status
    if status == "problem":
        assert ("ahead of" if ahead > 0 else "behind") in found.detail
        assert found.advice


# ---- the address


async def test_https_needs_somebody_who_speaks_it() -> None:
    """With an https base URL, no TLS here and no trusted proxy, every request would be refused."""
    base = {"sandbox": True, "sandbox_allow_remote": True, "base_url": "https://signin.example.com"}
    assert_problem(await look("address", **base), "--trusted-proxy")
    assert (await look("address", **base, trusted_proxy="127.0.0.1")).status == "ok"


@pytest.mark.parametrize(("days", "status"), [(90, "ok"), (5, "warning"), (-1, "problem")])
async def test_a_certificate_is_held_to_its_last_day(tmp_path: Path, days: int, status: str) -> None:
    """An expired certificate is a problem, one that expires soon a warning."""
    certificate, key = make_certificate(tmp_path, days)
    assert (await look("certificate", sandbox=True, tls_cert=certificate, tls_key=key)).status == status


async def test_a_key_that_does_not_fit_or_asks_for_a_password_is_a_problem(tmp_path: Path) -> None:
    """A key of another certificate, a file of another kind and an encrypted key are reported.

    No password is asked for.
    """
    (tmp_path / "other").mkdir()
    certificate, _ = make_certificate(tmp_path, 90)
    _, other_key = make_certificate(tmp_path / "other", 90)
    assert_problem(
        await look("certificate", sandbox=True, tls_cert=certificate, tls_key=other_key), "its own private key"
    )
    assert_problem(await look("certificate", sandbox=True, tls_cert=certificate, tls_key=__file__), "PEM")
    _, locked = make_certificate(tmp_path, 90, password=b"secret")
    assert_problem(await look("certificate", sandbox=True, tls_cert=certificate, tls_key=locked), "without a password")


async def test_a_taken_port_is_a_problem_unless_taproof_has_it() -> None:
    """Another program on the port is a problem; a running Taproof is not."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        # It never answers: the doctor does not wait for it for long.
        port = other.getsockname()[1]
        settings = load_settings({"sandbox": True, "port": port})
        assert_problem(await check_port(settings, seconds=0.1), "--port")

    async def refuse(_request: web.Request) -> web.Response:
        return web.json_response({"error": "No."}, status=405, headers={"X-Error-Code": "method_not_allowed"})

    ours = web.Application()
    ours.router.add_get("/api/v1/verify", refuse)
    async with TestServer(ours) as server:
        found = await look("port", sandbox=True, port=server.port)
    assert found.status == "ok"
    assert "Taproof already" in found.detail


async def _in_thread(run: Run, *arguments: str) -> None:
    """Run a command that must succeed: it has an event loop of its own."""
    result = await asyncio.to_thread(run, *arguments)
    assert result.exit_code == 0, result.output


def make_certificate(directory: Path, days: int, password: bytes | None = None) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "signin.example.com")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=30))
        .not_valid_after(now + timedelta(days=days))
        .sign(key, hashes.SHA256())
    )
    paths = directory / "cert.pem", directory / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    lock = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock))
    return paths
