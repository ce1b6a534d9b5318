"""Hundreds of project bots in one real process over real HTTP: their cost, and their isolation from each other.

The Bot API server runs in this process, so that the tests see every call and message.
"""

import asyncio
import functools
import re
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from tests.conftest import Figure
from tests.e2e.conftest import TRUST, Service, launch
from tests.faults.place import Place, assert_sound, make_place, rows
from tests.giving_bots import give_bot
from tests.messengers.telegram.bots_server import BotsServer, ServedBot, tagged
from tests.waiting import until

from taproof.core.accounts import Actor
from taproof.core.clock import system_clock
from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.entropy import system_entropy
from taproof.core.identifiers import new_id, new_key
from taproof.core.project_bots import ProjectBot
from taproof.core.projects import Project
from taproof.messengers.telegram.signed_buttons import PURPOSE, ButtonSigner
from taproof.runtime.store import open_storage
from taproof.service.developers import Developers
from taproof.storage.protocol import Storage

BOTS = 300
MEGABYTES = 400
PATIENCE = 120.0


async def add_projects(place: Place, bots: Sequence[ServedBot]) -> list[str]:
    """Give each bot to a new project of the place's developer; return the project ids."""
    storage, encryptor = await open_storage(place.url), Encryptor(place.master_key)
    try:
        (developer,) = await storage.developers.list_developers()
        return [await _add_project(storage, encryptor, developer.id, bot) for bot in bots]
    finally:
        await storage.close()


async def _add_project(storage: Storage, encryptor: Encryptor, developer_id: str, bot: ServedBot) -> str:
    project_id = new_id("proj", system_entropy)
    project = Project(
        id=project_id,
        developer_id=developer_id,
        name=f"Shop of {bot.username}",
        secret_key_preview="sk_a…b",
        encrypted_webhook_secret=b"not used",
        webhook_url="https://example.com/",
        is_active=True,
        public_access=True,
        collect_phone=False,
        created_at=system_clock(),
    )
    assert await storage.projects.create_project(project, new_key("sk", system_entropy).encode())
    encrypted = encryptor.encrypt(bot.token, associated_data_of("bot_token", project_id), system_entropy)
    given = ProjectBot(project_id, bot.id, bot.username, encrypted)
    assert await give_bot(storage, developer_id, project_id, given) == "set"
    return project_id


@asynccontextmanager
async def serving(
    place: Place, server: BotsServer, directory: Path, *arguments: str, **environment: str
) -> AsyncIterator[Service]:
    """Yield a service whose messenger is `server` and whose own bot is the first one."""
    service = await asyncio.to_thread(
        launch,
        directory,
        *("--database", place.url, *arguments),
        sandbox=False,
        TAPROOF_BOT_TOKEN=next(iter(server.bots.values())).token,
        TAPROOF_BOT_API_URL=server.base,
        TAPROOF_MASTER_KEY=place.master_key,
        TAPROOF_LOG_LEVEL="debug",
        TAPROOF_LOG_FORMAT="json",
        **environment,
    )
    try:
        yield service
    finally:
        await asyncio.to_thread(service.stop)


def resident(service: Service, what: str = "VmRSS") -> float:
    """Return a service's memory in MB: the current value, or with `VmHWM` the highest."""
    text = Path(f"/proc/{service.process.pid}/status").read_text("utf-8")
    found = re.search(rf"{what}:\s+(\d+) kB", text)
    assert found is not None
    return int(found[1]) / 1000


async def start_sessions(place: Place, project_ids: Sequence[str]) -> list[str]:
    """Start a sign-in in each project; return the tokens."""
    async with place.sign_in() as signin:
        return [(await signin.create_session(each, public=True)).session_token for each in project_ids]


async def test_three_hundred_bots_in_one_process(tmp_path: Path, figure: Figure) -> None:
    """300 bots use under 400 MB and all answer; a revoked one affects only its own project.

    No bot token is in the log, the database, the metrics or an API answer.
    """
    place = await make_place(f"sqlite:///{tmp_path / 'taproof.db'}")
    async with BotsServer().serving() as server:
        service_bot = server.add("Sign_In_Bot")
        bots = [server.add() for _ in range(BOTS)]
        projects = await add_projects(place, bots)
        async with serving(place, server, tmp_path) as service:
            clock = asyncio.get_running_loop().time
            began = clock()
            await until(lambda: all(bot.polls for bot in bots), "every bot is polled")
            figure("seconds until all are polled", round(clock() - began, 1))
            figure("MB resting", resident(service))
            await everybody_answers(place, server, bots, projects, figure)
            figure("MB after all answered", resident(service))
            figure("MB at most", resident(service, "VmHWM"))
            assert resident(service, "VmHWM") < MEGABYTES
            tokens = [bot.token for bot in bots]
            await one_is_revoked(place, service, bots, projects)
            await everybody_answers(place, server, bots[1:], projects[1:], figure)
            service_bot.give(server.message("/help"))
            await until(service_bot.texts, "the service's own bot answers")
            async with httpx.AsyncClient(base_url=service.base_url, verify=TRUST) as client:
                # The figures come from the last check of the projects, after the bot is marked as broken.
                metrics = ""
                async with asyncio.timeout(PATIENCE):
                    while 'taproof_project_bots{state="broken"} 1.0' not in metrics:
                        metrics = (await client.get("/metrics")).text
            assert 'taproof_project_bots{state="running"} 299.0' in metrics
        log = service.log()
        assert log.count("project_bot_broken") == 1
        assert projects[0] in next(line for line in log.splitlines() if "project_bot_broken" in line)
        stored = stored_bytes(tmp_path)
        for token in [*tokens, bots[0].token]:
            secret = token.partition(":")[2]
            assert secret not in log
            assert secret not in metrics
            assert secret.encode() not in stored


def stored_bytes(directory: Path) -> bytes:
    """Return the contents of the database's files."""
    return b"".join(file.read_bytes() for file in directory.glob("taproof.db*"))


async def everybody_answers(
    place: Place, server: BotsServer, bots: Sequence[ServedBot], projects: Sequence[str], figure: Figure
) -> None:
    """Let a user open a link in each of these bots at once, and check the project of each prompt."""
    clock = asyncio.get_running_loop().time
    tokens = await start_sessions(place, projects)
    before = [len(bot.texts()) for bot in bots]
    began = clock()
    for number, (bot, token) in enumerate(zip(bots, tokens, strict=True)):
        bot.give(server.message(f"/start {token}", 1001 + number))
    await until(
        lambda: all(len(bot.texts()) > number for bot, number in zip(bots, before, strict=True)), "every bot answers"
    )
    figure(f"ms until {len(bots)} links that were opened at once were all answered", round((clock() - began) * 1000))
    for bot in bots:
        assert f"Shop of {bot.username}" in bot.texts()[-1]


async def one_is_revoked(place: Place, service: Service, bots: Sequence[ServedBot], projects: Sequence[str]) -> None:
    """Revoke the first bot's token: only its project says so in the API and starts no sign-ins."""
    access_token = await new_access_token(place)
    bots[0].revoke()
    async with httpx.AsyncClient(base_url=service.base_url, verify=TRUST, timeout=60) as client:

        async def shown() -> dict[str, Any]:
            answer = await client.get("/api/v1/dev/projects", headers={"Authorization": f"Bearer {access_token}"})
            assert answer.status_code == 200, answer.text
            assert bots[0].token.partition(":")[2] not in answer.text
            return {each["id"]: each["bot_broken_at"] for each in answer.json()["projects"]}

        async with asyncio.timeout(PATIENCE):
            while (await shown())[projects[0]] is None:  # noqa: ASYNC110 — the service finds it out by itself.
                await asyncio.sleep(0.1)
        assert [each for each, broken_at in (await shown()).items() if broken_at is not None] == [projects[0]]
        refused = await client.post("/api/v1/generate/public", json={"project_id": projects[0]})
        assert (refused.status_code, refused.headers["x-error-code"]) == (400, "bot_broken")
        started = await client.post("/api/v1/generate/public", json={"project_id": projects[1]})
        assert started.json()["deeplink"].startswith(f"https://t.me/{bots[1].username}?start=")


async def new_access_token(place: Place) -> str:
    """Return an access token of the place's developer."""
    storage = await open_storage(place.url)
    try:
        (developer,) = await storage.developers.list_developers()
        developers = Developers(storage, system_clock, system_entropy)
        return (await developers.create_access_token(Actor(developer, "command_line"), "test")).plaintext
    finally:
        await storage.close()


async def test_a_bot_that_one_node_takes_is_run_by_another(place: Place, tmp_path: Path) -> None:
    """A node with only the API checks and stores a bot's token; the node that runs the bots notices it.

    That node also notices a new token and the removal of the bot.
    """
    async with BotsServer().serving() as server:
        server.add("Sign_In_Bot")
        bot = server.add()
        headers = {"Authorization": f"Bearer {await new_access_token(place)}"}
        (tmp_path / "api").mkdir()
        link = {"TAPROOF_MESSENGER_LINK_BASE": "https://t.me/Sign_In_Bot"}
        async with (
            serving(place, server, tmp_path, "--role", "bot"),
            serving(place, server, tmp_path / "api", "--role", "api", **link) as api,
            httpx.AsyncClient(base_url=api.base_url, verify=TRUST, timeout=60, headers=headers) as client,
        ):

            async def set_token(token: str) -> None:
                answer = await client.patch(f"/api/v1/dev/projects/{place.project_id}", json={"bot_token": token})
                assert answer.status_code == 200, answer.text
                assert answer.json()["bot_username"] == (bot.username if token else None)

            await set_token(bot.token)
            await until(lambda: bot.polls == 1, "the bot is polled")
            await set_token(bot.revoke())
            started = await client.post("/api/v1/generate/public", json={"project_id": place.project_id})
            bot.give(server.message(f"/start {started.json()['session_token']}"))
            await until(bot.texts, "the bot answers with its new token")
            await set_token("")
            await until(lambda: bot.polls == 0, "the bot is polled no more")
            refused = await client.patch(
                f"/api/v1/dev/projects/{place.project_id}", json={"bot_token": bot.token + "x"}
            )
            assert (refused.status_code, refused.headers["x-error-code"]) == (400, "bot_token_refused")
            service_bot = next(iter(server.bots.values())).token
            taken = await client.patch(f"/api/v1/dev/projects/{place.project_id}", json={"bot_token": service_bot})
            assert (taken.status_code, taken.headers["x-error-code"]) == (400, "bot_taken")


async def test_a_killed_process_loses_no_update_and_does_none_twice(
    place: Place, tmp_path: Path, figure: Figure
) -> None:
    """Updates of project bots that are in progress at a SIGKILL are handled by the next process, each once."""
    async with BotsServer().serving() as server:
        server.add("Sign_In_Bot")
        bots = [server.add() for _ in range(10)]
        projects = await add_projects(place, bots)
        signer = ButtonSigner(functools.partial(Encryptor(place.master_key).derive_all, PURPOSE))
        people = range(101, 107)
        tokens = {(bot.id, user): "" for bot in bots for user in people}
        for user in people:
            started = await start_sessions(place, projects)
            tokens |= {(bot.id, user): token for bot, token in zip(bots, started, strict=True)}
        for bot in bots:
            bot.slowness = 0.05
            for user in people:
                token = tokens[bot.id, user]
                # Each tap comes right after its /start, so the buttons are signed here as the service signs them.
                button = tagged(signer, bot.id, user, f"c:{token}")
                bot.give(server.message(f"/start {token}", user), server.tap(button, user))
        waiting = sum(len(bot.updates) for bot in bots)
        kills = 0
        for acknowledged in (5, 40, 80):
            async with serving(place, server, tmp_path, "--role", "bot") as service:

                def are_done(aim: int = acknowledged) -> bool:
                    return waiting - sum(len(bot.updates) for bot in bots) >= aim

                await until(are_done, "some updates are handled")
                service.process.send_signal(signal.SIGKILL)
                await asyncio.to_thread(service.process.wait)
                kills += 1
        async with serving(place, server, tmp_path, "--role", "bot"):
            await until(lambda: not any(bot.updates for bot in bots), "every update is acknowledged")
        figure("kills", kills)
    await assert_sound(place.url)
    assert await rows(place.url, "SELECT status, COUNT(*) FROM sessions GROUP BY status") == [("confirmed", 60)]
    assert await rows(place.url, "SELECT COUNT(*), COUNT(DISTINCT session_id) FROM webhook_events") == [(60, 60)]
    counted = await rows(
        place.url,
        "SELECT project_id, SUM(requested), SUM(opened), SUM(confirmed) FROM daily_counts GROUP BY project_id",
    )
    assert sorted(counted) == sorted((each, 6, 6, 6) for each in projects)
