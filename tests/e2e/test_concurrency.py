"""Exactly one reader gets the proof, however many read concurrently (contract, Session endpoints: confirmed → used)."""

import asyncio
from typing import Any

import httpx
from tests.e2e.conftest import OwnProject, Phone, Service

SESSIONS = 4
READERS = 32


async def test_one_proof_each(service: Service, project: OwnProject, phone: Phone) -> None:
    """Of 32 concurrent readers of each confirmed session, one gets identity and proof, and all others get `used`."""
    tokens = []
    for _ in range(SESSIONS):
        session = project.generate()
        phone.sign_in(session)
        tokens.append(session["session_token"])
    limits = httpx.Limits(max_connections=READERS, max_keepalive_connections=READERS)
    async with httpx.AsyncClient(base_url=service.base_url, limits=limits, timeout=60) as client:

        async def read(session_token: str, number: int) -> dict[str, Any]:
            body = {"project_id": project.id, "session_token": session_token}
            keyed = number % 2 == 1
            headers = {"Authorization": f"Bearer {project.secret_key}"} if keyed else {}
            response = await client.post(f"/api/v1/verify{'' if keyed else '/public'}", json=body, headers=headers)
            assert response.status_code == 200, response.text
            answer: dict[str, Any] = response.json()
            return answer

        for session_token in tokens:
            answers = await asyncio.gather(*(read(session_token, number) for number in range(READERS)))
            assert sum("proof" in answer for answer in answers) == 1
            assert sum(answer == {"status": "used"} for answer in answers) == READERS - 1
    assert project.developer.ask("GET", f"/analytics?project_id={project.id}")["funnel"]["used"] == SESSIONS
