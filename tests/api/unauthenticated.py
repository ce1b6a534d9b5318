"""The running service, called without credentials: the cost of each route.

`python -m tests.api.unauthenticated` prints the table of maintainers/unauthenticated-routes.md.
"""

import asyncio
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from starlette.routing import Route
from starlette.types import ASGIApp
from tests.giving_bots import give_bot
from tests.mini_apps import BOT_ID, PUBLIC_KEY, init_data

from taproof.api.router import Router
from taproof.config.settings import load_settings
from taproof.core.accounts import Actor
from taproof.core.clock import system_clock
from taproof.core.entropy import system_entropy
from taproof.core.identifiers import new_key
from taproof.core.oidc.clients import ClientChanges
from taproof.core.project_bots import ProjectBot
from taproof.core.projects import ProjectChanges
from taproof.http.sdk_files import SdkFiles
from taproof.runtime.app import build_app, mini_app_apps, webhook_apps
from taproof.runtime.bot_runtime import connect_messenger
from taproof.runtime.pages import Pages
from taproof.runtime.sandbox_mode import start_sandbox
from taproof.runtime.services import Services, open_services
from taproof.service.housekeeping import Housekeeping

ROUNDS: Final = 200
SAME_ORIGIN: Final = {"sec-fetch-site": "same-origin", "content-type": "application/x-www-form-urlencoded"}
JSON: Final = {"content-type": "application/json"}
SIGN_IN: Final = "/console/sign-in"


@dataclass(frozen=True)
class WebhookResponse:
    """The answer of a call."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Running:
    """The whole application in this process; each call can come from a new address."""

    app: ASGIApp
    services: Services
    project_id: str
    _calls: int = 0
    _client_id: str = ""

    def address(self) -> str:
        """Return an address that no call came from."""
        self._calls += 1
        return f"203.{self._calls >> 16 & 255}.{self._calls >> 8 & 255}.{self._calls & 255}"

    async def call(
        self,
        method: str,
        path: str,
        headers: dict[str, str] | None = None,
        body: bytes = b"",
        address: str | None = None,
    ) -> WebhookResponse:
        """Make one call from an address that has made none before."""
        path, _, query = path.partition("?")
        sent = {"host": "taproof.example", "content-length": str(len(body)), **(headers or {})}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "https",
            "path": path,
            "raw_path": quote(path).encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
            "client": (address or self.address(), 4711),
            "server": ("taproof.example", 443),
        }
        started: dict[str, Any] = {}
        chunks = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                started.update(message)
            else:
                chunks.append(message.get("body", b""))

        await self.app(scope, receive, send)
        answered = {name.decode(): value.decode() for name, value in started["headers"]}
        return WebhookResponse(started["status"], answered, b"".join(chunks))

    async def openid_client(self) -> str:
        """Return the id of a client of the project, which has no secret."""
        if not self._client_id:
            developer = await self.services.developers.read_developer("ada@example.com")
            changes = ClientChanges(name="App", redirect_uris=("https://app.example/",), auth_method="none")
            created, _ = await self.services.clients.create_client(
                Actor(developer, "command_line"), self.project_id, changes
            )
            self._client_id = created.id
        return self._client_id

    async def waiting_cookie(self) -> str:
        """Start a sign-in to the console; return the cookie of the browser that waits for it."""
        answer = await self.call("POST", SIGN_IN, SAME_ORIGIN, b"next=")
        assert answer.status == 303, answer
        return answer.headers["set-cookie"].partition(";")[0]

    async def mini_app_body(self) -> bytes:
        """Give the project a bot; return the body with which the bot's Mini App signs in, once."""
        storage = self.services.storage
        project = await storage.projects.read_project(self.project_id)
        assert project is not None
        await give_bot(storage, project.developer_id, project.id, ProjectBot(project.id, BOT_ID, "a_bot", b"token"))
        return json.dumps({"project_id": project.id, "init_data": init_data(system_clock())}).encode()


@asynccontextmanager
async def running(folder: Path, *, sandbox: bool = False) -> AsyncIterator[Running]:
    """Assemble the service as `taproof serve` does, without listening."""
    given: dict[str, object] = {"database_url": f"sqlite:///{folder / 'taproof.db'}"}
    if sandbox:
        given |= {"sandbox": True}
    else:
        link_base = "https://t.me/acme_sign_in_bot"
        given |= {
            "base_url": "https://taproof.example",
            "bot_token": "123456:" + "A" * 35,
            "bot_updates": "webhook",
            "messenger_link_base": link_base,
        }
    settings = load_settings(given)
    async with open_services(settings) as services:
        now = time.time_ns() // 1_000_000
        await Housekeeping(services.storage, services.encryptor, lambda: now, system_entropy, 30).sweep()
        apps: dict[str, ASGIApp] = {}
        started = None
        if sandbox:
            started = await start_sandbox(settings, services)
            apps |= started.apps
            services.deeplinks.set_service_bot(started.link_base, started.bot_id)
        messenger = connect_messenger(settings, services, started.bot_token if started else settings.service_bot_token)
        webhooks = webhook_apps(settings, messenger.webhook, messenger.project_bot_webhooks)
        apps |= webhooks | mini_app_apps(services, PUBLIC_KEY)
        pages = Pages(settings, services)
        await pages.build()
        app = build_app(settings, services, apps, pages)
        developer = await services.developers.create_developer("ada@example.com", "business")
        project, _ = await services.projects.create_project(
            Actor(developer, "command_line"), ProjectChanges(name="Shop")
        )
        yield Running(app, services, project.id)


def routes_of(app: ASGIApp) -> Iterator[tuple[str, str]]:
    """Return method and path of every route; routes for any method count as GET and POST."""
    assert isinstance(app, Router)
    below = {stem.decode() for stem, _ in app.below}
    for path in map(bytes.decode, app.exact):
        if f"{path}/" not in below:
            yield from (("GET", path), ("POST", path))
    for _stem, part in app.below:
        inner: Any = part
        while hasattr(inner, "app"):
            inner = inner.app
        if isinstance(inner, SdkFiles):
            yield from (("GET", path) for path in inner.apps)
        elif hasattr(inner, "routes"):
            for route in inner.routes:
                assert isinstance(route, Route), route
                for method in sorted((route.methods or {"GET"}) - {"HEAD"}):
                    yield method, route.path
        else:
            yield "POST", f"{_stem.decode()}0"


@dataclass
class Call:
    """One kind of call; `route` is its name in the table."""

    route: str
    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


def call_of(method: str, route: str) -> Call:
    """Return a call of a route, with something in the place of each parameter, and a body that it takes."""
    is_form = route.startswith(("/console", "/oidc", "/device"))
    headers = {} if method == "GET" else SAME_ORIGIN if is_form else JSON
    path = re.sub(r"\{\w+(:path)?\}", "x", route)
    return Call(f"{method} {route}", method, path, headers, b"" if method == "GET" or is_form else b"{}")


async def special_calls(at: Running) -> list[Call]:
    """Return calls that do more than a bare one of their route: the costliest of each."""
    generate = f'{{"project_id": "{at.project_id}"}}'.encode()
    found = await at.call("POST", "/api/v1/generate/public", JSON, generate)
    session_token = re.findall(rb'"session_token":"([^"]+)"', found.body)[0]
    poll = b'{"project_id": "%s", "session_token": "%s"}' % (at.project_id.encode(), session_token)
    mini_app = await at.mini_app_body()
    cookie = {"cookie": await at.waiting_cookie()}
    login = await at.call("POST", "/api/v1/login", JSON, b"{}")
    device_code = re.findall(rb'"device_code":"([^"]+)"', login.body)[0]
    signs_in = f"/oidc/authorize?client_id={await at.openid_client()}&response_type=code&scope=openid"
    signs_in += f"&redirect_uri=https%3A%2F%2Fapp.example%2F&code_challenge={'A' * 43}&code_challenge_method=S256"
    begun = await at.call("GET", signs_in)
    page = begun.headers["location"].removeprefix("https://taproof.example")
    page_cookie = {"cookie": begun.headers["set-cookie"].partition(";")[0]}
    wrong_client = f"client_id={await at.openid_client()}&client_secret=ocs_{'A' * 49}&grant_type=x".encode()
    wrong_key = {**JSON, "authorization": "Bearer sk_" + "A" * 49}
    return [
        Call("POST /api/v1/generate/public", "POST", "/api/v1/generate/public", JSON, generate),
        Call("POST /api/v1/mini-app/public", "POST", "/api/v1/mini-app/public", JSON, mini_app),
        Call("POST /api/v1/mini-app", "POST", "/api/v1/mini-app", wrong_key, b"{}"),
        Call("POST /api/v1/verify/public", "POST", "/api/v1/verify/public", JSON, poll),
        Call("POST /api/v1/generate", "POST", "/api/v1/generate", wrong_key, b"{}"),
        Call("POST /api/v1/login", "POST", "/api/v1/login", JSON, b"{}"),
        Call("POST /api/v1/login/token", "POST", "/api/v1/login/token", JSON, b'{"device_code": "%s"}' % device_code),
        Call(f"POST {SIGN_IN}", "POST", SIGN_IN, SAME_ORIGIN, b"next="),
        Call(f"GET {SIGN_IN}/waiting", "GET", f"{SIGN_IN}/waiting", cookie),
        Call(f"GET {SIGN_IN}/state", "GET", f"{SIGN_IN}/state", cookie),
        Call(f"POST {SIGN_IN}/token", "POST", f"{SIGN_IN}/token", SAME_ORIGIN, b"access_token=tap_" + b"A" * 49),
        Call("POST /console/invite", "POST", "/console/invite", SAME_ORIGIN, b"code=inv_" + b"A" * 49),
        Call("POST /console/join", "POST", "/console/join", SAME_ORIGIN, b"code=" + new_key("join", bytes).encode()),
        Call("GET /oidc/authorize", "GET", signs_in),
        Call("GET /oidc/authorize/{authorization_id}", "GET", page, page_cookie),
        Call("GET /oidc/authorize/{authorization_id}/qr.svg", "GET", f"{page}/qr.svg", page_cookie),
        Call("GET /oidc/authorize/{authorization_id}/status", "GET", f"{page}/status", page_cookie),
        Call("GET /oidc/authorize/{authorization_id}/return", "GET", f"{page}/return", page_cookie),
        Call(
            "POST /oidc/authorize/{authorization_id}/return",
            *("POST", f"{page}/return", {**SAME_ORIGIN, **page_cookie}, b"return_code=" + b"A" * 32),
        ),
        Call("POST /oidc/token", "POST", "/oidc/token", SAME_ORIGIN, wrong_client),
        Call("POST /oidc/par", "POST", "/oidc/par", SAME_ORIGIN, wrong_client),
        Call("POST /oidc/device_authorization", "POST", "/oidc/device_authorization", SAME_ORIGIN, wrong_client),
        Call("GET /oidc/userinfo", "GET", "/oidc/userinfo", {"authorization": "Bearer " + new_key("oat", bytes)}),
        Call("POST /device", "POST", "/device", SAME_ORIGIN, b"user_code=BBBB-BBBB"),
        Call("GET /console/nowhere", "GET", "/console/nowhere"),
        Call("GET /nowhere", "GET", "/nowhere"),
        Call("GET /api/v1/dev/me", "GET", "/api/v1/dev/me", {"authorization": "Bearer tap_" + "A" * 49}),
    ]


async def steps_of(at: Running, call: Call) -> int:
    """Return how many functions one call makes run: its work, without a clock."""
    steps = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal steps
        steps += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        await at.call(call.method, call.path, call.headers, call.body)
    finally:
        sys.setprofile(None)
    return steps


async def _measure() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with running(Path(folder)) as at:
            calls = {call.route: call for call in (call_of(*each) for each in routes_of(at.app))}
            calls |= {call.route: call for call in await special_calls(at)}
            for route, call in sorted(calls.items()):
                times = []
                for _ in range(ROUNDS):
                    began = time.process_time_ns()
                    answer = await at.call(call.method, call.path, call.headers, call.body)
                    times.append(time.process_time_ns() - began)
                steps = await steps_of(at, call)
                print(f"{statistics.median(times) / 1_000:8.0f} µs {steps:6} steps {int(answer.status)} {route}")  # noqa: T201 — the program's output.


if __name__ == "__main__":
    asyncio.run(_measure())
