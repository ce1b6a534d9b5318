"""Stacks of errors as text for the log, without the source code of their lines.

The functions of `traceback` read the source files and parse each line, which blocks the event loop for milliseconds.
"""

from collections.abc import Iterator
from traceback import FrameSummary, StackSummary, TracebackException


def describe_stack(error: BaseException) -> str:
    """Return the stack of an error, without its message and its causes, which can contain secrets."""
    return "".join(_without_code(_described(error).stack).format())


def describe_error(error: BaseException) -> str:
    """Return the message of an error, its stack and its causes."""
    described = _described(error)
    for each in _with_causes(described):
        each.stack = _without_code(each.stack)
    return "".join(described.format()).removesuffix("\n")


def _described(error: BaseException) -> TracebackException:
    return TracebackException(type(error), error, error.__traceback__, lookup_lines=False, compact=True)


def _with_causes(error: TracebackException) -> Iterator[TracebackException]:
    waiting = [error]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += filter(None, (each.__cause__, each.__context__, *(each.exceptions or ())))


def _without_code(stack: StackSummary) -> StackSummary:
    # An empty line is neither read nor shown.
    return StackSummary.from_list([FrameSummary(frame.filename, frame.lineno, frame.name, line="") for frame in stack])
