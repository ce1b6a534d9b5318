"""The log contains what an operator needs, and never a secret or a name of a user."""

import hashlib
import io
import json
import logging
import sys
from typing import Any, Literal

import pytest
import structlog

from taproof.config.logging import GRANIAN_LOGGING, MASK, configure_logging, redact_text
from taproof.core.encryption import new_master_key
from taproof.core.identifiers import key_preview, new_key, new_session_token, new_webhook_secret, random_base64url
from taproof.core.return_code import new_return_code, return_link


def _entropy(size: int) -> bytes:
    return hashlib.shake_256(b"canary").digest(size)


NOW = 1_795_000_000_000
SESSION_TOKEN = new_session_token(NOW, _entropy)
RETURN_CODE = new_return_code(_entropy)
BOT_TOKEN = "123456789:AAabcdefghijklmnopqrstuvwxyz_-12345"
JWT = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJtZXNzZW5nZXJfaWQiOiI0MiJ9.c2lnbmF0dXJlLXNpZ25hdHVyZQ"
CANARIES = {
    "secret key": new_key("sk", _entropy),
    "client secret": new_key("ocs", _entropy),
    "OpenID access token": new_key("oat", _entropy),
    "access token": new_key("tap", _entropy),
    "webhook secret": new_webhook_secret(_entropy),
    "console cookie": new_key("con", _entropy),
    "invitation code": new_key("inv", _entropy),
    "member invitation code": new_key("join", _entropy),
    "device code": random_base64url(_entropy),
    "bot token": BOT_TOKEN,
    "session token": SESSION_TOKEN,
    "master key": new_master_key(_entropy),
    "proof": JWT,
}
FORMATS: tuple[Literal["console", "json"], ...] = ("console", "json")


class Carrier:
    """An object whose repr holds a secret, as a request object's may."""

    def __init__(self, secret: str) -> None:
        self.secret = secret

    def __repr__(self) -> str:
        return f"<Carrier {self.secret}>"


@pytest.fixture(params=FORMATS)
def log(request: pytest.FixtureRequest) -> io.StringIO:
    stream = io.StringIO()
    configure_logging("debug", request.param, stream)
    return stream


@pytest.mark.parametrize("secret", CANARIES.values(), ids=CANARIES.keys())
def test_no_secret_passes_wherever_it_stands(log: io.StringIO, secret: str) -> None:
    """A secret is masked everywhere in a line: message, value, key, nested value, object, bytes, exception, stack."""
    logger = structlog.get_logger("taproof.test")
    message = f"message {secret}"
    logger.info(message, value=secret, nested={"list": [{"deep": (secret,)}], secret: 1}, set={secret})
    logger.info("objects", carrier=Carrier(secret), raw=secret.encode(), headers=[(b"x", secret.encode())])
    try:
        try:
            raise ValueError(f"first {secret}")  # noqa: TRY301
        except ValueError as first:
            raise RuntimeError(f"https://t.me/shop_bot?start={secret}&x=1") from first
    except RuntimeError:
        logger.exception("failed", trouble=sys.exc_info()[1])
        logging.getLogger("library").exception("foreign %s", secret)
    logging.getLogger("aiohttp").warning("GET /%s/getMe %r", secret, {"k": secret})
    logging.getLogger("asyncio").error("task failed", exc_info=RuntimeError(secret))
    logger.info("stack", stack_info=True, note=secret)
    text = log.getvalue()
    assert secret not in text
    assert text.count(MASK) >= 14


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer not-one-of-ours-12345",
        "authorization=Basic bm90OnRoaXM=",
        "{'Authorization': 'Bearer not-one-of-ours-12345'}",
        '{"authorization": "Bearer not-one-of-ours-12345"}',
        "(b'authorization', b'Bearer not-one-of-ours-12345')",
        "(b'cookie', b'console=not-one-of-ours-12345')",
        "X-Telegram-Bot-Api-Secret-Token: not-one-of-ours-12345",
        "GET /bot123456789:AAnot-one-of-ours-not-one-of-ours-12345/getMe",
        "GET /bot123456789%3AAAnot-one-of-ours-not-one-of-ours-12345/getMe",
        "sent Bearer not-one-of-ours-12345, got 401",
        "postgresql://taproof:not-one-of-ours-12345@db/taproof",
        "cannot connect to postgres://taproof:not@one-of-ours:not-one-of-ours-12345@db:5432/taproof?x=1",
        "postgresql://db/taproof?user=taproof&password=not-one-of-ours-12345&sslmode=require",
        "'https://ada:not-one-of-ours-12345@example.com/'",
    ],
)
def test_credentials_are_masked_in_every_spelling(text: str) -> None:
    """Credentials are masked in every form: in headers as text, dict or ASGI pairs, and in addresses."""
    masked = redact_text(text)
    assert MASK in masked
    assert "not-one-of-ours" not in masked
    assert "bm90" not in masked


@pytest.mark.parametrize(
    "text",
    [
        f"https://t.me/shop_bot?start={SESSION_TOKEN}",
        f"/start {SESSION_TOKEN}",
        f'{{"session_token": "{SESSION_TOKEN}"}}',
        f"session_token={SESSION_TOKEN}&project_id=proj_1",
        "?start=" + "a" * 43,
    ],
)
def test_session_tokens_are_masked_by_their_place(text: str) -> None:
    """In a deeplink, a /start message or a body, any 43 characters are masked as a session token."""
    masked = redact_text(text)
    assert SESSION_TOKEN not in masked
    assert "a" * 43 not in masked
    assert masked.startswith(text[:6])


@pytest.mark.parametrize(
    "text",
    [
        return_link("https://shop.example.com/in", RETURN_CODE),
        f'{{"return_code": "{RETURN_CODE}"}}',
        f"return_code={RETURN_CODE}&x=1",
    ],
)
def test_return_codes_are_masked_by_their_place(text: str) -> None:
    assert RETURN_CODE not in redact_text(text)
    assert redact_text(text).startswith(text[:6])


def test_values_under_secret_names_are_masked(log: io.StringIO) -> None:
    """A value under a secret's name is masked even if it has no recognizable form."""
    structlog.get_logger().info("x", password="hunter-two", headers={"Authorization": "raw-word"}, bot_token="odd")
    assert "hunter-two" not in log.getvalue()
    assert "raw-word" not in log.getvalue()
    assert "odd" not in log.getvalue()


def test_what_is_no_secret_stays_readable(log: io.StringIO) -> None:
    """Ids, previews, numbers, long names and ordinary words are logged unchanged, so that the log stays useful."""
    preview = key_preview(CANARIES["secret key"])
    name = "test_a_rather_long_function_name_of_43_char"
    structlog.get_logger().info("session_created", id="sess_0123456789abcdefABCDEF", port=8080, fn=name, seconds=1.5)
    structlog.get_logger().info("rotated", preview=preview, trouble="authorization failed for the project")
    text = log.getvalue()
    for word in ("sess_0123456789abcdefABCDEF", "8080", name, "1.5", "authorization failed for the project"):
        assert word in text
    assert preview in text or preview.encode("unicode_escape").decode() in text
    assert MASK not in text


def test_json_is_one_object_a_line_with_utc_time() -> None:
    """Each line is JSON with event, level, logger and an ISO 8601 UTC time, from structlog and libraries alike."""
    stream = io.StringIO()
    configure_logging("info", "json", stream)
    structlog.get_logger("taproof.one").info("a\nb", n=1)
    logging.getLogger("library.two").warning("c %d", 2)
    logging.getLogger("library.two").debug("not at this level")
    structlog.get_logger("taproof.one").debug("nor this")
    lines: list[dict[str, Any]] = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["event"], line["level"], line["logger"]) for line in lines] == [
        ("a\nb", "info", "taproof.one"),
        ("c 2", "warning", "library.two"),
    ]
    assert lines[0]["n"] == 1
    assert all(line["timestamp"].endswith("Z") and line["timestamp"][10] == "T" for line in lines)


def test_the_console_cannot_be_fooled() -> None:
    """A hostile value can neither start a line nor send escape codes to the terminal."""
    stream = io.StringIO()
    configure_logging("info", "console", stream)
    structlog.get_logger().info("name", name="Ada\n2026 [error] all is lost\x1b[2J\u202e")
    assert stream.getvalue().count("\n") == 1
    assert "\x1b" not in stream.getvalue()
    assert "\u202e" not in stream.getvalue()


def test_a_line_that_cannot_be_formatted_is_named_without_its_text() -> None:
    """A broken log call does not raise, and does not print its arguments unredacted."""
    stream = io.StringIO()
    configure_logging("info", "json", stream)
    logging.getLogger("library").error("%d of them", BOT_TOKEN)
    assert "A log line of library (test_logging.py:" in stream.getvalue()
    assert BOT_TOKEN not in stream.getvalue()


def test_configuring_twice_writes_each_line_once() -> None:
    """Only the last configuration applies."""
    first, second = io.StringIO(), io.StringIO()
    configure_logging("info", "json", first)
    configure_logging("info", "json", second)
    structlog.get_logger().info("once")
    assert first.getvalue() == ""
    assert second.getvalue().count("\n") == 1


def test_granian_logs_the_same_way(log: io.StringIO) -> None:
    """With GRANIAN_LOGGING, the server's own lines are redacted too."""
    from granian.log import LogLevels  # noqa: PLC0415 — it reconfigures logging.
    from granian.log import configure_logging as configure_granian  # noqa: PLC0415

    configure_granian(LogLevels.info, GRANIAN_LOGGING)
    logging.getLogger("_granian").info("listening, token %s", BOT_TOKEN)
    assert "listening" in log.getvalue()
    assert BOT_TOKEN not in log.getvalue()


def test_lines_of_several_processes_can_be_told_apart() -> None:
    """Where several processes write to one log, each line, including a library's, has the process number."""
    stream = io.StringIO()
    configure_logging("info", "json", stream, process=3)
    structlog.get_logger().info("one")
    logging.getLogger("library").warning("two")
    assert [json.loads(line)["process"] for line in stream.getvalue().splitlines()] == [3, 3]
    configure_logging("info", "json", stream)
    structlog.get_logger().info("three")
    assert "process" not in json.loads(stream.getvalue().splitlines()[-1])
