"""The master key and the mode of an installation; bounded sweeps."""

from typing import TYPE_CHECKING

import pytest

from taproof.core.clock import DAY
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.errors import MasterKeyWrong
from taproof.service.installation import WrongMode, check_master_key, check_mode, has_master_key

if TYPE_CHECKING:
    from tests.service.conftest import Node


async def test_a_database_is_bound_to_its_first_master_key(node: "Node", encryptor: Encryptor) -> None:
    """Another key is refused with a sentence that names the setting, and the right one still works."""
    assert not await has_master_key(node.storage)
    await check_master_key(node.storage, encryptor, system_entropy)
    assert await has_master_key(node.storage)
    with pytest.raises(MasterKeyWrong, match="TAPROOF_MASTER_KEY"):
        await check_master_key(node.storage, Encryptor(new_master_key(system_entropy)), system_entropy)
    await check_master_key(node.storage, encryptor, system_entropy)


@pytest.mark.parametrize("first", [True, False])
async def test_a_database_keeps_its_mode(node: "Node", first: bool) -> None:  # noqa: FBT001 — a table's column.
    """Simulated users cannot get into a real database, nor real users into a sandbox."""
    await check_mode(node.storage, sandbox=first)
    await check_mode(node.storage, sandbox=first)
    with pytest.raises(WrongMode):
        await check_mode(node.storage, sandbox=not first)


async def test_bot_updates_are_forgotten_when_they_cannot_come_again(node: "Node") -> None:
    """Telegram keeps an update for a day: it is forgotten after two days, and never earlier."""
    await node.storage.bots.claim_update(1, 1, node.clock.now, 0)
    await node.storage.bots.finish_update(1, 1)
    claimed_at = node.clock.now
    for age, claim in ((DAY, "done"), (2 * DAY, "done"), (2 * DAY + 1, "claimed")):
        node.clock.now = claimed_at + age
        await node.housekeeping.sweep()
        assert await node.storage.bots.claim_update(1, 1, node.clock.now, 0) == claim
