"""Rotation of the webhook secret: two secrets for a time, and no check that fails meanwhile (contract.md, Webhooks)."""

import asyncio
import hmac
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import jwt
import pytest
from standardwebhooks import Webhook
from tests.databases import every_driver
from tests.service.conftest import acting

from taproof.core.accounts import Developer
from taproof.core.clock import HOUR, iso8601
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.errors import DecryptionFailed, InvalidRequest, NoRotation, ProjectNotFound, RotationUnderWay
from taproof.core.projects import Project
from taproof.service.projects import Rotation
from taproof.service.webhooks import SignedRequest, WebhookResponse

if TYPE_CHECKING:
    from tests.service.conftest import Node

URL = "https://example.com/hook"


async def own_project(node: "Node") -> tuple[Developer, Project, str]:
    """Return a developer, a project of theirs with a webhook, and its webhook secret."""
    developer = await node.developer()
    project, secrets = await node.project(developer, webhook_url=URL)
    return developer, project, secrets.webhook_secret


async def sign_in(node: "Node", project: Project) -> tuple[str, SignedRequest]:
    """Confirm a session; return its proof and the webhook request about it."""
    token = await node.confirmed(project)
    proof = (await node.signin.verify_session(project.id, token, public=True)).proof
    assert proof is not None
    (delivery,) = await node.webhooks.claim_deliveries(10)
    request = node.webhooks.sign_delivery(delivery)
    assert await node.webhooks.finish_attempt(delivery, WebhookResponse(5, 200)) == "delivered"
    return proof, request


async def assert_signed_by(node: "Node", project: Project, current: str, following: str | None, *others: str) -> None:
    """Sign in once: `current` checks everything, `following` the standard's signature only, `others` nothing."""
    proof, request = await sign_in(node, project)
    secrets = [current, *([following] if following else []), *others]
    count = len(secrets)
    assert [proof_checks(secret, proof) for secret in secrets] == [True] + [False] * (count - 1)
    assert [service_signature_checks(secret, request) for secret in secrets] == [True] + [False] * (count - 1)
    valid = 2 if following else 1
    assert [standard_signature_checks(secret, request) for secret in secrets] == [True] * valid + [False] * (
        count - valid
    )
    assert len(request.headers["webhook-signature"].split(" ")) == valid


def proof_checks(secret: str, proof: str) -> bool:
    try:
        jwt.decode(proof, secret, ["HS256"], options={"verify_exp": False, "verify_iat": False})
    except jwt.InvalidSignatureError:
        return False
    return True


def service_signature_checks(secret: str, request: SignedRequest) -> bool:
    return request.headers["X-Service-Signature"] == hmac.new(secret.encode(), request.body, "sha256").hexdigest()


def standard_signature_checks(secret: str, request: SignedRequest) -> bool:
    moment = datetime.fromtimestamp(int(request.headers["webhook-timestamp"]), UTC)
    expected = Webhook(secret).sign(request.headers["webhook-id"], moment, request.body.decode())
    return expected in request.headers["webhook-signature"].split(" ")


async def test_the_current_secret_signs_until_the_exact_instant(node: "Node") -> None:
    """Proofs and X-Service-Signature change at the end of the overlap, to the millisecond, with nothing written."""
    developer, project, old = await own_project(node)
    rotation = await node.projects.rotate_webhook_secret(acting(developer), project.id, 1)
    new = rotation.next_webhook_secret
    assert new is not None
    assert new != old
    assert rotation == Rotation(old, new, node.clock.now + HOUR)
    assert await node.projects.read_webhook_secret(acting(developer), project.id) == rotation
    await assert_signed_by(node, project, old, new)
    node.clock.now += HOUR - 1
    await assert_signed_by(node, project, old, new)
    assert await node.projects.read_webhook_secret(acting(developer), project.id) == rotation
    node.clock.now += 1
    assert await node.projects.read_webhook_secret(acting(developer), project.id) == Rotation(new, None, None)
    await assert_signed_by(node, project, new, None, old)


@every_driver
async def test_a_promotion_ends_the_overlap_at_once(node: "Node", other_node: "Node") -> None:
    """On every node: the new secret alone signs from then on; the secret key is as it was."""
    developer, project, old = await own_project(node)
    rotation = await node.projects.rotate_webhook_secret(acting(developer), project.id, 168)
    new = rotation.next_webhook_secret
    assert new is not None
    assert await other_node.projects.promote_webhook_secret(acting(developer), project.id) == new
    await assert_signed_by(node, project, new, None, old)
    after = await node.projects.read_project(developer, project.id)
    assert after.secret_key_preview == project.secret_key_preview
    assert await node.projects.read_webhook_secret(acting(developer), project.id) == Rotation(new, None, None)


async def test_an_event_recorded_before_a_rotation_is_signed_as_of_its_sending(node: "Node") -> None:
    """An event decided under one secret and sent under another carries the signatures of the time of sending."""
    developer, project, old = await own_project(node)
    await node.confirmed(project)
    new = (await node.projects.rotate_webhook_secret(acting(developer), project.id, 1)).next_webhook_secret
    assert new is not None
    node.clock.now += HOUR
    (delivery,) = await node.webhooks.claim_deliveries(10)
    request = node.webhooks.sign_delivery(delivery)
    assert service_signature_checks(new, request)
    assert standard_signature_checks(new, request)
    assert not standard_signature_checks(old, request)


async def test_regenerate_during_a_rotation_kills_both_secrets(node: "Node") -> None:
    """It is for secrets that have leaked: neither the current one nor the next one signs any more, then or later."""
    developer, project, old = await own_project(node)
    following = (await node.projects.rotate_webhook_secret(acting(developer), project.id, 1)).next_webhook_secret
    assert following is not None
    new = (await node.projects.regenerate_secrets(acting(developer), project.id)).webhook_secret
    await assert_signed_by(node, project, new, None, old, following)
    with pytest.raises(NoRotation):
        await node.projects.promote_webhook_secret(acting(developer), project.id)
    node.clock.now += 2 * HOUR
    await assert_signed_by(node, project, new, None, old, following)


async def test_one_rotation_at_a_time(node: "Node") -> None:
    """A second one would take from receivers a secret that they were just given; the sentence says until when."""
    developer, project, _ = await own_project(node)
    rotation = await node.projects.rotate_webhook_secret(acting(developer), project.id, 2)
    node.clock.now += 2 * HOUR - 1
    assert rotation.promoted_at is not None
    with pytest.raises(RotationUnderWay, match=iso8601(rotation.promoted_at)):
        await node.projects.rotate_webhook_secret(acting(developer), project.id, 1)
    assert await node.projects.read_webhook_secret(acting(developer), project.id) == rotation
    node.clock.now += 1
    again = await node.projects.rotate_webhook_secret(acting(developer), project.id, 1)
    assert again.webhook_secret == rotation.next_webhook_secret
    assert again.next_webhook_secret not in {None, rotation.webhook_secret, rotation.next_webhook_secret}


async def test_nothing_to_promote(node: "Node") -> None:
    """Before a rotation and once it has ended by itself, promoting is refused and changes nothing."""
    developer, project, _ = await own_project(node)
    with pytest.raises(NoRotation):
        await node.projects.promote_webhook_secret(acting(developer), project.id)
    new = (await node.projects.rotate_webhook_secret(acting(developer), project.id, 1)).next_webhook_secret
    node.clock.now += HOUR
    with pytest.raises(NoRotation):
        await node.projects.promote_webhook_secret(acting(developer), project.id)
    assert (await node.projects.read_webhook_secret(acting(developer), project.id)).webhook_secret == new


@every_driver
async def test_of_rotations_at_once_one_wins(node: "Node", other_node: "Node") -> None:
    """The one call that succeeds returns the stored secrets; all others are refused."""
    developer, project, _ = await own_project(node)
    made = await asyncio.gather(
        *(each.projects.rotate_webhook_secret(acting(developer), project.id, 24) for each in (node, other_node) * 3),
        return_exceptions=True,
    )
    (won,) = [each for each in made if isinstance(each, Rotation)]
    assert [type(each) for each in made if each is not won] == [RotationUnderWay] * 5
    assert await node.projects.read_webhook_secret(acting(developer), project.id) == won


@every_driver
async def test_of_promotions_at_once_one_wins(node: "Node", other_node: "Node") -> None:
    """The second one finds nothing to promote: it must not end a rotation that was begun in between."""
    developer, project, _ = await own_project(node)
    new = (await node.projects.rotate_webhook_secret(acting(developer), project.id, 24)).next_webhook_secret
    made = await asyncio.gather(
        *(each.projects.promote_webhook_secret(acting(developer), project.id) for each in (node, other_node) * 2),
        return_exceptions=True,
    )
    assert [each for each in made if isinstance(each, str)] == [new]
    assert sum(isinstance(each, NoRotation) for each in made) == 3


@pytest.mark.parametrize("hours", [-1, 0, 169, 10**30])
async def test_an_overlap_has_limits(node: "Node", hours: int) -> None:
    """1 to 168 hours; the sentence names the field, and nothing is begun."""
    developer, project, old = await own_project(node)
    with pytest.raises(InvalidRequest, match=r"^overlap_hours "):
        await node.projects.rotate_webhook_secret(acting(developer), project.id, hours)
    assert await node.projects.read_webhook_secret(acting(developer), project.id) == Rotation(old, None, None)


async def test_both_secrets_are_encrypted(node: "Node") -> None:
    """The next secret lies in the store encrypted, and for its own project only."""
    developer, project, old = await own_project(node)
    new = (await node.projects.rotate_webhook_secret(acting(developer), project.id, 24)).next_webhook_secret
    stored = await node.storage.projects.read_project(project.id)
    assert stored is not None
    assert stored.encrypted_next_webhook_secret is not None
    for secret in (old, new):
        assert secret is not None
        for encrypted in (stored.encrypted_webhook_secret, stored.encrypted_next_webhook_secret):
            assert secret.removeprefix("whsec_").encode() not in encrypted
    with pytest.raises(DecryptionFailed):
        node.encryptor.decrypt(stored.encrypted_next_webhook_secret, "webhook_secret:proj_other")


async def test_a_secret_that_cannot_be_opened_is_not_rotated(node: "Node", monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a wrong master key nothing is changed, so that the right one finds everything as it was."""
    developer, project, old = await own_project(node)
    with monkeypatch.context() as patch:
        patch.setattr(node.projects, "_encryptor", Encryptor(new_master_key(system_entropy)))
        with pytest.raises(DecryptionFailed):
            await node.projects.rotate_webhook_secret(acting(developer), project.id, 24)
    assert await node.projects.read_webhook_secret(acting(developer), project.id) == Rotation(old, None, None)


async def test_a_deleted_project_is_not_rotated(node: "Node") -> None:
    """404, as for everything else about it."""
    developer, project, _ = await own_project(node)
    await node.projects.delete_project(acting(developer), project.id)
    with pytest.raises(ProjectNotFound):
        await node.projects.rotate_webhook_secret(acting(developer), project.id, 24)
    with pytest.raises(ProjectNotFound):
        await node.projects.promote_webhook_secret(acting(developer), project.id)
