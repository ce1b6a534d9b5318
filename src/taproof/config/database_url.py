"""Read database URLs: `sqlite:///` and a file, or the `postgresql://` address of a server."""

import os
from pathlib import Path
from typing import Final

from taproof.storage.postgres.address import SCHEMES, AddressRefused, is_address, read_address

SQLITE: Final = "sqlite:///"


def is_postgres(database_url: str) -> bool:
    """Return whether a valid database URL names a PostgreSQL database. If not, it names a SQLite file."""
    return database_url.startswith(SCHEMES)


def database_file(database_url: str) -> Path:
    """Return the file that `sqlite:///relative.db` or `sqlite:////absolute.db` names.

    Raises:
        AddressRefused: SQLite or a shell would understand the name in another way.
        ValueError: it has neither form.
    """
    name = database_url.removeprefix(SQLITE)
    if name in {"", database_url} or name.endswith("/") or not name.isprintable():
        raise ValueError("not a SQLite URL")
    if name.startswith((":memory:", "file:")):
        raise AddressRefused("must name a file by its path. A database in memory would lose all sign-ins")
    if name.startswith("~"):
        raise AddressRefused("names a file below ~, which only a shell expands. Write the whole path after sqlite:///")
    if "?" in name:
        raise AddressRefused("has a question mark. A SQLite file takes no parameters: remove it and what follows")
    return Path(name)


def master_key_file(database_url: str) -> Path:
    """Return the path of the master key file, for SQLite without TAPROOF_MASTER_KEY."""
    path = database_file(database_url)
    return path.with_name(f"{path.name}.key")


def shown_database(database_url: str) -> str:
    """Return a valid database URL for display: the absolute path of a file, or an address without the password."""
    if not is_postgres(database_url):
        return str(database_file(database_url).absolute())
    return read_address(database_url).shown


def check_database_url(value: str) -> str:
    """Return the URL; an address of PostgreSQL is complete, with what its service and the environment add.

    Raises:
        AddressRefused: a part of the address cannot be used; the text completes a sentence about the setting.
        ValueError: it names neither a SQLite file nor a PostgreSQL database.
    """
    if is_address(value):
        return read_address(value, os.environ).url
    database_file(value)
    return value
