"""Fill a store with encrypted values of every kind, and check that each still decrypts to its plaintext."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.giving_bots import give_bot

from taproof.core.accounts import Developer
from taproof.core.clock import DAY, MINUTE, system_clock
from taproof.core.deliveries import Attempt, Event
from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.entropy import system_entropy
from taproof.core.errors import DecryptionFailed
from taproof.core.identifiers import new_event_id, new_webhook_secret
from taproof.core.identity import MessengerIdentity
from taproof.core.project_bots import ProjectBot
from taproof.core.projects import Project
from taproof.core.prompts import PhoneRequest
from taproof.core.sessions import NewPhone, NewSession, SessionKey
from taproof.service.developers import Developers
from taproof.service.installation import KEY_MARK, check_master_key
from taproof.service.reencryption import ASSOCIATED_DATA
from taproof.service.webhooks import answer_associated_data
from taproof.storage.protocol import Storage
from taproof.storage.queries.encrypted_values import EncryptedKind, EncryptedRow
from taproof.storage.sqlite.store import SqliteStorage

USER = "1001"
URL = "https://example.com/hook"
_AT_ONCE = 200


@dataclass
class EncryptedValues:
    """The plaintext of each value in a store, by kind and by the row that it is bound to."""

    developer: Developer
    plain: dict[str, str] = field(default_factory=dict)
    projects: list[str] = field(default_factory=list)
    """Projects whose webhook secret changes only through a test that records the change."""

    @property
    def count(self) -> int:
        """Return the number of values, without the check of the key."""
        return len(self.plain)


class _Filling:
    """Puts values into a store."""

    def __init__(self, storage: Storage, encryptor: Encryptor, values: EncryptedValues, others: int) -> None:
        self.storage = storage
        self.others = others
        self.encryptor = encryptor
        self.values = values
        self.now = system_clock()

    def encrypt(self, text: str, associated_data: str) -> bytes:
        """Encrypt a value and record its plaintext."""
        self.values.plain[associated_data] = text
        return self.encryptor.encrypt(text, associated_data, system_entropy)

    async def project(self, number: int) -> None:
        project_id = f"proj_{number:022d}"
        encrypted = self.encrypt(new_webhook_secret(system_entropy), associated_data_of("webhook_secret", project_id))
        project = Project(
            id=project_id,
            developer_id=self.values.developer.id,
            name=f"Shop {number}",
            secret_key_preview="sk_aaaa…zzzz",
            encrypted_webhook_secret=encrypted,
            webhook_url=URL,
            is_active=True,
            public_access=True,
            collect_phone=number < self.others,  # It has a session whose user gave theirs.
            created_at=self.now,
        )
        assert await self.storage.projects.create_project(project, hashlib.sha256(project_id.encode()).digest())
        self.values.projects.append(project_id)

    async def bot(self, number: int) -> None:
        project_id = self.values.projects[number]
        token = f"{1_000_000 + number}:AAabcdefghijklmnopqrstuvwxyz0123456"
        bot = ProjectBot(
            project_id,
            1_000_000 + number,
            f"shop_{number}_bot",
            self.encrypt(token, associated_data_of("bot_token", project_id)),
        )
        assert await give_bot(self.storage, self.values.developer.id, project_id, bot) == "set"

    async def session(self, number: int) -> None:
        """Confirm a session whose user gave the phone number that was asked for, on this day or an earlier one."""
        at = self.now - number % 3 * DAY
        session_id, project_id = f"sess_{number:022d}", self.values.projects[number % len(self.values.projects)]
        key = SessionKey(at // DAY, hashlib.sha256(session_id.encode()).digest())
        session = NewSession(key, session_id, project_id, at, self.now + 10 * MINUTE)
        assert await self.storage.sessions.create_session(session, public=True)
        assert await self.storage.sessions.open_session(key, USER, at)
        encrypted = self.encrypt(f"token {number}", associated_data_of("phone_request", session_id))
        await self.storage.users.ask_for_phone(
            PhoneRequest(key, session_id, USER, 0, encrypted, at, self.now + 10 * MINUTE)
        )
        phone = self.encrypt(f"+4915{number:08d}", associated_data_of("phone", session_id))
        event_id = new_event_id(at, system_entropy)
        body = self.encrypt(json.dumps({"id": event_id}), associated_data_of("event_body", event_id))
        event = Event(event_id, "auth.confirmed", project_id, body, at)
        identity = MessengerIdentity(USER, "Ada", "")
        assert await self.storage.sessions.confirm_session(key, identity, at, event, NewPhone(phone, body))

    async def delivery(self, number: int) -> None:
        event_id = new_event_id(self.now, system_entropy)
        body = self.encrypt(json.dumps({"id": event_id}), associated_data_of("event_body", event_id))
        event = Event(event_id, "webhook.test", self.values.projects[number], body, self.now)
        answer = self.encrypt(f"answer {number}", answer_associated_data(event_id, 1))
        assert await self.storage.deliveries.record_delivery(
            self.values.developer.id, event, Attempt(1, self.now, 5, 500, None, answer), "failed"
        )


def open_quick(path: Path) -> SqliteStorage:
    """Open a database that loses its latest writes in a power cut, because the test does not measure durable writes."""
    storage = SqliteStorage.open(path, system_clock(), system_clock)
    storage.database.writer.connection.pragma("synchronous", 0)
    return storage


async def _each(work: Callable[[int], Coroutine[Any, Any, None]], numbers: Iterable[int]) -> None:
    waiting = list(numbers)
    for start in range(0, len(waiting), _AT_ONCE):
        await asyncio.gather(*map(work, waiting[start : start + _AT_ONCE]))


async def fill(storage: Storage, encryptor: Encryptor, *, projects: int, others: int) -> EncryptedValues:
    """Put this many projects, sessions, deliveries and bots into a store; return the encrypted plaintexts."""
    await check_master_key(storage, encryptor, system_entropy)
    developer = await Developers(storage, system_clock, system_entropy).create_developer("ada@example.com", "business")
    filling = _Filling(storage, encryptor, EncryptedValues(developer), others)
    today = filling.now // DAY
    await storage.sessions.prepare_days(today - 3, today + 1)
    await _each(filling.project, range(projects))
    filling.values.projects.sort()  # By number, because the values were added in the order of storing.
    for work in (filling.bot, filling.session, filling.delivery):
        await _each(work, range(others))
    return filling.values


async def encrypted_rows(storage: Storage, kind: EncryptedKind) -> list[EncryptedRow]:
    """Return all values of a kind, without the empty ones."""
    page = await storage.encrypted_values.list_encrypted_values(kind, None, 1_000)
    rows = page.rows
    while page.after is not None:
        page = await storage.encrypted_values.list_encrypted_values(kind, page.after, 1_000)
        rows += page.rows
    return [row for row in rows if kind != "mark" or row.name == KEY_MARK]


async def check(
    storage: Storage, values: EncryptedValues, encryptor: Encryptor, *, old: Encryptor | None = None
) -> int:
    """Decrypt everything and compare it with what is known; the key `old` must decrypt nothing. Return the count."""
    plain = dict(values.plain)
    count = 0
    for kind, associated_data in ASSOCIATED_DATA.items():
        for row in await encrypted_rows(storage, kind):
            text = encryptor.decrypt(row.encrypted, associated_data(row))
            assert plain.pop(associated_data(row), text) == text, kind
            assert old is None or not old.knows(row.encrypted), kind
            count += 1
            if old is not None:
                try:
                    old.decrypt(row.encrypted, associated_data(row))
                except DecryptionFailed:
                    continue
                raise AssertionError(kind)
    assert plain == {}
    return count
