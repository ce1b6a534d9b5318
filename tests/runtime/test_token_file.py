"""The file that keeps the access token of the sandbox's developer between starts."""

from pathlib import Path

import pytest

from taproof.core.entropy import system_entropy
from taproof.core.identifiers import new_key
from taproof.runtime.token_file import TokenFileUnusable, read_token, token_file, write_token


def test_the_token_is_kept_for_its_owner_only(tmp_path: Path) -> None:
    """The file is next to the database, has mode 0600, and is replaced as a whole. PostgreSQL has none."""
    path = token_file(f"sqlite:///{tmp_path}/shop.db")
    assert path == tmp_path / "shop.db.token"
    assert token_file("postgresql://db/shop") is None
    assert read_token(path) is None
    for token in (new_key("tap", system_entropy), new_key("tap", system_entropy)):
        write_token(path, token)
        assert read_token(path) == token
        assert path.stat().st_mode & 0o777 == 0o600
        assert [each.name for each in tmp_path.iterdir()] == [path.name]


def test_a_draft_of_a_killed_process_is_replaced(tmp_path: Path) -> None:
    """A start that was killed while it wrote the file does not prevent the next one."""
    path = tmp_path / "shop.db.token"
    (tmp_path / ".shop.db.token.new").write_text("tap_half")
    token = new_key("tap", system_entropy)
    write_token(path, token)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("content", [b"", b"tap_x", b"\xff\x00", b"t" * 100_000])
def test_anything_else_is_no_token(tmp_path: Path, content: bytes) -> None:
    """A damaged file counts as missing, so that the next start creates a new token."""
    path = tmp_path / "shop.db.token"
    path.write_bytes(content)
    assert read_token(path) is None


def test_a_file_that_cannot_be_used(tmp_path: Path) -> None:
    """The error names the file and what to check, and never the token."""
    path = tmp_path / "shop.db.token"
    path.mkdir()
    token = new_key("tap", system_entropy)
    advice = r"shop\.db\.token .* Check its owner and mode"
    with pytest.raises(TokenFileUnusable, match=advice):
        read_token(path)
    with pytest.raises(TokenFileUnusable, match=advice) as raised:
        write_token(path, token)
    assert token not in str(raised.value)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
