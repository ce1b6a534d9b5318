"""A server that misbehaves, and both clients to call it; see `either_client.py`."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.sdk.either_client import (
    ACCESS_TOKEN,
    KINDS,
    SECRET_KEY,
    EitherClient,
    HandClock,
    NewClient,
    ScriptedServer,
    scripted_server,
)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as server:
        yield server


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture(params=KINDS)
def new_client(request: pytest.FixtureRequest, server: ScriptedServer, clock: HandClock) -> Iterator[NewClient]:
    """Return a function that makes a client of either kind, with the manual clock by default."""
    made = []

    def new(base_url: str | None = None, **options: Any) -> EitherClient:
        credentials: dict[str, Any] = {"access_token": ACCESS_TOKEN, "secret_key": SECRET_KEY, "project_id": "proj_1"}
        settings = {"clock": clock, **credentials, **options}
        made.append(EitherClient(request.param, base_url or server.base_url, **settings))
        return made[-1]

    yield new
    for each in made:
        each.shut()


@pytest.fixture
def client(new_client: NewClient) -> EitherClient:
    return new_client()
