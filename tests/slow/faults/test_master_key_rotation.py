"""Rotating the master key in use, even with kills, causes no error and loses nothing."""

import asyncio
import contextlib
import itertools
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.conftest import Figure
from tests.databases import postgres_database
from tests.e2e.conftest import Service, launch
from tests.faults.encrypted_values import EncryptedValues, check, fill, open_quick
from tests.signals import unheard
from tests.whole_sign_in import WholeSignIn

from taproof import verify_proof
from taproof.core.accounts import Actor
from taproof.core.address_rules import AddressRules
from taproof.core.clock import system_clock
from taproof.core.encryption import Encryptor, associated_data_of, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.identity import MessengerIdentity
from taproof.runtime.key_file import KeyFile, read_master_keys, read_or_make_master_key
from taproof.runtime.key_rotation import rotate_key_file
from taproof.service.developers import Developers
from taproof.service.projects import Projects
from taproof.service.reencryption import Reencryptor
from taproof.storage.protocol import Storage

PROGRAM = Path(__file__).with_name("rotation_program.py")
PATIENCE = 60.0
SECRETS = 10_000
USER = "1001"
ROTATED = 4
"""Projects whose webhook secret is rotated and promoted all the time."""


async def run_rotation(database: Path, seconds: float, place: str = "-", times: int = 0) -> int:
    """Run a rotation as a separate process; return its exit code."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(PROGRAM), str(database), str(seconds), place, str(times))
    )
    return await asyncio.wait_for(process.wait(), PATIENCE)


class Use:
    """Uses a service like users and applications do, and checks every result. Any failure ends the test.

    Args:
        values: the encrypted values in its store.
        bot: the sign-in of another process, which makes the decisions of users.
        ask: sends a request and returns its successful answer.
    """

    def __init__(self, values: EncryptedValues, bot: WholeSignIn, ask: Callable[..., Awaitable[Any]]) -> None:
        self._values = values
        self._bot = bot
        self._ask = ask
        self.proofs = 0
        self.reads = 0
        self.rotations = 0
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []

    def secret_of(self, project_id: str) -> str:
        return self._values.plain[associated_data_of("webhook_secret", project_id)]

    async def sign_in(self, projects: list[str]) -> None:
        for project_id in itertools.cycle(projects):
            if self._stopping:
                return
            created = await self._ask("POST", "/generate/public", {"project_id": project_id})
            token = created["session_token"]
            assert (await self._bot.open_session(token, USER)).outcome == "opened"
            assert (await self._bot.confirm_session(token, MessengerIdentity(USER, "Ada", ""))).changed
            body = {"project_id": project_id, "session_token": token}
            answer = await self._ask("POST", "/verify/public", body)
            proof = verify_proof(answer["proof"], [self.secret_of(project_id)], project_id=project_id)
            assert proof.messenger_id == USER
            self.proofs += 1

    async def read_secrets(self, projects: list[str]) -> None:
        for project_id in itertools.cycle(projects):
            if self._stopping:
                return
            found = await self._ask("GET", f"/dev/projects/{project_id}/webhook-secret")
            assert found["webhook_secret"] == self.secret_of(project_id)
            self.reads += 1

    async def rotate_secrets(self, projects: list[str]) -> None:
        for project_id in itertools.cycle(projects):
            if self._stopping:
                return
            path = f"/dev/projects/{project_id}/webhook-secret"
            rotated = await self._ask("POST", f"{path}/rotate", {})
            assert rotated["webhook_secret"] == self.secret_of(project_id)
            promoted = await self._ask("POST", f"{path}/promote")
            assert promoted["webhook_secret"] == rotated["next_webhook_secret"]
            self._values.plain[associated_data_of("webhook_secret", project_id)] = promoted["webhook_secret"]
            self.rotations += 1

    @contextlib.asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        """Keep using the service during a `with`, then finish the pending work."""
        projects, rotated = self._values.projects[-1_000:-ROTATED], self._values.projects[-ROTATED:]
        self._tasks = [
            *(asyncio.create_task(self.sign_in(projects[number::3])) for number in range(3)),
            *(asyncio.create_task(self.read_secrets(projects[number::2])) for number in range(2)),
            asyncio.create_task(self.rotate_secrets(rotated)),
        ]
        try:
            yield
        finally:
            self._stopping = True
            await asyncio.wait(self._tasks, timeout=PATIENCE)
            for task in self._tasks:
                task.cancel()
        for task in self._tasks:
            task.result()

    async def until_more(self) -> None:
        """Wait until each kind of use has continued for a while."""
        aims = (self.proofs + 6, self.reads + 10, self.rotations + 2)
        async with asyncio.timeout(PATIENCE):
            while any(seen < aim for seen, aim in zip((self.proofs, self.reads, self.rotations), aims, strict=True)):
                done, _ = await asyncio.wait(self._tasks, timeout=0.01, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()


# ---- a key file, with a service that runs


@contextlib.contextmanager
def running(directory: Path) -> Any:
    """Run `taproof serve` without a messenger on the database and the key file in a directory."""
    service = launch(
        directory,
        *("--role", "api"),
        sandbox=False,
        TAPROOF_BOT_TOKEN="123456789:AAabcdefghijklmnopqrstuvwxyz0123456",
        TAPROOF_MESSENGER_LINK_BASE="https://t.me/shop_bot",
        TAPROOF_GENERATE_LIMIT_ADDRESS="off",
    )
    try:
        yield service
    finally:
        assert service.stop() == 0, service.log()


def asking(client: httpx.AsyncClient, access_token: str) -> Callable[..., Awaitable[Any]]:
    async def ask(method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        headers = {"Authorization": f"Bearer {access_token}"} if path.startswith("/dev/") else {}
        response = await client.request(method, f"/api/v1{path}", json=body, headers=headers)
        assert response.status_code == 200, (path, response.status_code, response.text)
        return response.json()

    return ask


async def rotate_with_kills(database: Path, use: Use, *, soak: bool) -> int:
    """Kill rotations during their walks, at random steps in the soak; return the number of kills."""
    numbers = random.Random(7)  # noqa: S311 — places of a test, the same each time.
    kills = [("resealed", numbers.randint(1, 90)) for _ in range(12)] if soak else [("resealed", 30)]
    for place, times in kills:
        await run_rotation(database, 1.0, place, times)
        await use.until_more()
    return len(kills)


async def test_nobody_notices_a_rotation(tmp_path: Path, figure: Figure, *, soak: bool) -> None:
    """With 10,000 secrets, sign-ins and webhook rotations during a rotation: no error, and each proof is valid.

    One rotation is killed and resumed. Afterwards no value is under the first key. A process that has run since before
    follows without a restart.
    """
    database = tmp_path / "taproof.db"
    path = tmp_path / "taproof.db.key"
    first = read_or_make_master_key(path, system_entropy, may_make=True)
    storage = open_quick(database)
    encryptor = Encryptor(first, KeyFile(path).newer)
    values = await fill(storage, encryptor, projects=SECRETS - 5 * 300, others=300)
    assert values.count >= SECRETS
    token = (
        await Developers(storage, system_clock, system_entropy).create_access_token(
            Actor(values.developer, "command_line"), "test", expires_at=None
        )
    ).plaintext
    bot = WholeSignIn(storage, encryptor, lambda: "https://t.me/shop_bot", system_clock, system_entropy)
    with running(tmp_path) as service:
        async with httpx.AsyncClient(base_url=service.base_url, timeout=60) as client:
            use = Use(values, bot, asking(client, token))
            async with use.going_on():
                await use.until_more()
                kills = await rotate_with_kills(database, use, soak=soak)
                assert soak or len(read_master_keys(path)) == 2
                await use.until_more()
                await rotate(service, database, soak=soak)
                await use.until_more()
        (last,) = read_master_keys(path)
        assert last != first
        opened = await check(storage, values, Encryptor(last), old=Encryptor(first))
        assert "error" not in service.log()
    await storage.close()
    figure("values", opened)
    figure("killed rotations", kills)
    figure("proofs", use.proofs)
    figure("webhook secrets read", use.reads)
    figure("webhook secrets rotated", use.rotations)


async def rotate(service: Service, database: Path, *, soak: bool) -> None:
    """Rotate to the end, in the soak with the command itself, which waits for a minute and a half."""
    if not soak:
        assert await run_rotation(database, 1.0) == 0
        return
    command = (sys.executable, "-m", "taproof", "master-key", "rotate", "--database", f"sqlite:///{database}")
    process = await asyncio.create_subprocess_exec(*command, cwd=service.directory, env=service.environment)
    assert await asyncio.wait_for(process.wait(), 10 * PATIENCE) == 0


PLACES = [
    # Steps of writing the file with both keys: its text, its name, its directory.
    ("before fsync", 1),
    ("before rename", 1),
    ("after rename", 1),
    ("before fsync", 2),
    ("made", 1),
    # Steps of the walks.
    ("resealed", 1),
    ("resealed", 4),
    ("waiting", 1),
    # Steps of writing the file with only the new key. Before it, the rotating process syncs the directory itself.
    ("before rename", 2),
    ("after rename", 2),
    ("removed", 1),
]


async def test_a_killed_rotation_is_taken_up(tmp_path: Path, figure: Figure) -> None:
    """After SIGKILL at any kind of step, the key file decrypts everything, and the next run finishes the rotation."""
    database = tmp_path / "taproof.db"
    path = tmp_path / "taproof.db.key"
    storage = open_quick(database)
    encryptor = Encryptor(read_or_make_master_key(path, system_entropy, may_make=True), KeyFile(path).newer)
    values = await fill(storage, encryptor, projects=350, others=30)
    keys_left = []
    for place, times in PLACES:
        before = read_master_keys(path)
        assert await run_rotation(database, 0, place, times) == -signal.SIGKILL, (place, times)
        left = read_master_keys(path)
        assert set(left) & set(before) or (place, times) in PLACES[-2:]
        # A new process decrypts everything, and so does one that has run all the time.
        await check(storage, values, Encryptor(path.read_text("ascii")))
        await check(storage, values, encryptor)
        done = await rotate_key_file(path, storage, encryptor, system_entropy, settle_seconds=0, on_progress=unheard)
        assert done.taken_up == (len(left) == 2)
        (key,) = read_master_keys(path)
        assert key not in before
        await check(storage, values, Encryptor(key), old=Encryptor(before[0]))
        assert [each for each in os.listdir(tmp_path) if "key" in each] == ["taproof.db.key"]  # noqa: PTH208 — not blocking.
        keys_left.append(len(left))
    await storage.close()
    assert keys_left == [1, 1, 2, 2, 2, 2, 2, 2, 2, 1, 1]
    figure("killed at", len(PLACES))


# ---- a key from the environment, on PostgreSQL


class InProcess:
    """A node of a service, called without HTTP: the calls of `Use` go to its use cases."""

    def __init__(self, storage: Storage, keys: str, values: EncryptedValues) -> None:
        encryptor = Encryptor(keys)
        self.storage = storage
        self.encryptor = encryptor
        self.signin = WholeSignIn(storage, encryptor, lambda: "https://t.me/b", system_clock, system_entropy)
        self._projects = Projects(
            storage,
            encryptor,
            system_clock,
            system_entropy,
            address_rules=AddressRules(),
            webhook_ports=frozenset({443}),
            allow_loopback_http=False,
        )
        self._actor = Actor(values.developer, "command_line")

    async def ask(self, _method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        _, of, *rest = path.split("/")
        if of == "generate":
            assert body is not None
            return {"session_token": (await self.signin.create_session(body["project_id"], public=True)).session_token}
        if of == "verify":
            assert body is not None
            return {"proof": (await self.signin.verify_session(**body, public=True)).proof}
        project_id, action = rest[1], rest[-1]
        if action == "rotate":
            rotation = await self._projects.rotate_webhook_secret(self._actor, project_id, 24)
            return {"webhook_secret": rotation.webhook_secret, "next_webhook_secret": rotation.next_webhook_secret}
        if action == "promote":
            return {"webhook_secret": await self._projects.promote_webhook_secret(self._actor, project_id)}
        found = await self._projects.read_webhook_secret(self._actor, project_id)
        return {"webhook_secret": found.webhook_secret}


@pytest.mark.parametrize("secrets", [1_500])
async def test_reencryption_on_postgres_while_two_nodes_serve(secrets: int, figure: Figure, *, soak: bool) -> None:
    """While one node has the old key first and a restarted one the new key first, neither has an error.

    Then the old node restarts too, and the values that it had encrypted meanwhile are re-encrypted.
    """
    old, new = (new_master_key(system_entropy) for _ in range(2))
    with postgres_database(quick=True) as open_store:
        stores = [await open_store() for _ in range(2)]
        values = await fill(stores[0], Encryptor(old), projects=SECRETS if soak else secrets, others=100)
        before, after = (
            InProcess(store, keys, values) for store, keys in zip(stores, (f"{old},{new}", f"{new},{old}"), strict=True)
        )
        turns = itertools.cycle((before, after))
        use = Use(values, after.signin, lambda *asked: next(turns).ask(*asked))

        async def settle() -> None:
            await use.until_more()

        async with use.going_on():
            await use.until_more()
            done = await Reencryptor(stores[1], after.encryptor, system_entropy, on_progress=unheard).reencrypt(settle)
            assert done.unreadable == []
            assert done.reencrypted > secrets
            turns = itertools.cycle((after,))
            await use.until_more()
            done = await Reencryptor(stores[1], after.encryptor, system_entropy, on_progress=unheard).reencrypt(settle)
            assert (done.left, done.unreadable) == (0, [])
        figure("values", await check(stores[1], values, Encryptor(new), old=Encryptor(old)))
        figure("proofs", use.proofs)
        for each in stores:
            await each.close()
