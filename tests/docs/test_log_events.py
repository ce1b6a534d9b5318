"""docs/reference/log-events.md lists every log line of the service: its event, levels and fields."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.docs.blocks import ROOT

SOURCE: Final = ROOT / "src/taproof"
PAGE: Final = ROOT / "docs/reference/log-events.md"
LOGGERS: Final = {"_log", "log"}
LEVELS: Final = {"debug", "info", "warning", "error", "exception"}


class Line(NamedTuple):
    """The log line of one call."""

    event: str
    levels: tuple[str, ...]
    fields: frozenset[str]


def _name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _texts(trees: list[ast.Module], function: str) -> list[str]:
    """Return the texts among a call's positional arguments."""
    return [
        argument.value
        for tree in trees
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and _name_of(call) == function
        for argument in call.args[:2]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def _levels(tree: ast.Module) -> dict[str, tuple[str, ...]]:
    """Return the other names of a logger's methods in a module: `log = _log.debug if … else _log.warning`."""
    return {
        node.targets[0].id: tuple(each.attr for each in (node.value.body, node.value.orelse))  # type: ignore[attr-defined]
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.IfExp) and isinstance(node.targets[0], ast.Name)
        if all(_is_method(each) for each in (node.value.body, node.value.orelse))
    }


def _is_method(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in LOGGERS


def _events(first: ast.expr, tree: ast.Module, call: ast.Call, trees: list[ast.Module]) -> list[str]:
    """Return the possible values of the first argument."""
    if isinstance(first, ast.Constant):
        return [first.value]  # type: ignore[list-item]
    around = [
        function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and call in ast.walk(function)
    ][-1]
    if isinstance(first, ast.Name):
        return _texts([tree], around)
    assert isinstance(first, ast.JoinedStr), ast.unparse(call)
    return [re.sub(r"\{\w+\}", name, ast.unparse(first)[2:-1]) for name in _texts(trees, around)]


def lines() -> Iterator[Line]:
    """Yield the log line of each call in the source."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))]
    for tree in trees:
        aliases = _levels(tree)
        for call in ast.walk(tree):
            if not isinstance(call, ast.Call):
                continue
            if _is_method(call.func):
                levels: tuple[str, ...] = (_name_of(call),)
            elif isinstance(call.func, ast.Name) and call.func.id in aliases:
                levels = aliases[call.func.id]
            else:
                continue
            assert set(levels) <= LEVELS, ast.unparse(call)
            events = _events(call.args[0], tree, call, trees)
            assert events, ast.unparse(call)
            for event in events:
                yield Line(event, levels, frozenset(str(keyword.arg) for keyword in call.keywords))


def told() -> dict[str, tuple[set[str], set[str]]]:
    """Return the levels and fields of each event on the page."""
    rows = re.findall(
        r"^\| `([\w.]+)` \| ([\w, ]+) \| ([^|]*?) ?\| [^|]{10,} \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len({event for event, _, _ in rows}) == len(rows)
    return {event: (set(levels.split(", ")), set(re.findall(r"`(\w+)`", fields))) for event, levels, fields in rows}


def test_every_line_is_told_of() -> None:
    """The page lists every log line with its levels and fields, and no other."""
    logged: dict[str, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    for line in lines():
        levels, fields = logged[line.event]
        levels |= {"error" if level == "exception" else level for level in line.levels}
        fields |= line.fields
    assert len(logged) > 40
    assert dict(logged) == told()


def test_nothing_logs_in_another_way() -> None:
    """Every logger and every use of one is visible to the test above."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and "structlog.get_logger(" in ast.unparse(node.value):
                assert {ast.unparse(target) for target in node.targets} <= LOGGERS, path
        methods = sum(_is_method(node) for node in ast.walk(tree))
        calls = sum(isinstance(node, ast.Call) and _is_method(node.func) for node in ast.walk(tree))
        assert methods == calls + 2 * len(_levels(tree)), path
        assert len(re.findall(r"structlog\.get_logger\(", ast.unparse(tree))) == _assigned(tree), path


def _assigned(tree: ast.Module) -> int:
    return sum(
        isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("structlog.get_logger(")
        for node in ast.walk(tree)
    )


def test_other_loggers_are_silent() -> None:
    """Lines that bypass structlog are listed here: `webhooks listen` hides the lines of its web server.

    The tracing provider only removes secrets from lines of OpenTelemetry.
    """
    found = {
        str(Path(path).relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if re.search(r"logging\.getLogger\(|warnings\.warn\(", path.read_text(encoding="utf-8"))
    }
    assert found == {"config/logging.py", "cli/webhooks/receiver.py", "tracing/provider.py"}
