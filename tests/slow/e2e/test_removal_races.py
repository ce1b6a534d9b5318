"""A member is removed while their calls are running, over HTTP and on both stores (docs/how-to/teams.md).

After the answer to the removal, no call of the former member succeeds on any node. Calls that were running change
nothing after that answer, and return nothing that was stored after it.
"""

import base64
import contextlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from tests.api.test_developer_access import ENDPOINTS, NEW_CLIENT
from tests.api.test_members import ROUTES
from tests.e2e.conftest import TRUST, Developer, OwnProject, Phone, Service, launch, make_phone
from tests.postgres_server import fresh_database

RACES: Final = 3
RACES_IN_SOAK: Final = 24
"""Races for each kind of call and store."""
CALLERS: Final = 3
KEY: Final = base64.b64encode(bytes(range(32))).decode()
OTHERS: Final = [("GET", "/projects"), ("GET", "/sessions"), ("GET", "/analytics")]
"""Calls that read all projects of a developer. The former member has no other project."""
BODIES: Final[dict[tuple[str, str], Callable[[str], Any]]] = {
    ("PATCH", "/projects/{project}"): lambda name: {"name": name},
    ("POST", "/projects/{project}/clients"): lambda name: {**NEW_CLIENT, "name": name},
    ("PATCH", "/projects/{project}/clients/{client}"): lambda name: {"name": name},
    ("PATCH", "/projects/{project}/members/{developer}"): lambda name: {"role": ("viewer", "developer")[len(name) % 2]},
}


def _no_body(_: str) -> None:
    return None


class Receiver(BaseHTTPRequestHandler):
    """Accepts webhooks, so slowly that a test is still running when its sender is removed."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        threading.Event().wait(0.015)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@dataclass
class Answer:
    """An answer to the member. `is_after`: the call began after the answer to the removal."""

    is_after: bool
    response: httpx.Response

    def content(self) -> str:
        found = self.response.json()
        found.pop("exported_at", None)
        for holder in (found, *(each for each in found.get("sessions", []) if isinstance(each, dict))):
            if "deliveries" in holder:  # Workers change deliveries in the background.
                holder["deliveries"] = sorted(each.get("id", "") for each in holder["deliveries"])
        return json.dumps(found)


@dataclass
class Nodes:
    """The nodes of one service, its owner, and the developer who joins and is removed again and again."""

    services: list[Service]
    database: str
    owners: list[Developer]
    members: list[Developer]
    grace: Developer
    receiver: str
    phone: Phone
    names: dict[str, str] = field(default_factory=dict)

    @property
    def project(self) -> str:
        return self.names["project"]

    def join(self, developer: Developer, role: str) -> str:
        """Make a developer a member, and return the developer's id."""
        link = self.owners[0].ask("POST", f"/projects/{self.project}/invitations", json={"role": role})["link"]
        developer.ask("POST", "/invitations/accept", json={"code": link.partition("#")[2]})
        found: str = developer.ask("GET", "/me")["id"]
        return found

    def prepare(self, method: str, path: str) -> str:
        """Make everything that the call names, and return the id of the new member."""
        owner = self.owners[0]
        if not self.names or method == "DELETE":
            project = owner.create_project("Acme", webhook_url=self.receiver)
            self.names = {"project": project.id, "messenger": self.phone.messenger_id, "grant": "auth_1"}
            self.names["developer"] = self.join(self.grace, "viewer")
            self.names["delivery"] = owner.ask("POST", f"/projects/{project.id}/webhook-test")["id"]
            self.phone.sign_in(project.generate())
            sessions = owner.ask("GET", f"/sessions?project_id={project.id}")["sessions"]
            self.names["session"] = sessions[0]["id"]
        project_id = self.project
        if "{client}" in path:
            self.names["client"] = owner.ask("POST", f"/projects/{project_id}/clients", json=NEW_CLIENT)["client_id"]
        if "{invitation}" in path:
            self.names["invitation"] = owner.ask("POST", f"/projects/{project_id}/invitations")["id"]
        if path.endswith("/promote"):
            owner.call("POST", f"/projects/{project_id}/webhook-secret/rotate")
        return self.join(self.members[0], "owner")

    def state(self) -> list[tuple[str, int, str]]:
        """Return everything that the owner can read of the project. Workers change deliveries in the background."""
        found = []
        for method, path in ROUTES:
            if method == "GET" and not re.search(r"\{(delivery|session|client|messenger)\}", path):
                response = self.owners[-1].call("GET", path.format(**self.names))
                deliveries = {each["id"] for each in response.json().get("deliveries", [])}
                text = f"{sorted(deliveries)}" if deliveries else response.text
                found.append((path, response.status_code, text))
        return found

    def change(self, path: str, number: int) -> None:
        """Change what the member's reads could show. The sign-in takes longest, so only some reads need it."""
        owner = OwnProject(self.owners[-1], {"id": self.project, "secret_key": "", "webhook_secret": ""})
        project = f"/projects/{self.project}"
        owner.developer.ask("PATCH", project, json={"name": f"Changed {number}"})
        role = ("developer", "owner")[number % 2]
        owner.developer.ask("PATCH", f"{project}/members/{self.names['developer']}", json={"role": role})
        for what, body in (("invitations", None), ("clients", NEW_CLIENT), ("webhook-test", None)):
            owner.developer.ask("POST", f"{project}/{what}", **({} if body is None else {"json": body}))
        for change in ("rotate", "promote")[number % 2 :]:
            owner.developer.call("POST", f"{project}/webhook-secret/{change}")
        owner.generate()
        if "users" in path:
            self.phone.sign_in(OwnProject(self.owners[0], owner.created).generate())


class Race:
    """Several threads that make one kind of call as the member, on all nodes, until the member has been removed."""

    def __init__(self, nodes: Nodes, method: str, path: str, number: int) -> None:
        self.nodes = nodes
        self.member_id = nodes.prepare(method, path)
        self.number = number
        self.method, self.path = method, path.format(**nodes.names)
        self.body = BODIES.get((method, path), _no_body)
        self.answers: list[Answer] = []
        self.removed = threading.Event()
        self.start = threading.Barrier(CALLERS + 1)

    def run(self) -> list[str]:
        """Run the race; return what is wrong."""
        owner, nodes = self.nodes.owners[-1], self.nodes
        threads = [threading.Thread(target=self._call, args=(number,), daemon=True) for number in range(CALLERS)]
        for thread in threads:
            thread.start()
        self.start.wait()
        threading.Event().wait(self.number % 12 * 0.002)  # Longer and longer into the calls.
        removal = owner.call("DELETE", f"/projects/{nodes.project}/members/{self.member_id}")
        self.removed.set()
        is_gone = removal.status_code == 404  # The race deletes the project.
        if self.method == "GET":
            nodes.change(self.path, self.number)
        before = nodes.state()
        for thread in threads:
            thread.join(60)
        wrong = [f"removal {removal.status_code}"] if removal.is_error and not is_gone else []
        if changed := set(nodes.state()) ^ set(before):
            wrong.append(f"changed after the removal: {sorted(changed)}"[:2_000])
        wrong += [f"after: {each.response.text[:200]}" for each in self.answers if each.is_after and self._tells(each)]
        shown = {each.content() for each in self.answers if not each.response.is_error and not each.is_after}
        if self.method == "GET":
            empty = {each.content() for each in self.answers if each.is_after and not each.response.is_error}
            if len(shown - empty) > 1:
                wrong.append(f"shows what came after: {sorted(shown - empty)}"[:2_000])
        return wrong

    def _call(self, number: int) -> None:
        self.start.wait()
        member, after, count = self.nodes.members[number % len(self.nodes.members)], 0, 0
        while after < 2:
            is_after = self.removed.is_set()
            after += is_after
            count += 1
            request = {} if (body := self.body("x" * count)) is None else {"json": body}
            self.answers.append(Answer(is_after, member.call(self.method, self.path, **request)))

    def _tells(self, answer: Answer) -> bool:
        """Return whether an answer to a former member is more than a refusal, or an empty list."""
        if answer.response.is_error:
            return False
        found = answer.response.json()
        if self.method == "DELETE" and "/users/" in self.path:
            return bool(found["erased"])
        if self.path.startswith("/users/") or self.path in {path for _, path in OTHERS}:
            return self.nodes.project in answer.response.text
        return True


def add_developer(service: Service, database: str, email: str) -> str:
    command = [sys.executable, "-m", "taproof", "developers", "add", email, "--sandbox", "--json"]
    done = subprocess.run(
        [*command, "--plan", "business", "--database", database],
        cwd=service.directory,
        env=service.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    token: str = json.loads(done.stdout)["access_token"]
    return token


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def nodes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """One node on SQLite, or two on PostgreSQL."""
    with contextlib.ExitStack() as stack:
        receiver = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        stack.callback(receiver.server_close)
        thread = threading.Thread(target=receiver.serve_forever)
        thread.start()
        stack.callback(thread.join)
        stack.callback(receiver.shutdown)
        first: Path = tmp_path_factory.mktemp("node")
        is_sqlite = request.param == "sqlite"
        database = f"sqlite:///{first / 'taproof.db'}" if is_sqlite else stack.enter_context(fresh_database())
        services = []
        for directory in [first] if is_sqlite else [first, tmp_path_factory.mktemp("node")]:
            services.append(launch(directory, "--database", database, TAPROOF_MASTER_KEY=KEY))
            stack.callback(services[-1].stop)
        clients = [
            stack.enter_context(httpx.Client(base_url=service.base_url, timeout=60, verify=TRUST))
            for service in services
        ]
        tokens = [add_developer(services[0], database, f"{name}@example.com") for name in ("mallory", "grace", "ada")]
        yield Nodes(
            services,
            database,
            [Developer(each, tokens[2]) for each in clients],
            [Developer(each, tokens[0]) for each in clients],
            Developer(clients[0], tokens[1]),
            f"http://127.0.0.1:{receiver.server_port}/",
            make_phone(clients[0]),
        )


def test_no_call_succeeds_after_the_removal(nodes: Nodes, *, soak: bool) -> None:
    """Of every route of a project, and of those across projects; the calls run on another node than the removal."""
    kinds = [*ROUTES, *OTHERS]
    assert {each for each in ENDPOINTS if "{project}" in each[1]} <= set(kinds)
    failures = []
    for method, path in kinds:
        for number in range(RACES_IN_SOAK if soak else RACES):
            if number % 8 == 0:
                nodes.names = {}  # A new project, so that the lists stay short.
            race = Race(nodes, method, path, number)
            failures += [(number, method, path, each) for each in race.run()]
    assert failures == []
