"""What MkDocs does to a page before it is rendered (see `hooks` in mkdocs.yml)."""

import re
from typing import Any

_FOR_TESTS = re.compile(r"^ *<!-- (?:same as|run by|not run:|before:) [^\n]* -->\n", re.MULTILINE)
_ROW = re.compile(r"^\|.*\|$", re.MULTILINE)
_CODE = re.compile(r"`[^`]*`")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Leave out what is written to the tests, and show pipes in the code of a table as a code host does."""
    text = _FOR_TESTS.sub("", markdown)
    return _ROW.sub(lambda row: _CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), text)
