"""Of any number of concurrent reads of a confirmed session, exactly one gets the proof."""

import asyncio
from typing import TYPE_CHECKING

import jwt
import pytest
from tests.databases import every_driver

from taproof.service.sessions.results import VerifyResult

if TYPE_CHECKING:
    from tests.service.conftest import Node

pytestmark = every_driver

READERS = 32


@pytest.mark.parametrize("nodes", [1, 2])
async def test_32_readers_of_each_session_get_one_proof(
    nodes: int, node: "Node", other_node: "Node", *, soak: bool
) -> None:
    """In one process, and in two on one database; the others see `used` and nothing of the identity."""
    sessions = 500 if soak else 50
    project, secrets = await node.project()
    tokens = await asyncio.gather(*(node.confirmed(project, f"{number}") for number in range(sessions)))
    signins = [node.signin, other_node.signin][:nodes]

    async def read(token: str) -> list[VerifyResult]:
        return await asyncio.gather(
            *(
                signins[number % nodes].verify_session(project.id, token, public=bool(number % 3))
                for number in range(READERS)
            )
        )

    for number, (token, answers) in enumerate(zip(tokens, await asyncio.gather(*map(read, tokens)), strict=True)):
        winners = [answer for answer in answers if answer.proof is not None]
        assert len(winners) == 1
        assert winners[0].proof is not None
        options = {"verify_exp": False, "verify_iat": False}
        claims = jwt.decode(winners[0].proof, secrets.webhook_secret, algorithms=["HS256"], options=options)  # type: ignore[arg-type]
        assert (claims["session_token"], claims["messenger_id"]) == (token, f"{number}")
        assert answers.count(VerifyResult("used")) == READERS - 1
    counts = (await node.storage.counts.read_daily_counts([project.id], 0))[0]
    assert (counts.confirmed, counts.used, counts.unique_users) == (sessions, sessions, sessions)
