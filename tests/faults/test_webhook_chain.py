"""The libraries that receivers use verify the exact bytes that the service sends over HTTP."""

import json
from pathlib import Path

from standardwebhooks.webhooks import Webhook
from tests.faults.webhook_nodes import Came, running_application, running_nodes
from tests.sdk.test_webhook_npm import verify as npm_verify
from tests.waiting import until

from taproof import verify_webhook

NAMES = ("Ada", "Зоя 👩‍💻", "</script>\"'\\", "نور")


def check(webhooks: list[Came], *secrets: str) -> None:
    """Check each request with each secret, using the npm package, the PyPI package, and our SDK in both ways."""
    for secret in secrets:
        events = npm_verify(*((secret, each.headers, each.body) for each in webhooks))
        for webhook, event in zip(webhooks, events, strict=True):
            assert event == json.loads(webhook.body)
            assert Webhook(secret).verify(webhook.body, webhook.headers) == event
            assert verify_webhook(webhook.body, webhook.headers, secret).data == event
    for webhook in webhooks:
        service_signature = {"X-Service-Signature": webhook.headers["X-Service-Signature"]}
        assert verify_webhook(webhook.body, service_signature, secrets[0]).id == webhook.headers["webhook-id"]


async def test_what_is_sent_is_verified_by_every_library(tmp_path: Path) -> None:
    """Confirmed, cancelled and test events verify, with any name, and during a rotation with either secret."""
    with running_nodes("sqlite", 1, tmp_path) as nodes:
        async with running_application(nodes) as application:
            project = f"/projects/{application.project['id']}"
            phones = [await application.new_phone(name) for name in NAMES]
            for phone in phones:
                await phone.decide("Confirm")
                await phone.decide("Cancel")
            await application.manage("POST", f"{project}/webhook-test")
            before = 2 * len(NAMES) + 1
            await until(lambda: len(application.webhooks) == before)
            rotation = await application.manage("POST", f"{project}/webhook-secret/rotate")
            await phones[0].decide("Confirm")
            await application.manage("POST", f"{project}/webhook-test")
            await until(lambda: len(application.webhooks) == before + 2)
    old, new = rotation["webhook_secret"], rotation["next_webhook_secret"]
    assert old == application.project["webhook_secret"]
    check(application.webhooks[:before], old)
    check(application.webhooks[before:], old, new)
    bodies = [json.loads(webhook.body) for webhook in application.webhooks]
    assert {body["event"] for body in bodies} == {"auth.confirmed", "auth.cancelled", "webhook.test"}
    assert {body["messenger_name"] for body in bodies if body["event"] == "auth.confirmed"} == set(NAMES)
