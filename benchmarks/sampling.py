"""Sample a server's stack once in each millisecond of its CPU time.

Usage: python -m benchmarks.sampling FILE COMMAND… runs `taproof COMMAND…`, samples it from SIGUSR1 on, which leaves out
its start, and writes FILE when it ends. Each sample counts for the innermost part in the stack: a package of Taproof,
or a library. Time in the standard library counts for its caller. Time outside Python (the event loop, the server's own
code) counts for the next Python call.
"""

import json
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

EVERY: Final = 0.001
"""Seconds of CPU time between two samples."""
_LOOP: Final = "event loop and HTTP server"
_UNNAMED: Final = {"benchmarks", "uvloop", "granian", "typer", "click", "taproof", "__main__", ""}
_STARTERS: Final = {"", "__main__", "cli", "command", "app"}


def part_of(frame: FrameType | None) -> tuple[str, str]:
    """Return the part that a stack counts for, and the function in it."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        top, _, rest = name.partition(".")
        function = f"{name}.{frame.f_code.co_qualname}"
        if top == "taproof" and rest.split(".")[0] not in _STARTERS:
            return f"taproof.{rest.split('.')[0]}", function
        if top not in sys.stdlib_module_names and top not in _UNNAMED:
            return top, function
        frame = frame.f_back
    return _LOOP, _LOOP


def _begin(_number: int, _frame: FrameType | None) -> None:
    signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)


@contextmanager
def sampled(path: Path) -> Iterator[None]:
    """Sample this process from SIGUSR1 on; write the samples of each as {"parts": {...}, "functions": {...}}."""
    parts: Counter[str] = Counter()
    functions: Counter[str] = Counter()

    def take(_number: int, frame: FrameType | None) -> None:
        part, function = part_of(frame)
        parts[part] += 1
        functions[function] += 1

    signal.signal(signal.SIGPROF, take)
    signal.signal(signal.SIGUSR1, _begin)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        counted = {"parts": dict(parts.most_common()), "functions": dict(functions.most_common(40))}
        path.write_text(json.dumps(counted, indent=1), encoding="utf-8")


def main() -> None:
    """Run Taproof's command line under the sampler."""
    path = Path(sys.argv[1])
    sys.argv = ["taproof", *sys.argv[2:]]
    from taproof.__main__ import main as run  # noqa: PLC0415 — its import belongs to the start that is sampled.

    with sampled(path):
        run()


if __name__ == "__main__":
    main()
