"""A database URL with several hosts leads to the primary, and no host uses up the time of the others."""

from typing import Any

import pytest

from taproof.storage.postgres.connection import CONNECT_PATIENCE, connect_options


@pytest.mark.parametrize(
    ("dsn", "hosts", "attributes"),
    [
        ("postgresql://a:p,q@db/taproof", 1, None),
        ("postgresql://a@db/taproof?target_session_attrs=read-write", 1, None),
        ("postgresql://a@db1:5432,db2:5432,db3/taproof", 3, "primary"),
        ("postgresql:///taproof?host=db1,db2", 2, "primary"),
        ("postgresql://a@db1,db2/taproof?target_session_attrs=read-write", 2, None),
    ],
)
def test_options(dsn: str, hosts: int, attributes: str | None) -> None:
    options: dict[str, Any] = connect_options(dsn)
    assert options.get("target_session_attrs") == attributes
    assert options["timeout"] * hosts <= CONNECT_PATIENCE
