"""JSON laid out for people."""

import json
from typing import Any


def readable_json(value: dict[str, Any]) -> str:
    """Return readable JSON. Invisible characters, and characters that change the text direction, are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
