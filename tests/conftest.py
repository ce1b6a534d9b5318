"""Share one browser, print measurements, and set how long tests search for faults: for hours in `make soak`.

The long form runs if pytest gets `--hypothesis-profile=soak`. Files named `test_soak_…` run only there.
"""

import logging
import os
import re
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import structlog
from hypothesis import settings
from playwright.async_api import Browser, expect
from tests.chromium import open_chromium
from tests.server_logs import SHOWN_LOG, server_logs

Figure = Callable[[str, object], None]
# The settings of the caller's shell are not for the services of the tests, nor is its proxy for calls on loopback.
for _name in [name for name in os.environ if re.match("TAPROOF_(?!TEST_)", name, re.IGNORECASE)]:
    del os.environ[_name]
for _name in ("NO_PROXY", "no_proxy"):
    os.environ[_name] = f"127.0.0.1,localhost,::1,{os.environ.get(_name, '')}".rstrip(",")

# The tests run on a shared and sometimes slow machine, where a short limit would measure its other users.
settings.register_profile("quick", max_examples=60, stateful_step_count=40, deadline=None)
settings.register_profile("soak", max_examples=2_000, stateful_step_count=80, deadline=None)
settings.load_profile("quick")
expect.set_options(timeout=60_000)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Yield the browser of all tests of this process; each test opens its own context in it."""
    async with open_chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def closed_port() -> Iterator[int]:
    """Yield a port on loopback that refuses connections: it is bound, so nobody else can listen on it."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def is_soak(config: pytest.Config) -> bool:
    """Return whether this is `make soak`."""
    return bool(config.getoption("--hypothesis-profile", None) == "soak")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the files that are only for `make soak`."""
    return True if collection_path.name.startswith("test_soak_") and not is_soak(config) else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Forget what an earlier test left behind: the configuration of the log, and the logs of servers that ended."""
    structlog.reset_defaults()
    logging.captureWarnings(capture=False)
    root = logging.getLogger()
    root.handlers[:] = [each for each in root.handlers if not type(each).__module__.startswith("taproof.")]
    root.setLevel(logging.WARNING)
    for log in [log for log, process in server_logs.items() if process.returncode is not None]:
        del server_logs[log]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """Put the expected and the actual value into the last line of a failure, and print the end of the servers' logs."""
    outcome: Any = yield
    report: pytest.TestReport = outcome.get_result()
    crash = getattr(report.longrepr, "reprcrash", None)
    if not report.failed or crash is None:
        return
    # pytest prints the first line of this message in its summary.
    text = " ".join(crash.message.split())
    crash.message = text if len(text) <= 500 else f"{text[:350]} … {text[-150:]}"
    for log in filter(Path.exists, server_logs):
        crash.message += f" [log: {log}]"
        report.sections.append((f"end of {log}", log.read_text("utf-8", errors="replace")[-SHOWN_LOG:]))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Name the case of a table in the last line of its failure."""
    crash = getattr(report.longrepr, "reprcrash", None)
    # A report with a node comes from another process, which has named the case.
    if isinstance(report, pytest.SubtestReport) and crash is not None and not hasattr(report, "node"):
        told = [report.context.msg or "", *(f"{name}={value}" for name, value in report.context.kwargs.items())]
        crash.message = f"[{', '.join(filter(None, told))[:200]}] {crash.message}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the measurements of the tests that made some."""
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, value in report.user_properties:
            terminalreporter.write_line(f"{report.nodeid.partition('::')[2]}: {name} {value}")


@pytest.fixture
def figure(record_property: Figure) -> Figure:
    """Return a function that records a measurement, printed at the end."""
    return record_property


@pytest.fixture(scope="session")
def soak(request: pytest.FixtureRequest) -> bool:
    """Return whether the long form was requested."""
    return is_soak(request.config)
