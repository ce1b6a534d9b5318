"""`signIn` in plain Node, without a page, against the real service: as an Electron main process or a script uses it."""

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.e2e.conftest import OwnProject, Phone, Service
from tests.sdk_js.test_bundle import PACKAGE

import taproof

SCRIPT = """
import { resume, signIn } from "taproof";
for (const name of ["document", "window", "location", "addEventListener", "sessionStorage"]) {
  if (name in globalThis) throw new Error(name);
}
const refuse = () => { throw new Error("The storage is full."); };
const STORAGES = { none: undefined, throws: { getItem: refuse, setItem: refuse, removeItem: refuse } };
const { storage, act, ...options } = JSON.parse(process.argv[1]);
const controller = new AbortController();
const told = [];
const own = {
  ...options,
  storage: STORAGES[storage],
  signal: controller.signal,
  onStatus: (status) => told.push(status),
  onHint: (hint) => told.push(hint),
  onLink: ({ deeplink }) => {
    console.log(deeplink);
    if (act === "abort") controller.abort();
    if (act === "throw") throw new TypeError("Not shown.");
  },
};
const resumed = resume(own);
const result = await signIn(own).catch(({ name, message }) => ({ name, message }));
console.log(JSON.stringify({ resumed, told, result }));
"""


@contextlib.contextmanager
def begun(sandbox: Service, project: OwnProject, **options: str) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Start a sign-in; return the link and a function that waits for the program's outcome."""
    given = json.dumps({"projectId": project.id, "baseUrl": sandbox.base_url, **options})
    command = ["node", "--input-type=module", "-e", SCRIPT, given]
    with subprocess.Popen(command, cwd=PACKAGE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        stdout = program.stdout

        def outcome() -> dict[str, Any]:
            told: dict[str, Any] = json.loads(stdout.read())
            assert program.wait(timeout=60) == 0
            return told

        yield stdout.readline().strip(), outcome


@pytest.mark.parametrize("storage", ["none", "throws"])
def test_confirmed(sandbox: Service, project: OwnProject, phone: Phone, storage: str) -> None:
    """The result has a valid proof, also if the caller's storage throws; `resume` finds nothing to continue."""
    with begun(sandbox, project, storage=storage) as (link, outcome):
        phone.sign_in({"deeplink": link})
        told = outcome()
    assert taproof.verify_proof(told["result"]["proof"], project.webhook_secret).messenger_id == phone.messenger_id
    assert told["told"][:3] == ["starting", "pending", "waiting"]
    assert told["resumed"] is None


@pytest.mark.parametrize(
    ("act", "result", "status"),
    [
        ("abort", {"status": "aborted"}, "cancelled"),
        ("throw", {"name": "TypeError", "message": "Not shown."}, "pending"),
    ],
)
def test_ended_by_on_link(sandbox: Service, project: OwnProject, act: str, result: dict[str, str], status: str) -> None:
    """If `onLink` ends the sign-in, no more calls are sent, and the program can exit immediately."""
    with begun(sandbox, project, act=act) as (_, outcome):
        assert outcome()["result"] == result
    [session] = project.developer.ask("GET", f"/sessions?project_id={project.id}")["sessions"]
    assert session["status"] == status
