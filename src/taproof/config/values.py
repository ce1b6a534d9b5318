"""The types of the settings. Each reads text; a reader raises ValueError for an invalid value."""

from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, SecretStr

from taproof.config.database_url import check_database_url
from taproof.config.options import ValueForm
from taproof.contract.account import Plan
from taproof.core import rate_limit
from taproof.core.address_rules import RANGES, AddressRules
from taproof.core.brand import LOGO_BYTES, Logo, read_logo
from taproof.core.clock import HOUR, MINUTE, SECOND
from taproof.core.names import text_problem
from taproof.core.webhook_url import is_loopback

DEFAULT_PORT: Final = 8080
_UNITS: Final = {"second": SECOND, "minute": MINUTE, "hour": HOUR}
_HIGHEST_RATE: Final = 1_000_000
_NAME_LIMIT: Final = 40


def _text(read: Callable[[str], object]) -> BeforeValidator:
    """Return a validator that passes strings through `read` and leaves other values unchanged."""
    return BeforeValidator(lambda value: read(value) if isinstance(value, str) else value)


def _host(value: str) -> str:
    if value != "localhost":
        ip_address(value)
    return value


def _server(value: str) -> str:
    """Return an http(s) address without its trailing slash."""
    parts = urlsplit(value)
    odd = "@" in parts.netloc or any(mark in value for mark in " ?#\\") or not (value.isascii() and value.isprintable())
    if parts.scheme not in {"https", "http"} or not parts.hostname or parts.port == 0 or odd:
        raise ValueError("not an address")
    return value.rstrip("/")


def _link_base(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise ValueError("not https")
    return _server(value)


def _base_url(value: str) -> str:
    if value == "":  # Unknown. `Settings` requires it where it is needed.
        return value
    value = _link_base(value)
    if urlsplit(value).path:
        raise ValueError("has a path")
    return value


def _readable(value: str) -> str:
    try:
        with Path(value).open("rb"):
            return value
    except OSError as error:
        raise ValueError("cannot be read") from error


def _logo(value: str) -> Logo:
    """Return the image in a file. It is read once, so that all processes show the same one."""
    try:
        with Path(value).open("rb") as file:
            return read_logo(file.read(LOGO_BYTES + 1))
    except OSError as error:
        raise ValueError("cannot be read") from error


def _name(value: str) -> str:
    if not value or text_problem(value, _NAME_LIMIT) is not None:
        raise ValueError("not a name")
    return value


def _bot_token(value: str) -> str:
    number, _, rest = value.partition(":")
    if not (value.isascii() and number.isdigit() and rest.replace("-", "").replace("_", "").isalnum()):
        raise ValueError("not a bot token")
    return value


def _master_key(value: str) -> str:
    from taproof.core.encryption import Encryptor  # noqa: PLC0415 — it is slow to import, and `--help` needs no key.

    Encryptor(value)
    return value


def _listed(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


def _allowed(value: str) -> list[str]:
    allowed = _listed(value)
    AddressRules(allowed)
    return allowed


def _ports(value: str) -> list[str]:
    ports = _listed(value)
    if not ports:
        raise ValueError("no port")
    return ports


def _by_plan(value: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in _listed(value)]
    found = {plan.strip().lower(): number.strip() for plan, _, number in pairs}
    if len(found) != len(pairs) or not all(number.isascii() and number.isdigit() for number in found.values()):
        raise ValueError("not a number for each plan")
    return found


def _rate(value: str) -> rate_limit.Rate | None:
    """Return the rate that a text such as `60/minute` means; None for `off`."""
    if value.lower() == "off":
        return None
    number, _, unit = value.lower().partition("/")
    window = _UNITS.get(unit.strip())
    if window is None or not (number.strip().isascii() and number.strip().isdigit() and len(number) <= 8):
        raise ValueError("not a rate")
    rate = rate_limit.Rate(int(number), window)
    if not 1 <= rate.number <= _HIGHEST_RATE:
        raise ValueError("out of range")
    return rate


def _port(value: str) -> str | int:
    """Return the default instead of the address that Kubernetes sets in pods beside a Service named taproof."""
    return DEFAULT_PORT if value.startswith("tcp://") else value


_LOWER_CASE: Final = _text(str.lower)
_FILE: Final = "must name a file that can be read:"

_PortNumber = Annotated[int, Field(ge=1, le=65535)]
Port = Annotated[_PortNumber, _text(_port), ValueForm("NUMBER", "must be a whole number from 1 to 65535")]
Workers = Annotated[int, Field(ge=1, le=64), ValueForm("NUMBER", "must be a whole number from 1 to 64")]
Seconds = Annotated[int, Field(ge=1, le=3600), ValueForm("SECONDS", "must be a whole number of seconds from 1 to 3600")]
Days = Annotated[int, Field(ge=1, le=3650), ValueForm("DAYS", "must be a whole number of days from 1 to 3650")]
Host = Annotated[str, _text(_host), ValueForm("ADDRESS", "must be an IP address of this machine or localhost")]
Server = Annotated[str, _text(_server), ValueForm("URL", "must be the http:// or https:// address of a Bot API server")]
LinkBase = Annotated[
    str | None,
    _text(_link_base),
    ValueForm("URL", "must be an https:// address without ? or #, such as https://t.me/my_bot"),
]
BaseUrl = Annotated[
    str,
    _text(_base_url),
    ValueForm(
        "URL",
        "must be the https:// address that clients use, with no path, such as https://signin.example.com (http:// only "
        "for this machine itself)",
    ),
]
DatabaseUrl = Annotated[
    str,
    _text(check_database_url),
    ValueForm(
        "URL",
        "must be sqlite:/// and a file name, such as sqlite:///taproof.db or sqlite:////var/lib/taproof/taproof.db, or "
        "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with %-escapes for characters other than letters, digits and "
        "-._~ in user and password",
    ),
]
_File = Annotated[Path | None, _text(_readable)]
CertificateFile = Annotated[_File, ValueForm("FILE", f"{_FILE} the certificate chain in PEM form")]
PrivateKeyFile = Annotated[_File, ValueForm("FILE", f"{_FILE} the private key in PEM form")]
LocationFile = Annotated[_File, ValueForm("FILE", f"{_FILE} an .mmdb database of cities or countries")]
ConsoleName = Annotated[
    str,
    _text(_name),
    ValueForm("NAME", f"must be one line of 1 to {_NAME_LIMIT} characters, without braces and invisible characters"),
]
ConsoleLogo = Annotated[
    Logo | None, _text(_logo), ValueForm("FILE", f"{_FILE} a PNG or SVG image of at most {LOGO_BYTES // 1024} KiB")
]
BotToken = Annotated[
    SecretStr | None,
    _text(_bot_token),
    ValueForm("TOKEN", "must be the complete token from @BotFather: digits, a colon, letters"),
]
MasterKey = Annotated[
    SecretStr | None,
    _text(_master_key),
    ValueForm(
        "KEY",
        "must be the base64 of exactly 32 bytes, or several of these separated by commas; create one with: openssl "
        "rand -base64 32",
    ),
]
Networks = Annotated[
    tuple[IPv4Network | IPv6Network, ...],
    _text(lambda value: [ip_network(part) for part in _listed(value)]),
    ValueForm(
        "CIDR",
        "must be networks such as 10.0.0.0/8, separated by commas, with no host bits set",
        many=True,
    ),
]
AllowedAddresses = Annotated[
    tuple[str, ...],
    _text(_allowed),
    ValueForm(
        "NAME|CIDR",
        "must be networks such as 10.0.0.0/8, with no host bits set, or names of ranges "
        f"({', '.join(RANGES)}), separated by commas",
        many=True,
    ),
]
Ports = Annotated[
    frozenset[_PortNumber],
    _text(_ports),
    ValueForm("NUMBER", "must be whole numbers from 1 to 65535, separated by commas", many=True),
]
ByPlan = Annotated[
    dict[Plan, Annotated[int, Field(le=1_000_000_000)]],
    _text(_by_plan),
    ValueForm(
        "PLAN=NUMBER",
        "must be plans, each once with a whole number, such as free=3,pro=20; plans are free, pro and business, and a"
        " plan that is left out has no limit",
        many=True,
    ),
]
RateLimit = Annotated[
    rate_limit.Rate | None,
    _text(_rate),
    ValueForm(
        "RATE",
        "must be a number from 1 to 1000000, a slash and second, minute or hour, such as 60/minute; or off",
    ),
]
# The form of these types is derived from their values.
BotUpdates = Annotated[Literal["polling", "webhook"], _LOWER_CASE]
TelegramEnvironment = Annotated[Literal["production", "test"], _LOWER_CASE]
Role = Annotated[Literal["all", "api", "worker", "bot"], _LOWER_CASE]
LogLevel = Annotated[Literal["debug", "info", "warning", "error"], _LOWER_CASE]
LogFormat = Annotated[Literal["console", "json"], _LOWER_CASE]
Traces = Annotated[Literal["off", "link", "continue"], _LOWER_CASE]
