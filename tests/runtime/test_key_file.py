"""The master key file is followed while the service runs, and always replaced as a whole."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import structlog

from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.errors import DecryptionFailed, MasterKeyWrong
from taproof.runtime.key_file import (
    KeyFile,
    KeyRotationUnderWay,
    MasterKeyUnwritable,
    held_key_file,
    read_master_keys,
    read_or_make_master_key,
    write_master_keys,
)

OLD, NEW = (new_master_key(system_entropy) for _ in range(2))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A key file as the service creates it, with one key."""
    found = tmp_path / "taproof.db.key"
    found.write_text(f"{OLD}\n", "ascii")
    found.chmod(0o600)
    return found


@pytest.fixture
def encryptor(path: Path) -> Encryptor:
    """The encryptor of a process that runs on the file."""
    return Encryptor(read_or_make_master_key(path, system_entropy, may_make=False), KeyFile(path).newer)


def test_a_missing_file_is_not_replaced(path: Path) -> None:
    """A new key would decrypt nothing, and the operator could take the new file for the right one."""
    path.unlink()
    with pytest.raises(MasterKeyWrong, match="Put back the key file"):
        read_or_make_master_key(path, system_entropy, may_make=False)
    assert not path.exists()


def test_a_running_process_follows_the_file(path: Path, encryptor: Encryptor) -> None:
    """A replaced file applies immediately, without a restart: its first key encrypts, and only its keys decrypt."""
    by_old = encryptor.encrypt("secret", "row", system_entropy)
    assert Encryptor(OLD).decrypt(by_old, "row") == "secret"
    write_master_keys(path, [NEW, OLD])
    by_new = encryptor.encrypt("secret", "row", system_entropy)
    assert Encryptor(NEW).decrypt(by_new, "row") == "secret"
    assert encryptor.decrypt(by_old, "row") == "secret"
    write_master_keys(path, [NEW])
    assert encryptor.decrypt(by_new, "row") == "secret"
    with pytest.raises(DecryptionFailed):
        encryptor.decrypt(by_old, "row")


def test_what_another_process_encrypted_under_a_new_key_opens_at_once(path: Path, encryptor: Encryptor) -> None:
    """Every process knows a new key, because the key is in the file before anything is encrypted with it."""
    other = Encryptor(OLD, KeyFile(path).newer)
    write_master_keys(path, [NEW, OLD])
    assert encryptor.decrypt(other.encrypt("secret", "row", system_entropy), "row") == "secret"


@pytest.mark.parametrize("trouble", ["missing", "empty", "half", "binary", "directory"])
def test_a_file_that_cannot_be_used_changes_nothing_for_who_runs(
    path: Path, encryptor: Encryptor, trouble: str
) -> None:
    """The previous keys stay in use, and the error is logged once without the text; the repaired file is read again."""
    by_old = encryptor.encrypt("secret", "row", system_entropy)
    path.unlink()
    if trouble == "directory":
        path.mkdir()
    elif trouble != "missing":
        path.write_bytes({"empty": b"", "half": NEW[:20].encode(), "binary": b"\xff\0"}[trouble])
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            assert encryptor.decrypt(by_old, "row") == "secret"
            assert encryptor.is_current(encryptor.encrypt("secret", "row", system_entropy))
    assert [each["event"] for each in logs] == ["master_key_file_unusable"]
    assert NEW[:20] not in str(logs)
    if trouble == "directory":
        path.rmdir()
    path.write_text(f"{NEW}\n{OLD}\n", "ascii")
    assert Encryptor(NEW).decrypt(encryptor.encrypt("secret", "row", system_entropy), "row") == "secret"
    assert encryptor.decrypt(by_old, "row") == "secret"


def test_an_unchanged_file_is_not_read_again(path: Path, encryptor: Encryptor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that no key decrypts, which a stranger may send often, cost one stat call each and no read."""
    encryptor.encrypt("secret", "row", system_entropy)
    stranger = Encryptor(NEW).encrypt("secret", "row", system_entropy)
    reads: list[Any] = []
    monkeypatch.setattr(Path, "open", lambda *arguments, **_: reads.append(arguments))
    for _ in range(5):
        with pytest.raises(DecryptionFailed):
            encryptor.decrypt(stranger, "row")
    assert reads == []


def test_the_new_file_is_as_secret_as_the_old_one(path: Path) -> None:
    """Mode 0600, whatever the umask; nothing else is left in the directory."""
    before = os.umask(0)
    try:
        write_master_keys(path, [NEW, OLD])
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_master_keys(path) == [NEW, OLD]
    assert path.read_text("ascii") == f"{NEW}\n{OLD}\n"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(os.geteuid() != 0, reason="Only the administrator can give a file away.")
def test_the_file_keeps_its_owner(path: Path) -> None:
    """An administrator may rotate the key, and the service's user must still be able to read the file."""
    os.chown(path, 4711, 4712)
    write_master_keys(path, [NEW, OLD])
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (4711, 4712, 0o600)


def test_a_link_to_the_file_stays_a_link(path: Path, tmp_path: Path) -> None:
    """The target of the link is replaced."""
    link = tmp_path / "link" / "other.key"
    link.parent.mkdir()
    link.symlink_to(path)
    encryptor = Encryptor(OLD, KeyFile(link).newer)
    with held_key_file(link) as real:
        write_master_keys(real, [NEW, OLD])
    assert link.is_symlink()
    assert read_master_keys(path) == [NEW, OLD]
    assert Encryptor(NEW).decrypt(encryptor.encrypt("secret", "row", system_entropy), "row") == "secret"


def test_what_a_killed_rotation_left_is_replaced(path: Path) -> None:
    """A temporary file contains a key: there is at most one, with the same mode, and the next rotation removes it."""
    draft = path.with_name(f".{path.name}.new")
    draft.write_text("half", "ascii")
    draft.chmod(0o666)
    write_master_keys(path, [NEW, OLD])
    assert list(path.parent.iterdir()) == [path]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_one_rotation_at_a_time(path: Path) -> None:
    """Another process is refused with a sentence; once the first one has ended in any way, the next may begin."""
    program = (
        "import sys, pathlib; from taproof.runtime.key_file import held_key_file\n"
        "with held_key_file(pathlib.Path(sys.argv[1])):\n    print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(KeyRotationUnderWay, match="Wait"), held_key_file(path):
            raise AssertionError
        other.kill()
        other.wait()
        with held_key_file(path) as real:
            assert real == path
    with held_key_file(path):
        pass


def test_what_goes_wrong_within_a_rotation_is_not_taken_for_another_rotation(path: Path) -> None:
    """Every exception is passed on, and the lock is released."""
    with pytest.raises(BlockingIOError), held_key_file(path):
        raise BlockingIOError
    with held_key_file(path):
        pass


def test_a_file_that_cannot_be_replaced_is_told_of(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old file stays unchanged, and the sentence says what to do."""

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MasterKeyUnwritable, match="No space left"):
        write_master_keys(path, [NEW, OLD])
    monkeypatch.undo()
    assert read_master_keys(path) == [OLD]
    assert list(path.parent.iterdir()) == [path]
    path.unlink()
    with pytest.raises(MasterKeyUnwritable, match="Run this command as the file's owner"), held_key_file(path):
        raise AssertionError


def test_a_new_first_key_is_durable_before_it_is_used(
    path: Path, encryptor: Encryptor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that reads two keys first syncs the directory.

    Otherwise, a power failure could restore the old file.
    """
    encryptor.encrypt("secret", "row", system_entropy)
    write_master_keys(path, [NEW, OLD])
    synced: list[str] = []
    fsync = os.fsync

    def noting(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    encryptor.encrypt("secret", "row", system_entropy)
    assert synced == [str(path.parent)]
    read_or_make_master_key(path, system_entropy, may_make=False)
    assert synced == [str(path.parent)] * 2


def test_the_file_is_whole_before_it_has_its_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text, the name and the directory are synced in this order, so that a power failure leaves a complete file."""
    steps: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def noting_sync(descriptor: int) -> None:
        steps.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    def noting_replace(draft: Path, target: Path) -> Path:
        steps.append(f"rename {draft.name}")
        return replace(draft, target)

    monkeypatch.setattr(os, "fsync", noting_sync)
    monkeypatch.setattr(Path, "replace", noting_replace)
    write_master_keys(path, [NEW, OLD])
    assert steps == [f".{path.name}.new", f"rename .{path.name}.new", path.parent.name]
