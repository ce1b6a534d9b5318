"""Return codes: with `same_device` set to "require", only the browser in which a sign-in began gets its proof."""

import secrets
from typing import TYPE_CHECKING

from tests.service.conftest import acting

from taproof.core.model import MessengerIdentity, Project, ProjectChanges
from taproof.core.return_code import SameDevice
from taproof.sdk.code_challenge import code_challenge
from taproof.service.sessions.create_and_verify import VerifyResult

if TYPE_CHECKING:
    from tests.service.conftest import Node

USER = MessengerIdentity("1001", "Ada", "ada")
PAGE = "https://shop.example/sign-in?next=%2F"
VERIFIER = secrets.token_urlsafe(32)


async def project_with(node: "Node", policy: SameDevice, webhook_url: str = "") -> Project:
    developer = await node.developer()
    project, _ = await node.project(developer, webhook_url=webhook_url)
    changes = ProjectChanges(same_device=policy, allowed_origins=("https://shop.example",))
    return await node.projects.update_project(acting(developer), project.id, changes)


async def start(node: "Node", project: Project) -> str:
    created = await node.signin.create_session(
        project.id, public=True, code_challenge=code_challenge(VERIFIER), return_url=PAGE
    )
    assert (await node.signin.open_session(created.session_token, "1001")).outcome == "opened"
    return created.session_token


async def read(node: "Node", project: Project, token: str, code: object = None) -> VerifyResult:
    return await node.signin.verify_session(project.id, token, public=True, code_verifier=VERIFIER, return_code=code)


async def test_require_gives_the_proof_to_the_holder_of_the_code(node: "Node") -> None:
    project = await project_with(node, "require")
    token = await start(node, project)
    seen = await node.signin.confirm_session(token, USER)
    assert (seen.outcome, seen.changed) == ("returning", True)
    assert seen.return_link is not None
    url, _, code = seen.return_link.partition("#taproof_return=")
    assert url == PAGE
    assert await read(node, project, token) == VerifyResult("pending")
    answer = await read(node, project, token, code)
    assert (answer.status, answer.identity) == ("confirmed", USER)
    assert await read(node, project, token, code) == answer
    assert await read(node, project, token) == VerifyResult("used")
