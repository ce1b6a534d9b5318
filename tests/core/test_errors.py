"""Every error: a stable code and a sentence that a person can act on."""

import importlib
import inspect
import pkgutil
import re

import pytest

from taproof.core.errors import TaproofError


def every_error() -> list[type[TaproofError]]:
    """Return all error classes of the server's own layers, wherever they are defined."""
    for package in ("core", "service", "storage"):
        home = importlib.import_module(f"taproof.{package}")
        for module in pkgutil.walk_packages(home.__path__, f"taproof.{package}."):
            importlib.import_module(module.name)
    found, waiting = set(), [TaproofError]
    while waiting:
        for child in waiting.pop().__subclasses__():
            waiting.append(child)
            # Those of the sandbox and of the command line may be loaded too, by another test of this run.
            if child.__module__.startswith(("taproof.core.", "taproof.service.", "taproof.storage.")):
                found.add(child)
    return sorted(found, key=lambda error: error.__name__)


def raised(error: type[TaproofError]) -> TaproofError:
    """Return an error with any text for what its sentence names."""
    parameters = inspect.signature(error).parameters.values()
    return error(
        *("text" for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD and each.default is each.empty)
    )


def test_each_error_has_a_code_and_a_full_sentence(subtests: pytest.Subtests) -> None:
    """Each class declares its code; it is snake case, and the sentence one line that ends like a sentence."""
    for error in every_error():
        with subtests.test(error.code):
            sentence = raised(error).sentence
            assert "code" in vars(error)
            assert re.fullmatch(r"[a-z]+(_[a-z]+)*", error.code)
            assert error.code != "error"
            assert len(sentence) > 10
            assert sentence[0].isupper()
            assert re.search(r"[.)]$", sentence)
            assert "  " not in sentence
            assert "\n" not in sentence
            assert str(raised(error)) == sentence


def test_codes_are_unique() -> None:
    """A client could not distinguish two errors with the same code."""
    codes = [error.code for error in every_error()]
    assert len(codes) == len(set(codes))
