"""Test /metrics: its formats, the counts of the session endpoints, and that no client can add a series."""

import json
import random
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final, get_args

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from tests.api.unauthenticated import JSON, Running, call_of, routes_of, running

from taproof.core.accounts import Actor
from taproof.core.errors import API_ERRORS
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import ProjectChanges
from taproof.core.session_state import CountedDecision
from taproof.http.metrics import LimitName, SessionEndpoint

OPENMETRICS: Final = "application/openmetrics-text"
PROMETHEUS: Final = f"{OPENMETRICS};version=1.0.0,{OPENMETRICS};version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5"
VERIFY, GENERATE = "/api/v1/verify/public", "/api/v1/generate/public"


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Running]:
    async with running(tmp_path) as at:
        yield at


async def series(at: Running) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return every sample of /metrics by its name and labels."""
    text = (await at.call("GET", "/metrics")).body.decode()
    found = [sample for family in parse_text(text) for sample in family.samples]
    return {(each.name, frozenset(each.labels.items())): each.value for each in found}


async def value(at: Running, name: str, **labels: str) -> float:
    return (await series(at)).get((name, frozenset(labels.items())), 0.0)


async def post(at: Running, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    answer = await at.call("POST", path, JSON, json.dumps(body).encode())
    return answer.status, json.loads(answer.body)


async def test_formats(at: Running, subtests: pytest.Subtests) -> None:
    """A client that asks for OpenMetrics gets it; any other gets the text format.

    The answer repeats nothing of the header.
    """
    for accept, is_openmetrics in (
        (PROMETHEUS, True),
        (f"text/plain, {OPENMETRICS.upper()} ; q=0.1", True),
        (f"{OPENMETRICS};version=7;escaping=evil", True),
        (f"{OPENMETRICS};q=0.000", False),
        ("text/plain;version=evil", False),
        ("*/*", False),
        ("", False),
        (";,;q=,application/" + "openmetrics-text" * 1_000, False),
    ):
        with subtests.test(accept[:60]):
            answer = await at.call("GET", "/metrics", {"accept": accept})
            version = f"{OPENMETRICS}; version=1.0.0" if is_openmetrics else "text/plain; version=0.0.4"
            assert answer.headers["content-type"] == f"{version}; charset=utf-8"
            text = answer.body.decode()
            families = list((parse_openmetrics if is_openmetrics else parse_text)(text))
            assert text.endswith("# EOF\n") is is_openmetrics
            samples = {sample.name for family in families for sample in family.samples}
            assert [name for name in samples if name.endswith("_created")] == []
            histograms = {family.name for family in families if family.type == "histogram"}
            assert histograms == {
                f"taproof_{what}_seconds" for what in ("generate", "verify", "tap", "webhook_delivery")
            }


async def test_the_session_endpoints_count(at: Running) -> None:
    """Each answered call is in its histogram, each failed one under its code, and each decision under its outcome."""
    project = {"project_id": at.project_id}
    tokens = []
    for _ in range(3):
        status, made = await post(at, GENERATE, project)
        assert status == 200
        tokens.append(made["session_token"])
    assert (await post(at, VERIFY, {**project, "session_token": tokens[0]}))[1] == {"status": "pending"}
    unknown = {**project, "session_token": f"{tokens[0][:20]}AAAA{tokens[0][24:]}"}
    assert [(await post(at, VERIFY, wrong))[0] for wrong in ({}, unknown)] == [400, 404]
    address = at.address()
    poll = json.dumps({**project, "session_token": tokens[1]}).encode()
    statuses = [(await at.call("POST", VERIFY, JSON, poll, address)).status for _ in range(12)]
    assert await value(at, "taproof_generate_seconds_count") == 3
    assert await value(at, "taproof_verify_seconds_count") == 1 + statuses.count(200)
    for code, number in (("invalid_request", 1), ("session_not_found", 1), ("rate_limited", statuses.count(429))):
        assert number > 0
        assert await value(at, "taproof_session_errors_total", endpoint="verify", code=code) == number
    ada = MessengerIdentity("7", "Ada", "")
    for token, decide in zip(tokens, ("confirm", "cancel", "report"), strict=True):
        await at.services.decisions.open_session(token, "7")
        for _ in range(2):  # The second one changes nothing.
            if decide == "confirm":
                await at.services.decisions.confirm_session(token, ada)
            elif decide == "cancel":
                await at.services.decisions.cancel_session(token, "7")
            else:
                await at.services.decisions.report_session(token, "7")
    strict, _ = await at.services.projects.create_project(
        Actor(await at.services.developers.read_developer("ada@example.com"), "command_line"),
        ProjectChanges(name="Bank", match_code=True),
    )
    _, made = await post(at, GENERATE, {"project_id": strict.id})
    await at.services.decisions.open_session(made["session_token"], "7")
    assert (await at.services.decisions.confirm_session(made["session_token"], ada)).outcome == "mismatched"
    counted = {each: await value(at, "taproof_decisions_total", outcome=each) for each in get_args(CountedDecision)}
    assert counted == {"confirmed": 1, "cancelled": 1, "reported": 1, "mismatched": 1, "withdrawn": 0}


async def test_a_mini_app_counts_as_a_session_and_its_confirmation(at: Running) -> None:
    """Otherwise, the alert about undecided sign-ins would fire where all users come from Mini Apps."""
    body = await at.mini_app_body()
    statuses = [(await at.call("POST", "/api/v1/mini-app/public", JSON, body)).status for _ in range(3)]
    assert statuses == [200, 400, 400]
    assert await value(at, "taproof_sessions_created_total") == 1
    assert await value(at, "taproof_decisions_total", outcome="confirmed") == 1
    assert await value(at, "taproof_session_errors_total", endpoint="mini_app", code="init_data_used") == 2


async def attack(at: Running, seed: int) -> None:
    """Send hostile methods, paths, queries, headers and bodies to every route."""
    draw = random.Random(seed)  # noqa: S311 — a failure can be repeated.

    def word() -> str:
        return "".join(draw.choices("abcXYZ019_-.~%é'\"\\{}", k=draw.randint(1, 60)))

    for method, route in routes_of(at.app):
        call = call_of(method, route)
        path = re.sub(r"\{\w+(:path)?\}", lambda _: word(), route)
        for attempt in (method, "GET", "POST", "OPTIONS", word()):
            given = {"authorization": f"Bearer {word()}", "origin": f"https://{word()}", "cookie": f"session={word()}"}
            body = json.dumps({name: word() for name in ("project_id", "session_token", "code_verifier", word())})
            await at.call(attempt, f"{path}?{word()}={word()}", call.headers | given, body.encode())
        await at.call(method, f"{path}/{word()}", call.headers, word().encode())


async def test_no_client_can_add_a_series(at: Running) -> None:
    """Hostile input at every route only increases existing series: their number does not depend on its content."""
    for seed in (1, 2):
        await attack(at, seed)
    before = await series(at)
    for seed in (3, 4, 5):
        await attack(at, seed)
    after = await series(at)
    assert after.keys() - before.keys() == set()
    declared = {
        "code": {error.code for error in API_ERRORS},
        "endpoint": set(get_args(SessionEndpoint)),
        "limit": set(get_args(LimitName)),
        "outcome": {*get_args(CountedDecision), "delivered", "retried", "dead", "turned_off", "skipped", "lost"},
        "method": {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "other"},
        "route": {route for _, route in routes_of(at.app)} | {"unmatched"},
    }
    for name, labels in after:
        for label, given in labels:
            assert given in declared.get(label, {given}), name
