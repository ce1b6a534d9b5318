"""A guarded event loop: it reports every step that uses or blocks its thread for more than 50 ms, with the stack.

Run as a program, it is the command line of Taproof on a guarded loop: `loop_guard.py REPORTS serve …` appends the
reports to the file REPORTS. The guard starts when the service listens: imports and migrations before that are exempt.
From then on, what the loop loads is reported too, however fast that is: imports, compilations, and reads of files and
folders. They belong before that, or in a thread (maintainers/event-loop.md), because a slow disk delays everybody.

A step is what the loop runs without looking at anything else: one callback, or what a transport calls between two
callbacks. Two clocks judge it, and neither advances when other processes take the processor or this one is stopped:
- the processor time of the loop's thread, read at the beginning and at the end of each step, so it is exact;
- the time in one blocking call, which a second thread samples. It counts while the kernel says that the loop's thread
  waits and its Python stack has not moved. A thread that waits for a processor, or its turn with the interpreter, is no
  such thread.
"""

import asyncio
import functools
import gc
import importlib
import os
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import uvloop

LIMIT: Final = 50_000_000
"""The maximum duration of a step, in ns."""
BUSY_DISK: Final = 3_000_000_000
"""The maximum time that one call may block, in ns. A database read may wait for a disk that other tests write to."""
TICK: Final = 5_000_000
"""The ns between two samples."""
_SHOWN_STACKS: Final = 3
_KEPT_SAMPLES: Final = 100

_LOADS: Final = frozenset(
    {
        *("import", "compile", "re.compile", "open", "os.listdir", "os.scandir", "glob.glob", "tempfile.mkstemp"),
        *("ctypes.dlopen", "subprocess.Popen", "socket.getaddrinfo", "socket.gethostbyname"),
    }
)
"""Audit events (https://docs.python.org/3/library/audit_events.html), and one for patterns."""
_SHOWN_FRAMES: Final = 12
_KEY_FILE: Final = "taproof/runtime/key_file.py"
"""A master key is read right before its use, once after each change of the file (maintainers/event-loop.md)."""

Report = Callable[[str], None]
Position = list[tuple[CodeType, int]]


class _Watched:
    """The samples of one step."""

    def __init__(self, step: int) -> None:
        self.step = step
        self.blocked = 0
        self.stacks: list[traceback.StackSummary] = []


class Guard:
    """Times the steps of one loop, and samples the stack during long ones."""

    def __init__(self, blocked_limit: int) -> None:
        self._blocked_limit = blocked_limit
        self._report: Report | None = None
        self._callback: Any = None
        self.step = 0
        self._began = self._began_at = 0
        self._collecting = self._collected = 0
        self.watched = _Watched(-1)
        self._thread = 0

    def arm(self, report: Report | None) -> None:
        """Start or stop reporting; called in the loop's thread."""
        self._began = time.thread_time_ns()
        self._report = report

    def run(self, callback: Callable[..., object], *arguments: Any) -> None:
        """Run a callback of the loop as a step."""
        self._next_step(callback)
        try:
            callback(*arguments)
        finally:
            self._next_step(None)

    def _next_step(self, callback: Callable[..., object] | None) -> None:
        used = time.thread_time_ns() - self._began
        step, self.step = self.step, self.step + 1
        if self._report is not None:
            watched = self.watched if self.watched.step == step else None
            if used > LIMIT or (watched and watched.blocked > self._blocked_limit):
                self._report(self._describe(used, watched or _Watched(step)))
        self._callback = callback
        self._collected = 0
        self._began_at = time.monotonic_ns()
        self._began = time.thread_time_ns()

    def _describe(self, used: int, watched: _Watched) -> str:
        task = getattr(self._callback, "__self__", None)
        culprit = task if isinstance(task, asyncio.Task) else self._callback or "a transport"
        times = f"used {used / 1e6:.0f} ms of the processor ({self._collected / 1e6:.0f} ms for the garbage collector)"
        lines = [
            f"One step of the event loop {times} and was blocked for {watched.blocked / 1e6:.0f} ms: {culprit!r}\n",
        ]
        seen = Counter("".join(stack.format()) for stack in watched.stacks)
        # The most frequent stack comes last; among equals, the latest, because a call into C is seen when it returns.
        for stack, count in sorted(seen.items(), key=itemgetter(1))[-_SHOWN_STACKS:]:
            lines += [f"Seen {count} of {seen.total()} times:\n", stack]
        return "".join(lines)

    # ---- samples

    @contextmanager
    def watching(self, loop: uvloop.Loop, base: CodeType) -> Iterator[None]:
        """Sample this thread, which runs the loop, above the frame of `base`."""
        ended, self._thread = threading.Event(), threading.get_ident()
        arguments = (loop, base, self._thread, threading.get_native_id(), ended)
        sampler = threading.Thread(target=self._watch, args=arguments, name="loop guard", daemon=True)
        gc.callbacks.append(self._note_collection)
        sampler.start()
        try:
            yield
        finally:
            ended.set()
            sampler.join()
            gc.callbacks.remove(self._note_collection)

    def _watch(self, loop: uvloop.Loop, base: CodeType, thread: int, kernel_id: int, ended: threading.Event) -> None:
        call = Path(f"/proc/self/task/{kernel_id}/syscall")
        looked_at = time.monotonic_ns()
        position: Position = []
        while not ended.wait(TICK / 1e9):
            now = time.monotonic_ns()
            elapsed, looked_at = min(now - looked_at, 2 * TICK), now
            step, frames = self.step, list(_above(sys._current_frames().get(thread), base))
            last, position = position, [(each.f_code, each.f_lasti) for each in frames]
            if self.watched.step != step:
                self.watched = _Watched(step)
                last, elapsed = position, min(now - self._began_at, TICK)
            if frames and len(self.watched.stacks) < _KEPT_SAMPLES:
                lines = ((each, each.f_lineno) for each in reversed(frames))
                self.watched.stacks.append(traceback.StackSummary.extract(lines, lookup_lines=False))
            # The loop continues while this is read.
            runs = call.read_text("ascii").startswith("running")
            if frames and not runs and position == last and step == self.step:
                self.watched.blocked += elapsed
            if runs and self._callback is None:
                # Several calls of transports without a callback between them are separate steps.
                loop.call_soon_threadsafe(_nothing)
            del frames  # They keep the objects that the functions use.

    def _note_collection(self, phase: str, _: dict[str, int]) -> None:
        if threading.get_ident() != self._thread:
            return
        if phase == "start":
            self._collecting = time.thread_time_ns()
        else:
            self._collected += time.thread_time_ns() - self._collecting


def _above(frame: FrameType | None, base: CodeType) -> Iterator[FrameType]:
    while frame is not None and frame.f_code is not base:
        yield frame
        frame = frame.f_back


def _nothing() -> None:
    pass


class GuardedLoop(uvloop.Loop):
    """uvloop with a guard that runs each callback."""

    def __init__(self, blocked_limit: int = LIMIT) -> None:
        super().__init__()
        self.guard = Guard(blocked_limit)

    def run_forever(self) -> None:
        with self.guard.watching(self, GuardedLoop.run_forever.__code__):
            super().run_forever()

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]
        return super().call_soon(self._guarded(callback), *args, context=context)

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]
        return super().call_soon_threadsafe(self._guarded(callback), *args, context=context)

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *args: Any, context: Any = None
    ) -> Any:
        return super().call_later(delay, self._guarded(callback), *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]
        return super().call_at(when, self._guarded(callback), *args, context=context)

    def add_reader(self, fd: Any, callback: Any, *args: Any) -> Any:  # type: ignore[override]
        return super().add_reader(fd, self._guarded(callback), *args)

    def add_writer(self, fd: Any, callback: Any, *args: Any) -> Any:  # type: ignore[override]
        return super().add_writer(fd, self._guarded(callback), *args)

    def _guarded(self, callback: Any) -> Any:
        return functools.partial(self.guard.run, callback)


class LoopWork:
    """Watches one thread from `arm` on. An audit hook cannot be removed, so a process has one of these."""

    def __init__(self) -> None:
        self._thread = 0
        self._report: Report | None = None
        sys.addaudithook(self._note)
        compiler: Any = importlib.import_module("re._compiler" if sys.version_info >= (3, 11) else "sre_compile")
        compile_pattern = compiler.compile

        def noting_compile(pattern: Any, flags: int = 0) -> Any:
            self._note("re.compile", (pattern,))
            return compile_pattern(pattern, flags)

        compiler.compile = noting_compile

    def arm(self, report: Report | None) -> None:
        """Start or stop reporting the calling thread's work."""
        self._thread = threading.get_ident()
        self._report = report

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        report = self._report
        if report is None or threading.get_ident() != self._thread:
            return
        if event not in _LOADS:
            return
        stack = traceback.StackSummary.extract(traceback.walk_stack(sys._getframe(1)), lookup_lines=False)
        stack.reverse()
        if any("importlib._bootstrap" in frame.filename for frame in stack):
            return  # It is a part of an import, which has been reported.
        if any(frame.name == "newer" and frame.filename.endswith(_KEY_FILE) for frame in stack):
            return
        if any(frame.name == "_describe" and frame.filename == __file__ for frame in stack):
            return  # A report of a long step reads the lines of its stack.
        self._report = None  # The report itself reads the lines of the stack.
        try:
            shown = "".join(traceback.StackSummary.from_list(stack[-_SHOWN_FRAMES:]).format())
            report(f"The event loop loads something while it serves: {event} {str(arguments[:1])[:200]}\n{shown}")
        finally:
            self._report = report


_read: dict[Path, int] = {}
"""The number of bytes of each report file that `new_reports` has returned."""


def guarded(reports: Path) -> list[str]:
    """Return the first arguments of a command that runs the command line on a guarded loop, and track its reports."""
    _read.setdefault(reports, 0)
    return [sys.executable, "-P", __file__, str(reports)]


def new_reports() -> str:
    """Return the reports of guarded processes since the last call; "" if there are none."""
    found = ""
    for reports, begin in _read.items():
        if reports.exists():
            text = reports.read_bytes()[begin:]
            _read[reports] += len(text)
            found += text.decode()
    return found


def main() -> None:
    """Run the command line on a guarded loop."""
    from taproof.__main__ import main as run  # noqa: PLC0415 — a test that imports this file needs nothing of it.

    app: Any = importlib.import_module("taproof.runtime.app")
    reports = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    loops: list[GuardedLoop] = []
    work = LoopWork()
    until_listening, run_parts = app.until_listening, app._run_parts

    def new_event_loop() -> GuardedLoop:
        loops.append(GuardedLoop(BUSY_DISK))
        return loops[-1]

    async def until_guarded(*arguments: Any) -> None:
        await until_listening(*arguments)
        loops[-1].guard.arm(lambda text: _write(reports, text))
        work.arm(lambda text: _write(reports, text))

    async def run_guarded(*arguments: Any) -> None:
        await run_parts(*arguments)
        loops[-1].guard.arm(None)  # Every call is answered; closing the store now delays nobody.
        work.arm(None)

    app.until_listening, app._run_parts = until_guarded, run_guarded
    uvloop.new_event_loop = new_event_loop
    run()


def _write(file: int, text: str) -> None:
    os.write(file, f"{text}\n".encode(errors="backslashreplace"))


if __name__ == "__main__":
    main()
