"""The file with the access token of the sandbox's developer, so that the token stays the same between starts.

It is next to the database, like the master key, and only its owner can read it. The sandbox on PostgreSQL has no file,
and creates a new token at each start.
"""

from pathlib import Path
from typing import Final

from taproof.config.database_url import database_file, is_postgres
from taproof.core.errors import TaproofError
from taproof.core.identifiers import is_key
from taproof.runtime.key_file import replace_private

_LONGEST: Final = 200
"""Characters that are read: a token has fewer."""


class TokenFileUnusable(TaproofError, code="token_file_unusable"):
    """The file with the sandbox's access token cannot be read or written."""


def token_file(database_url: str) -> Path | None:
    """Return the path of the file; None for PostgreSQL."""
    if is_postgres(database_url):
        return None
    path = database_file(database_url)
    return path.with_name(f"{path.name}.token")


def read_token(path: Path) -> str | None:
    """Return the token in the file; None if there is no file or it has no token."""
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            text = file.read(_LONGEST).strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(path, error) from error
    return text if is_key(text, "tap") else None


def write_token(path: Path, token: str) -> None:
    """Replace the content of the file."""
    try:
        replace_private(path, [token])
    except OSError as error:
        raise _unusable(path, error) from error


def _unusable(path: Path, error: OSError) -> TokenFileUnusable:
    return TokenFileUnusable(
        f"The file {path} with the sandbox's access token cannot be used: {error}. "
        "Check its owner and mode, or delete it."
    )
