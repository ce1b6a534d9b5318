"""Configures logging: structlog over the standard library, so that the lines of all libraries take one path to stderr.

Taproof never logs secrets intentionally. `redact` is the last safeguard, for exception texts and the debug lines of
libraries. It processes values of any depth and type, after tracebacks have become text.
"""

import logging
import re
import sys
from typing import Any, Final, Literal, TextIO

import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.types import EventDict, WrappedLogger

from taproof.core.clock import SECOND, iso8601, system_clock
from taproof.core.stacks import describe_error

MASK: Final = "[redacted]"
_DEPTH: Final = 8
_SECRET_NAMES: Final = frozenset({
    "access_token", "authorization", "bot_token", "code_verifier", "cookie", "device_code", "init_data", "master_key",
    "password", "proof", "return_code", "secret", "secret_key", "secret_token", "session_token", "set_cookie", "token",
    "webhook_secret",
    "x_telegram_bot_api_secret_token",
})  # fmt: skip
_SECRETS: Final = (
    # Headers, also as ASGI and HTTP libraries print them: "authorization: x", 'authorization': 'x', (b'cookie', b'x').
    (
        re.compile(
            r"""((?:authorization|cookie|x-telegram-bot-api-secret-token)["']?\s*[:=,]\s*(?:b?["'])?)[^"'\r\n]+""",
            re.IGNORECASE,
        ),
        rf"\1{MASK}",
    ),
    (re.compile(r"\b(bearer|basic)\s+[^\s\"',;]+", re.IGNORECASE), rf"\1 {MASK}"),
    # A password in the options of an address, such as a database URL.
    (re.compile(r"((?:password|passwd|pwd)=)[^\s\"'&]+", re.IGNORECASE), rf"\1{MASK}"),
    # Keys and secrets (core/identifiers.py). A preview has an ellipsis and is not masked.
    (re.compile(r"(sk|tap|ocs|oat|whsec)_[A-Za-z0-9+/_-]{12,}={0,2}"), rf"\1_{MASK}"),
    # The console's cookies and invitation codes. Only complete ones match, because words may begin the same way.
    (re.compile(r"(con|inv|join)_[A-Za-z0-9]{49}"), rf"\1_{MASK}"),
    # A bot's token, alone or in the path of a Bot API call.
    (re.compile(r"(?<!\d)\d{6,}+(?::|%3[Aa])[A-Za-z0-9_-]{30,}"), MASK),
    # A proof or any other JWT, with any text directly before it.
    (
        re.compile(
            r"(?<![A-Za-z0-9_-])(?=[A-Za-z0-9_-]*?eyJ[A-Za-z0-9_-]{8})[A-Za-z0-9_-]++"
            r"\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*+"
        ),
        MASK,
    ),
    # A session token by its context: in a deeplink, a body, a /start message.
    (re.compile(r"""((?:start=|/start\s+|session_token["']?\s*[:=,]\s*(?:b?["'])?))[A-Za-z0-9_-]{43}"""), rf"\1{MASK}"),
    # A return code by its context: in the link of the button, or in a body.
    (re.compile(r"""((?:taproof_return=|return_code["']?\s*[:=,]\s*(?:b?["'])?))[A-Za-z0-9_-]{32}"""), rf"\1{MASK}"),
    # 32 random bytes in base64: a master key.
    (re.compile(r"[A-Za-z0-9+/_-]{43}="), MASK),
    # The same without padding: a session token anywhere. It must have both upper and lower case, so that a long name
    # in a traceback stays readable.
    (
        re.compile(
            r"(?<![A-Za-z0-9_-])(?=[a-z0-9_-]*[A-Z])(?=[A-Z0-9_-]*[a-z])"
            r"[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"
        ),
        MASK,
    ),
)
# tests/test_patterns.py checks that every pattern takes linear time, because untrusted text may reach the log.
_ADDRESS: Final = re.compile(r"://[^\s\"'<>]+")
_USER: Final = re.compile(r"://[^\s:/@]*:(?=.)")


def redact_text(text: str) -> str:
    """Return `text` with all likely secrets of this service and of its messenger masked."""
    text = _ADDRESS.sub(_without_password, text)
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def _without_password(address: re.Match[str]) -> str:
    # Up to the last @, because a password may contain an @.
    before, at, host = address[0].rpartition("@")
    user = _USER.search(before)
    return address[0] if user is None else f"{before[: user.end()]}{MASK}{at}{host}"


def _redact(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict) and depth:
        return {
            redact_text(str(name)): MASK if _is_secret(name) and item is not None else _redact(item, depth - 1)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset) and depth:
        return [_redact(item, depth - 1) for item in value]
    return redact_text(value if isinstance(value, str) else repr(value))


def _is_secret(name: object) -> bool:
    return str(name).lower().replace("-", "_") in _SECRET_NAMES


def redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Mask the secrets in every value of a log line. This is the last step before it is written."""
    masked: EventDict = _redact(event, _DEPTH)
    return masked


def _add_time(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    record = event.get("_record")
    instant = system_clock() if record is None else int(record.created * SECOND)
    return {"timestamp": iso8601(instant), **event}


def _one_line(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Escape characters that could move the cursor or fake a line. The JSON format needs no such step."""
    return {
        name: "\n".join(map(_escape, value.split("\n"))) if name in {"exception", "stack"} else _escape(value)
        for name, value in event.items()
    }


def _escape(value: Any) -> str:
    text = str(value)
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else mark.encode("unicode_escape").decode() for mark in text)


def _describe_exception(exc_info: structlog.typing.ExcInfo) -> str:
    return describe_error(exc_info[1])


class _Handler(logging.StreamHandler[TextIO]):
    """Writes log lines. For one that cannot be formatted, writes only its location: the text is not redacted yet."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 — the name comes from logging.
        kind = sys.exc_info()[0]
        self.stream.write(
            f"A log line of {record.name} ({record.filename}:{record.lineno}) was lost: {kind and kind.__name__}\n"
        )


def configure_logging(
    level: str, log_format: Literal["console", "json"], stream: TextIO | None = None, process: int | None = None
) -> None:
    """Send all log lines of the process to one stream, in one format. A later call replaces an earlier one.

    The stream is stderr by default, because stdout is for the output of commands. `process` is the number of this
    process, which is added to its lines if several processes write to one stream.
    """

    def add_process(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        return event if process is None else {**event, "process": process}

    stream = sys.stderr if stream is None else stream
    before: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.StackInfoRenderer(),
    ]
    render: list[structlog.types.Processor]
    if log_format == "json":
        render = [redact, structlog.processors.JSONRenderer()]
    else:
        console = structlog.dev.ConsoleRenderer(
            colors=stream.isatty(), sort_keys=False, pad_event_to=0, exception_formatter=structlog.dev.plain_traceback
        )
        render = [redact, _one_line, console]
    # Tracebacks become text before they are redacted. Those of structlog would show local variables.
    formatter = ProcessorFormatter(
        foreign_pre_chain=before,
        processors=[
            _add_time,
            add_process,
            ProcessorFormatter.remove_processors_meta,
            structlog.processors.ExceptionRenderer(_describe_exception),
            *render,
        ],
    )
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *before, ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = _Handler(stream)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    logging.captureWarnings(capture=True)


GRANIAN_LOGGING: Final[dict[str, Any]] = {
    "handlers": {},
    "formatters": {},
    "loggers": {
        "_granian": {"handlers": [], "propagate": True},
        "granian.access": {"handlers": [], "propagate": True},
    },
}
"""For Granian's `log_dictconfig`: otherwise its loggers have their own handlers, without the redaction."""
