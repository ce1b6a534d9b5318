"""The audit log: the actor, the change, the time and the origin."""

import json
from typing import TYPE_CHECKING, Any

from tests.sign_ins import by_token

from taproof.core.accounts import Actor, AuditEntry, Developer
from taproof.core.clock import DAY, MINUTE, iso8601
from taproof.core.projects import ProjectChanges
from taproof.core.rights import SCOPES
from taproof.core.webhook_url import url_origin
from taproof.service.audit import DETAILS_LIMIT, audit_entry
from taproof.service.webhooks import WebhookResponse

if TYPE_CHECKING:
    from tests.service.conftest import Node


URL = "https://hooks.example.com:8443/canary-path?key=canary-query"
ORIGIN = "https://hooks.example.com:8443"
NO_PROJECT = "proj_" + "0" * 22


class Log:
    """Watches a developer's audit log: each step of a test must add one entry, which it returns."""

    def __init__(self, node: "Node", developer: Developer, actor: Actor | None = None) -> None:
        self._actor = actor
        self._node = node
        self._developer = developer
        self._known: set[str] = set()

    async def everything(self) -> list[AuditEntry]:
        return (await self._node.audit.list_audit_entries(self._developer, limit=200, cursor=None)).entries

    async def only_new(self) -> AuditEntry:
        """Return the one entry that came since the last call."""
        (new,) = [each for each in await self.everything() if each.id not in self._known]
        self._known.add(new.id)
        return new

    async def told(self) -> tuple[str, str, Any]:
        """Return the action and details of the new entry; assert its actor, time and address."""
        entry = await self.only_new()
        assert self._actor is not None
        assert (entry.actor, entry.via) == (self._developer.email, "access_token")
        assert (entry.via_id, entry.address) == (self._actor.via_id, self._actor.address)
        assert (entry.developer_id, entry.created_at) == (self._developer.id, self._node.clock.now)
        self._node.clock.now += MINUTE
        return entry.action, entry.subject, json.loads(entry.details)


async def new_log(node: "Node") -> tuple[Actor, Log]:
    """Return a new developer and their log, of which the entry about themselves has been read."""
    developer = await node.developer()
    actor = await by_token(node.storage, developer, node.clock.now)
    log = Log(node, developer, actor)
    assert (await log.only_new()).action == "developer.created"
    node.clock.now += MINUTE
    return actor, log


# ---- each change leaves one entry


async def test_changes_of_a_project_are_told(node: "Node") -> None:
    """Entries have the stored values.

    The entry of a deleted project has its name, because its id can no longer be looked up.
    """
    actor, log = await new_log(node)
    project, _ = await node.projects.create_project(actor, ProjectChanges(name=" Shop ", webhook_url=URL))
    assert await log.told() == ("project.created", project.id, {"name": "Shop"})
    for changes, details in (
        (ProjectChanges(name=" Store "), {"name": "Store"}),
        (ProjectChanges(webhook_url=""), {"webhook_url": ""}),
        (ProjectChanges(webhook_url=URL, is_active=False), {"webhook_url": ORIGIN, "is_active": False}),
        (ProjectChanges(public_access=True, collect_phone=False), {"public_access": True, "collect_phone": False}),
    ):
        await node.projects.update_project(actor, project.id, changes)
        assert await log.told() == ("project.updated", project.id, details)
    await node.projects.delete_project(actor, project.id)
    assert await log.told() == ("project.deleted", project.id, {"name": "Store"})


async def test_access_tokens_are_told_by_their_preview(node: "Node") -> None:
    """A developer who finds a token somewhere can look up when it was created and when it expires."""
    actor, log = await new_log(node)
    until = node.clock.now + 60 * MINUTE
    for expires_at, shown in ((None, None), (until, iso8601(until))):
        made = (await node.developers.create_access_token(actor, " CI ", expires_at=expires_at)).token
        details = {"name": "CI", "preview": made.preview}
        assert await log.told() == (
            "access_token.created",
            made.id,
            details | {"expires_at": shown, "scopes": list(SCOPES)},
        )
        await node.developers.delete_access_token(actor, made.id)
        assert await log.told() == ("access_token.revoked", made.id, details)


async def test_a_webhook_that_was_turned_off_is_told_as_the_services_doing(node: "Node") -> None:
    """The service turned the webhook off, so the entry has no address; of the URL, only the host is shown."""
    actor, log = await new_log(node)
    project, _ = await node.project(actor.developer, webhook_url=URL)
    assert (await log.only_new()).action == "project.created"
    await node.confirmed(project)
    (delivery,) = await node.webhooks.claim_deliveries(10)
    assert await node.webhooks.finish_attempt(delivery, WebhookResponse(1, 410)) == "turned_off"
    entry = await log.only_new()
    assert (entry.action, entry.subject) == ("webhook.turned_off", project.id)
    assert json.loads(entry.details) == {"reason": "gone", "host": "hooks.example.com"}
    assert (entry.actor, entry.via, entry.via_id, entry.address) == ("Taproof", "service", "", "")
    assert entry.created_at == node.clock.now


async def test_the_command_line_is_told_as_the_actor(node: "Node") -> None:
    """Entries of the command line, which knows no developer, have none. A log begins with its developer."""
    ada, bob = await node.developer("pro"), await node.developer()
    for developer, is_owner in ((ada, True), (bob, False)):
        log = Log(node, developer)
        created = await log.only_new()
        assert (created.action, created.subject, created.developer_id) == ("developer.created", *(developer.id,) * 2)
        assert created.created_at == developer.created_at
        details = {"email": developer.email, "plan": developer.plan, "is_owner": is_owner}
        assert json.loads(created.details) == details
        await node.developers.create_access_token(Actor(developer, "command_line"), "CI")
        for entry in (created, await log.only_new()):
            assert (entry.actor, entry.via, entry.via_id, entry.address) == ("command line", "command_line", "", "")


async def test_a_change_of_nothing_leaves_no_entry(node: "Node") -> None:
    """An empty PATCH returns the project and adds no entry."""
    actor, log = await new_log(node)
    project, _ = await node.project(actor.developer)
    before = await log.everything()
    await node.projects.update_project(actor, project.id, ProjectChanges())
    assert await log.everything() == before


# ---- what an entry never holds


async def test_no_secret_is_in_any_entry(node: "Node") -> None:
    """No entry contains a secret that the service issued, or one in a webhook URL."""
    actor, log = await new_log(node)
    project, first = await node.project(actor.developer, webhook_url=URL)
    rotation = await node.projects.rotate_webhook_secret(actor, project.id, 1)
    await node.projects.promote_webhook_secret(actor, project.id)
    second = await node.projects.regenerate_secrets(actor, project.id)
    await node.projects.update_project(actor, project.id, ProjectChanges(webhook_url=URL + "2"))
    token = await node.developers.create_access_token(actor, "CI")
    session_token = await node.confirmed(project)
    (delivery,) = await node.webhooks.claim_deliveries(10)
    await node.deliveries.resend_delivery(actor, delivery.event.id)
    await node.webhooks.finish_attempt(delivery, WebhookResponse(1, 410, body=session_token.encode()))
    await node.developers.delete_access_token(actor, token.token.id)
    await node.projects.delete_project(actor, project.id)
    entries = await log.everything()
    assert len(entries) >= 9
    written = repr(entries)
    secrets = [first.secret_key, first.webhook_secret, second.secret_key, second.webhook_secret, token.plaintext]
    for secret in (*secrets, rotation.next_webhook_secret or "", session_token):
        assert secret[8:40] not in written
    assert "canary" not in written


def test_of_a_webhook_url_the_origin_is_kept() -> None:
    """Scheme, host and port are kept; never the name and password of an old URL."""
    for url, origin in (
        ("", ""),
        ("https://example.com", "https://example.com"),
        ("https://example.com/a?b#c", "https://example.com"),
        ("https://ada:canary@example.com:8443/", "https://example.com:8443"),
        ("http://[::1]:9/hook", "http://[::1]:9"),
    ):
        assert url_origin(url) == origin


def test_details_are_an_object_whatever_is_in_them() -> None:
    """Any text in a developer's name gives valid JSON that the store accepts."""
    actor = Actor(Developer("dev_1", "ada@example.com", "free", 1), "console", "con_1", "203.0.113.7")
    name = '"}\0\ud800 ٣'
    entry = audit_entry(actor, "project.updated", 1, bytes, subject="proj_1", details={"name": name})
    assert json.loads(entry.details) == {"name": name}
    assert entry.details.isascii()
    assert entry.details.isprintable()
    assert json.loads(audit_entry(actor, "project.updated", 1, bytes, subject="x").details) == {}


def test_details_are_bounded() -> None:
    """For any request, the JSON is valid, ids are complete, and the entry says what was left out."""
    actor = Actor(Developer("dev_1", "ada@example.com", "free", 1), "console", "con_1", "203.0.113.7")
    session_id = "sess_" + "x" * 22
    origins = [f"https://{'a' * 280}{number}.example" for number in range(20)]
    details = {
        "name": "\U0001f98a" * 100,
        "webhook_url": f"https://{'b' * 2_000}",
        "allowed_origins": {"count": 20, "added": origins, "removed": origins[::-1]},
        "reported_sign_in": session_id,
        "is_active": True,
    }
    entry = audit_entry(actor, "project.updated", 1, bytes, subject="proj_1", details=details)
    assert len(entry.details) <= DETAILS_LIMIT
    told = json.loads(entry.details)
    assert told.keys() == details.keys()
    assert (told["reported_sign_in"], told["is_active"], told["allowed_origins"]["count"]) == (session_id, True, 20)
    assert told["allowed_origins"]["added"][-1] == "… 15 more"
    assert told["name"].endswith("…")
    many = {f"field_{number}": "y" * 300 for number in range(100)}
    entry = audit_entry(actor, "project.updated", 1, bytes, subject="proj_1", details=many)
    assert json.loads(entry.details) == {"fields": 100}


async def test_an_update_tells_nothing_that_may_be_secret_or_long(node: "Node") -> None:
    """Texts are shown by their keys, lists by their differences, and URLs, which may be secret, by their origins."""
    actor, log = await new_log(node)
    texts = {"en": {"expired": "Late"}, "ru": {"expired": "Поздно"}}
    new_texts = {"en": {"expired": "Late"}, "default": {"expired": "Too late"}}
    urls, new_urls = ("https://a.example/?key=secret",), ("https://b.example/secret",)
    logo = "https://cdn.example/logo.png?key=secret"
    for before, changes, details in (
        (
            ProjectChanges(name="Shop", texts=texts),
            ProjectChanges(texts=new_texts, logo_url=logo),
            {"texts": ["default.expired", "ru.expired"], "logo_url": "https://cdn.example"},
        ),
        (
            ProjectChanges(name="Shop", allowed_origins=("https://a.example", "https://b.example")),
            ProjectChanges(allowed_origins=("https://c.example", "https://b.example")),
            {"allowed_origins": {"count": 2, "added": ["https://c.example"], "removed": ["https://a.example"]}},
        ),
        (
            ProjectChanges(name="Shop", return_urls=urls),
            ProjectChanges(same_device="require", return_urls=new_urls),
            {
                "same_device": "require",
                "return_urls": {"count": 1, "added": ["https://b.example"], "removed": ["https://a.example"]},
            },
        ),
    ):
        project, _ = await node.projects.create_project(actor, before)
        await log.only_new()
        await node.projects.update_project(actor, project.id, changes)
        assert json.loads((await log.only_new()).details) == details


async def test_a_log_that_was_erased_from_ends_with_the_note_of_it(node: "Node") -> None:
    """The note of an erasure comes once and last for any page size; erased entries are not shown."""
    actor, log = await new_log(node)
    for number in range(5):
        await node.projects.create_project(actor, ProjectChanges(name=f"Shop {number}"))
        node.clock.now += DAY
    before = node.clock.now // DAY * DAY - 2 * DAY
    kept = [each for each in await log.everything() if each.created_at >= before]
    gone = len(await log.everything()) - len(kept)
    assert (len(kept), gone) == (2, 4)
    assert await node.storage.audit.purge_audit_entries(before, node.clock.now, 100) == gone
    everything = await log.everything()
    assert everything[:-1] == kept
    note, now = everything[-1], iso8601(node.clock.now)
    assert (note.action, note.actor, note.via) == ("audit.purged", "Taproof", "service")
    assert note.subject == actor.developer.id
    assert json.loads(note.details) == {"entries_before": iso8601(before), "entries": gone, "purged_at": now}
    for limit in (1, 2, 3, 4):
        paged, cursor = [], None
        while True:
            page = await node.audit.list_audit_entries(actor.developer, limit=limit, cursor=cursor)
            assert len(page.entries) <= limit
            paged += page.entries
            if (cursor := page.next_cursor) is None:
                break
        assert paged == everything
