"""The file of access tokens that `taproof login` keeps."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.cli.conftest import Run

from taproof.cli.credentials import Credential, Credentials, CredentialsUnusable


def test_several_services(run: Run, tmp_path: Path) -> None:
    """With several services, the command asks which; each address has one spelling."""
    credentials = Credentials(tmp_path / "taproof" / "credentials.json")
    credentials.replace("https://a.example", Credential("tap_a", "tok_a", "ada@example.com"))
    assert run("token", XDG_CONFIG_HOME=str(tmp_path)).stdout == "tap_a\n"
    credentials.replace("https://b.example:8443", Credential("tap_b", "tok_b", "ada@example.com"))
    for url, token in (
        ("https://a.example/", "tap_a"),
        ("HTTPS://A.Example:443", "tap_a"),
        ("https://b.example:8443", "tap_b"),
    ):
        assert run("token", url, XDG_CONFIG_HOME=str(tmp_path)).stdout == f"{token}\n"
    several = run("token", XDG_CONFIG_HOME=str(tmp_path))
    assert several.exit_code == 1
    assert "https://a.example, https://b.example:8443" in several.stderr
    assert "tap_" not in several.stderr
    other = run("token", "https://c.example", XDG_CONFIG_HOME=str(tmp_path))
    assert "taproof login https://c.example" in other.stderr


def test_nobody_is_signed_in_yet(run: Run, tmp_path: Path) -> None:
    """A sentence says how to sign in; no file is created."""
    for name in ("token", "logout"):
        result = run(name, HOME=str(tmp_path), XDG_CONFIG_HOME="not/absolute")
        assert (result.exit_code, result.stdout) == (1, "")
        assert "taproof login URL" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [
        "projects list",
        "users export 1001",
        "users erase 1001",
        "webhooks listen --project proj_4KsdT0aQm2vXc81LpZwEyB",
        "webhooks trigger webhook.test --project proj_4KsdT0aQm2vXc81LpZwEyB",
        "webhooks trigger webhook.test --project proj_4KsdT0aQm2vXc81LpZwEyB --to http://127.0.0.1:9/",
    ],
)
def test_without_a_database_the_error_names_the_services(run: Run, tmp_path: Path, command: str) -> None:
    """On a laptop there is no database: the error says how to reach the services that the user is signed in to."""
    credentials = Credentials(tmp_path / "taproof" / "credentials.json")

    def error() -> str:
        result = run(*command.split(), XDG_CONFIG_HOME=str(tmp_path))
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith("There is no Taproof database at ")
        return result.stderr

    assert "--service" not in error()
    credentials.replace("https://b.example:8443", Credential("tap_b", "tok_b", "ada@example.com"))
    assert error().endswith("\nTo act on a service that you are signed in to, add --service https://b.example:8443\n")
    credentials.replace("https://a.example", Credential("tap_a", "tok_a", "ada@example.com"))
    assert error().endswith(" add --service https://a.example or --service https://b.example:8443\n")
    credentials.file.write_text("{")
    assert "--service" not in error()


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "5", '{"services": 5}', '{"services": {"https://a.example": {"x": 1}}}', "\udcff"]
)
def test_a_damaged_file_gets_a_sentence(run: Run, tmp_path: Path, content: str) -> None:
    """A damaged file is not overwritten, because the user may still recover tokens from it."""
    file = tmp_path / "taproof" / "credentials.json"
    file.parent.mkdir()
    file.write_bytes(content.encode(errors="surrogateescape"))
    for command in (("token",), ("logout",), ("login", "https://a.example")):
        result = run(*command, XDG_CONFIG_HOME=str(tmp_path))
        assert result.exit_code == 1
        assert "is damaged. Delete it" in result.stderr
    assert file.read_bytes() == content.encode(errors="surrogateescape")


def test_the_file_is_the_users_alone_and_always_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new file is always private, whatever the old one's mode; if the disk is full, the old one stays."""
    credentials = Credentials(tmp_path / "credentials.json")
    credentials.replace("https://a.example", Credential("tap_a", "tok_a", "a"))
    credentials.file.chmod(0o644)
    credentials.replace("https://b.example", Credential("tap_b", "tok_b", "b"))
    assert credentials.file.stat().st_mode & 0o777 == 0o600
    before = credentials.file.read_bytes()

    def fsync(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(CredentialsUnusable, match="No space left"):
        credentials.replace("https://c.example", Credential("tap_c", "tok_c", "c"))
    assert credentials.file.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["credentials.json"]


def test_directories_that_it_creates_are_the_users_alone(tmp_path: Path) -> None:
    """With any umask. Otherwise, other users could replace the file through a directory above it."""
    credentials = Credentials(tmp_path / "home" / ".config" / "taproof" / "credentials.json")
    before = os.umask(0)
    try:
        credentials.replace("https://a.example", Credential("tap_a", "tok_a", "a"))
    finally:
        os.umask(before)
    modes = [each.stat().st_mode & 0o777 for each in (credentials.file, *credentials.file.parents[:3])]
    assert modes == [0o600, 0o700, 0o700, 0o700]


def test_two_logins_at_once_both_stay(tmp_path: Path) -> None:
    """Concurrent logins do not overwrite each other."""
    credentials = Credentials(tmp_path / "credentials.json")
    names = [f"https://{number}.example" for number in range(40)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda name: credentials.replace(name, Credential("tap_x", "tok_x", "x")), names))
    assert set(credentials.read()) == set(names)


def test_a_credential_that_is_printed_shows_no_token() -> None:
    """No way to print a credential shows its token."""
    assert "tap_secret" not in repr(Credential("tap_secret", "tok_1", "ada@example.com"))
