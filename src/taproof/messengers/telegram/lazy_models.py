"""Imports aiogram without building its models; each is built when it is first used.

aiogram 3.31 builds a validator for each of its 444 types and methods on import, which took 11.5 s of processor time
where this took 1.0 s (docs/decisions/0005-lazy-aiogram.md). The bot uses about a dozen of them. aiogram declares its
models with `defer_build`; only the loop at the end of its modules, there to hand each model the namespace that its
annotations need, builds them all the same. So that loop is stilled, and the namespace is handed over on demand.
"""

import sys
from typing import Any

from pydantic import BaseModel


def _import_aiogram() -> None:
    if "aiogram.types" in sys.modules:
        return
    build = BaseModel.model_rebuild.__func__  # type: ignore[attr-defined]  # A classmethod's function.
    namespace: dict[str, Any] = {}

    def postpone(
        _model: type[BaseModel], /, *, _types_namespace: dict[str, Any] | None = None, **_options: Any
    ) -> None:
        namespace.update(_types_namespace or {})

    BaseModel.model_rebuild = classmethod(postpone)  # type: ignore[assignment]
    try:
        from aiogram.methods.base import Response, TelegramMethod  # noqa: PLC0415 — importing it here is the point.
        from aiogram.types.base import TelegramObject  # noqa: PLC0415
    finally:
        BaseModel.model_rebuild = classmethod(build)  # type: ignore[assignment]

    def rebuild(model: type[BaseModel], /, **options: Any) -> bool | None:
        given = options.pop("_types_namespace", None)
        built: bool | None = build(model, **options, _types_namespace={**namespace, **(given or {})})
        return built

    for base in (TelegramObject, TelegramMethod, Response):
        base.model_rebuild = classmethod(rebuild)  # type: ignore[assignment,method-assign]


_import_aiogram()
