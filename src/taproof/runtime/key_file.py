"""The master key file: created once, next to the database, readable by its owner only, with one key per line.

During a rotation it has two lines: the first key encrypts, and both decrypt. The file is always replaced as a whole, so
a reader sees either the old or the new content.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import structlog

from taproof.core.encryption import Encryptor, new_master_key, split_master_keys
from taproof.core.entropy import Entropy
from taproof.core.errors import MasterKeyWrong, TaproofError

_ADVICE: Final = "The previous keys stay in use. Put back the right file."

_Version = tuple[int, int, int, int]
"""Identifies a version of the file: inode, size, and the times of modification and of status change in ns."""

_log = structlog.get_logger(__name__)


class MasterKeyUnreadable(TaproofError, code="master_key_unreadable"):
    """The master key file cannot be read or created."""


class MasterKeyUnwritable(TaproofError, code="master_key_unwritable"):
    """The master key file cannot be replaced."""


class KeyRotationUnderWay(TaproofError, code="key_rotation_under_way"):
    """Another command is rotating the master key."""

    sentence = "Another command is rotating the master key of this database. Wait until it ends."


def read_or_make_master_key(path: Path, entropy: Entropy, *, may_make: bool) -> str:
    """Return the content of the file; create the file (mode 0600) if it is missing and `may_make` is true.

    The key is first written under another name and then linked into place, which fails if the file exists. So if two
    processes start at the same time, one key wins, and no partial key is ever read.
    """
    try:
        if not path.exists():
            if not may_make:
                raise MasterKeyWrong(
                    f"This database was created with a master key that is neither in TAPROOF_MASTER_KEY nor in the "
                    f"file {path}, which is missing. Put back the key file that belongs to this database, or set "
                    "TAPROOF_MASTER_KEY to that key."
                )
            _make(path, new_master_key(entropy), entropy(8).hex())
        return _read(path)[0]
    except (OSError, UnicodeDecodeError) as error:
        raise MasterKeyUnreadable(
            f"The master key file {path} cannot be read or created: {error}. Check its owner and mode, or set "
            "TAPROOF_MASTER_KEY."
        ) from error


class KeyFile:
    """Follows the key file while the process runs. An `Encryptor` calls `newer` before each use.

    So no value is encrypted under a replaced key, and the process knows the key of a value that another process has
    just encrypted. Checking an unchanged file takes a microsecond.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: _Version | None = None
        self._text = ""
        self._trouble = ""

    def newer(self) -> str | None:
        """Return the content of the file if it has changed; otherwise None.

        A missing file, or one without valid keys, changes nothing and is logged once.
        """
        try:
            if _version(os.stat(self._path)) == self._seen:  # noqa: PTH116 — half the time of Path.stat.
                return None
            text, self._seen = _read(self._path)
            Encryptor(text)
        except (OSError, ValueError) as error:
            trouble = type(error).__name__
            if trouble != self._trouble:
                _log.error("master_key_file_unusable", error=trouble, advice=_ADVICE)
            self._trouble = trouble
            return None
        self._trouble = ""
        if text == self._text:
            return None
        if self._text:
            _log.debug("master_keys_read_again", keys=len(split_master_keys(text)))
        self._text = text
        return text


@contextlib.contextmanager
def held_key_file(path: Path) -> Iterator[Path]:
    """Lock the key file against other rotations inside the `with` block; yield its real path."""
    with _sentences(path):
        real = path.resolve(strict=True)
        directory = os.open(real.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            # Lock the directory, because the file is replaced. The lock ends with the process, even a killed one.
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise KeyRotationUnderWay from None
        yield real
    finally:
        os.close(directory)


def read_master_keys(path: Path) -> list[str]:
    """Return the keys in the file."""
    with _sentences(path):
        return split_master_keys(_read(path)[0])


def write_master_keys(path: Path, keys: Sequence[str]) -> None:
    """Replace the file and keep its owner; if that fails, nothing is changed. The caller must hold `held_key_file`."""
    with _sentences(path):
        replace_private(path, keys, path.stat())


def replace_private(path: Path, lines: Sequence[str], like: os.stat_result | None = None) -> None:
    """Replace a file that only its owner can read. A killed process or a power failure leaves it old or new, but whole.

    It gets the owner of the file `like`.
    """
    # The name is always the same, so that the next call removes a killed process's draft, which is as secret.
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    try:
        _write_private(draft, lines, like)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def _write_private(path: Path, lines: Sequence[str], like: os.stat_result | None = None) -> None:
    """Create a file with mode 0600, and sync its content, not its name."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        if like is not None and like.st_uid != os.fstat(descriptor).st_uid:
            # An administrator may run the command, and the service must be able to read the new file.
            os.fchown(descriptor, like.st_uid, like.st_gid)
        file.write("".join(f"{line}\n" for line in lines))
        file.flush()
        os.fsync(file.fileno())


def _make(path: Path, key: str, unique: str) -> None:
    draft = path.with_name(f".{path.name}.{unique}")
    try:
        _write_private(draft, [key])
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink(missing_ok=True)
    sync_directory(path.parent)


def _read(path: Path) -> tuple[str, _Version]:
    """Return the content of the file and its version."""
    with path.open(encoding="ascii") as file:
        version = _version(os.fstat(file.fileno()))
        text = file.read().strip()
    if len(split_master_keys(text)) > 1:
        # The first key may be so new that its file would not survive a power failure. Sync it before anything is
        # encrypted under it. A single key needs no sync: it was in the file before, together with another.
        sync_directory(path.resolve().parent)
    return text, version


def _version(found: os.stat_result) -> _Version:
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def sync_directory(path: Path) -> None:
    """Make the names of new files in a directory survive a power failure."""
    directory = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


@contextlib.contextmanager
def _sentences(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeDecodeError) as error:
        raise MasterKeyUnwritable(
            f"The master key file {path} cannot be replaced: {error}. Run this command as the file's "
            "owner, and make sure that its directory is writable."
        ) from error
