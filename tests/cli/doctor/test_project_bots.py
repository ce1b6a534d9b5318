"""What the doctor says of the bots of projects, on both kinds of store."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.conftest import new_database
from tests.faults.place import make_place
from tests.giving_bots import give_bot

from taproof.cli.doctor.finding import Finding
from taproof.cli.doctor.project_bots import check_project_bots
from taproof.config.settings import load_settings
from taproof.core.clock import system_clock
from taproof.core.model import ProjectBot
from taproof.runtime.store import open_storage


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with new_database(request.param, tmp_path) as url:
        yield url


async def look(url: str) -> list[Finding]:
    return await check_project_bots(load_settings({"database_url": url}))


async def test_broken_bots_are_named(url: str) -> None:
    """Nothing is said without any; then how many there are, and whose developers must be told."""
    place = await make_place(url)
    assert await look(url) == []
    storage = await open_storage(url)
    (developer,) = await storage.developers.list_developers()
    bot = ProjectBot(place.project_id, 7_000_000_001, "Shop_Bot", b"encrypted")
    assert await give_bot(storage, developer.id, place.project_id, bot) == "set"
    (found,) = await look(url)
    assert (found.status, found.detail) == ("ok", "1 project with its own bot, none of them broken")
    assert await storage.bots.mark_bot_broken(place.project_id, b"encrypted", system_clock())
    await storage.close()
    (found,) = await look(url)
    assert found.status == "warning"
    assert f"{place.project_id} (@Shop_Bot)" in found.detail
    assert "bot_token" in found.advice
