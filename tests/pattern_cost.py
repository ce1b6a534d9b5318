"""Count the steps of a regular expression with a backtracking matcher like Python's own.

The count is the same on every machine, however busy. The matcher walks the tree that `re._parser` makes, tries the
same alternatives in the same order as the real engine, and counts each comparison and each backtrack.
"""

import re
import string
import sys
from collections.abc import Callable, Iterator
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any, Final

SHORT, LONG, LONGEST = 48, 128, 512
_GROWTH: Final = 7
"""The factor by which the steps may grow when a text grows fourfold: linear cost gives 4, quadratic cost 16."""
_PER_CHARACTER: Final = 8
"""Steps for each character of a short text below which a pattern needs no further check."""
_TOO_MANY: Final = 100_000
_STRICTEST: Final = ("sub", "fullmatch")
_REPEATS: Final = {_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT}
_SINGLE: Final = {_constants.LITERAL, _constants.NOT_LITERAL, _constants.IN, _constants.ANY}
_CANDIDATES: Final = "".join(dict.fromkeys(string.printable + "".join(map(chr, range(256))) + "ж٣\u2028\ufffd😀"))

Rest = Callable[[int], int | None]
Part = Callable[[int, Rest], int | None]


class TooManySteps(Exception):
    """The steps exceed the limit."""


class Counted:
    """One pattern, its matcher, and texts that are hard for it.

    Raises:
        NotImplementedError: the pattern has a part, such as a backreference, that this matcher does not know.
    """

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.tree = _parser.parse(pattern, flags)
        self.flags = self.tree.state.flags
        self.real = re.compile(pattern, flags)
        self.steps = 0
        self._text = ""
        self._match = self._sequence(self.tree, self.flags)

    # ---- the matcher

    def run(self, method: str, text: str) -> tuple[int, list[tuple[int, int]]]:
        """Return the number of steps of a call, and the spans that it finds."""
        self._text, self.steps = text, 0
        if method in {"match", "fullmatch"}:
            end = self._match(0, (lambda at: at if at == len(text) else None) if method == "fullmatch" else int)
            return self.steps, [] if end is None else [(0, end)]
        spans: list[tuple[int, int]] = []
        start = 0
        while start <= len(text):
            self._step()
            end = self._match(start, int)
            if end is not None:
                spans.append((start, end))
                if method == "search":
                    break
            start = end if end is not None and end > start else start + 1
        return self.steps, spans

    def _step(self, count: int = 1) -> None:
        self.steps += count
        if self.steps > _TOO_MANY:
            raise TooManySteps

    def _sequence(self, nodes: Any, flags: int) -> Part:
        parts = [self._part(kind, value, flags) for kind, value in nodes]

        def go(number: int, at: int, rest: Rest) -> int | None:
            if number == len(parts):
                return rest(at)
            return parts[number](at, lambda then: go(number + 1, then, rest))

        return parts[0] if len(parts) == 1 else lambda at, rest: go(0, at, rest)

    def _part(self, kind: Any, value: Any, flags: int) -> Part:
        if kind in _SINGLE:
            return self._character(kind, value, flags)
        if kind in _REPEATS:
            least, most, body = value
            if len(body) == 1 and body[0][0] in _SINGLE:
                return self._repeated_character(kind, least, most, self._test(body[0][0], body[0][1], flags))
            return self._repeated(kind, least, most, self._sequence(body, flags))
        if kind is _constants.SUBPATTERN:
            _, add, remove, body = value
            return self._sequence(body, (flags | add) & ~remove)
        if kind is _constants.BRANCH:
            branches = [self._sequence(each, flags) for each in value[1]]
            return lambda at, rest: self._first(branches, at, rest)
        if kind is _constants.ATOMIC_GROUP:
            inner = self._sequence(value, flags)
            return lambda at, rest: None if (end := inner(at, int)) is None else rest(end)
        if kind in {_constants.ASSERT, _constants.ASSERT_NOT}:
            return self._look(kind is _constants.ASSERT, value[0], value[1], flags)
        if kind is _constants.AT:
            anchor = re.compile(_ANCHORS[value], flags & re.MULTILINE)
            return lambda at, rest: rest(at) if anchor.match(self._text, at) else None
        raise NotImplementedError(kind)

    def _first(self, branches: list[Part], at: int, rest: Rest) -> int | None:
        for branch in branches:
            self._step()
            end = branch(at, rest)
            if end is not None:
                return end
        return None

    def _look(self, wanted: bool, direction: int, body: Any, flags: int) -> Part:  # noqa: FBT001 — as it is parsed.
        inner = self._sequence(body, flags)
        back = body.getwidth()[0] if direction < 0 else 0

        def look(at: int, rest: Rest) -> int | None:
            self._step()
            found = at >= back and inner(at - back, int) is not None
            return rest(at) if found is wanted else None

        return look

    def _test(self, kind: Any, value: Any, flags: int) -> Callable[[str], bool]:
        tree = _parser.SubPattern(self.tree.state, [(kind, value)])
        one = _compiler.compile(tree, flags & (re.IGNORECASE | re.DOTALL | re.ASCII | re.UNICODE))
        known: dict[str, bool] = {}

        def test(character: str) -> bool:
            if character not in known:
                known[character] = one.match(character) is not None
            return known[character]

        return test

    def _character(self, kind: Any, value: Any, flags: int) -> Part:
        test = self._test(kind, value, flags)

        def one(at: int, rest: Rest) -> int | None:
            self._step()
            return rest(at + 1) if at < len(self._text) and test(self._text[at]) else None

        return one

    def _repeated_character(self, kind: Any, least: int, most: int, test: Callable[[str], bool]) -> Part:
        def lazy(at: int, rest: Rest) -> int | None:
            count = 0
            while True:
                if count >= least and (end := rest(at + count)) is not None:
                    return end
                self._step()
                if count >= most or at + count >= len(self._text) or not test(self._text[at + count]):
                    return None
                count += 1

        def greedy(at: int, rest: Rest) -> int | None:
            last = min(len(self._text), at + most)
            end = at
            while end < last and test(self._text[end]):
                end += 1
            self._step(end - at + 1)
            first = end if kind is _constants.POSSESSIVE_REPEAT else at + least
            for back in range(end, first - 1, -1) if end >= at + least else ():
                self._step()
                if (found := rest(back)) is not None:
                    return found
            return None

        return lazy if kind is _constants.MIN_REPEAT else greedy

    def _repeated(self, kind: Any, least: int, most: int, body: Part) -> Part:
        def more(at: int, rest: Rest, count: int) -> int | None:
            self._step()
            if count >= most:
                return None
            return body(at, lambda then: None if then == at and count >= least else go(then, rest, count + 1))

        def go(at: int, rest: Rest, count: int) -> int | None:
            if count < least:
                return more(at, rest, count)
            if kind is _constants.MIN_REPEAT:
                end = rest(at)
                return more(at, rest, count) if end is None else end
            end = more(at, rest, count)
            return rest(at) if end is None else end

        if kind is _constants.POSSESSIVE_REPEAT:
            return lambda at, rest: None if (end := go(at, int, 0)) is None else rest(end)
        return lambda at, rest: go(at, rest, 0)

    # ---- hard texts

    def hard_texts(self) -> Iterator[tuple[str, str, str]]:
        """Yield a beginning, a repeated part, and an end.

        The repeated part is one or two characters of each kind that the pattern can tell apart, a text that a repeat in
        the pattern matches, or the beginning of the pattern.
        """
        nodes = list(_walk(self.tree, self.flags))
        kinds = self._kinds(nodes)
        spine = self._spine(self.tree, self.flags, "")
        begins = dict.fromkeys(["", *_some(spine, 4)])
        repeated = dict.fromkeys(kinds)
        for kind, value, flags in nodes:
            if kind in _REPEATS:
                repeated |= dict.fromkeys(self._spine(value[2], flags, ""))
        repeated |= dict.fromkeys(each for each in _some(spine, 8) if each)
        ends = dict.fromkeys(["", "!", "\n", *kinds[:3]])
        for begin in begins:
            for each in repeated:
                for end in ends:
                    yield begin, each, end
        for first in kinds[:6]:
            for second in kinds[:6]:
                for end in ends:
                    yield "", first + second, end

    def _kinds(self, nodes: list[Any]) -> list[str]:
        # Letters that the pattern names one by one, as in a word, are equivalent.
        tests = [
            self._test(kind, value, flags)
            for kind, value, flags in nodes
            if kind in _SINGLE and not (kind is _constants.LITERAL and chr(value).isalnum())
        ]
        told_apart: dict[tuple[bool, ...], str] = {}
        for character in _CANDIDATES:
            told_apart.setdefault(tuple(test(character) for test in tests), character)
        return list(told_apart.values())

    def _spine(self, nodes: Any, flags: int, before: str) -> list[str]:
        """Return a text that leads to each place of a sequence, shortest first."""
        found, sofar = [], before
        kinds = [kind for kind, _ in nodes]
        for (kind, value), following in zip(nodes, [*kinds, None][1:], strict=True):
            if kind in _SINGLE:
                test = self._test(kind, value, flags)
                sofar += next((each for each in _CANDIDATES if test(each)), "")
                if following is not _constants.LITERAL:
                    found.append(sofar)
                continue
            inner: list[str] = []
            if kind in _REPEATS:
                inner = self._spine(value[2], flags, sofar)
                count = min(max(value[0], 1 if value[1] else 0), SHORT)
                sofar += (inner[-1].removeprefix(sofar) if inner else "") * count
            elif kind is _constants.SUBPATTERN:
                inner = self._spine(value[3], (flags | value[1]) & ~value[2], sofar)
            elif kind is _constants.ATOMIC_GROUP:
                inner = self._spine(value, flags, sofar)
            elif kind is _constants.BRANCH:
                branches = [self._spine(each, flags, sofar) for each in value[1]]
                found += [each for branch in branches for each in branch]
                inner = next((branch for branch in branches if branch), [])
            elif kind is _constants.ASSERT and value[0] > 0:
                found += self._spine(value[1], flags, sofar)
            found += inner
            if inner and kind not in _REPEATS:
                sofar = inner[-1]
            found.append(sofar)
        return found


_ANCHORS: Final = {
    _constants.AT_BEGINNING: "^",
    _constants.AT_BEGINNING_STRING: r"\A",
    _constants.AT_BOUNDARY: r"\b",
    _constants.AT_NON_BOUNDARY: r"\B",
    _constants.AT_END: "$",
    _constants.AT_END_STRING: r"\Z",
}


def _some(texts: list[str], count: int) -> list[str]:
    """Return at most this many of them, evenly chosen."""
    unlike = list(dict.fromkeys(texts))
    return unlike[:: -(-len(unlike) // count) or 1]


def _walk(nodes: Any, flags: int) -> Iterator[tuple[Any, Any, int]]:
    for kind, value in nodes:
        yield kind, value, flags
        if kind in _REPEATS:
            yield from _walk(value[2], flags)
        elif kind is _constants.SUBPATTERN:
            yield from _walk(value[3], (flags | value[1]) & ~value[2])
        elif kind is _constants.BRANCH:
            for each in value[1]:
                yield from _walk(each, flags)
        elif kind in {_constants.ASSERT, _constants.ASSERT_NOT}:
            yield from _walk(value[1], flags)
        elif kind is _constants.ATOMIC_GROUP:
            yield from _walk(value, flags)


def costly_text(pattern: str, flags: int = 0, methods: tuple[str, ...] = _STRICTEST) -> str | None:
    """Return a sentence about a text whose cost grows faster than its length, or None.

    Args:
        pattern: the pattern.
        flags: its flags.
        methods: how it is called: "match", "fullmatch", "search", or "sub" for all that find one match after another.
    """
    counted = Counted(pattern, flags)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(100_000)
    try:
        for begin, repeated, end in counted.hard_texts():
            for method in methods:
                if _is_costly(counted, method, begin, repeated, end):
                    return f"{method} of {begin!r} + {repeated!r} * n + {end!r}"
    finally:
        sys.setrecursionlimit(limit)
    return None


def _is_costly(counted: Counted, method: str, begin: str, repeated: str, end: str) -> bool:
    def text(length: int) -> str:
        return begin + repeated * (length // len(repeated)) + end

    try:
        steps, spans = counted.run(method, text(SHORT))
        assert spans == _real_spans(counted.real, method, text(SHORT)), (counted.real, method, text(SHORT))
        if steps <= _PER_CHARACTER * (len(begin) + SHORT):
            return False
        shorter, _ = counted.run(method, text(LONG))
        longer, _ = counted.run(method, text(LONGEST))
    except TooManySteps:
        return True
    return longer > _GROWTH * shorter


def _real_spans(pattern: re.Pattern[str], method: str, text: str) -> list[tuple[int, int]]:
    if method == "sub":
        return _scanned(pattern, text)
    found = getattr(pattern, method)(text)
    return [] if found is None else [found.span()]


def _scanned(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    spans, start = [], 0
    while start <= len(text) and (found := pattern.search(text, start)):
        spans.append(found.span())
        start = found.end() if found.end() > found.start() else found.start() + 1
    return spans
