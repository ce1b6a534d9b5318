"""The developer API, its documents and the console are built after the start."""

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from taproof.runtime.pages import LaterApp, MadeOnce

LATER = (
    *("fastapi", "jinja2", "taproof.api.developer", "taproof.api.openapi"),
    *("taproof.console", "taproof.oidc.app", "taproof.sandbox"),
)


def test_the_start_loads_nothing_that_no_sign_in_needs() -> None:
    """Loading these takes longer than the rest of the start. An import at the top of a module would load them."""
    code = f"import sys, taproof.cli.main, taproof.runtime.app; print([n for n in {LATER} if n in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


async def test_requests_wait_for_one_build_which_blocks_nobody() -> None:
    """Many first requests cause one build in a thread; a request that ends early does not affect the others."""
    proceed = threading.Event()
    built: list[threading.Thread] = []
    answered: list[Scope] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        answered.append(scope)

    def make() -> ASGIApp:
        built.append(threading.current_thread())
        proceed.wait()
        return app

    later = LaterApp(make)
    requests = [asyncio.create_task(later({"number": each}, None, None)) for each in range(5)]  # type: ignore[arg-type]
    await asyncio.sleep(0)
    requests[0].cancel()
    await asyncio.wait([requests[0]])
    assert answered == []
    proceed.set()
    await asyncio.gather(*requests[1:], later.build())
    assert [each["number"] for each in answered] == [1, 2, 3, 4]
    assert len(built) == 1
    assert built[0] is not threading.main_thread()


async def test_a_build_that_fails_is_reported_to_the_process_and_to_each_request() -> None:
    """The process waits for `build`, so it ends with the error instead of serving without these pages."""

    def fail() -> ASGIApp:
        raise ZeroDivisionError

    later = LaterApp(fail)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            await later({}, None, None)  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError):
        await later.build()


def test_what_two_applications_share_is_built_once() -> None:
    """The documents share the developer API, and both parts of the OpenID provider share the provider."""
    threads = 4
    waiting = threading.Barrier(threads)
    proceed = threading.Event()
    made: list[object] = []

    def make() -> object:
        proceed.wait(0.2)  # Time for the other threads to call it too.
        made.append(object())
        return made[-1]

    once = MadeOnce(make)

    def call() -> object:
        waiting.wait()
        return once()

    with ThreadPoolExecutor(threads) as pool:
        results = [each.result() for each in [pool.submit(call) for _ in range(threads)]]
    assert len(made) == 1
    assert results == made * threads


def test_what_could_not_be_built_is_tried_again() -> None:
    results = iter([ZeroDivisionError(), "built"])

    def make() -> str:
        result = next(results)
        if isinstance(result, Exception):
            raise result
        return str(result)

    once = MadeOnce(make)
    with pytest.raises(ZeroDivisionError):
        once()
    assert [once(), once()] == ["built", "built"]
