"""The settings: read from the options of the command line, then from the environment, checked once.

Only the command line, the doctor and what stands around `app.py` read them; everything else gets values as arguments.
"""

import sys
from collections.abc import Callable, Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict
from pydantic_settings.sources import NoDecode

from taproof.config.options import OPTIONS, PREFIX, called
from taproof.core.accounts import Plan
from taproof.core.address_rules import AddressRules
from taproof.core.clock import HOUR, MINUTE, SECOND
from taproof.core.encryption import Encryptor
from taproof.core.errors import TaproofError
from taproof.core.rate_limit import Rate
from taproof.core.webhook_url import is_loopback

BOT_API: Final = "https://api.telegram.org"
WEBHOOK_PATH: Final = "/bot/webhook"
"""Where below the base URL the messenger posts updates. It is here so that `doctor` need not import the service."""
_SQLITE: Final = "sqlite:///"
_POSTGRES: Final = ("postgresql://", "postgres://")
_HIGHEST_LIMIT: Final = 1_000_000_000
_API_ROLES: Final = frozenset({"all", "api"})
_UNITS: Final = {"second": SECOND, "minute": MINUTE, "hour": HOUR}
_HIGHEST_RATE: Final = 1_000_000


class InvalidSettings(TaproofError):
    """A setting cannot be used."""

    def __init__(self, sentences: list[str]) -> None:
        self.sentences = sentences
        super().__init__("\n".join(sentences))


def is_postgres(database_url: str) -> bool:
    """Tell whether a valid database URL names a PostgreSQL database; else it names a SQLite file."""
    return database_url.startswith(_POSTGRES)


def database_file(database_url: str) -> Path:
    """Return the file that `sqlite:///relative.db` or `sqlite:////absolute.db` names.

    Raises:
        ValueError: it has neither form.
    """
    name = database_url.removeprefix(_SQLITE)
    if name in {"", database_url} or name.endswith("/") or "?" in name or not name.isprintable():
        raise ValueError("not a SQLite URL")
    return Path(name)


def shown_database(database_url: str) -> str:
    """Return how a valid database URL is shown to people: the whole path of a file, or an address without password."""
    if not is_postgres(database_url):
        return str(database_file(database_url).absolute())
    parts = urlsplit(database_url)
    # Options behind a question mark are left out: one of them may be a password too.
    credentials, at, hosts = parts.netloc.rpartition("@")
    return f"postgresql://{credentials.partition(':')[0]}{at}{hosts}{parts.path}"


# ---- one check for each setting that its type says too little about; each raises ValueError


def _host(value: str) -> str:
    if value != "localhost":
        ip_address(value)
    return value


def _server(value: str) -> str:
    """Return an http(s) address without the slash at its end."""
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
    if value == "":  # Not known; `_check_together` asks for it.
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


def _bot_token(value: str) -> str:
    number, _, rest = value.partition(":")
    if not (value.isascii() and number.isdigit() and rest.replace("-", "").replace("_", "").isalnum()):
        raise ValueError("not a bot token")
    return value


def _master_key(value: str) -> str:
    Encryptor(value)
    return value


def _database_url(value: str) -> str:
    if not is_postgres(value):
        database_file(value)
        return value
    parts = urlsplit(value)
    hosts = parts.netloc.rpartition("@")[2]
    # A mark in a password that was not escaped ends the address early, or looks like a second password.
    odd = parts.netloc.count("@") > 1 or "@" in parts.path + parts.query or parts.fragment or not value.isprintable()
    ports = [host.rpartition(":")[2] for host in hosts.split(",") if ":" in host and not host.endswith("]")]
    if odd or " " in value or not all(port.isdecimal() for port in ports):
        raise ValueError("not a PostgreSQL URL")
    if not hosts and "host=" not in parts.query:
        raise ValueError("no host")
    if parts.path.count("/") != 1 or parts.path == "/":
        raise ValueError("no database name")
    return value


def _listed(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


def _networks(value: str) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(part) for part in _listed(value))


def _allowed(value: str) -> tuple[str, ...]:
    allowed = tuple(_listed(value))
    AddressRules(allowed)
    return allowed


def _by_plan(value: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in _listed(value)]
    found = {plan.strip().lower(): number.strip() for plan, _, number in pairs}
    if len(found) != len(pairs) or not all(number.isascii() and number.isdigit() for number in found.values()):
        raise ValueError("not a number for each plan")
    return found


def _ports(value: str) -> list[str]:
    ports = _listed(value)
    if not ports:
        raise ValueError("no port")
    return ports


def _rate(value: str) -> Rate | None:
    """Return what `60/minute` says; None for `off`."""
    if value.lower() == "off":
        return None
    number, _, unit = value.lower().partition("/")
    window = _UNITS.get(unit.strip())
    if window is None or not (number.strip().isascii() and number.strip().isdigit() and len(number) <= 8):
        raise ValueError("not a rate")
    rate = Rate(int(number), window)
    if not 1 <= rate.number <= _HIGHEST_RATE:
        raise ValueError("out of range")
    return rate


_CHECKS: Final[dict[str, Callable[[str], object]]] = {
    "host": _host,
    "base_url": _base_url,
    "tls_cert": _readable,
    "tls_key": _readable,
    "trusted_proxy": _networks,
    "bot_token": _bot_token,
    "bot_updates": str.lower,
    # A Bot API server in one's own network speaks plain HTTP only, so that is allowed; `doctor` warns of it.
    "bot_api_url": _server,
    "messenger_link_base": _link_base,
    "geoip_file": _readable,
    "webhook_allow": _allowed,
    "webhook_ports": _ports,
    "plan_projects": _by_plan,
    "plan_sign_ins": _by_plan,
    "generate_limit_address": _rate,
    "generate_limit_project": _rate,
    "developer_limit": _rate,
    "developer_write_limit": _rate,
    "database_url": _database_url,
    "master_key": _master_key,
    "role": str.lower,
    "log_level": str.lower,
    "log_format": str.lower,
}


# ---- defaults that follow from other settings


def _default_database_url(known: dict[str, Any]) -> str:
    return f"{_SQLITE}taproof-sandbox.db" if known["sandbox"] else f"{_SQLITE}taproof.db"


def _default_base_url(known: dict[str, Any]) -> str:
    """Return this machine's own address; "" when it listens further, where only the operator knows it."""
    host = known["host"]
    if not is_loopback(host):
        return ""
    scheme = "https" if known["tls_cert"] else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{known['port']}"


def _default_webhook_ports() -> frozenset[int]:
    return frozenset({443, 8443})


def _default_log_format() -> Literal["console", "json"]:
    return "console" if sys.stderr.isatty() else "json"


class Settings(BaseSettings):
    """Every setting, checked, with its default filled in; `options.OPTIONS` says what each means."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, extra="forbid", frozen=True, hide_input_in_errors=True
    )

    sandbox: bool = Field(default=False, description=OPTIONS["sandbox"].help)
    sandbox_allow_remote: bool = Field(default=False, description=OPTIONS["sandbox_allow_remote"].help)
    host: str = Field(default="127.0.0.1", description=OPTIONS["host"].help)
    port: int = Field(default=8080, ge=1, le=65535, description=OPTIONS["port"].help)
    tls_cert: Path | None = Field(default=None, description=OPTIONS["tls_cert"].help)
    tls_key: Path | None = Field(default=None, description=OPTIONS["tls_key"].help)
    base_url: str = Field(default_factory=_default_base_url, description=OPTIONS["base_url"].help)
    trusted_proxy: Annotated[tuple[IPv4Network | IPv6Network, ...], NoDecode] = Field(
        default=(), description=OPTIONS["trusted_proxy"].help
    )
    bot_token: SecretStr | None = Field(default=None, description=OPTIONS["bot_token"].help)
    bot_updates: Literal["polling", "webhook"] = Field(default="polling", description=OPTIONS["bot_updates"].help)
    bot_api_url: str = Field(default=BOT_API, description=OPTIONS["bot_api_url"].help)
    messenger_link_base: str | None = Field(default=None, description=OPTIONS["messenger_link_base"].help)
    geoip_file: Path | None = Field(default=None, description=OPTIONS["geoip_file"].help)
    webhook_allow: Annotated[tuple[str, ...], NoDecode] = Field(default=(), description=OPTIONS["webhook_allow"].help)
    webhook_ports: Annotated[frozenset[Annotated[int, Field(ge=1, le=65535)]], NoDecode] = Field(
        default_factory=_default_webhook_ports, description=OPTIONS["webhook_ports"].help
    )
    generate_limit_address: Annotated[Rate | None, NoDecode] = Field(
        default=Rate(60, MINUTE), description=OPTIONS["generate_limit_address"].help
    )
    generate_limit_project: Annotated[Rate | None, NoDecode] = Field(
        default=Rate(6_000, MINUTE), description=OPTIONS["generate_limit_project"].help
    )
    developer_limit: Annotated[Rate | None, NoDecode] = Field(
        default=Rate(600, MINUTE), description=OPTIONS["developer_limit"].help
    )
    developer_write_limit: Annotated[Rate | None, NoDecode] = Field(
        default=Rate(1_000, HOUR), description=OPTIONS["developer_write_limit"].help
    )
    database_url: str = Field(
        default_factory=_default_database_url, description=OPTIONS["database_url"].help, repr=False
    )
    pgbouncer: bool = Field(default=False, description=OPTIONS["pgbouncer"].help)
    master_key: SecretStr | None = Field(default=None, description=OPTIONS["master_key"].help)
    session_retention_days: int = Field(default=90, ge=1, le=3650, description=OPTIONS["session_retention_days"].help)
    audit_days: int = Field(default=365, ge=1, le=3650, description=OPTIONS["audit_days"].help)
    plan_projects: Annotated[dict[Plan, Annotated[int, Field(le=_HIGHEST_LIMIT)]], NoDecode] = Field(
        default_factory=dict, description=OPTIONS["plan_projects"].help
    )
    plan_sign_ins: Annotated[dict[Plan, Annotated[int, Field(le=_HIGHEST_LIMIT)]], NoDecode] = Field(
        default_factory=dict, description=OPTIONS["plan_sign_ins"].help
    )
    role: Literal["all", "api", "worker", "bot"] = Field(default="all", description=OPTIONS["role"].help)
    workers: int = Field(default=1, ge=1, le=64, description=OPTIONS["workers"].help)
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description=OPTIONS["log_level"].help
    )
    log_format: Literal["console", "json"] = Field(
        default_factory=_default_log_format, description=OPTIONS["log_format"].help
    )

    @field_validator("*", mode="before")
    @classmethod
    def _check_each(cls, value: object, info: ValidationInfo) -> object:
        if isinstance(value, SecretStr):
            value = value.get_secret_value()
        if not isinstance(value, str):
            return value
        check = _CHECKS.get(info.field_name or "")
        return check(value.strip()) if check else value.strip()

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        problems = []
        if (self.tls_cert is None) != (self.tls_key is None):
            problems.append(f"{called('tls_cert')} and {called('tls_key')} belong together: give both or neither.")
        if self.sandbox and not self.sandbox_allow_remote:
            # A proxy in front makes a loopback listener public, which the base URL gives away.
            for name, host in (("host", self.host), ("base_url", urlsplit(self.base_url).hostname)):
                if host and not is_loopback(host):
                    problems.append(
                        f"{called(name)} must stay on this machine in sandbox mode, where anybody can sign in as "
                        f"anybody: leave it out, or add {called('sandbox_allow_remote')} if that is meant."
                    )
        if self.sandbox and (self.role != "all" or self.workers != 1):
            problems.append(
                f"{called('sandbox')} runs in one process that does everything: leave out {called('role')} and "
                f"{called('workers')}."
            )
        if self.pgbouncer and not is_postgres(self.database_url):
            problems.append(
                f"{called('pgbouncer')} goes with a PostgreSQL database: set {called('database_url')} to its "
                "postgresql:// address, or leave it out."
            )
        if not self.base_url and not problems and (self.serves_api or self.bot_updates == "webhook"):
            problems.append(
                f"{called('base_url')} is needed, since {called('host')} listens beyond this machine: "
                "give the https:// address that clients use."
            )
        elif (
            self.bot_updates == "webhook"
            and not self.sandbox
            and self.bot_api_url == BOT_API
            and not self.base_url.startswith("https:")
        ):
            problems.append(
                f"{called('bot_updates')} can be webhook only when {called('base_url')} is an https:// address that "
                "the messenger can reach: set that, or use polling."
            )
        if problems:
            raise ValueError("\n".join(problems))
        return self

    @property
    def address_rules(self) -> AddressRules:
        """Which addresses webhooks may be posted to. In the sandbox this machine itself is one of them."""
        return AddressRules((*self.webhook_allow, "loopback") if self.sandbox else self.webhook_allow)

    @property
    def local_only(self) -> bool:
        """True if only programs on this machine can call: the address is loopback, and no proxy is trusted."""
        return not self.trusted_proxy and is_loopback(urlsplit(self.base_url).hostname or "")

    @property
    def serves_api(self) -> bool:
        """Whether this node answers the HTTP API."""
        return self.role in _API_ROLES

    @property
    def needs_bot(self) -> bool:
        """Whether this node calls the Bot API: to receive updates, answer them, or learn what its links begin with."""
        if self.role == "api":
            return self.messenger_link_base is None or self.bot_updates == "webhook"
        return self.role != "worker"


def load_settings(given: Mapping[str, object]) -> Settings:
    """Read the settings: `given` (from options, by field name) first, then the environment, then the defaults.

    Raises:
        InvalidSettings: with one sentence for each problem, which never holds the value.
    """
    try:
        return Settings(**dict(given))  # type: ignore[arg-type]  # pydantic checks them.
    except ValidationError as error:
        sentences: list[str] = []
        for problem in error.errors(include_url=False, include_input=False):
            name = str(problem["loc"][0]) if problem["loc"] else ""
            if not name:
                sentences += str(problem["ctx"]["error"]).split("\n")
            elif problem["type"] != "default_factory_not_called":
                sentences.append(f"{called(name)} {OPTIONS[name].must}.")
        raise InvalidSettings(list(dict.fromkeys(sentences))) from None
