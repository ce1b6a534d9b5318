"""Rotating the webhook secret while users sign in and webhooks arrive makes no application's check fail."""

import asyncio
import base64
import hashlib
import hmac
import itertools
import math
from pathlib import Path

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
from tests.conftest import Figure
from tests.faults.webhook_nodes import Application, Came, Node, running_application, running_nodes, signing_in
from tests.waiting import until

from taproof import verify_proof, verify_webhook
from taproof.core.clock import SECOND, system_clock
from taproof.core.encryption import Encryptor, associated_data_of
from taproof.core.entropy import system_entropy
from taproof.core.identifiers import new_webhook_secret
from taproof.runtime.store import open_storage

USERS = 6
LEAST = 20
"""The number of webhooks, and of proofs, in each phase of a rotation."""


def standard_accepts(webhook: Came, secret: str) -> bool:
    try:
        Webhook(secret).verify(webhook.body, webhook.headers)
    except WebhookVerificationError:
        return False
    return True


def service_signature_fits(webhook: Came, secret: str) -> bool:
    expected = hmac.new(secret.encode(), webhook.body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(webhook.headers["X-Service-Signature"], expected)


def check(application: Application, secrets: list[str], since: float, until: float) -> int:
    """Check everything begun and received in that time, as an application with these secrets does.

    Returns:
        the number of webhooks, or of proofs if there were fewer.
    """
    webhooks = [each for each in application.webhooks if each.began >= since and each.came < until]
    for webhook in webhooks:
        assert any(standard_accepts(webhook, secret) for secret in secrets)
        assert any(service_signature_fits(webhook, secret) for secret in secrets)
        verify_webhook(webhook.body, webhook.headers, secrets)
        verify_webhook(webhook.body, {"X-Service-Signature": webhook.headers["X-Service-Signature"]}, secrets)
    proofs = [each.proof for each in application.proofs if each.began >= since and each.came < until]
    for proof in proofs:
        verify_proof(proof, secrets, project_id=application.project["id"])
    return min(len(webhooks), len(proofs))


async def until_more(application: Application) -> None:
    """Wait until enough has arrived to judge a phase of the rotation."""
    # Requests in progress at either end of the phase belong to no phase.
    enough = LEAST + 2 * USERS
    webhooks, proofs = len(application.webhooks) + enough, len(application.proofs) + enough
    await until(lambda: len(application.webhooks) >= webhooks and len(application.proofs) >= proofs)


async def rotate_for_moments(node: Node, project_id: str, seconds: float) -> tuple[str, int]:
    """Rotate as another node would, with an overlap of under an hour; return the next secret and when it takes over."""
    secret = new_webhook_secret(system_entropy)
    storage = await open_storage(node.url)
    project = await storage.projects.read_project(project_id)
    assert project is not None
    encrypted = Encryptor(node.master_key).encrypt(
        secret, associated_data_of("webhook_secret", project_id), system_entropy
    )
    now = system_clock()
    until = now + round(seconds * SECOND)
    assert await storage.projects.rotate_webhook_secret(project.developer_id, project_id, encrypted, now, until)
    await storage.close()
    return secret, until


@pytest.mark.parametrize(("driver", "count"), [("sqlite", 1), ("postgres", 2)])
async def test_no_check_fails_during_a_rotation(driver: str, count: int, tmp_path: Path, figure: Figure) -> None:
    """The old secret alone verifies everything until the promotion; both secrets verify everything all the time.

    One rotation ends with the promotion; the next one, straight after it, ends with its overlap.
    """
    with running_nodes(driver, count, tmp_path) as nodes:
        async with running_application(nodes) as application, signing_in(application, USERS):
            first = application.project["webhook_secret"]
            path = f"/projects/{application.project['id']}/webhook-secret"
            await until_more(application)
            answer = await application.manage("POST", f"{path}/rotate")
            second, overlaps = answer["next_webhook_secret"], [system_clock()]
            await until_more(application)
            promoting = system_clock()
            await application.manage("POST", f"{path}/promote")
            promoted = system_clock()
            await until_more(application)
            third, over = await rotate_for_moments(nodes[0], application.project["id"], 6)
            overlaps.append(system_clock())
            await until_more(application)
            assert system_clock() < over
            await asyncio.sleep((over - system_clock()) / SECOND)
            await until_more(application)
            assert (await application.manage("GET", path))["webhook_secret"] == third
    secrets = [first, second, third]
    since = [0, promoted, over]
    until = [promoting, over, math.inf]
    # Each secret alone, from the time that it is the first one to the promotion of its successor.
    alone = [check(application, [secrets[each]], since[each], until[each]) for each in range(3)]
    both = [check(application, secrets[each : each + 2], since[each], until[each + 1]) for each in range(2)]
    # With both secrets of a pair nothing is left out.
    assert check(application, secrets, 0, math.inf) == min(len(application.webhooks), len(application.proofs))
    assert min(alone) >= LEAST
    for overlap, end, (old, new) in zip(overlaps, [promoting, over], itertools.pairwise(secrets), strict=True):
        during = [each for each in application.webhooks if each.began >= overlap and each.came < end]
        assert len(during) >= LEAST
        for webhook in during:
            # A receiver that already uses the new secret can verify the standard headers.
            assert standard_accepts(webhook, new)
            assert service_signature_fits(webhook, old)
            assert len(webhook.headers["webhook-signature"].split()) == 2
    for webhook in application.webhooks:
        # After the end, an old secret signs nothing.
        if webhook.began >= over:
            assert not standard_accepts(webhook, second)
            assert not service_signature_fits(webhook, second)
        for signature in webhook.headers["webhook-signature"].split():
            assert len(base64.b64decode(signature.removeprefix("v1,"))) == 32
    figure("webhooks", len(application.webhooks))
    figure("proofs", len(application.proofs))
    figure("checked with one secret alone", alone)
    figure("checked with two", both)
