"""Every storage method has a conformance test."""

import ast
import functools
from collections import defaultdict
from pathlib import Path

import apsw

from taproof.storage.protocol import Storage
from taproof.storage.sqlite.counts import Counters
from taproof.storage.sqlite.database import SqliteDatabase
from taproof.storage.sqlite.group_commit import GroupCommit
from taproof.storage.sqlite.store import SqliteStorage


def parts() -> dict[str, type]:
    """Return the classes of a store's parts by name."""
    connection, counters = apsw.Connection(":memory:"), Counters()
    database = SqliteDatabase(connection, GroupCommit(connection, counters.clear, counters.write), connection)
    return {
        name: type(part) for name, part in vars(SqliteStorage(database, counters, None)).items() if name != "database"
    }


PARTS = parts()
METHODS = {name for part in (Storage, *PARTS.values()) for name in dir(part) if not name.startswith("_")}


@functools.cache
def conformance_tests() -> list[ast.AsyncFunctionDef]:
    """Return every asynchronous test of this folder."""
    found = []
    for file in Path(__file__).parent.rglob("test_*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        found += [node for node in tree.body if isinstance(node, ast.AsyncFunctionDef) and node.name.startswith("test")]
    return found


def named_after(test: str) -> str:
    """Return the method that a test is named after: of `read_project` and `read_project_by_secret_key` the longer."""
    return max((method for method in METHODS if test.startswith(f"test_{method}_")), key=len, default="")


def test_each_method_has_a_test_that_is_named_after_it() -> None:
    """`test_<method>_…` exists, and one of that name calls the method itself."""
    assert len(PARTS) > 10
    assert len(METHODS) > 100
    called: dict[str, set[str]] = defaultdict(set)
    for test in conformance_tests():
        called[named_after(test.name)] |= {node.attr for node in ast.walk(test) if isinstance(node, ast.Attribute)}
    missing = [method for method in sorted(METHODS) if method not in called[method]]
    assert not missing, f"no conformance test is named after and calls: {missing}"


def test_every_conformance_test_runs_on_every_driver() -> None:
    """A conformance test takes its store from the fixture that knows all drivers, and skips none."""
    for test in conformance_tests():
        fixtures = {argument.arg for argument in test.args.args}
        assert fixtures & {"storage", "open_store", "seed"}, test.name
        assert not fixtures & {"sqlite", "sqlite_seed"}, test.name
        assert "skip" not in ast.unparse(test), test.name
