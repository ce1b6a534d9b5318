"""Several processes on one port: `taproof serve --workers N`.

The supervisor checks and migrates once, forks the processes, and then only watches them. It has no open store, event
loop or thread, so forking is simple and fast. It replaces a process that dies. When stopped, it stops the processes,
waits, and kills those that still run. Each process reads a pipe whose other end only the supervisor holds, so the
processes stop by themselves if the supervisor is killed.

All processes count metrics in one directory (http/metrics.py). Work for one process needs a lease (jobs/leader.py).
"""

import asyncio
import contextlib
import gc
import os
import select
import shutil
import signal
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Never

import structlog

from taproof.config.logging import configure_logging
from taproof.config.settings import Settings
from taproof.core.errors import TaproofError
from taproof.http.metrics import forget_process, share_metrics
from taproof.runtime import app
from taproof.runtime.listener import bind_socket, check_listening
from taproof.runtime.pages import load_modules
from taproof.runtime.services import open_services
from taproof.runtime.start_screen import print_screen

STOP_SECONDS: Final = 32.0
"""Seconds that processes may take to stop: a little longer than all waits of `app.serve`."""
LONGEST_PAUSE: Final = 30.0
STEADY_SECONDS: Final = 60.0
"""Uptime in seconds that resets the pause before a replacement to one second."""
GIVE_UP_AFTER: Final = 3
"""Average deaths per process, before any process is ready, at which the supervisor gives up."""
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)

_log = structlog.get_logger(__name__)


class ProcessesKeepDying(TaproofError, code="processes_keep_dying"):
    """The processes of --workers (TAPROOF_WORKERS) end before they are ready."""

    sentence = "The processes of --workers (TAPROOF_WORKERS) die before they are ready. See the log lines above."


@dataclass(slots=True)
class _WorkerSlot:
    """The slot of one of the N processes: its pid, or the time to fill it again. Times are monotonic, in seconds."""

    number: int
    pid: int = 0
    started_at: float = 0.0
    is_ready: bool = False
    pause: float = 1.0
    fill_at: float = 0.0


def run(settings: Settings) -> None:
    """Run the service in `settings.workers` processes until SIGTERM or SIGINT."""
    check_listening(settings)
    invitation = asyncio.run(_prepare(settings))
    # Reserve the port, even while no process listens. A socket that does not listen gets no connections.
    with bind_socket(settings.host, settings.port, shared=True):
        directory = Path(tempfile.mkdtemp(prefix="taproof-metrics-"))
        try:
            _Supervisor(settings, directory, invitation).run()
        finally:
            shutil.rmtree(directory, ignore_errors=True)


async def _prepare(settings: Settings) -> str | None:
    """Migrate and check the store before N processes do so at once; return the code of `app.invite_first`."""
    async with open_services(settings) as services:
        return await app.invite_first(settings, services)


class _Supervisor:
    """Starts, watches, replaces and stops the processes."""

    def __init__(self, settings: Settings, directory: Path, invitation: str | None) -> None:
        self._settings = settings
        self._invitation = invitation
        self._directory = directory
        self._slots = [_WorkerSlot(number) for number in range(1, settings.workers + 1)]
        self._lifeline, self._life = os.pipe()
        self._ready, self._tell_ready = os.pipe()
        self._woken, wake = os.pipe()
        for pipe in (wake, self._woken, self._ready):
            os.set_blocking(pipe, False)
        # Signals arrive as bytes in a pipe, so none is missed between a check and a wait.
        signal.set_wakeup_fd(wake)
        for number in _SIGNALS:
            signal.signal(number, lambda *_: None)
        self._has_served = False
        self._early_deaths = 0

    def run(self) -> None:
        """Watch the processes until a stop signal; raises ProcessesKeepDying when it gives up."""
        # Processes share the current memory until something writes to it, as the garbage collector would.
        load_modules()
        gc.collect()
        gc.freeze()
        gc.enable()
        for slot in self._slots:
            self._fill(slot)
        try:
            while not self._is_told_to_stop(self._until_next_fill()):
                self._note_ready()
                self._bury()
                if self._early_deaths >= GIVE_UP_AFTER * len(self._slots):
                    _log.error("processes_given_up", advice="They die before they are ready. See the log lines above.")
                    raise ProcessesKeepDying
                for slot in self._slots:
                    if not slot.pid and time.monotonic() >= slot.fill_at:
                        self._fill(slot)
        finally:
            self._stop()

    # ---- watching

    def _until_next_fill(self) -> float | None:
        """Return the seconds until an empty slot is filled, or None if none is empty."""
        due = [slot.fill_at for slot in self._slots if not slot.pid]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _is_told_to_stop(self, seconds: float | None) -> bool:
        """Wait for an event for at most `seconds`; return whether it was SIGTERM or SIGINT."""
        select.select([self._woken, self._ready], [], [], seconds)
        return bool({signal.SIGTERM, signal.SIGINT} & set(_read(self._woken)))

    def _note_ready(self) -> None:
        for number in _read(self._ready):
            self._slots[number - 1].is_ready = True
            self._early_deaths = 0
        if not self._has_served and all(slot.is_ready for slot in self._slots):
            self._has_served = True
            link_known = self._settings.messenger_link_base is not None
            print_screen(self._settings, None, self._invitation, link_known=link_known)

    def _bury(self) -> None:
        """Record the processes that died, and set the time to replace them."""
        for slot in self._slots:
            if not slot.pid or (status := _ended(slot.pid)) is None:
                continue
            now = time.monotonic()
            if not slot.is_ready:
                self._early_deaths += 1
            if now - slot.started_at >= STEADY_SECONDS:
                slot.pause = 1.0
            code = os.waitstatus_to_exitcode(status)
            cause = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
            _log.error("process_died", process=slot.number, pid=slot.pid, cause=cause, replaced_in=slot.pause)
            forget_process(self._directory, slot.number)
            slot.pid, slot.is_ready = 0, False
            slot.fill_at = now + slot.pause
            slot.pause = min(2 * slot.pause, LONGEST_PAUSE)

    # ---- stopping

    def _stop(self) -> None:
        """Stop all processes, wait for them, and kill those that do not stop."""
        deadline = time.monotonic() + STOP_SECONDS
        self._signal_all(signal.SIGTERM)
        while self._is_any_left() and (left := deadline - time.monotonic()) > 0:
            select.select([self._woken], [], [], left)
            _read(self._woken)
        if self._is_any_left():
            _log.error("processes_killed", advice="They did not stop in time.")
            self._signal_all(signal.SIGKILL)
            while self._is_any_left():
                time.sleep(0.01)

    def _is_any_left(self) -> bool:
        for slot in self._slots:
            if slot.pid and _ended(slot.pid) is not None:
                slot.pid = 0
        return any(slot.pid for slot in self._slots)

    def _signal_all(self, number: signal.Signals) -> None:
        for slot in self._slots:
            if slot.pid:
                os.kill(slot.pid, number)

    # ---- starting

    def _fill(self, slot: _WorkerSlot) -> None:
        """Fork the process of a slot."""
        slot.started_at = time.monotonic()
        # Signals are blocked until the child has removed this process's handlers. Otherwise, a SIGTERM could be lost.
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        slot.pid = os.fork()
        if slot.pid == 0:
            self._become(slot.number)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def _become(self, number: int) -> Never:
        """Run as a process of the service until it ends, without ever returning to the supervisor's stack."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for each in _SIGNALS:
                signal.signal(each, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            os.close(self._life)
            configure_logging(self._settings.log_level, self._settings.log_format, process=number)
            threading.Thread(target=self._end_with_supervisor, daemon=True).start()
            sibling = app.Sibling(share_metrics(self._directory, number), lambda: _tell(self._tell_ready, number))
            app.run(self._settings, sibling)
            code = 0
        except TaproofError as error:
            _log.error("process_failed", error=error.code, advice=error.sentence)
        except BaseException as error:  # noqa: BLE001 — this child ends here after any error.
            _log.exception("process_failed", error=type(error).__name__)
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _end_with_supervisor(self) -> None:
        """In a thread, wait for the supervisor to end, then stop as on SIGTERM, or exit after `STOP_SECONDS`.

        It uses a thread because a hanging event loop would not notice.
        """
        os.read(self._lifeline, 1)
        shutil.rmtree(self._directory, ignore_errors=True)  # The supervisor did not remove it. Open files stay usable.
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(STOP_SECONDS)
        os._exit(1)


def _ended(pid: int) -> int | None:
    """Return the exit status of a process, None while it runs."""
    found, status = os.waitpid(pid, os.WNOHANG)
    return status if found else None


def _read(pipe: int) -> bytes:
    """Return the bytes in a pipe, without waiting."""
    try:
        return os.read(pipe, 1_024)
    except BlockingIOError:
        return b""


def _tell(pipe: int, number: int) -> None:
    """Write one byte. Ignore errors, because the supervisor may have ended."""
    with contextlib.suppress(OSError):
        os.write(pipe, bytes([number]))
