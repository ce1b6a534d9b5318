"""The one error shape (contract.md, Everywhere), over every error and every route."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, HTTPException
from structlog.testing import capture_logs
from tests.api.conftest import Api, assert_error

import taproof.service.installation
import taproof.storage.sqlite.store
from taproof.api.parameters import answer_invalid_parameters
from taproof.core.errors import API_ERRORS, InsufficientScope, InternalError, TaproofError
from taproof.http.errors import AnswerFailures, bearer_token, error_response, install_error_handlers

SECRET = "whsec_this_must_not_show"


def every_error() -> Iterator[type[TaproofError]]:
    """Return all subclasses, including those that only the store or the services raise."""
    assert taproof.service.installation
    assert taproof.storage.sqlite.store
    waiting = TaproofError.__subclasses__()
    while waiting:
        error = waiting.pop()
        waiting += error.__subclasses__()
        # Those of the command line, of the sandbox and of an import never reach this map.
        in_service = error.__module__.startswith(("taproof.core", "taproof.service", "taproof.storage"))
        if in_service and not error.__module__.startswith("taproof.storage.export"):
            yield error


def test_every_error_has_the_one_shape() -> None:
    """An error has one field, a stable code in the header, and is never cached; an internal fault is logged."""
    for error in every_error():
        with capture_logs() as logs:
            status, headers, body = error_response(error())
        fields = dict(headers)
        expected = error if error in API_ERRORS else InternalError
        assert status == expected.status
        assert fields[b"x-error-code"].decode() == expected.code
        assert fields[b"content-type"] == b"application/json"
        assert fields[b"cache-control"] == b"no-store"
        assert int(fields[b"content-length"]) == len(body)
        assert json.loads(body) == {"error": expected().sentence}
        assert (fields.get(b"www-authenticate") == b"Bearer") == (status == 401)
        names_scope = fields.get(b"www-authenticate", b"").startswith(b'Bearer error="insufficient_scope", scope="')
        assert names_scope == (error is InsufficientScope)
        assert (fields.get(b"retry-after") == b"1") == (status in {429, 503})
        assert (fields.get(b"accept-encoding") == b"identity") == (status == 415)
        assert bool(logs) == (expected is InternalError)


def test_extra_headers_are_added_and_never_kept() -> None:
    """The headers that one request adds to an answer do not appear in the next one."""
    _, headers, _ = error_response(TaproofError(), [(b"x-extra", b"1")])
    assert (b"x-extra", b"1") in headers
    headers.append((b"x-more", b"1"))
    names = {name for name, _ in error_response(TaproofError())[1]}
    assert not names & {b"x-extra", b"x-more"}


@pytest.mark.parametrize("error", [RuntimeError(SECRET), TaproofError(SECRET), KeyError(SECRET)])
def test_a_bug_tells_nothing(error: Exception) -> None:
    """Neither the answer nor the log has the message of an unexpected error, because it may contain a secret."""
    with capture_logs() as logs:
        status, _, body = error_response(error)
    assert (status, json.loads(body)) == (500, {"error": "Internal error."})
    assert logs[0]["error"] == type(error).__name__
    assert SECRET not in repr(logs)


async def test_every_route_answers_a_bug_alike(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failure behind any route, the caller gets the error shape and the log contains no secret."""

    async def fail(*_: object) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(api.developers, "authenticate", fail)
    routes: list[Any] = list(api.app.routes)
    for route in routes:
        for method in route.methods:
            with capture_logs() as logs:
                response = await api.client.request(
                    method, route.path_format, headers={"Authorization": f"Bearer {SECRET}"}, json={"name": SECRET}
                )
            assert_error(response, 500, "internal_error")
            assert [line["event"] for line in logs] == ["internal_error"]
            assert "fail" in logs[0]["stack"]
            assert SECRET not in repr(logs)


async def test_frameworks_own_errors_have_the_shape_too() -> None:
    """Errors that FastAPI or Starlette raise get the error shape, too."""
    app = FastAPI(openapi_url=None)
    install_error_handlers(app)
    answer_invalid_parameters(app)

    @app.get("/number")
    async def number(n: int) -> int:
        return n

    @app.get("/teapot")
    async def teapot() -> None:
        raise HTTPException(418, SECRET)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://taproof.test") as client:
        assert assert_error(await client.get("/number"), 400, "invalid_request") == "n is required."
        assert "n is not valid" in assert_error(await client.get("/number?n=x"), 400, "invalid_request")
        assert SECRET not in assert_error(await client.get("/teapot"), 500, "internal_error")
        assert_error(await client.get("/nothing"), 404, "not_found")


async def test_a_failure_after_the_answer_began_is_only_logged() -> None:
    """A second answer is never started, and no exception reaches the server."""
    sent: list[Any] = []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError(SECRET)

    async def receive() -> Any:
        raise AssertionError

    async def send(message: Any) -> None:
        sent.append(message)

    with capture_logs() as logs:
        await AnswerFailures(app)({"type": "http"}, receive, send)
    assert len(sent) == len(logs) == 1
    assert SECRET not in repr(logs)


async def test_a_client_that_leaves_is_no_failure(api: Api, token: str) -> None:
    """A connection that closes in the middle of a body may still read, so it is answered; nothing is logged."""
    sent: list[Any] = []
    messages = iter([{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}])

    async def receive() -> Any:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json"), (b"authorization", f"Bearer {token}".encode())]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/v1/dev/projects",
        "raw_path": b"/api/v1/dev/projects",
        "query_string": b"",
        "headers": headers,
    }
    with capture_logs() as logs:
        await api.app(scope, receive, send)
    assert sent[0]["status"] == 400
    assert logs == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], None),
        ([b"Bearer abc"], "abc"),
        ([b"bEARER  abc "], "abc"),
        ([b"Bearer"], ""),
        ([b"abc"], None),
        ([b"Basic abc"], None),
        ([b"Bearer abc", b"Bearer abc"], None),
    ],
)
def test_bearer_token(values: list[bytes], expected: str | None) -> None:
    """The scheme is case-insensitive; anything but exactly one header counts as none."""
    assert bearer_token({"headers": [(b"authorization", value) for value in values]}) == expected
