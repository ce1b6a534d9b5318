"""Every value is re-encrypted with the first master key in its own place, and nothing else changes."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.databases import OpenStore, every_driver
from tests.service.conftest import HandClock, Node, acting
from tests.signals import unheard

from taproof.core.accounts import Actor
from taproof.core.deliveries import Delivery
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.errors import DecryptionFailed, MasterKeyWrong
from taproof.service import reencryption
from taproof.service.installation import KEY_MARK, check_master_key, is_under_first_key
from taproof.service.reencryption import Reencryptor

URL = "https://example.com/"
OLD, NEW = (new_master_key(system_entropy) for _ in range(2))


async def at_once() -> None:
    """Return immediately: the tests have no work in progress."""


@pytest.fixture
def encryptor() -> Encryptor:
    """The encryptor of nodes that have not been restarted: both keys, the old one first."""
    return Encryptor(f"{OLD},{NEW}")


@pytest.fixture
async def restarted(node: Node, open_store: OpenStore, clock: HandClock) -> AsyncIterator[Node]:
    """A node on the same database that encrypts with the new key."""
    store = await open_store()
    yield Node(store, Encryptor(f"{NEW},{OLD}"), clock)
    await store.close()


def reencryptor(node: Node) -> Reencryptor:
    return Reencryptor(node.storage, node.encryptor, system_entropy, on_progress=unheard)


async def delivery_of(node: Node) -> Delivery:
    (delivery,) = await node.webhooks.claim_deliveries(1)
    return delivery


async def test_afterwards_the_new_key_alone_does(node: Node, restarted: Node, clock: HandClock) -> None:
    """Secrets, a rotation in progress, events and answers decrypt with the new key as before."""
    await check_master_key(node.storage, node.encryptor, system_entropy)
    developer = await node.developer()
    project, secrets = await node.project(developer, webhook_url=URL)
    plain = await node.projects.read_webhook_secret(acting(developer), project.id)
    assert plain.webhook_secret == secrets.webhook_secret
    rotation = await node.projects.rotate_webhook_secret(acting(developer), project.id, 24)
    await node.deliveries.send_test(acting(developer), project.id)
    token = await node.confirmed(project)
    assert not await is_under_first_key(restarted.storage, restarted.encryptor)

    done = await reencryptor(restarted).reencrypt(at_once)

    # The check, two secrets, two events, an answer.
    assert (done.reencrypted, done.left, done.unreadable) == (6, 0, [])
    assert await is_under_first_key(restarted.storage, restarted.encryptor)
    alone = Node(restarted.storage, Encryptor(NEW), clock)
    await check_master_key(alone.storage, alone.encryptor, system_entropy)
    assert await alone.projects.read_webhook_secret(acting(developer), project.id) == rotation
    signed = alone.webhooks.sign_delivery(await delivery_of(alone))
    assert token.encode() in signed.body
    page = await alone.deliveries.list_deliveries(
        developer, project.id, event_type="webhook.test", state=None, limit=1, cursor=None
    )
    assert page.deliveries[0].answers == ("ok",)
    assert (await alone.signin.verify_session(project.id, token, public=True)).proof
    # Nothing is left for the old key.
    with pytest.raises(MasterKeyWrong):
        await check_master_key(node.storage, Encryptor(OLD), system_entropy)
    with pytest.raises(DecryptionFailed):
        await Node(node.storage, Encryptor(OLD), clock).projects.read_webhook_secret(
            Actor(developer, "command_line"), project.id
        )
    # A second time there is nothing to do.
    assert (await reencryptor(restarted).reencrypt(at_once)).reencrypted == 0


async def test_more_than_a_page_and_a_batch(node: Node, restarted: Node) -> None:
    """All values are re-encrypted, across several pages and batches."""
    developer = await node.developer("business")
    for _ in range(23):
        await node.project(developer)
    told: list[int] = []
    stepwise = Reencryptor(
        restarted.storage,
        restarted.encryptor,
        system_entropy,
        on_progress=told.append,
        page=7,
        batch=3,
        pause=0,
    )
    done = await stepwise.reencrypt(at_once)
    assert (done.reencrypted, told[-1], len(told)) == (23, 23, 10)
    for project in await restarted.storage.projects.list_projects(developer.id):
        assert restarted.encryptor.is_current(project.encrypted_webhook_secret)


async def test_what_is_encrypted_meanwhile_is_found_by_the_next_walk(node: Node, restarted: Node) -> None:
    """Values of a node that has not been restarted, and of a rotation between read and replacement, are found."""
    developer, project = await node.owned()
    rounds = 0

    async def others() -> None:
        nonlocal rounds
        rounds += 1
        if rounds < 3:
            await node.project(developer)
            await node.projects.regenerate_secrets(acting(developer), project.id)

    done = await reencryptor(restarted).reencrypt(others)
    assert (rounds, done.left) == (3, 0)
    for each in await node.storage.projects.list_projects(developer.id):
        assert restarted.encryptor.is_current(each.encrypted_webhook_secret)


@every_driver
async def test_reencryption_beside_rotations_and_promotions(node: Node, restarted: Node, clock: HandClock) -> None:
    """In any order, the secrets that developers were shown are the stored ones at the end."""
    developer = await node.developer("business")
    shown = {}
    for _ in range(8):
        project, secrets = await node.project(developer)
        shown[project.id] = secrets.webhook_secret

    async def rotate_and_promote(project_id: str) -> None:
        for _ in range(3):
            await node.projects.rotate_webhook_secret(acting(developer), project_id, 1)
            await asyncio.sleep(0.001)
            shown[project_id] = await node.projects.promote_webhook_secret(acting(developer), project_id)

    await asyncio.gather(*(rotate_and_promote(each) for each in shown), reencryptor(restarted).reencrypt(at_once))
    done = await reencryptor(restarted).reencrypt(at_once)
    assert done.left == 0
    alone = Node(restarted.storage, Encryptor(NEW), clock)
    for project_id, secret in shown.items():
        assert (await alone.projects.read_webhook_secret(acting(developer), project_id)).webhook_secret == secret


async def test_the_check_of_the_key_comes_last(node: Node, restarted: Node) -> None:
    """After a killed walk, the check is still encrypted with the old key, which the doctor reports."""
    await check_master_key(node.storage, node.encryptor, system_entropy)
    await node.project()

    class Killed(Exception):
        pass

    def kill(so_far: int) -> None:
        raise Killed(so_far)

    with pytest.raises(Killed):
        await Reencryptor(restarted.storage, restarted.encryptor, system_entropy, on_progress=kill).reencrypt(at_once)
    assert not await is_under_first_key(restarted.storage, restarted.encryptor)
    assert list(reencryption.ASSOCIATED_DATA)[-1] == "mark"
    assert node.encryptor.decrypt(await node.storage.metadata.claim_mark(KEY_MARK, b""), KEY_MARK) == KEY_MARK
