"""After it listens, the event loop imports, compiles and reads nothing, whatever is called (design.md, convention 17).

`loop_guard.py` reports it, for every service that `launch` starts. This test calls everything of a fresh one, so each
page, template, text and script is used for the first time.
"""

import asyncio
import itertools
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.api.unauthenticated import routes_of, running
from tests.e2e.canary_walker import Walk, echoing_receiver
from tests.e2e.conftest import Developer, Service, launch, make_phone
from tests.e2e.openid import begin, create_client, new_browser, sign_in
from tests.loop_guard import new_reports
from tests.waiting import wait_until

from taproof.core.oidc.clients import SIGNING_ALGS
from taproof.oidc.pages.texts.catalog import LANGUAGES

SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Service]:
    """Yield a service that nobody has called."""
    service = launch(tmp_path)
    yield service
    service.stop()


async def list_routes(folder: Path) -> list[tuple[str, str]]:
    """Return method and path of every route that the sandbox serves; those that end something come last."""
    async with running(folder, sandbox=True) as at:
        return sorted(routes_of(at.app), key=lambda each: (each[0] != "GET", each))


def use(client: httpx.Client, service: Service, webhook_url: str) -> dict[str, str]:
    """Sign a user in, with a phone number and a webhook; return an id of each kind."""
    developer = Developer(client, service.access_token)
    project = developer.create_project(webhook_url=webhook_url, collect_phone=True, match_code="on")
    made = create_client(developer, project.id)
    phone = make_phone(client, "Ada", phone="+4915117304921", language_code="fa")
    session = project.generate()
    phone.open(session["deeplink"])
    phone.tap(session["match_code"])
    client.post(f"/sandbox/users/{phone.messenger_id}/share", json={"contact": "own", "wait": 30})
    assert project.verify(session["session_token"])["status"] == "confirmed"
    deliveries = f"/projects/{project.id}/deliveries"
    wait_until(lambda: any(each["attempts"] for each in developer.ask("GET", deliveries)["deliveries"]), "a delivery")
    return {
        "project_id": project.id,
        "client_id": made.id,
        "messenger_id": phone.messenger_id,
        "user_id": phone.messenger_id,
        "session_id": developer.ask("GET", "/sessions")["sessions"][0]["id"],
        "delivery_id": developer.ask("GET", deliveries)["deliveries"][0]["id"],
        "token_id": developer.ask("POST", "/tokens", json={"name": "Another"})["id"],
    }


def sign_in_with_openid(client: httpx.Client, service: Service) -> None:
    """Open the pages of the OpenID provider in each language, and sign in once with each kind of key."""
    developer = Developer(client, service.access_token)
    project = developer.create_project()
    applications = [create_client(developer, project.id, signing_alg=alg) for alg in SIGNING_ALGS]
    for language in LANGUAGES:
        with new_browser(service.base_url) as browser:
            page = begin(browser, applications[0], ui_locales=language)
            page.load()
            browser.get(f"{page.url}/qr.svg")
            browser.get("/device", headers={"Accept-Language": language})
    for application in applications:
        with new_browser(service.base_url) as browser:
            answer = application.redeem(sign_in(browser, application, make_phone(client))).json()
        application.userinfo(answer["access_token"])
        application.read_id_token(answer["id_token"])


def test_no_request_makes_the_loop_load_anything(fresh: Service, tmp_path: Path) -> None:
    """Every route, for its user and a stranger, with an id of something and of nothing: the guard reports nothing."""
    found = asyncio.run(list_routes(tmp_path))
    with (
        httpx.Client(base_url=fresh.base_url, timeout=60) as client,
        echoing_receiver(Walk(fresh, ""), 200) as receiver,
    ):
        ids = use(client, fresh, receiver)
        sign_in_with_openid(client, fresh)
        form = {"access_token": fresh.access_token, "next": "/console/projects"}
        for (method, route), known, bearer in itertools.product(found, (ids, {}), (fresh.access_token, "")):
            client.cookies.clear()
            if bearer and route.startswith("/console"):
                assert client.post("/console/sign-in/token", data=form, headers=SAME_ORIGIN).status_code == 303
            path = re.sub(r"\{(\w+)(:path)?\}", "{\\1}", route).format_map(defaultdict(lambda: "x", known))
            headers = {**SAME_ORIGIN, "Authorization": f"Bearer {bearer or 'x'}", "Accept-Language": "ar"}
            body: dict[str, Any] = {"json": {}} if route.startswith(("/api", "/sandbox")) else {"data": {"x": ""}}
            with client.stream(method, path, headers=headers, **({} if method == "GET" else body)) as answer:
                if not path.endswith("/live"):  # It never ends.
                    answer.read()
            client.request("TRACE", path)
    assert len(found) > 200
    assert new_reports() == ""
