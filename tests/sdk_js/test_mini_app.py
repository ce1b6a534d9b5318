"""`signInMiniApp` against a real service, run by Node with the page's Telegram object made up."""

import json
import subprocess
from secrets import token_hex
from typing import Any

import httpx
from tests.e2e.conftest import OwnProject, Phone, Service
from tests.sdk_js.test_bundle import PACKAGE

from taproof import verify_proof

SCRIPT = """
import { signInMiniApp, SignInError } from "./src/mini_app.js";
const outcomes = [];
for (const { initData, ...options } of JSON.parse(process.argv[1])) {
  globalThis.Telegram = initData === undefined ? undefined : { WebApp: { initData } };
  try {
    outcomes.push(await signInMiniApp(options));
  } catch (error) {
    const { code, status, message } = error;
    outcomes.push({ isOwn: error instanceof SignInError, code, status, message });
  }
}
console.log(JSON.stringify(outcomes));
"""


def run(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    command = ["node", "--input-type=module", "-e", SCRIPT, json.dumps(calls)]
    done = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    outcomes: list[dict[str, Any]] = json.loads(done.stdout)
    return outcomes


def test_a_mini_app_signs_in(sandbox: Service, client: httpx.Client, project: OwnProject, phone: Phone) -> None:
    """The result is that of `signIn`; every failure is a `SignInError` with a code, and nothing is tried twice."""
    bot = client.post("/sandbox/bots", json={"username": f"shop_{token_hex(6)}_bot"}).json()
    project.developer.ask("PATCH", f"/projects/{project.id}", json={"bot_token": bot["token"]})
    data = phone.post("mini-app", {"bot": bot["username"]})["init_data"]
    options = {"projectId": project.id, "baseUrl": f"{sandbox.base_url}/"}
    nobody = {**options, "baseUrl": "http://127.0.0.1:9"}
    confirmed, *failed = run(
        [
            {**options, "initData": data},
            {**options, "initData": data},
            {**options, "initData": ""},
            options,
            {**nobody, "initData": data},
            {**options, "baseUrl": f"{sandbox.base_url}/demo", "initData": data},
        ]
    )
    assert confirmed["status"] == "confirmed"
    assert confirmed["identity"] == {
        "messengerId": phone.messenger_id,
        "messengerName": "Ada Lovelace",
        "messengerUsername": None,
        "messengerPhone": None,
    }
    assert confirmed["confirmedAt"].endswith("Z")
    assert verify_proof(confirmed["proof"], project.webhook_secret).messenger_id == phone.messenger_id
    assert all(failure["isOwn"] and failure["message"] for failure in failed)
    assert [(failure["code"], failure["status"]) for failure in failed] == [
        ("init_data_used", 400),
        ("not_a_mini_app", 0),
        ("not_a_mini_app", 0),
        ("no_connection", 0),
        ("not_found", 404),
    ]
