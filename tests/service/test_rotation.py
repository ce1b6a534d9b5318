"""Rotation of the webhook secret: two secrets overlap, and no check fails (contract.md, Webhooks)."""

import hmac
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import jwt
import pytest
from standardwebhooks import Webhook
from tests.service.conftest import acting

from taproof.core.accounts import Developer
from taproof.core.clock import HOUR
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.errors import DecryptionFailed
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


async def valid_checks(node: "Node", project: Project, *secrets: str) -> list[str]:
    """Sign in once; return the checks that each secret passes: of the proof, the service's header, the standard's."""
    token = await node.confirmed(project)
    proof = (await node.signin.verify_session(project.id, token, public=True)).proof
    assert proof is not None
    (delivery,) = await node.webhooks.claim_deliveries(10)
    request = node.webhooks.sign_delivery(delivery)
    assert await node.webhooks.finish_attempt(delivery, WebhookResponse(5, 200)) == "delivered"
    return ["P" * proof_checks(each, proof) + signature_checks(each, request) for each in secrets]


def proof_checks(secret: str, proof: str) -> bool:
    try:
        jwt.decode(proof, secret, ["HS256"], options={"verify_exp": False, "verify_iat": False})
    except jwt.InvalidSignatureError:
        return False
    return True


def signature_checks(secret: str, request: SignedRequest) -> str:
    """Return "X" if X-Service-Signature is valid, and "S" if a signature of Standard Webhooks is."""
    service = hmac.new(secret.encode(), request.body, "sha256").hexdigest()
    moment = datetime.fromtimestamp(int(request.headers["webhook-timestamp"]), UTC)
    standard = Webhook(secret).sign(request.headers["webhook-id"], moment, request.body.decode())
    is_standard = standard in request.headers["webhook-signature"].split(" ")
    return "X" * (request.headers["X-Service-Signature"] == service) + "S" * is_standard


async def test_the_current_secret_signs_until_the_exact_instant(node: "Node") -> None:
    """Proofs and X-Service-Signature change secrets exactly at the end of the overlap, without a write."""
    developer, project, old = await own_project(node)
    rotation = await node.projects.rotate_webhook_secret(acting(developer), project.id, 1)
    new = rotation.next_webhook_secret
    assert new is not None
    assert new != old
    assert rotation == Rotation(old, new, node.clock.now + HOUR)
    assert await node.projects.read_webhook_secret(acting(developer), project.id) == rotation
    assert await valid_checks(node, project, old, new) == ["PXS", "S"]
    node.clock.now += HOUR - 1
    assert await valid_checks(node, project, old, new) == ["PXS", "S"]
    assert await node.projects.read_webhook_secret(acting(developer), project.id) == rotation
    node.clock.now += 1
    assert await node.projects.read_webhook_secret(acting(developer), project.id) == Rotation(new, None, None)
    assert await valid_checks(node, project, old, new) == ["", "PXS"]


async def test_an_event_recorded_before_a_rotation_is_signed_as_of_its_sending(node: "Node") -> None:
    """An event is signed with the secrets that are valid when it is sent, not when it was recorded."""
    developer, project, old = await own_project(node)
    await node.confirmed(project)
    new = (await node.projects.rotate_webhook_secret(acting(developer), project.id, 1)).next_webhook_secret
    assert new is not None
    node.clock.now += HOUR
    (delivery,) = await node.webhooks.claim_deliveries(10)
    request = node.webhooks.sign_delivery(delivery)
    assert [signature_checks(each, request) for each in (old, new)] == ["", "XS"]


async def test_a_secret_that_cannot_be_opened_is_not_rotated(node: "Node", monkeypatch: pytest.MonkeyPatch) -> None:
    """With a wrong master key nothing is changed, so the right key still decrypts everything."""
    developer, project, old = await own_project(node)
    with monkeypatch.context() as patch:
        patch.setattr(node.projects, "_encryptor", Encryptor(new_master_key(system_entropy)))
        with pytest.raises(DecryptionFailed):
            await node.projects.rotate_webhook_secret(acting(developer), project.id, 24)
    assert await node.projects.read_webhook_secret(acting(developer), project.id) == Rotation(old, None, None)
