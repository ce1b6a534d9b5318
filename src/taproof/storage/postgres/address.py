"""Reads the address of a PostgreSQL database in every form that libpq accepts.

Source: PostgreSQL 18, "Database Connection Control Functions" and "Environment Variables" (libpq). `PARAMETERS` says
how each parameter of libpq is treated.
"""

import configparser
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode

SCHEMES: Final = ("postgresql://", "postgres://")
_ANY: Final = r"(?s:.*)"
_NEVER: Final = r"(?!)"
_NUMBER: Final = r"-?\d{1,9}"
_PAIR: Final = re.compile(r"\s*(\w+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|((?:[^\s'\\]|\\.)*))(?=\s|$)", re.DOTALL)
_KEY_VALUE: Final = re.compile(r"\s*\w+\s*=")
_NAME: Final = re.compile(r"[A-Za-z_]{1,40}")
_BUNDLES: Final = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")


class AddressRefused(ValueError):
    """An address cannot be used. The text completes "TAPROOF_DATABASE_URL …"; it contains no value of the address."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """How a parameter of libpq is treated.

    `variable` is the environment variable that libpq reads if the address does not have the parameter, and `accepts` a
    pattern of the accepted values. One that is not `used` is left out, because the connection is as secure without it.
    `advice` says what to write instead of any other value.
    """

    variable: str
    accepts: str
    used: bool
    advice: str


def _use(variable: str = "", accepts: str = _ANY, advice: str = "Correct it.") -> Parameter:
    return Parameter(variable, accepts, used=True, advice=advice)


def _leave_out(variable: str, accepts: str, advice: str = "Remove it.") -> Parameter:
    return Parameter(variable, accepts, used=False, advice=advice)


def _refuse(variable: str, advice: str) -> Parameter:
    return Parameter(variable, _NEVER, used=False, advice=advice)


_SECONDS: Final = "It must be a number of seconds."
_TLS_VERSION: Final = "It must be TLSv1, TLSv1.1, TLSv1.2 or TLSv1.3."
_NO_OAUTH: Final = "Remove it, and use a password or a client certificate."
_NO_SCRAM_KEY: Final = "Remove it, and give the password."
PARAMETERS: Final[Mapping[str, Parameter]] = {
    "host": _use("PGHOST", r"[^@]*", "A socket must be the path of its directory, such as /var/run/postgresql."),
    "hostaddr": _use("PGHOSTADDR"),
    "port": _use("PGPORT", r"[\d,]*", "A port must be a number from 1 to 65535."),
    "dbname": _use("PGDATABASE"),
    "user": _use("PGUSER"),
    "password": _use("PGPASSWORD"),
    "passfile": _use("PGPASSFILE"),
    "require_auth": _refuse(
        "PGREQUIREAUTH",
        "Taproof cannot choose how the server asks for the password. Remove it, and set sslmode=verify-full, so that "
        "only the right server is sent the password.",
    ),
    "channel_binding": _use(
        "PGCHANNELBINDING", "disable|prefer|require", "It must be require, or can be left out."
    ),  # See `_bind`.
    "connect_timeout": _use("PGCONNECT_TIMEOUT", _NUMBER, _SECONDS),
    "client_encoding": _leave_out("PGCLIENTENCODING", _ANY),
    "options": _use("PGOPTIONS"),
    "application_name": _use("PGAPPNAME"),
    "fallback_application_name": _leave_out("", _ANY),
    "keepalives": _use("", _NUMBER, "It must be 1 or 0."),
    "keepalives_idle": _use("", _NUMBER, _SECONDS),
    "keepalives_interval": _use("", _NUMBER, _SECONDS),
    "keepalives_count": _use("", _NUMBER, "It must be a number."),
    "tcp_user_timeout": _use("", _NUMBER, "It must be a number of milliseconds."),
    "replication": _leave_out("", "false|off|no|0"),
    "gssencmode": _leave_out(
        "PGGSSENCMODE", "disable|prefer", "Remove it, and set sslmode=verify-full: Taproof encrypts with TLS only."
    ),
    "sslmode": _use(
        "PGSSLMODE",
        "disable|allow|prefer|require|verify-ca|verify-full",
        "It must be disable, allow, prefer, require, verify-ca or verify-full.",
    ),
    "sslnegotiation": _use("PGSSLNEGOTIATION", "postgres|direct", "It must be postgres or direct."),
    "sslcompression": _leave_out("PGSSLCOMPRESSION", "0|1"),
    "sslcert": _use("PGSSLCERT"),
    "sslkey": _use("PGSSLKEY"),
    "sslkeylogfile": _refuse("", "Remove it: Taproof never writes the keys of connections to a file."),
    "sslpassword": _use(),
    "sslcertmode": _leave_out(
        "PGSSLCERTMODE", "allow", "Remove it: the certificate of sslcert is sent if the server asks for it."
    ),
    "sslrootcert": _use("PGSSLROOTCERT"),
    "sslcrl": _use("PGSSLCRL"),
    "sslcrldir": _refuse("PGSSLCRLDIR", "Put the revocation lists into one file, and name it in sslcrl."),
    "sslsni": _leave_out("PGSSLSNI", "1", "Remove it: Taproof always sends the host's name."),
    "requirepeer": _refuse(
        "PGREQUIREPEER", "Remove it, and let only the server's user write to the directory of the socket."
    ),
    "ssl_min_protocol_version": _use("PGSSLMINPROTOCOLVERSION", r"TLSv1(\.[123])?", _TLS_VERSION),
    "ssl_max_protocol_version": _use("PGSSLMAXPROTOCOLVERSION", r"TLSv1(\.[123])?", _TLS_VERSION),
    "min_protocol_version": _leave_out("PGMINPROTOCOLVERSION", r"3\.0", "Remove it: Taproof uses protocol 3.0."),
    "max_protocol_version": _leave_out("PGMAXPROTOCOLVERSION", r"3\.\d|latest", "Remove it."),
    "krbsrvname": _use("PGKRBSRVNAME"),
    "gsslib": _use("PGGSSLIB", "gssapi|sspi", "It must be gssapi or sspi."),
    "gssdelegation": _leave_out("PGGSSDELEGATION", "0", "Remove it: Taproof delegates no credentials."),
    "scram_client_key": _refuse("", _NO_SCRAM_KEY),
    "scram_server_key": _refuse("", _NO_SCRAM_KEY),
    "service": _use("PGSERVICE"),
    "servicefile": _use("PGSERVICEFILE"),
    "target_session_attrs": _use(
        "PGTARGETSESSIONATTRS",
        "any|read-write|primary",
        "Taproof writes, so it must be primary, read-write or any, or can be left out.",
    ),
    # Of several hosts, only one is the primary, so their order does not matter.
    "load_balance_hosts": _leave_out("PGLOADBALANCEHOSTS", "disable|random"),
    "oauth_issuer": _refuse("", _NO_OAUTH),
    "oauth_client_id": _refuse("", _NO_OAUTH),
    "oauth_client_secret": _refuse("", _NO_OAUTH),
    "oauth_scope": _refuse("", _NO_OAUTH),
}
_ACCEPTED: Final = re.compile("|".join(f"{name}=(?:{each.accepts})" for name, each in PARAMETERS.items()))
"""Matches a parameter with an accepted value."""
_CONFUSED: Final = {"ssl": "sslmode", "database": "dbname", "schema": "options", "username": "user"}
"""Parameters of other libraries, with the one that libpq has for the purpose."""


@dataclass(frozen=True, slots=True)
class Address:
    """A database, the hosts of its servers, each with a port, and the parameters that are used.

    A host that begins with a slash is the directory of a socket.
    """

    hosts: tuple[tuple[str, int], ...]
    database: str
    user: str | None
    password: str | None
    parameters: Mapping[str, str]

    @property
    def url(self) -> str:
        """The whole address, with the password."""
        password = "" if self.password is None else f":{quote(self.password, safe='')}"
        user = quote(self.user or "", safe="") + password
        hosts = ",".join(f"{_netloc(host)}:{port}" for host, port in self.hosts)
        query = urlencode(self.parameters, quote_via=quote)
        return f"postgresql://{user}{'@' if user else ''}{hosts}/{quote(self.database, safe='')}?{query}".rstrip("?")

    @property
    def shown(self) -> str:
        """The address for display, without the password and without parameters."""
        hosts = ",".join(
            host if host.startswith("/") else f"{_netloc(host)}{'' if port == 5432 else f':{port}'}"
            for host, port in self.hosts
        )
        return f"postgresql://{f'{self.user}@' if self.user else ''}{hosts}/{self.database}"

    @property
    def driver_options(self) -> dict[str, Any]:
        """The arguments of `asyncpg.connect`, except host and port."""
        # The driver accepts files for TLS only as parameters of a URL.
        tls = {name: value for name, value in self.parameters.items() if name.startswith("ssl")}
        others = {"passfile", "target_session_attrs", "krbsrvname", "gsslib"} & self.parameters.keys()
        return {
            "dsn": f"postgresql://?{urlencode(tls, quote_via=quote)}" if tls else "postgresql://",
            "user": self.user,
            "password": self.password,
            "database": self.database,
            **{name: self.parameters[name] for name in others},
        }

    @property
    def server_settings(self) -> dict[str, str]:
        """The settings that the server is given for each connection."""
        return {name: self.parameters[name] for name in ("application_name", "options") if name in self.parameters}

    @property
    def connect_timeout(self) -> float | None:
        """The limit for opening a connection, in seconds."""
        seconds = int(self.parameters.get("connect_timeout", "0"))
        return seconds if seconds > 0 else None


def is_address(text: str) -> bool:
    """Return whether a text has one of the forms of an address: a URL, or pairs such as `host=db dbname=taproof`."""
    return text.startswith(SCHEMES) or bool(_KEY_VALUE.match(text))


def read_address(text: str, environment: Mapping[str, str] | None = None) -> Address:
    """Read an address. Parameters that it does not have are taken from its service, then from the environment.

    Raises:
        AddressRefused: it has a parameter, value or form that cannot be used.
        ValueError: it is no address.
    """
    given = _read_url(text) if text.startswith(SCHEMES) else _read_pairs(text)
    environment = environment or {}
    defaults = {
        name: environment[parameter.variable]
        for name, parameter in PARAMETERS.items()
        if environment.get(parameter.variable)
    }
    if service := given.get("service") or defaults.get("service"):
        file = given.get("servicefile") or defaults.get("servicefile")
        given = {**_read_service(service, file, environment.get("PGSYSCONFDIR")), **given}
    used = {name: value for name, value in given.items() if _is_used(name, value, name)}
    rest = {name: value for name, value in defaults.items() if not given.get(name)}
    used |= {name: value for name, value in rest.items() if _is_used(name, value, PARAMETERS[name].variable)}
    for name in ("service", "servicefile"):
        used.pop(name, None)
    hosts = _hosts(used)
    if not used.get("dbname"):
        raise AddressRefused("names no database. Add it: postgresql://USER:PASSWORD@HOST:PORT/DATABASE")
    _bind(used, hosts)
    if used.get("sslrootcert") == "system":
        if used.setdefault("sslmode", "verify-full") != "verify-full":
            raise AddressRefused("has sslrootcert=system, which needs sslmode=verify-full. Set both")
        used["sslrootcert"] = _system_certificates()
    database, user, password = used.pop("dbname"), used.pop("user", None), used.pop("password", None)
    return Address(hosts, database, user, password, used)


def _is_used(name: str, value: str, called: str) -> bool:
    """Return whether a parameter is used. Refuse it if the table does not accept it."""
    parameter = PARAMETERS.get(name)
    if parameter is None:
        if not _NAME.fullmatch(name):
            raise ValueError("not an address")
        near = [_CONFUSED[name]] if name in _CONFUSED else get_close_matches(name.lower(), PARAMETERS, 1)
        advice = (
            f"Did you mean {near[0]}" if near else "Remove it. A server's setting goes into options=-c%20NAME%3DVALUE"
        )
        raise AddressRefused(f"has a parameter that PostgreSQL does not know: {name}. {advice}")
    # Empty texts and numbers count as left out, as in libpq. An empty value of a list of words is a mistake.
    is_word = parameter.accepts[0].isalpha()
    if value == "" and not is_word:
        return False
    if not _ACCEPTED.fullmatch(f"{name}={value}"):
        raise AddressRefused(f"has a value of {called} that cannot be used. {parameter.advice.rstrip('.')}")
    return parameter.used


def _bind(used: dict[str, str], hosts: tuple[tuple[str, int], ...]) -> None:
    """Replace channel binding, which the driver lacks, with the check of the server's certificate.

    Both prevent anybody in between from posing as the server (RFC 5929), so the check is never weaker than what was
    required.
    """
    if used.pop("channel_binding", "") != "require":
        return
    if used.get("sslmode") == "disable" or any(host.startswith("/") for host, _ in hosts):
        raise AddressRefused("has channel_binding=require, which needs TLS. Remove it, or connect with TLS")
    used["channel_binding"] = "require"
    used["sslmode"] = "verify-full"
    used.setdefault("sslrootcert", "system")


def _hosts(used: dict[str, str]) -> tuple[tuple[str, int], ...]:
    names, address = used.pop("host", ""), used.pop("hostaddr", "")
    if names and address:
        raise AddressRefused("has host and hostaddr. Remove hostaddr, and let DNS or /etc/hosts give the address")
    hosts = (names or address).split(",")
    if not all(hosts):
        raise AddressRefused(
            "names no host. Add it: postgresql://USER:PASSWORD@HOST:PORT/DATABASE. For the socket of this machine, "
            "add ?host=/var/run/postgresql"
        )
    ports = used.pop("port", "").split(",")
    if len(ports) == 1:
        ports *= len(hosts)
    numbers = [int(port or "5432") if len(port) <= 5 else 0 for port in ports]
    if len(numbers) != len(hosts) or not all(0 < number < 65536 for number in numbers):
        raise AddressRefused("needs one port, or one for each host, and each must be a number from 1 to 65535")
    return tuple(zip(hosts, numbers, strict=True))


def _read_url(text: str) -> dict[str, str]:
    rest = text.partition("://")[2]
    credentials, at, behind = rest.partition("@")
    if not at or "/" in credentials:
        credentials, behind = "", rest
    place, _, query = behind.partition("?")
    netloc, _, database = place.partition("/")
    # An unescaped character in a password ends the address early, or looks like a second password.
    if "@" in behind:
        raise AddressRefused("has an @ that does not end the user's name and password. Write %40 for any other @")
    if "/" in database or " " in text or not text.isprintable():
        raise ValueError("not an address")
    user, colon, password = credentials.partition(":")
    given = {"user": user, "dbname": database} | ({"password": password} if colon else {})
    if netloc:
        found = [re.fullmatch(r"(\[[^\[\]]+\]|[^:\[\]]*)(?::(\d*))?", host) for host in netloc.split(",")]
        if not all(found):
            raise ValueError("not an address")
        given["host"] = ",".join(each[1].strip("[]") for each in found if each)
        given["port"] = ",".join(each[2] or "" for each in found if each)
        if set(given["port"]) <= {","}:
            del given["port"]
    given = {name: _unescape(value) for name, value in given.items() if value}
    for pair in query.split("&") if query else ():
        name, equals, value = pair.partition("=")
        if not equals:
            raise ValueError("not an address")
        name, value = _unescape(name), _unescape(value)
        if (name, value) == ("ssl", "true"):  # As libpq does, for addresses of JDBC.
            name, value = "sslmode", "require"
        given[name] = value
    return given


def _unescape(text: str) -> str:
    if re.search(r"%(?![0-9A-Fa-f]{2})|%00", text):
        raise AddressRefused("has a % that is not part of a %-escape. Write %25 for %")
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None


def _read_pairs(text: str) -> dict[str, str]:
    given, end = {}, 0
    while text[end:].strip():
        pair = _PAIR.match(text, end)
        if pair is None or "\0" in text:
            raise AddressRefused("cannot be read. Put a value with spaces in single quotes, with \\' for a quote in it")
        given[pair[1]] = re.sub(r"\\(.)", r"\1", pair[3] if pair[2] is None else pair[2], flags=re.DOTALL)
        end = pair.end()
    return given


def _read_service(name: str, file: str | None, directory: str | None) -> dict[str, str]:
    """Return the parameters of a service (PostgreSQL, "The Connection Service File")."""
    services = configparser.RawConfigParser(strict=False)
    try:
        files = [directory and f"{directory}/pg_service.conf", file or Path("~/.pg_service.conf").expanduser()]
        services.read(filter(None, files), encoding="utf-8")
        return dict(services[name])
    except (configparser.Error, KeyError, OSError, RuntimeError, UnicodeDecodeError):
        raise AddressRefused(
            "names a service that cannot be read. It must be in ~/.pg_service.conf of the user who runs this, or in "
            "the file that PGSERVICEFILE names"
        ) from None


def _system_certificates() -> str:
    """Return the file of the CA certificates that this machine trusts."""
    for file in (ssl.get_default_verify_paths().cafile, *_BUNDLES):
        if file and Path(file).is_file():
            return file
    raise AddressRefused(
        "relies on the CA certificates of this machine, which has none. Install its package ca-certificates, or set "
        "sslrootcert to a PEM file"
    )


def _netloc(host: str) -> str:
    return f"[{quote(host, safe=':')}]" if ":" in host and not host.startswith("/") else quote(host, safe="")
