"""An encrypted value that a writer of the database moves to another row is refused.

Each case swaps two values in the file under a running service and reads them in every way that the service does. It
shows that neither row's secret is used for the other.
"""
# ruff: noqa: S608 — the names in statements are this test's own.

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest
from tests.api.conftest import BotFather
from tests.e2e.conftest import Service, launch
from tests.faults.encrypted_values import open_quick
from tests.giving_bots import give_bot
from tests.service.conftest import Node, bots_of
from tests.signals import signals

from taproof.core.accounts import Actor, Developer
from taproof.core.clock import MINUTE, system_clock
from taproof.core.deliveries import Delivery
from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.entropy import system_entropy
from taproof.core.errors import DecryptionFailed, MasterKeyWrong
from taproof.core.identifiers import new_id, session_key
from taproof.core.identity import MessengerIdentity
from taproof.core.oidc.clients import ClientChanges
from taproof.core.oidc.grants import NewGrant
from taproof.core.oidc.requests import AuthorizationRequest
from taproof.core.project_bots import ProjectBot
from taproof.core.projects import Project, ProjectChanges
from taproof.core.request_context import Requester
from taproof.core.sessions import SessionKey
from taproof.messengers.telegram.project_bot_webhooks import ProjectBotWebhooks
from taproof.runtime.key_file import read_or_make_master_key
from taproof.service.installation import KEY_MARK, MODE_MARK, check_master_key
from taproof.service.oidc.clients import OidcClients
from taproof.service.oidc.keys import SigningKeys
from taproof.service.oidc.sign_in import OidcSignIns
from taproof.service.user_export import UserExports
from taproof.service.webhooks import WebhookResponse
from taproof.storage.queries.oidc.grants import create_grant
from taproof.storage.queries.transaction import Transaction
from taproof.storage.sqlite.store import SqliteStorage

INTERNAL = {"error": "Internal error."}


class Place:
    """One process on the database, and calls to the service that also uses it."""

    def __init__(
        self, storage: SqliteStorage, encryptor: Encryptor, service: Service, client: httpx.AsyncClient
    ) -> None:
        self.storage = storage
        self.encryptor = encryptor
        self.service = service
        node = Node(storage, encryptor, system_clock)  # type: ignore[arg-type]  # Nothing here sets its clock.
        node.receiver.answer = WebhookResponse(5, 200, body=b"answer of a receiver")
        self.signin, self.projects, self.webhooks = node.signin, node.projects, node.webhooks
        self.deliveries, self.receiver, self.developers = node.deliveries, node.receiver, node.developers
        self.bots = bots_of(node, BotFather())
        self.developer: Developer
        self.token = ""
        self._client = client

    @property
    def actor(self) -> Actor:
        return Actor(self.developer, "command_line")

    async def enter(self, number: int) -> None:
        """Sign in a developer who has every right."""
        self.developer = await self.developers.create_developer(f"ada{number}@example.com", "business")
        until = system_clock() + MINUTE
        self.token = (await self.developers.create_access_token(self.actor, "test", expires_at=until)).plaintext

    async def two_projects(self, *, collect_phone: bool = False) -> list[Project]:
        wanted = ProjectChanges(name="Shop", webhook_url="https://example.com/hook", collect_phone=collect_phone)
        return [(await self.projects.create_project(self.actor, wanted))[0] for _ in range(2)]

    async def confirmed(self, project: Project, user: str) -> str:
        """Return the token of a session that a user has confirmed."""
        token = (await self.signin.create_session(project.id, public=True)).session_token
        assert (await self.signin.open_session(token, user)).outcome == "opened"
        seen = await self.signin.confirm_session(token, MessengerIdentity(user, "Ada", ""))
        assert seen.outcome in {"confirmed", "phone"}
        return token

    async def claimed(self, projects: list[Project]) -> list[Delivery]:
        """Return the deliveries of these projects, one for each."""
        ids = {project.id for project in projects}
        found = [each for each in await self.webhooks.claim_deliveries(200) if each.event.project_id in ids]
        assert len(found) == len(projects)
        return found

    def swap(self, table: str, column: str, key: str, ids: Iterable[str] = ()) -> None:
        """Swap the values of a column between the two matching rows that have one; `{}` in `key` stands for the ids."""
        key = key.format(", ".join(f"'{each}'" for each in ids))
        connection = apsw.Connection(str(self.service.database))
        connection.set_busy_timeout(5_000)
        try:
            where = f"FROM {table} WHERE {column} IS NOT NULL AND {key}"
            rows: list[Any] = connection.execute(f"SELECT {column} {where}").fetchall()
            (first,), (second,) = rows
            connection.execute(
                f"UPDATE {table} SET {column} = CASE {column} WHEN ?1 THEN ?2 ELSE ?1 END "
                f"WHERE {column} IN (?1, ?2) AND {key}",
                (first, second),
            )
            assert connection.changes() == 2
        finally:
            connection.close()

    async def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}"} if path.startswith("/dev/") else {}
        return await self._client.request(method, f"/api/v1{path}", json=body, headers=headers)

    async def refused(self, method: str, path: str, body: dict[str, Any] | None = None) -> None:
        """Call the service. It must answer 500 without a reason, and log the reason without any value."""
        before = len(self.service.log())
        answer = await self.call(method, path, body)
        assert (answer.status_code, answer.json()) == (500, INTERNAL), path
        assert answer.headers["x-error-code"] == "internal_error"
        told = self.service.log()[before:]
        assert "internal_error" in told
        assert "DecryptionFailed" in told
        for secret in ("whsec_", "+4915", "sk_", self.token):
            assert secret not in told


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return one `taproof serve` for all cases, without a messenger."""
    directory: Path = tmp_path_factory.mktemp("service")
    running = launch(
        directory,
        *("--role", "api"),
        sandbox=False,
        TAPROOF_BOT_TOKEN="123456789:AAabcdefghijklmnopqrstuvwxyz0123456",
        TAPROOF_MESSENGER_LINK_BASE="https://t.me/shop_bot",
    )
    yield running
    running.stop()


@pytest.fixture
async def place(service: Service) -> AsyncIterator[Place]:
    key_file = service.directory / "taproof.db.key"
    encryptor = Encryptor(read_or_make_master_key(key_file, system_entropy, may_make=False))
    storage = open_quick(service.database)
    async with httpx.AsyncClient(base_url=service.base_url, timeout=60) as client:
        found = Place(storage, encryptor, service, client)
        await found.enter(len(await storage.developers.list_developers()))
        yield found
    await storage.close()


# ---- one case for each column


async def webhook_secrets(place: Place) -> None:
    """No other project's secret signs proofs or webhooks, and the session is not used up."""
    projects = await place.two_projects()
    tokens = [await place.confirmed(project, "1001") for project in projects]
    place.swap("projects", "encrypted_webhook_secret", "id IN ({})", [each.id for each in projects])
    for project, token in zip(projects, tokens, strict=True):
        body = {"project_id": project.id, "session_token": token}
        for _ in range(2):
            await place.refused("POST", "/verify/public", body)
        key = session_key(token)
        assert key is not None
        session = await place.storage.sessions.read_session(key)
        assert session is not None
        assert session.status == "confirmed"
        path = f"/dev/projects/{project.id}/webhook-secret"
        await place.refused("GET", path)
        await place.refused("POST", f"{path}/rotate", {})
    for delivery in await place.claimed(projects):
        with pytest.raises(DecryptionFailed):
            place.webhooks.sign_delivery(delivery)
    tested = await place.deliveries.send_test(place.actor, projects[0].id)
    assert [each.error for each in tested.record.attempts] == ["not_signed"]
    assert place.receiver.sent == []


async def next_webhook_secrets(place: Place) -> None:
    """A next webhook secret is shown only for its own project, and signs nothing for another."""
    projects = await place.two_projects()
    for project in projects:
        await place.projects.rotate_webhook_secret(place.actor, project.id, 24)
        await place.confirmed(project, "1001")
    place.swap("projects", "encrypted_next_webhook_secret", "id IN ({})", [each.id for each in projects])
    for project in projects:
        path = f"/dev/projects/{project.id}/webhook-secret"
        await place.refused("GET", path)
        await place.refused("POST", f"{path}/promote")
        # Even after its promotion to the current secret it cannot be decrypted.
        await place.refused("GET", path)
    for delivery in await place.claimed(projects):
        with pytest.raises(DecryptionFailed):
            place.webhooks.sign_delivery(delivery)


async def bot_tokens(place: Place) -> None:
    """No bot runs or answers with another project's token."""
    projects = await place.two_projects()
    for number, project in enumerate(projects):
        token = place.encryptor.encrypt(
            f"{100 + number}:AAtoken", associated_data_of("bot_token", project.id), system_entropy
        )
        bot = ProjectBot(project.id, 100 + number, f"shop_{number}_bot", token)
        assert await give_bot(place.storage, place.developer.id, project.id, bot) == "set"
    place.swap("projects", "encrypted_bot_token", "id IN ({})", [each.id for each in projects])
    ids = {project.id for project in projects}
    bots = [each for each in await place.bots.list_project_bots() if each.project_id in ids]
    assert len(bots) == 2
    webhooks = ProjectBotWebhooks(
        place.bots, lambda _token: pytest.fail("A token was used."), lambda _bot_id: ["secret"]
    )
    for bot in bots:
        with pytest.raises(DecryptionFailed):
            place.bots.open_token(bot)
        with pytest.raises(DecryptionFailed):
            await webhooks.find_intake(bot.bot_id)


async def event_bodies(place: Place) -> None:
    """No receiver gets the event body of another one."""
    projects = await place.two_projects()
    for project in projects:
        await place.confirmed(project, "1001")
    place.swap("webhook_events", "encrypted_body", "project_id IN ({})", [each.id for each in projects])
    for delivery in await place.claimed(projects):
        with pytest.raises(DecryptionFailed):
            place.webhooks.sign_delivery(delivery)


async def webhook_answers(place: Place) -> None:
    """Another receiver's answer is never shown: it is left out."""
    projects = await place.two_projects()
    for project in projects:
        sent = await place.deliveries.send_test(place.actor, project.id)
        assert sent.answers[0] is not None
    of_projects = "event_id IN (SELECT id FROM webhook_events WHERE project_id IN ({}))"
    place.swap("webhook_attempts", "encrypted_answer", of_projects, [each.id for each in projects])
    for project in projects:
        answer = await place.call("GET", f"/dev/projects/{project.id}/deliveries")
        assert answer.status_code == 200, answer.text
        (delivery,) = answer.json()["deliveries"]
        assert [each["answer"] for each in delivery["attempts"]] == [None]
        assert "answer of" not in answer.text


async def phones(place: Place) -> None:
    """No application gets another user's phone number, in an answer, a proof or the list of sessions."""
    projects = await place.two_projects(collect_phone=True)
    tokens = []
    for number, project in enumerate(projects):
        user = f"{2_000 + number}"
        tokens.append(await place.confirmed(project, user))
        given = await place.signin.give_phone(
            MessengerIdentity(user, "Ada", ""), user, f"+491512345678{number}", answers=lambda _: True
        )
        assert given.outcome == "confirmed"
    place.swap("sessions", "encrypted_phone", "project_id IN ({})", [each.id for each in projects])
    for project, token in zip(projects, tokens, strict=True):
        await place.refused("POST", "/verify/public", {"project_id": project.id, "session_token": token})
        listed = await place.call("GET", f"/dev/sessions?project_id={project.id}")
        (session,) = listed.json()["sessions"]
        assert (listed.status_code, session["status"], "messenger_phone" in session) == (200, "confirmed", False)
        assert "+4915" not in listed.text + place.service.log()
    assert place.service.log().count("phone_unreadable") >= len(projects)


async def phone_requests(place: Place) -> None:
    """A contact confirms only the session that requested it."""
    projects = await place.two_projects(collect_phone=True)
    tokens = [await place.confirmed(project, f"{3_000 + number}") for number, project in enumerate(projects)]
    place.swap("phone_requests", "encrypted_token", "messenger_id IN ('3000', '3001')")
    for number, (project, token) in enumerate(zip(projects, tokens, strict=True)):
        user = f"{3_000 + number}"
        with pytest.raises(DecryptionFailed):
            await place.signin.give_phone(
                MessengerIdentity(user, "Ada", ""), user, f"+491512345678{number}", answers=lambda _: True
            )
        body = {"project_id": project.id, "session_token": token}
        assert (await place.call("POST", "/verify/public", body)).json() == {"status": "pending"}


async def openid_sign_ins(place: Place) -> None:
    """A sign-in page never shows the link of another sign-in."""
    clients = OidcClients(place.storage, system_clock, system_entropy)
    sign_ins = OidcSignIns(
        place.storage,
        place.encryptor,
        place.signin,
        system_clock,
        system_entropy,
        signals=signals(),
        waiting=place.signin.waiting,
        base_url="https://taproof.example",
    )
    begun = []
    for project in await place.two_projects():
        changes = ClientChanges(name="App", redirect_uris=("https://app.example/",))
        client, _ = await clients.create_client(place.actor, project.id, changes)
        found = await place.storage.oidc_clients.read_client(client.id)
        assert found is not None
        request = AuthorizationRequest("https://app.example/")
        begun.append(await sign_ins.begin_sign_in(found, request, Requester()))
    place.swap("oidc_authorizations", "encrypted_session", "id IN ({})", [each.id for each in begun])
    for each in begun:
        with pytest.raises(DecryptionFailed):
            await sign_ins.read_sign_in(each.id, each.browser_secret)


async def grant_phones(place: Place) -> None:
    """The phone number in a grant is never shown as that of another user."""
    made = []
    for number, project in enumerate(await place.two_projects(collect_phone=True)):
        user, grant_id = f"{4_000 + number}", new_id("auth", system_entropy)
        encrypted = place.encryptor.encrypt(
            "+4915112345678", associated_data_of("grant_phone", grant_id), system_entropy
        )
        values = (grant_id, "oidc_1", 0, project.id, SessionKey(0, b"h"), MessengerIdentity(user, "Ada", ""))
        new = NewGrant(*values, "openid phone", 0, system_clock(), encrypted_phone=encrypted)

        async def create(transaction: Transaction, new: NewGrant = new) -> None:
            await create_grant(transaction, new)

        await place.storage.database.in_transaction(create)
        made.append(new)
    exports = UserExports(place.storage, place.encryptor, system_clock)

    async def shown(user: str) -> list[str | None]:
        text = "".join([each async for each in exports.export_everywhere(user)])
        return [each["messenger_phone"] for each in json.loads(text)["grants"]]

    assert [await shown(each.identity.messenger_id) for each in made] == [["+4915112345678"]] * 2
    place.swap("oidc_grants", "encrypted_phone", "id IN ({})", [each.id for each in made])
    assert [await shown(each.identity.messenger_id) for each in made] == [[None]] * 2


async def signing_keys(place: Place) -> None:
    """No ID token is signed with another key than its `kid` names."""

    def keys() -> SigningKeys:
        return SigningKeys(place.storage, place.encryptor, system_clock, system_entropy)

    await keys().find_signer("RS256")
    two_keys = "alg = 'RS256' AND generation IN (1, 2)"
    place.swap("oidc_signing_keys", "encrypted_private_key", two_keys)
    with pytest.raises(DecryptionFailed):
        await keys().find_signer("RS256")
    place.swap("oidc_signing_keys", "encrypted_private_key", two_keys)
    await keys().find_signer("RS256")


async def the_check_of_the_key(place: Place) -> None:
    """The check of the master key fits only its own marker, and no other marker fits its value."""
    connection = apsw.Connection(str(place.service.database))
    try:
        metadata: dict[str, Any] = dict(connection.execute("SELECT name, value FROM metadata").fetchall())  # type: ignore[arg-type]
        put = {KEY_MARK: metadata[MODE_MARK], MODE_MARK: metadata[KEY_MARK]}
        connection.executemany("UPDATE metadata SET value = ? WHERE name = ?", [(put[name], name) for name in put])
        with pytest.raises(MasterKeyWrong):
            await check_master_key(place.storage, place.encryptor, system_entropy)
        done = place.service.command("projects", "create", "--developer", place.developer.email, "Shop")
        assert done.returncode == 1
        assert metadata[KEY_MARK].hex() not in done.stdout + done.stderr
    finally:
        connection.executemany("UPDATE metadata SET value = ? WHERE name = ?", [(metadata[name], name) for name in put])
        connection.close()


CASES: dict[tuple[str, str], Callable[[Place], Awaitable[None]]] = {
    ("projects", "encrypted_webhook_secret"): webhook_secrets,
    ("projects", "encrypted_next_webhook_secret"): next_webhook_secrets,
    ("projects", "encrypted_bot_token"): bot_tokens,
    ("webhook_events", "encrypted_body"): event_bodies,
    ("webhook_attempts", "encrypted_answer"): webhook_answers,
    ("sessions", "encrypted_phone"): phones,
    ("phone_requests", "encrypted_token"): phone_requests,
    ("oidc_authorizations", "encrypted_session"): openid_sign_ins,
    ("oidc_grants", "encrypted_phone"): grant_phones,
    ("oidc_signing_keys", "encrypted_private_key"): signing_keys,
    ("metadata", "value"): the_check_of_the_key,
}


@pytest.mark.parametrize("column", CASES, ids=".".join)
async def test_swapped_values_are_refused(column: tuple[str, str], place: Place) -> None:
    """A swapped value is never used for the other row: see the case of each column."""
    await CASES[column](place)


def test_every_encrypted_column_has_a_case(service: Service) -> None:
    """Every encrypted column has a case, so a new column needs a new case."""
    connection = apsw.Connection(str(service.database))
    try:
        found: list[Any] = connection.execute(
            "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c "
            "WHERE m.type = 'table' AND c.name LIKE 'encrypted\\_%' ESCAPE '\\'"
        ).fetchall()
    finally:
        connection.close()
    assert {*found, ("metadata", "value")} == set(CASES)
    assert len(found) == 10
