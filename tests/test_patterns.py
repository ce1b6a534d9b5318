"""Every regular expression has linear cost, whatever text it meets.

A quadratic one takes a second on a text of 50 KB, all of it in the event loop. The tests find every pattern in the
source and count its steps (`pattern_cost.py`), so the speed of this machine does not matter.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from tests.pattern_cost import costly_text

SOURCE: Final = Path(__file__).parents[1] / "src"
SDK_JS: Final = Path(__file__).parents[1] / "sdk/js/src"
_SCANS: Final = {"sub", "subn", "split", "findall", "finditer"}
_CALLS: Final = _SCANS | {"match", "fullmatch", "search"}
_STRICTEST: Final = ("fullmatch", "sub")
"""The method for patterns whose call is unknown."""
_BEFORE_A_LITERAL: Final = re.compile(r"(?:^|[(,=:\[!&|?{};+\-*%~^<>]|\b(?:return|typeof|case|of|in))\s*$")
"""Matches before a slash that begins a regular expression in JavaScript, rather than a division."""
_JS_TOKEN: Final = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`"""
    r"""|/(?P<pattern>(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)/(?P<flags>[a-z]*)""",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Found:
    """A pattern, its place in the source, and the methods called on it."""

    place: str
    pattern: str
    flags: int
    methods: tuple[str, ...]


def python_patterns() -> list[Found]:
    """Return every pattern of every call to `re` in the package."""
    return [found for path in sorted(SOURCE.rglob("*.py")) for found in _of_module(path)]


def _of_module(path: Path) -> Iterator[Found]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    name = str(path.relative_to(SOURCE / "taproof"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _re_function(node) is not None]
    if not calls:
        return
    module = importlib.import_module(".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"))
    for call in calls:
        function = _re_function(call)
        pattern = _value(f"{name}:{call.lineno}", call.args[0], vars(module))
        methods = _methods(tree, call) if function == "compile" else {str(function)}
        yield Found(f"{name}:{call.lineno}", pattern, _flags(call), _methods_run(methods))


def _re_function(call: ast.Call) -> str | None:
    function = call.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re":
        return function.attr if function.attr in _CALLS | {"compile"} else None
    return None


def _value(place: str, node: ast.expr, names: dict[str, Any]) -> str:
    try:
        value = eval(compile(ast.Expression(node), place, "eval"), names)  # noqa: S307 — our own source.
    except NameError:
        pytest.fail(f"{place}: make the pattern a constant of its module, so that its cost can be known.")
    if isinstance(value, bytes):  # Each byte becomes the character of the same number, so the steps are the same.
        return value.decode("latin-1")
    assert isinstance(value, str), place
    return value


def _flags(call: ast.Call) -> int:
    given = [each.value for each in call.keywords if each.arg == "flags"] + call.args[1:]
    functions = (each for each in given if "re." in ast.unparse(each))
    return sum(int(eval(ast.unparse(each), {"re": re})) for each in functions)  # noqa: S307 — our own source.


def _methods(tree: ast.Module, call: ast.Call) -> set[str]:
    """Return the methods that a module calls on the name of a compiled pattern."""
    names = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is call
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    if not names:  # It is in a collection, whose items are called by a loop variable.
        names = {
            node.target.elts[0].id
            for node in ast.walk(tree)
            if isinstance(node, ast.For)
            and isinstance(node.target, ast.Tuple)
            and isinstance(node.target.elts[0], ast.Name)
        }
    read = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in names]
    called = [
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names
    ]
    # A pattern that is passed on as a value may be called in any way.
    is_passed_on = len(called) < sum(isinstance(node.ctx, ast.Load) for node in read)
    return set(_STRICTEST) if is_passed_on or not called or not _CALLS.issuperset(called) else set(called)


def _methods_run(methods: set[str]) -> tuple[str, ...]:
    return tuple(sorted({"sub" if each in _SCANS else each for each in methods}))


def js_patterns() -> list[Found]:
    """Return every regular expression literal in our JavaScript, in Python's syntax."""
    paths = [*sorted((SOURCE / "taproof").rglob("*.js")), *sorted(SDK_JS.rglob("*.js"))]
    return [found for path in paths for found in _of_script(path)]


def _of_script(path: Path) -> Iterator[Found]:
    script, at = path.read_text(encoding="utf-8"), 0
    while token := _JS_TOKEN.search(script, at):
        at = token.end()
        if token["pattern"] is None:
            continue
        if not _BEFORE_A_LITERAL.search(script[max(0, token.start() - 20) : token.start()]):
            at = token.start() + 1
            continue
        flags = re.ASCII | sum(getattr(re, each.upper()) for each in token["flags"] if each in "ims")
        line = script.count("\n", 0, token.start()) + 1
        yield Found(f"{path.name}:{line}", _in_python(token["pattern"]), flags, _STRICTEST)


def _in_python(pattern: str) -> str:
    for theirs, ours in (("(?<", "(?P<"), ("(?P<=", "(?<="), ("(?P<!", "(?<!"), ("\\/", "/"), ("[^]", r"[\s\S]")):
        pattern = pattern.replace(theirs, ours)
    pattern = re.sub(r"\\p\{\w+\}", r"\\w", pattern)
    return re.sub(r"\\u\{([0-9a-fA-F]+)\}", lambda found: rf"\U{found[1]:0>8}", pattern)


def too_costly(patterns: list[Found]) -> list[str]:
    """Return a sentence for each pattern with more than linear cost."""
    known: dict[tuple[str, int, tuple[str, ...]], str | None] = {}
    wrong = []
    for each in patterns:
        key = (each.pattern, each.flags, each.methods)
        if key not in known:
            known[key] = costly_text(*key)
        if (text := known[key]) is not None:
            wrong.append(f"{each.place}: {each.pattern!r} costs more than linear time: {text}")
    return wrong


def test_no_pattern_costs_more_than_linear_time() -> None:
    """Every call to `re` in the package is linear in the way it is used: anchored, or at every place of the text."""
    patterns = python_patterns()
    assert len(patterns) > 80
    assert too_costly(patterns) == []


def test_no_pattern_in_javascript_costs_more_than_linear_time() -> None:
    """The SDK's patterns, which also run on servers with their callers' input, are linear."""
    patterns = js_patterns()
    assert len(patterns) > 20
    assert too_costly(patterns) == []


def test_patterns_are_reached_through_re_alone() -> None:
    """Every pattern is reached through `re`, so that the tests above find it."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            aliases = [each.asname for each in node.names] if isinstance(node, ast.Import) else []
            assert not {"regex", "re2", "fnmatch", "glob"}.intersection(names), path
            assert not ("re" in names and any(aliases)), path
            assert not (isinstance(node, ast.ImportFrom) and node.module == "re"), path


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"[A-Za-z0-9_-]{20,}\Z", "sub"),
        (r"[A-Za-z]+!", "search"),
        (r"\s+$", "search"),
        (r"\d{6,}(?::|%3[Aa])[A-Za-z0-9_-]{30,}", "sub"),
        (r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*", "sub"),
        (r"(\b[a-z][a-z0-9+.-]*://[^\s:/@]*:)[^\s\"'<>]+@", "sub"),
        (r"(?:https?)://[^\s/?#]+\S*", "fullmatch"),
        (r"[^\s/?#:]+\.[^\s/?#:]+\S*", "fullmatch"),
        (r"(?:a+)+b", "match"),
        (r"(?:a|a)*b", "fullmatch"),
        (r"a\s*b?\s*c", "match"),
        (r".*,.*,.*x", "match"),
        (r"x[a-m]*[b-m]{0,2000}!", "match"),
        (r"(?=.*!)x", "search"),
        (r"(?>a+)b", "search"),
        (r"a*?b", "search"),
    ],
)
def test_the_count_finds_what_is_costly(pattern: str, method: str) -> None:
    """The count finds nested and adjacent repeats, and a scan that restarts everywhere; the first are former bugs."""
    assert costly_text(pattern, 0, (method,)) is not None


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{20,}+\Z", "sub"),
        (r"[A-Za-z0-9_-]{43,}", "sub"),
        (r"[A-Za-z]+!", "match"),
        (r"(?:/[a-z]+)*", "fullmatch"),
        # The inner repeat has no group: CPython before 3.11.5 matches such a repeat wrongly (gh-106052).
        (r"(?:[ab]++c)*+", "fullmatch"),
        (r"[^,]*,[^,]*,[^,]*x", "match"),
        (r"`([^`]+)`", "sub"),
    ],
)
def test_the_count_lets_linear_patterns_pass(pattern: str, method: str) -> None:
    """The count accepts linear patterns; a repeat bounded by 43 costs at most 43 times as much."""
    assert costly_text(pattern, 0, (method,)) is None
