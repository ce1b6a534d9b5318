"""Signing in to the console: the service's own project, and who may read the result."""

import asyncio
import base64
from typing import TYPE_CHECKING

import pytest
from tests.databases import every_driver
from tests.service.callers import LONG, never
from tests.service.conftest import acting
from tests.tapping import tap_right

from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.errors import (
    InvalidSecretKey,
    ProjectNotFound,
    PublicAccessDisabled,
    SignInNotFound,
)
from taproof.core.identifiers import key_preview
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import ProjectChanges
from taproof.core.session_state import SESSION_LIFETIME
from taproof.service.console.sign_in import CONSOLE, INVITATION, TERMINAL, DeveloperSignIns, Purpose, StartedSignIn

if TYPE_CHECKING:
    from tests.service.conftest import Node


ADA = MessengerIdentity("1001", "Ada", "ada")


def sign_in_of(node: "Node") -> DeveloperSignIns:
    return DeveloperSignIns(
        node.storage, node.encryptor, node.signin, node.clock, system_entropy, waiting=node.signin.waiting
    )


@pytest.fixture
def sign_in(node: "Node") -> DeveloperSignIns:
    return sign_in_of(node)


def token_of(started: StartedSignIn) -> str:
    """Return the session token, which everybody who sees the QR code can read."""
    return started.deeplink.rpartition("?start=")[2]


async def confirm(node: "Node", started: StartedSignIn, identity: MessengerIdentity = ADA) -> None:
    assert (await node.signin.open_session(token_of(started), identity.messenger_id)).outcome == "opened"
    assert (await tap_right(node.signin, token_of(started), identity)).changed


async def console_project(node: "Node") -> str:
    mark = await node.storage.metadata.read_mark(CONSOLE.mark)
    assert mark is not None
    return mark.decode()


async def test_from_the_link_to_the_identity(node: "Node", sign_in: DeveloperSignIns) -> None:
    """The client that started the sign-in reads `pending`, then `confirmed` any number of times.

    It finishes the sign-in once.
    """
    started = await sign_in.start(CONSOLE)
    assert started.deeplink.startswith("https://t.me/Sign_In_Bot?start=")
    assert started.expires_at == node.clock.now + SESSION_LIFETIME
    seen = await sign_in.read(started.encrypted, CONSOLE)
    assert (seen.status, seen.deeplink, seen.expires_at) == ("pending", started.deeplink, started.expires_at)
    assert (await sign_in.finish(started.encrypted, CONSOLE)).identity is None
    shown = await node.signin.open_session(token_of(started), "1001")
    assert shown.project_name == CONSOLE.project_name
    assert (await tap_right(node.signin, token_of(started), ADA)).changed
    for _ in range(2):
        assert (await sign_in.read(started.encrypted, CONSOLE)).status == "confirmed"
    assert (await sign_in.finish(started.encrypted, CONSOLE)).identity == ADA
    assert (await sign_in.finish(started.encrypted, CONSOLE)).identity is None
    assert (await sign_in.read(started.encrypted, CONSOLE)).status == "used"


@pytest.mark.parametrize("purpose", [CONSOLE, TERMINAL, INVITATION], ids=lambda purpose: purpose.mark)
async def test_each_purpose_is_asked_for_and_opens_alone(
    node: "Node", sign_in: DeveloperSignIns, purpose: Purpose
) -> None:
    """The messenger names the purpose, and no sign-in can be used for another one."""
    started = await sign_in.start(purpose)
    shown = await node.signin.open_session(token_of(started), "1001")
    assert shown.project_name == purpose.project_name
    assert (await tap_right(node.signin, token_of(started), ADA)).changed
    others = {CONSOLE, TERMINAL, INVITATION} - {purpose}
    assert len({each.project_name for each in others | {purpose}}) == 3
    for other in others:
        await sign_in.start(other)
        for ask in (
            sign_in.read(started.encrypted, other),
            sign_in.finish(started.encrypted, other),
            sign_in.wait(started.encrypted, other, LONG, never),
        ):
            with pytest.raises(SignInNotFound):
                await ask
    assert (await sign_in.finish(started.encrypted, purpose)).identity == ADA
    marks = [await node.storage.metadata.read_mark(each.mark) for each in (CONSOLE, TERMINAL, INVITATION)]
    assert len(set(marks)) == 3
    assert len(await node.storage.projects.list_projects("dev_console")) == 3


async def test_nothing_but_the_seal_reads_it(node: "Node", sign_in: DeveloperSignIns) -> None:
    """The link, an altered or truncated cookie, and cookies of another key or purpose are all unknown."""
    started = await sign_in.start(CONSOLE)
    await confirm(node, started)
    encrypted = started.encrypted
    flipped = encrypted[:-4] + ("A" if encrypted[-4] != "A" else "B") + encrypted[-3:]

    def encrypt(encryptor: Encryptor, associated_data: str, text: str = started.deeplink) -> str:
        return base64.urlsafe_b64encode(encryptor.encrypt(text, associated_data, system_entropy)).rstrip(b"=").decode()

    assert (await sign_in.read(encrypt(node.encryptor, CONSOLE.associated_data), CONSOLE)).status == "confirmed"
    unknown = [
        "",
        "x",
        started.deeplink,
        token_of(started),
        flipped,
        encrypted[:-4],
        encrypted + "A",
        encrypted + "\n",
        f"{encrypted[:9]} {encrypted[9:]}",
        "\ud800",
        "é",
        "A" * 1_000_000,
        encrypt(Encryptor(new_master_key(system_entropy)), CONSOLE.associated_data),
        encrypt(node.encryptor, "webhook_secret:proj_1"),
        encrypt(node.encryptor, CONSOLE.associated_data, "https://t.me/Sign_In_Bot?start="),
        encrypt(node.encryptor, CONSOLE.associated_data, f"https://t.me/Sign_In_Bot?start={'A' * 43}"),
    ]
    for each in unknown:
        for ask in (
            sign_in.read(each, CONSOLE),
            sign_in.finish(each, CONSOLE),
            sign_in.wait(each, CONSOLE, LONG, never),
        ):
            with pytest.raises(SignInNotFound):
                await ask
    assert (await sign_in.finish(encrypted, CONSOLE)).identity == ADA


@every_driver
async def test_the_project_is_made_once(node: "Node", other_node: "Node") -> None:
    """Concurrent first sign-ins on several nodes use one project, and create no other."""
    nodes = [node, other_node] * 4
    started = await asyncio.gather(*(sign_in_of(each).start(CONSOLE) for each in nodes))
    project_id = await console_project(node)
    for each in started:
        await confirm(other_node, each)
    project = await node.storage.projects.read_project(project_id)
    assert project is not None
    assert (project.sessions_count, project.confirmed_count) == (len(nodes), len(nodes))
    assert [each.id for each in await node.storage.projects.list_projects("dev_console")] == [project_id]
    again = sign_in_of(node)
    await again.start(CONSOLE)
    assert await console_project(other_node) == project_id


async def test_nobody_sees_the_project_or_its_sessions(node: "Node", sign_in: DeveloperSignIns) -> None:
    """The project is in no list and no figures, and cannot be read, changed, deleted or given other secrets."""
    ada = await node.developer("business")
    await confirm(node, await sign_in.start(CONSOLE))
    project_id = await console_project(node)
    assert await node.projects.list_projects(ada) == []
    assert (
        await node.session_reader.list_sessions(ada, project_id=None, status=None, limit=50, cursor=None)
    ).sessions == []
    figures = await node.analytics.read_analytics(ada, days=30, project_id=None)
    assert (figures.totals["requested"], figures.unique_users, figures.projects) == (0, 0, [])
    for act in (
        node.projects.read_project(ada, project_id),
        node.projects.read_webhook_secret(acting(ada), project_id),
        node.projects.update_project(acting(ada), project_id, ProjectChanges(public_access=True)),
        node.projects.regenerate_secrets(acting(ada), project_id),
        node.projects.delete_project(acting(ada), project_id),
        node.session_reader.list_sessions(ada, project_id=project_id, status=None, limit=50, cursor=None),
        node.analytics.read_analytics(ada, days=30, project_id=project_id),
        node.deliveries.send_test(acting(ada), project_id),
    ):
        with pytest.raises(ProjectNotFound):
            await act
    assert "dev_console" not in {developer.id for developer in await node.developers.list_developers()}


async def test_nobody_else_starts_or_reads_sessions_in_it(node: "Node", sign_in: DeveloperSignIns) -> None:
    """Public calls are refused, even with the token from the QR code, and nobody has the secret key."""
    started = await sign_in.start(CONSOLE)
    await confirm(node, started)
    project_id = await console_project(node)
    with pytest.raises(PublicAccessDisabled):
        await node.signin.create_session(project_id, public=True)
    with pytest.raises(PublicAccessDisabled):
        await node.signin.verify_session(project_id, token_of(started), public=True)
    project = await node.storage.projects.read_project(project_id)
    assert project is not None
    assert (project.is_active, project.public_access, project.webhook_url) == (True, False, "")
    _, secrets = await node.project()
    assert project.secret_key_preview != key_preview(secrets.secret_key)
    with pytest.raises(InvalidSecretKey):
        await node.projects.authenticate(project.secret_key_preview)
    assert (await sign_in.finish(started.encrypted, CONSOLE)).identity == ADA
