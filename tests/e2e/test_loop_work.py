"""After it is ready, the event loop imports, compiles and reads nothing, whatever is called (design.md, convention 17).

`loop_guard.py` reports it, for every service that `launch` starts. These tests call everything of a fresh one, so that
each page, template, text and script is used for the first time.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.api.unauthenticated import routes_of, running
from tests.e2e import openid
from tests.e2e.canary_walker import echoing_receiver, Walk
from tests.e2e.conftest import Developer, Service, launch, make_phone
from tests.loop_guard import new_reports
from tests.waiting import wait_until

LANGUAGES = [file.stem for file in Path("src/taproof/oidc/pages/texts").glob("*.toml")]
SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Service]:
    """Return a service that nobody has called, and end it."""
    service = launch(tmp_path)
    yield service
    service.stop()


async def routes(tmp_path: Path) -> list[tuple[str, str]]:
    """Return method and path of every route that the sandbox serves."""
    folder = tmp_path / "routes"
    folder.mkdir()
    async with running(folder, sandbox=True) as at:
        return list(routes_of(at.app))


def use(client: httpx.Client, service: Service, webhook_url: str) -> dict[str, str]:
    """Sign one user in, with everything that one project can have; return an id of each kind."""
    developer = Developer(client, service.access_token)
    project = developer.create_project(webhook_url=webhook_url, collect_phone=True, match_code="on")
    made = openid.create_client(developer, project.id)
    phone = make_phone(client, "Ada", phone="+4915117304921")
    session = project.generate()
    phone.open(session["deeplink"])
    phone.tap(session["match_code"])
    client.post(f"/sandbox/users/{phone.messenger_id}/share", json={"contact": "own", "wait": 30})
    assert project.verify(session["session_token"])["status"] == "confirmed"
    at = f"/projects/{project.id}/deliveries"
    wait_until(lambda: any(each["attempts"] for each in developer.ask("GET", at)["deliveries"]), "a delivery")
    return {
        "project_id": project.id,
        "client_id": made.id,
        "messenger_id": phone.messenger_id,
        "user_id": phone.messenger_id,
        "session_id": developer.ask("GET", "/sessions")["sessions"][0]["id"],
        "delivery_id": developer.ask("GET", at)["deliveries"][0]["id"],
        "token_id": developer.ask("POST", "/tokens", json={"name": "Another"})["id"],
    }


async def test_every_route(fresh: Service, tmp_path: Path) -> None:
    """Each route: as its user and as a stranger, with each method, with an id of something and of nothing."""
    found = await routes(tmp_path)
    walk = Walk(fresh, "")
    statuses: dict[str, set[int]] = {}
    with httpx.Client(base_url=fresh.base_url, timeout=60) as client, echoing_receiver(walk, 200) as receiver:
        ids = use(client, fresh, receiver)
        signed_in = {"access_token": fresh.access_token, "next": "/console/projects"}
        for method, route in sorted(found, key=lambda each: (each[0] != "GET", each)):
            for known in (ids, {}):
                path = re.sub(r"\{(\w+)(:path)?\}", lambda name: known.get(name[1], "x"), route)
                for headers in ({}, {"Authorization": f"Bearer {fresh.access_token}"}):
                    body: Any = {"json": {}} if route.startswith(("/api", "/sandbox")) else {"data": {"x": ""}}
                    if method == "GET":
                        body = {}
                    client.cookies.clear()
                    if headers and route.startswith("/console"):
                        answer = client.post("/console/sign-in/token", data=signed_in, headers=SAME_ORIGIN)
                        assert answer.status_code == 303
                    with client.stream(method, path, headers={**headers, **SAME_ORIGIN}, **body) as answer:
                        if not path.endswith("/live"):
                            answer.read()
                        statuses.setdefault(f"{method} {route}", set()).add(answer.status_code)
        for _, route in found:
            client.request("TRACE", route)
    reports = new_reports()
    for k, v in statuses.items():
        print(k, v)
    Path("/tmp/reports.txt").write_text(reports)
    assert reports == ""
