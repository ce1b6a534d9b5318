"""The machine under test: its cores, the CPU time that processes used, and facts that the figures depend on."""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NoReturn

ROOT: Final = Path(__file__).resolve().parent.parent
BUILD: Final = ROOT / "build" / "bench"
SERVER_CORE: Final = 0
LOAD_CORE: Final = 1
_FSYNCS: Final = 100


class BenchmarkFailed(Exception):
    """A measurement was impossible, or an answer was wrong; the message says which."""


def fail(sentence: str) -> NoReturn:
    """End the run; everything that was started is stopped on the way out."""
    raise BenchmarkFailed(sentence)


def say(progress: str, *, often: bool = False) -> None:
    """Show the progress: on one line of a terminal, else one line for each change unless it changes `often`."""
    if sys.stdout.isatty():
        print(f"\r\x1b[K{progress[:150]}", end="", flush=True)
    elif progress and not often:
        print(progress, flush=True)


def environment(**more: str) -> dict[str, str]:
    """Return the environment with only these settings of the service, since others would change the figures."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TAPROOF_")} | more


def cpu_seconds(*pids: int) -> float:
    """Return the CPU time that processes and their running children have used (proc(5): utime and stime)."""
    used = 0.0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        used += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        used += cpu_seconds(*map(int, children))
    return used


def busy_seconds(core: int) -> float:
    """Return how long a core has worked since the machine started, for any process (proc(5): stat)."""
    for line in Path("/proc/stat").read_text(encoding="ascii").splitlines():
        name, *fields = line.split()
        if name == f"cpu{core}":
            idle = int(fields[3]) + int(fields[4])
            return (sum(map(int, fields[:8])) - idle) / os.sysconf("SC_CLK_TCK")
    raise ValueError(f"no core {core}")


def resident_megabytes(pid: int) -> tuple[float, float]:
    """Return the resident memory of a process, now and at its highest, in MB of 1,000,000 bytes (proc(5): status)."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = dict(re.findall(r"^(VmRSS|VmHWM):\s+(\d+) kB$", status, re.MULTILINE))
    return int(found["VmRSS"]) * 1024 / 1e6, int(found["VmHWM"]) * 1024 / 1e6


def percentile(values: list[float], share: float) -> float:
    """Return the value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def measure_fsync(directory: Path) -> float:
    """Return the median milliseconds of writing 4 KiB durably, which each create waits for."""
    times = []
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        for _ in range(_FSYNCS):
            before = time.perf_counter()
            file.write(bytes(4096))
            os.fsync(file.fileno())
            times.append(time.perf_counter() - before)
    return statistics.median(times) * 1e3


def facts(fsync: float) -> dict[str, str]:
    """Return facts about the machine that the figures depend on."""
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    wrk = subprocess.run(["wrk", "-v"], capture_output=True, text=True, check=False).stdout.split(" [")[0]
    commit = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "commit": subprocess.run(commit, capture_output=True, text=True, check=True).stdout.strip(),
        "wrk": wrk.removeprefix("wrk "),
        "Linux": os.uname().release,
        "CPU": f"{found[1] if found else 'unknown'}, {os.cpu_count()} cores, one for each side",
        "memory": f"{memory:.0f} GiB",
        "4 KiB fsync": f"{fsync:.2f} ms",
    }
