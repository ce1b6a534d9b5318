"""aiogram is imported without building its models, and nothing is lost by that (docs/decisions/0005)."""

import subprocess
import sys

_LOOK = """
import taproof.messengers.telegram.handlers, taproof.messengers.telegram.polling, taproof.messengers.telegram.webhook
from aiogram.types import CallbackQuery, Message, Update
print([model.__pydantic_complete__ for model in (CallbackQuery, Message, Update)])
"""

_BUILD_ALL = """
import taproof.messengers.telegram.lazy_models
import aiogram.types, aiogram.methods
for module in (aiogram.types, aiogram.methods):
    for name in module.__all__:
        model = getattr(module, name)
        if hasattr(model, "model_rebuild") and not getattr(model, "__abstractmethods__", None):
            # The first use of a model that was postponed builds it; a missing namespace would raise here.
            try:
                model.model_validate({})
            except ValueError:
                pass
            assert model.__pydantic_complete__, name
print("built")
"""


def _run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_importing_the_bot_builds_no_large_model() -> None:
    """A start must not pay for models that it does not use yet."""
    assert _run(_LOOK) == "[False, False, False]"


def test_every_model_can_still_be_built() -> None:
    """A model that is first used later finds the namespace that its annotations need."""
    assert _run(_BUILD_ALL) == "built"
