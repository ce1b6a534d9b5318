"""Read database URLs: `sqlite:///` and a file, or the `postgresql://` address of a server."""

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

SQLITE: Final = "sqlite:///"
_POSTGRES: Final = ("postgresql://", "postgres://")


def is_postgres(database_url: str) -> bool:
    """Return whether a valid database URL names a PostgreSQL database. If not, it names a SQLite file."""
    return database_url.startswith(_POSTGRES)


def database_file(database_url: str) -> Path:
    """Return the file that `sqlite:///relative.db` or `sqlite:////absolute.db` names.

    Raises:
        ValueError: it has neither form.
    """
    name = database_url.removeprefix(SQLITE)
    if name in {"", database_url} or name.endswith("/") or "?" in name or not name.isprintable():
        raise ValueError("not a SQLite URL")
    return Path(name)


def master_key_file(database_url: str) -> Path:
    """Return the path of the master key file, for SQLite without TAPROOF_MASTER_KEY."""
    path = database_file(database_url)
    return path.with_name(f"{path.name}.key")


def shown_database(database_url: str) -> str:
    """Return a valid database URL for display: the absolute path of a file, or an address without the password."""
    if not is_postgres(database_url):
        return str(database_file(database_url).absolute())
    parts = urlsplit(database_url)
    # Options after a question mark are left out: one of them may be a password too.
    credentials, at, hosts = parts.netloc.rpartition("@")
    return f"postgresql://{credentials.partition(':')[0]}{at}{hosts}{parts.path}"


def check_database_url(value: str) -> str:
    """Return the URL unchanged.

    Raises:
        ValueError: it names neither a SQLite file nor a PostgreSQL database.
    """
    if not is_postgres(value):
        database_file(value)
        return value
    parts = urlsplit(value)
    hosts = parts.netloc.rpartition("@")[2]
    # An unescaped character in a password ends the address early, or looks like a second password.
    odd = parts.netloc.count("@") > 1 or "@" in parts.path + parts.query or parts.fragment or not value.isprintable()
    ports = [host.rpartition(":")[2] for host in hosts.split(",") if ":" in host and not host.endswith("]")]
    if odd or " " in value or not all(port.isdecimal() for port in ports):
        raise ValueError("not a PostgreSQL URL")
    # The driver takes an empty host for the local socket, and would send the password there.
    if (hosts or "host=" not in parts.query) and not all(host.partition(":")[0] for host in hosts.split(",")):
        raise ValueError("no host")
    if parts.path.count("/") != 1 or parts.path == "/":
        raise ValueError("no database name")
    return value
