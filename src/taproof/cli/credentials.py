"""Stores the access tokens of `taproof login` in a file of the user: one per service address.

The file is `taproof/credentials.json` in `$XDG_CONFIG_HOME`, else in `~/.config` (XDG Base Directory Specification).
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from taproof.core.errors import TaproofError

_SERVICES: Final = "services"


class CredentialsUnusable(TaproofError, code="credentials_unusable"):
    """The file of access tokens cannot be used."""


@dataclass(frozen=True, slots=True)
class Credential:
    """An access token, its id, and the e-mail address of its developer."""

    access_token: str = field(repr=False)
    token_id: str
    email: str


class Credentials:
    """Reads and writes the file. Only the user can read it, and it is always replaced as a whole."""

    def __init__(self, file: Path) -> None:
        self.file: Final = file

    def read(self) -> dict[str, Credential]:
        """Return the credentials by the address of the service."""
        try:
            services = json.loads(self.file.read_bytes())[_SERVICES]
            return {str(address): Credential(**fields) for address, fields in services.items()}
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise CredentialsUnusable(f"{self.file} cannot be read: {error.strerror}.") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise CredentialsUnusable(
                f"{self.file} is damaged. Delete it, and sign in again with: taproof login URL"
            ) from None

    def replace(self, address: str, credential: Credential | None) -> None:
        """Replace the credential of a service; None removes it. If it fails, nothing is changed."""
        from taproof.runtime.key_file import replace_private  # noqa: PLC0415 — slow, and most commands do not need it.

        try:
            with self._locked():
                services = self.read()
                services.pop(address, None)
                if credential is not None:
                    services[address] = credential
                content = {_SERVICES: {each: asdict(fields) for each, fields in services.items()}}
                replace_private(self.file, [json.dumps(content, indent=2)])
        except OSError as error:
            raise CredentialsUnusable(f"{self.file} cannot be written: {error.strerror}.") from None

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the file against other processes, which would otherwise overwrite this change."""
        directory = self.file.parent
        # With `parents=True`, mkdir would apply the mode to the last one only.
        for each in (*reversed(directory.parents), directory):
            each.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def open_credentials() -> Credentials:
    """Return the user's credentials."""
    given = os.environ.get("XDG_CONFIG_HOME", "")
    # The specification ignores relative paths.
    config = Path(given) if given.startswith("/") else Path.home() / ".config"
    return Credentials(config / "taproof" / "credentials.json")
