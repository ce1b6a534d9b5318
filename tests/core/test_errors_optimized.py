"""`python -OO` removes docstrings and asserts; no error may lose its sentence."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

PROGRAM = """
import importlib, json, pkgutil
import taproof
from taproof.core.errors import API_ERRORS, TaproofError

for package in ("cli", "config", "console", "core", "runtime", "sandbox", "service", "storage"):
    home = importlib.import_module(f"taproof.{package}")
    for module in pkgutil.walk_packages(home.__path__, f"{home.__name__}."):
        if module.name != "taproof.runtime.bot_runtime":  # It declares no error, and loads the messenger's library.
            importlib.import_module(module.name)

from scripts.docs_reference import openapi
from taproof.http.errors import error_response
import structlog

structlog.configure(processors=[structlog.processors.JSONRenderer()], logger_factory=structlog.ReturnLoggerFactory())

def subclasses(error):
    for each in error.__subclasses__():
        yield each
        yield from subclasses(each)

declared = {
    f"{error.__module__}.{error.__name__}": [error.code, error.status, error.sentence, error.meaning]
    for error in subclasses(TaproofError)
}
answers = {error.code: repr(error_response(error())) for error in API_ERRORS}
responses = openapi()["components"]["responses"]
print(json.dumps({"declared": declared, "answers": answers, "responses": responses}))
"""


def run(*options: str) -> dict[str, Any]:
    """Run a program and return its output."""
    command = [sys.executable, *options, "-c", PROGRAM]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_errors_are_the_same_without_docstrings() -> None:
    """Code, status, sentence and answer of every error, and the errors in the OpenAPI document, are the same."""
    told = run("-OO")
    assert len(told["declared"]) > 80
    assert all(code and sentence for code, _, sentence, _ in told["declared"].values())
    assert told == run()
