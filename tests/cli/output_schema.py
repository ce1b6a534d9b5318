"""Check the output of commands with --json against docs/reference/cli.schema.json."""

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

DOCS = Path(__file__).parents[2] / "docs"


def _closed(schema: Any) -> Any:
    """Refuse fields that the schema does not name. Programs must accept them, because newer releases may add some."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    more = {"additionalProperties": False} if "properties" in schema and "additionalProperties" not in schema else {}
    return {name: _closed(each) for name, each in schema.items()} | more


SCHEMA = _closed(json.loads((DOCS / "reference/cli.schema.json").read_text(encoding="utf-8")))
Draft202012Validator.check_schema(SCHEMA)
_VALIDATORS = {
    name: Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]}) for name in SCHEMA["$defs"]
}


def validate(output: Any, *words: str) -> None:
    """Check the output of a command with --json. `words` are its first words; the second may be an argument."""
    names = ["-".join(words), words[0]]
    _VALIDATORS[next(each for each in names if each in _VALIDATORS)].validate(output)
