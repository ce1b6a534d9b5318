"""The settings: read from the options of the command line, then from the environment, and checked once.

Only the command line, the doctor and `runtime` read them. Other packages receive values as arguments. `--help` needs
this module, so it imports no slow module.
"""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import astuple
from difflib import get_close_matches
from functools import cache
from typing import Any, Final, Self, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from taproof.config.database_url import SQLITE, is_postgres
from taproof.config.options import PREFIX, SWITCH, Option, ValueForm, called, choice_form, flag, variable
from taproof.config.values import (
    DEFAULT_PORT,
    AllowedAddresses,
    BaseUrl,
    BotToken,
    BotUpdates,
    ByPlan,
    CertificateFile,
    ConsoleLogo,
    ConsoleName,
    DatabaseUrl,
    Days,
    Host,
    LinkBase,
    LocationFile,
    LogFormat,
    LogLevel,
    MasterKey,
    Networks,
    Port,
    Ports,
    PrivateKeyFile,
    RateLimit,
    Role,
    Seconds,
    Server,
    TelegramEnvironment,
    Traces,
    Workers,
)
from taproof.core.address_rules import AddressRules
from taproof.core.clock import HOUR, MINUTE
from taproof.core.errors import TaproofError
from taproof.core.rate_limit import Rate
from taproof.core.webhook_url import is_loopback
from taproof.storage.postgres.address import AddressRefused

BOT_API: Final = "https://api.telegram.org"
WEBHOOK_PATH: Final = "/bot/webhook"
"""The path below the base URL to which the messenger posts updates.

It is declared here for `doctor`, which does not load the service."""
_API_ROLES: Final = frozenset({"all", "api"})

_TRIAL: Final = "Trying it out"
_LISTEN: Final = "Network"
_PROCESSES: Final = "Processes and nodes"
_MESSENGER: Final = "The messenger"
_CONSOLE: Final = "The console"
_WEBHOOKS: Final = "Webhooks"
_LIMITS: Final = "Abuse limits"
_STORE: Final = "The store"
_PLANS: Final = "Plans"
_LOGS: Final = "Logs and traces"
_UNLIMITED: Final = "no limit on any plan"


class InvalidSettings(TaproofError, code="invalid_settings"):
    """At least one setting is invalid."""

    def __init__(self, sentences: list[str]) -> None:
        self.sentences = sentences
        super().__init__("\n".join(sentences))


def local_address(scheme: str, host: str, port: int) -> str:
    """Return the URL of a server on this machine that listens on `host`."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 — compared only.
    return f"{scheme}://{_authority(host, port)}"


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _setting(panel: str, meaning: str, *, default: Any = None, shown: str = "", **more: Any) -> Any:
    """Return a field. `panel` is its group in `--help`, which shows the first sentence of `meaning`.

    `default` is a value, or a function of the settings before it. `shown` is the default in words, if it is unclear.
    """
    more["default_factory" if callable(default) else "default"] = default
    return Field(description=meaning, json_schema_extra={"panel": panel, "default": shown}, **more)


class Settings(BaseModel):
    """Every setting: its type, its default and its text in `--help`, in the order of `--help`."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True, defer_build=True)

    sandbox: bool = _setting(
        _TRIAL,
        "Add a simulated messenger and a demo application. Sign-in then needs no account, bot or network.",
        default=False,
    )
    sandbox_allow_remote: bool = _setting(
        _TRIAL, "Let other machines reach the sandbox. Anyone who reaches it can sign in as any user.", default=False
    )
    host: Host = _setting(
        _LISTEN,
        "Address to listen on; 0.0.0.0 means every IPv4 address of this machine, and :: also every IPv6 address.",
        default="127.0.0.1",
    )
    port: Port = _setting(_LISTEN, "Port to listen on.", default=DEFAULT_PORT)
    base_url: BaseUrl = _setting(
        _LISTEN, "The address that clients use.", default="", shown="http(s)://HOST:PORT on loopback"
    )
    tls_cert: CertificateFile = _setting(_LISTEN, "Certificate chain (PEM) to serve HTTPS with; needs --tls-key.")
    tls_key: PrivateKeyFile = _setting(_LISTEN, "Private key (PEM) of the certificate.")
    trusted_proxy: Networks = _setting(
        _LISTEN,
        "Network of a proxy whose X-Forwarded-* headers are trusted. "
        "Repeat the option, or separate values with commas.",
        default=(),
    )
    keep_alive: Seconds = _setting(
        _LISTEN,
        "Seconds after which an idle connection is closed, and within which the address and headers of a request must "
        "arrive. A proxy must close its own idle connections earlier.",
        # Short for strangers, but longer than the timeouts of common proxies (60 to 120 seconds).
        default=lambda known: 150 if known["trusted_proxy"] else 10,
        shown="10; with a trusted proxy, 150",
    )
    bot_token: BotToken = _setting(
        _MESSENGER, "The bot's token from @BotFather. Set it in the environment: other users can see command lines."
    )
    bot_updates: BotUpdates = _setting(
        _MESSENGER, "How the bot receives updates; webhook needs a public https address.", default="polling"
    )
    bot_api_url: Server = _setting(
        _MESSENGER, "Bot API server. It is reached through the proxy in HTTPS_PROXY, if set.", default=BOT_API
    )
    telegram_environment: TelegramEnvironment = _setting(
        _MESSENGER, "Telegram's environment. Its test environment has its own accounts and bots.", default="production"
    )
    messenger_link_base: LinkBase = _setting(
        _MESSENGER,
        "Address that sign-in links begin with. A name at t.me follows the bot's user name.",
        shown="https://t.me/ and the bot's user name",
    )
    geoip_file: LocationFile = _setting(
        _MESSENGER,
        "City or Country database (.mmdb) from MaxMind or DB-IP. With it, prompts show the approximate place of a "
        "request.",
    )
    console_name: ConsoleName = _setting(
        _CONSOLE, "Name of the console, shown there and below the hosted sign-in pages.", default="Taproof"
    )
    console_logo: ConsoleLogo = _setting(
        _CONSOLE,
        "Logo of the console, also shown below the hosted sign-in pages: a square PNG or SVG file of at most 64 KiB, "
        "read at the start.",
        repr=False,
    )
    webhook_allow: AllowedAddresses = _setting(
        _WEBHOOKS,
        "Internal addresses that webhooks may be posted to: names such as private, or networks. "
        "Repeat the option, or separate values with commas.",
        default=(),
    )
    webhook_ports: Ports = _setting(
        _WEBHOOKS,
        "Ports that webhooks may be posted to. Repeat the option, or separate values with commas.",
        default=frozenset({443, 8443}),
        shown="443,8443",
    )
    generate_limit_address: RateLimit = _setting(
        _LIMITS,
        "Sign-ins that one client address may start from browsers and apps; all may come in one burst.",
        default=Rate(60, MINUTE),
    )
    generate_limit_project: RateLimit = _setting(
        _LIMITS,
        "Sign-ins of one project from browsers and apps; all may come in one burst. Sign-ins from the project's "
        "servers have a separate limit of the same size.",
        default=Rate(6_000, MINUTE),
    )
    developer_limit: RateLimit = _setting(
        _LIMITS,
        "Calls of one developer to the developer API and the console; all may come in one burst.",
        default=Rate(600, MINUTE),
    )
    developer_write_limit: RateLimit = _setting(
        _LIMITS,
        "Changes by one developer through the developer API and the console; all may come in one burst.",
        default=Rate(1_000, HOUR),
    )
    database_url: DatabaseUrl = _setting(
        _STORE,
        "The database: sqlite:///FILE, or postgresql://USER:PASSWORD@HOST/DATABASE for several nodes. "
        "If it contains a password, set it in the environment.",
        default=lambda known: f"{SQLITE}taproof-sandbox.db" if known["sandbox"] else f"{SQLITE}taproof.db",
        shown="sqlite:///taproof.db, in sandbox mode sqlite:///taproof-sandbox.db",
        repr=False,
    )
    pgbouncer: bool = _setting(
        _STORE,
        "Assume a pooler in transaction mode in front of PostgreSQL. Without it, Taproof detects poolers at its start.",
        default=False,
    )
    master_key: MasterKey = _setting(
        _STORE,
        "The key that encrypts stored secrets: 32 bytes in base64. With PostgreSQL, every node needs the same key. "
        "During a rotation, set several keys, separated by commas: the first encrypts, all decrypt.",
        shown="with SQLite, created once in a file next to the database",
    )
    session_retention_days: Days = _setting(
        _STORE, "How long sessions are kept. Counters and analytics are kept longer.", default=90
    )
    audit_days: Days = _setting(_STORE, "How long audit log entries are kept.", default=365)
    plan_projects: ByPlan = _setting(
        _PLANS,
        "Maximum number of projects per developer, by plan, such as free=3,pro=20. "
        "Repeat the option, or separate values with commas.",
        default={},
        shown=_UNLIMITED,
    )
    plan_sign_ins: ByPlan = _setting(
        _PLANS,
        "Maximum number of sign-ins that a developer's users can confirm in a calendar month (UTC), by plan. A user "
        "counts once a day. Repeat the option, or separate values with commas.",
        default={},
        shown=_UNLIMITED,
    )
    role: Role = _setting(
        _PROCESSES,
        "What this node does: api answers HTTP, worker sends webhooks and deletes old data, bot receives updates.",
        default="all",
    )
    workers: Workers = _setting(_PROCESSES, "Number of processes that share the port, each with this role.", default=1)
    log_level: LogLevel = _setting(_LOGS, "Minimum log level.", default="info")
    log_format: LogFormat = _setting(
        _LOGS,
        "Format of the log on stderr.",
        default=lambda: "console" if sys.stderr.isatty() else "json",
        shown="console on a terminal, else json",
    )
    traces: Traces = _setting(
        _LOGS,
        "OpenTelemetry traces. With link, each request begins a trace, with a link to its caller's span. With "
        "continue, a request from a trusted proxy continues its caller's trace.",
        default="off",
    )

    @field_validator("*", mode="before")
    @classmethod
    def _strip(cls, value: object) -> object:
        return value.strip() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _fill_base_url(self) -> Self:
        """If the host is a loopback address, default to it. Otherwise, only the operator knows the address."""
        if "base_url" not in self.model_fields_set and is_loopback(self.host):
            # The instance is frozen, and the default depends on fields below this one.
            object.__setattr__(self, "base_url", self.own_address)
        return self

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        problems = []
        if (self.tls_cert is None) != (self.tls_key is None):
            problems.append(f"{called('tls_cert')} and {called('tls_key')} belong together. Set both or neither.")
        if self.sandbox and not self.sandbox_allow_remote:
            # A proxy in front can make a loopback listener public. The base URL shows that.
            for name, host in (("host", self.host), ("base_url", urlsplit(self.base_url).hostname)):
                if host and not is_loopback(host):
                    problems.append(
                        f"{called(name)} must be an address of this machine in sandbox mode, where anyone can sign in "
                        f"as any user. Leave it out, or add {called('sandbox_allow_remote')} to allow other addresses."
                    )
        if self.sandbox and (self.role != "all" or self.workers != 1):
            problems.append(
                f"{called('sandbox')} runs in one process with all roles. Leave out {called('role')} and "
                f"{called('workers')}."
            )
        if self.pgbouncer and not is_postgres(self.database_url):
            problems.append(
                f"{called('pgbouncer')} needs a PostgreSQL database. Set {called('database_url')} to its "
                "postgresql:// address, or leave out this setting."
            )
        if not self.base_url and not problems and (self.serves_api or self.bot_updates == "webhook"):
            problems.append(
                f"{called('base_url')} is required, because {called('host')} listens beyond this machine. Set it to "
                "the https:// address that clients use."
            )
        elif (
            self.bot_updates == "webhook"
            and not self.sandbox
            and self.bot_api_url == BOT_API
            and not self.base_url.startswith("https:")
        ):
            problems.append(
                f"{called('bot_updates')} can be webhook only if {called('base_url')} is an https:// address that the "
                "messenger can reach. Set that, or use polling."
            )
        if problems:
            raise ValueError("\n".join(problems))
        return self

    @property
    def address_rules(self) -> AddressRules:
        """The addresses that webhooks may be posted to. In the sandbox they include this machine."""
        return AddressRules((*self.webhook_allow, "loopback") if self.sandbox else self.webhook_allow)

    @property
    def listens_on(self) -> str:
        """The address and port to listen on, such as `[::]:8080`."""
        return _authority(self.host, self.port)

    @property
    def own_address(self) -> str:
        """The address of this process for calls from this machine."""
        return local_address("https" if self.tls_cert else "http", self.host, self.port)

    @property
    def local_only(self) -> bool:
        """True if only programs on this machine can call: the address is loopback, and no proxy is trusted."""
        return not self.trusted_proxy and is_loopback(urlsplit(self.base_url).hostname or "")

    @property
    def serves_api(self) -> bool:
        """True if this node answers the HTTP API."""
        return self.role in _API_ROLES

    @property
    def service_bot_token(self) -> str:
        """The token of the service's bot; "" if none is set."""
        return self.bot_token.get_secret_value() if self.bot_token is not None else ""

    @property
    def needs_bot(self) -> bool:
        """True if this node calls the Bot API: to receive updates, to answer them, or to learn its link base."""
        if self.role == "api":
            return self.messenger_link_base is None or self.bot_updates == "webhook"
        return self.role != "worker"


def _option(name: str) -> Option:
    field = Settings.model_fields[name]
    choices = get_args(field.annotation)
    form = next((each for each in field.metadata if isinstance(each, ValueForm)), None)
    if form is None:
        form = choice_form(choices) if choices else SWITCH
    extra: Any = field.json_schema_extra
    default = extra["default"] or ("" if field.default_factory or not field.default else str(field.default))
    return Option(flag(name), extra["panel"], field.description or "", default, *astuple(form))


OPTIONS: Final = {name: _option(name) for name in Settings.model_fields}
"""The option of each setting, by the name of its field, in the order of `--help`."""


@cache
def _reader() -> type[Settings]:
    """Return the settings as a class that also reads the environment."""
    from pydantic_settings import BaseSettings, SettingsConfigDict  # noqa: PLC0415 — slow, and `--help` does not need it.

    class EnvironmentSettings(BaseSettings, Settings):
        model_config = SettingsConfigDict(
            env_prefix=PREFIX, env_ignore_empty=True, enable_decoding=False, extra="forbid"
        )

    return EnvironmentSettings


def load_settings(given: Mapping[str, object]) -> Settings:
    """Read the settings: `given` (from options, by field name) first, then the environment, then the defaults.

    Raises:
        InvalidSettings: a setting is invalid. There is one sentence for each problem, without the value.
    """
    try:
        return _reader()(**dict(given))
    except ValidationError as error:
        sentences: list[str] = []
        for problem in error.errors(include_url=False, include_input=False):
            name = str(problem["loc"][0]) if problem["loc"] else ""
            if not name:
                sentences += str(problem["ctx"]["error"]).split("\n")
            elif problem["type"] != "default_factory_not_called":
                reason = problem.get("ctx", {}).get("error")
                told = reason if isinstance(reason, AddressRefused) else OPTIONS[name].must
                sentences.append(f"{called(name)} {told}.")
        raise InvalidSettings(list(dict.fromkeys(sentences))) from None


_OF_APPLICATIONS: Final = {"TAPROOF_PROJECT_ID", "TAPROOF_WEBHOOK_SECRET", "TAPROOF_SECRET_KEY"}
"""Variables of applications that use the SDK. They may be set in the terminal that starts the service."""


def unknown_variables(environment: Iterable[str]) -> list[str]:
    """Return a sentence for every TAPROOF_ variable that is not a setting. Most are typing errors."""
    known = [variable(name) for name in OPTIONS]
    sentences = []
    for given in sorted(environment):
        if given.upper().startswith(PREFIX) and given.upper() not in known:
            near = get_close_matches(given.upper(), known, n=1)
            if given.upper() in _OF_APPLICATIONS:
                advice = "Applications that use the SDK read it. Set it for the application only."
            else:
                advice = f"Did you mean {near[0]}?" if near else "Remove it, or see: taproof serve --help-all"
            sentences.append(f"{given} is not a Taproof setting and has no effect. {advice}")
    return sentences
