"""Write proofs.json and webhooks.json. `python sdk/vectors/make.py`; the same bytes each time."""

# ruff: noqa: INP001 — a script and its parts, no package.

import json
from pathlib import Path
from typing import Any, Final

from phone_cases import phone_proofs, phone_webhooks
from proof_cases import proofs
from webhook_cases import webhooks

FILES: Final = {"proofs.json": (proofs, phone_proofs), "webhooks.json": (webhooks, phone_webhooks)}


def text_of(cases: list[dict[str, Any]]) -> str:
    """Return the file's text: a case a line, in ASCII, so that no tool can change what stands in it."""
    names = [case["name"] for case in cases]
    if len(set(names)) != len(names):
        raise ValueError("Each case needs a name of its own.")
    return "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n"


def main() -> None:
    """Write both files beside this one."""
    for name, parts in FILES.items():
        cases = [case for part in parts for case in part()]
        (Path(__file__).parent / name).write_text(text_of(cases), encoding="ascii")


if __name__ == "__main__":
    main()
