"""docs/reference/long-poll.md: both programs get the result of a tap that comes while they wait."""

import json
import subprocess
from pathlib import Path

import httpx
import pytest
from tests.docs.blocks import block_of
from tests.e2e.conftest import StartService, make_phone
from tests.slow.docs.walk import environment_of, run

PAGE = "reference/long-poll.md"
CALL = """
const { TAPROOF_BASE_URL, TAPROOF_PROJECT_ID, SESSION_TOKEN } = process.env;
console.log(JSON.stringify(await waitForDecision(TAPROOF_BASE_URL, TAPROOF_PROJECT_ID, SESSION_TOKEN)));
"""


@pytest.mark.parametrize("language", ["bash", "js"])
@pytest.mark.parametrize(("button", "status"), [("Confirm", "confirmed"), ("Cancel", "cancelled")])
def test_the_programs_wait_for_the_tap(
    language: str, button: str, status: str, start_service: StartService, tmp_path: Path
) -> None:
    """Both programs print the user's decision."""
    service = start_service()
    variables = environment_of(service)
    with httpx.Client(base_url=service.base_url, timeout=60) as client:
        project_id = variables["TAPROOF_PROJECT_ID"]
        session = client.post("/api/v1/generate/public", json={"project_id": project_id}).json()
        variables["SESSION_TOKEN"] = session["session_token"]
        program = block_of(PAGE, language)
        if language == "js":
            program = type(program)(PAGE, program.line, "js", "", program.text + CALL)
        make_phone(client).sign_in(session, button)
    done: subprocess.CompletedProcess[str] = run([program], service, variables)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == status
