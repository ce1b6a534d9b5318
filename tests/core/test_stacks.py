"""Stacks for the log name each line, without the source code, which would have to be read from a file."""

from pathlib import Path

import pytest

from taproof.core.stacks import describe_error, describe_stack


def test_a_stack_names_its_lines_without_their_code(tmp_path: Path) -> None:
    """The causes and the members of a group are described likewise; only `describe_error` has the messages."""
    source = tmp_path / "failing.py"
    source.write_text(
        "def fail():\n"
        "    try:\n"
        "        raise ExceptionGroup('several', [KeyError('inner')])  # source\n"
        "    except* KeyError as error:\n"
        "        raise ValueError('outer') from error  # source\n"
    )
    names: dict[str, object] = {}
    exec(compile(source.read_text(), str(source), "exec"), names)  # noqa: S102 — a module whose source can be read.
    with pytest.raises((ValueError, ExceptionGroup)) as raised:
        names["fail"]()  # type: ignore[operator]
    stack, whole = describe_stack(raised.value), describe_error(raised.value)
    assert f'File "{source}", line' in stack
    assert ", in fail\n" in stack
    assert "outer" not in stack
    assert "direct cause" in whole
    for message in ("ValueError: outer", "several", "KeyError: 'inner'"):
        assert message in whole
    assert "# source" not in stack + whole
