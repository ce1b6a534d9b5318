"""The master key file: made once, beside the database, readable by its owner only, one key on each line.

While one key takes the place of another there are two lines: the first key encrypts, both open. The file is only ever
replaced as a whole, so whoever reads it sees it before or after a change.
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

_ADVICE: Final = "The keys that were read before are used on. Put back the right file."

_Version = tuple[int, int, int, int]
"""What tells one version of the file from another: inode, size, and times of two kinds in ns."""

_log = structlog.get_logger(__name__)


class MasterKeyUnreadable(TaproofError):
    """The master key file cannot be read or made."""


class MasterKeyUnwritable(TaproofError):
    """The master key file cannot be replaced."""


class KeyRotationUnderWay(TaproofError):
    """The master key of this database is being rotated just now, by another command. Wait until that one has ended."""


def read_or_make_master_key(path: Path, entropy: Entropy, *, may_make: bool) -> str:
    """Return what the file holds, making the file (mode 0600) when there is none and that is allowed.

    The key is written whole under another name first and then linked into place, which fails if the place is taken:
    of two processes that start at once one key wins, and no half-written key is ever read.

    Raises:
        MasterKeyWrong: the file is missing although the database was already used with a key.
        MasterKeyUnreadable: the file cannot be read or written; the sentence says why.
    """
    try:
        if not path.exists():
            if not may_make:
                raise MasterKeyWrong(
                    f"This database was made with a master key that is neither in TAPROOF_MASTER_KEY nor in the file "
                    f"{path}, which is missing. Put back the key file that belongs to this database, or set "
                    "TAPROOF_MASTER_KEY to that key."
                )
            _make(path, new_master_key(entropy), entropy(8).hex())
        return _read(path)[0]
    except (OSError, UnicodeDecodeError) as error:
        raise MasterKeyUnreadable(
            f"The master key file {path} cannot be read or made: {error}. Check its owner and mode, or set "
            "TAPROOF_MASTER_KEY."
        ) from error


class KeyFile:
    """The file as a process follows it while it runs: `newer` is what a `Encryptor` asks before each use.

    So no value is encrypted under a key that had been replaced when it was encrypted, and the keys of a value that
    another process has just encrypted are known. A look at an unchanged file costs a microsecond.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: _Version | None = None
        self._text = ""
        self._trouble = ""

    def newer(self) -> str | None:
        """Return what the file holds if that has changed, else None.

        A file that is missing or holds no keys changes nothing; it is logged once.
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
    """Keep other rotations away for the length of a `with`, however it ends; yield where the file really lies.

    Raises:
        KeyRotationUnderWay: another process does this already.
        MasterKeyUnwritable: the directory cannot be opened.
    """
    with _sentences(path):
        real = path.resolve(strict=True)
        directory = os.open(real.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            # The directory and not the file, which is replaced. The lock goes with the process, also when it is killed.
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise KeyRotationUnderWay from None
        yield real
    finally:
        os.close(directory)


def read_master_keys(path: Path) -> list[str]:
    """Return the keys that the file holds. Raises MasterKeyUnwritable when it cannot be read."""
    with _sentences(path):
        return split_master_keys(_read(path)[0])


def write_master_keys(path: Path, keys: Sequence[str]) -> None:
    """Replace the file, which keeps its owner; whoever calls this holds `held_key_file`.

    Killed or cut off from power at any instant, the file is the old or the new one, each of them whole.

    Raises:
        MasterKeyUnwritable: nothing was changed; the sentence says why.
    """
    # Always the same name, so that what a killed process left is not left for good: it is as secret as the file itself.
    draft = path.with_name(f".{path.name}.new")
    with _sentences(path):
        draft.unlink(missing_ok=True)
        try:
            _write_new(draft, keys, path.stat())
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        _sync_directory(path.parent)


def _write_new(path: Path, keys: Sequence[str], like: os.stat_result | None = None) -> None:
    """Write a file that is not there yet, durably but for its name; it belongs to whom the one `like` it does."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        if like is not None and like.st_uid != os.fstat(descriptor).st_uid:
            # The administrator runs the command, and the service must be able to read what it left.
            os.fchown(descriptor, like.st_uid, like.st_gid)
        file.write("".join(f"{key}\n" for key in keys))
        file.flush()
        os.fsync(file.fileno())


def _make(path: Path, key: str, unique: str) -> None:
    draft = path.with_name(f".{path.name}.{unique}")
    try:
        _write_new(draft, [key])
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink(missing_ok=True)
    _sync_directory(path.parent)


def _read(path: Path) -> tuple[str, _Version]:
    """Return what the file holds, and which version of it that is."""
    with path.open(encoding="ascii") as file:
        version = _version(os.fstat(file.fileno()))
        text = file.read().strip()
    if len(split_master_keys(text)) > 1:
        # The first key may be so new that its file would not outlive a power failure yet: what is encrypted under
        # it from
        # here on does not come before it on the disk. A key that is alone was in the file before, beside another.
        _sync_directory(path.resolve().parent)
    return text, version


def _version(found: os.stat_result) -> _Version:
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _sync_directory(path: Path) -> None:
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
            f"The master key file {path} cannot be replaced: {error}. Run this as the user that the file belongs to, "
            "where its directory can be written."
        ) from error
