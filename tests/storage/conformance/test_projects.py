"""Conformance: projects, their secrets and their deletion."""

import asyncio
from dataclasses import replace

import pytest
from tests.storage.seed import Seed, at_once, present

from taproof.contract.session import SignInStatus
from taproof.core.clock import DAY
from taproof.core.errors import ProjectNotFound
from taproof.core.projects import EncryptedWebhookSecrets, ProjectChanges
from taproof.storage.protocol import Storage


async def test_create_project_keeps_every_field(storage: Storage, seed: Seed) -> None:
    """Flags come back as booleans, names as they were typed; a secret key belongs to one project."""
    ada = await seed.developer(plan="pro")
    project = replace(
        await seed.project(ada),
        id="proj_other",
        name="Кафе 'Мир' \"☕\"; DROP TABLE projects",
        webhook_url="https://example.com/hook",
        is_active=False,
        public_access=False,
        collect_phone=True,
        phone_required=False,
        show_context=False,
        match_code=True,
        allowed_origins=("https://shop.example", "http://[::1]:3000"),
        texts={"default": {"confirmed": "\"Bye\" '☕'"}, "fa": {"expired": "می\u200cخواهم"}},
        logo_url="https://shop.example/logo.png",
    )
    await storage.projects.create_project(project, b"k" * 32)
    assert await storage.projects.read_project("proj_other") == project
    with pytest.raises(Exception, match=r"(?i)unique|constraint"):
        await storage.projects.create_project(replace(project, id="proj_third"), b"k" * 32)
    assert await storage.projects.read_project("proj_third") is None


async def test_create_project_stops_at_the_limit(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """The limit holds for concurrent calls on two nodes; another developer's projects and deleted ones do not count."""
    ada = await seed.developer()
    project = await seed.project(ada)
    await seed.project()
    new = [replace(project, id=seed.name("proj")) for _ in range(8)]
    made = await at_once(
        8, lambda node, each: node.projects.create_project(new[each], b"%d" % each, limit=3), storage, other_node
    )
    assert sorted(made) == [False] * 6 + [True] * 2
    assert len(await storage.projects.list_projects(ada.id)) == 3
    refused = new[made.index(False)]
    assert await storage.projects.read_project(refused.id) is None
    assert await storage.projects.delete_project(ada.id, project.id)
    assert await storage.projects.create_project(refused, seed.key_hash(refused), limit=3)


async def test_read_project_counts_its_sessions(storage: Storage, seed: Seed) -> None:
    """The counts are of all days, and of this project only."""
    ada = await seed.developer()
    project, other = await seed.project(ada), await seed.project(ada)
    await seed.session(project)
    await seed.confirmed(project, at=seed.now + DAY)
    await seed.confirmed(other)
    assert await storage.projects.read_project(project.id) == replace(project, sessions_count=2, confirmed_count=1)
    assert await storage.projects.read_project("proj_unknown") is None


async def test_read_project_by_secret_key_leaves_counts_at_zero(storage: Storage, seed: Seed) -> None:
    """Only the exact hash finds it."""
    project = await seed.project()
    await seed.session(project)
    assert await storage.projects.read_project_by_secret_key(seed.key_hash(project)) == project
    assert await storage.projects.read_project_by_secret_key(b"?" * 32) is None


async def test_read_webhook_secrets_as_they_are_stored(storage: Storage, seed: Seed) -> None:
    """The result has this project's encrypted bytes or None, also for many concurrent calls."""
    project, other, rotated = await seed.project(), await seed.project(), await seed.project()
    await seed.delete(other)
    assert await storage.projects.rotate_webhook_secret(
        rotated.developer_id, rotated.id, b"next", seed.now, seed.now + 9
    )
    found = await asyncio.gather(
        *(storage.projects.read_webhook_secrets(each.id) for each in (project, other, rotated) * 2)
    )
    expected = [
        EncryptedWebhookSecrets(project.encrypted_webhook_secret),
        None,
        EncryptedWebhookSecrets(rotated.encrypted_webhook_secret, b"next", seed.now + 9),
    ]
    assert found == expected * 2


async def test_list_projects_is_oldest_first_and_the_developers_own(storage: Storage, seed: Seed) -> None:
    """With counts; nobody sees another developer's projects."""
    ada, bob = await seed.developer(), await seed.developer()
    late = await seed.project(ada, created_at=seed.now + 1)
    first, second = await seed.project(ada), await seed.project(ada)
    of_bob = await seed.project(bob)
    await seed.session(second)
    assert await storage.projects.list_projects(ada.id) == [first, replace(second, sessions_count=1), late]
    assert await storage.projects.list_projects(bob.id) == [of_bob]


@pytest.mark.parametrize(
    "changes",
    [
        ProjectChanges(),
        ProjectChanges(name="New name"),
        ProjectChanges(webhook_url="https://example.org/"),
        ProjectChanges(webhook_url=""),
        ProjectChanges(is_active=False),
        ProjectChanges(public_access=False),
        ProjectChanges(collect_phone=True),
        ProjectChanges(phone_required=False, show_context=False, match_code=True),
        ProjectChanges(allowed_origins=("https://shop.example", "https://other.example:8443")),
        ProjectChanges(allowed_origins=()),
        ProjectChanges(texts={"ru": {"prompt_title": "Клуб"}}),
        ProjectChanges(texts={}),
        ProjectChanges(logo_url="https://shop.example/logo.png"),
        ProjectChanges(webhook_events=("auth.reported", "auth.expired")),
        ProjectChanges("All", "https://example.net/", is_active=False, public_access=False, collect_phone=True),
    ],
)
async def test_update_project_changes_only_what_is_given(storage: Storage, seed: Seed, changes: ProjectChanges) -> None:
    """A field that is None stays unchanged; False and "" are values.

    The answer is the stored project with its counts.
    """
    ada = await seed.developer(plan="pro")
    made = await seed.project(ada, webhook_url="https://example.com/")
    texts = {"en": {"expired": "Late"}}
    project = await storage.projects.update_project(ada.id, made.id, ProjectChanges(texts=texts), seed.now)
    assert project == replace(made, texts=texts)
    await seed.session(project)
    given = {name: value for name in ProjectChanges.__slots__ if (value := getattr(changes, name)) is not None}
    expected = replace(project, sessions_count=1, **given)
    assert await storage.projects.update_project(ada.id, project.id, changes, seed.now) == expected
    assert await storage.projects.read_project(project.id) == expected


async def test_regenerate_secrets_kills_the_old_key_at_once(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """After the call, every node accepts only the new key, and consumed sessions get the new secret."""
    project = await seed.project()
    session = await seed.confirmed(project)
    assert await storage.projects.regenerate_secrets(project.developer_id, project.id, b"n" * 32, "sk_n", b"new seal")
    assert await other_node.projects.read_project_by_secret_key(seed.key_hash(project)) is None
    expected = replace(project, secret_key_preview="sk_n", encrypted_webhook_secret=b"new seal")
    assert await other_node.projects.read_project_by_secret_key(b"n" * 32) == expected
    consumed = present(await other_node.sessions.consume_session(session.key, seed.now))
    assert consumed.webhook_secrets == EncryptedWebhookSecrets(b"new seal")


async def test_delete_project_hides_everything_of_it_at_once(storage: Storage, seed: Seed) -> None:
    """Project, key, sessions in every state and events are no longer found, changed or sent."""
    ada = await seed.developer()
    project = await seed.project(ada, webhook_url="https://example.com/")
    pending, opened, confirmed = await seed.session(project), await seed.opened(project), await seed.confirmed(project)
    assert await storage.projects.delete_project(ada.id, project.id)
    assert await storage.projects.read_project(project.id) is None
    assert await storage.projects.read_project_by_secret_key(seed.key_hash(project)) is None
    assert await storage.projects.list_projects(ada.id) == []
    for session in (pending, opened, confirmed):
        assert await storage.sessions.poll_session(session.key) is None
        assert await storage.sessions.read_session(session.key) is None
    identity = seed.identity("1001")
    with pytest.raises(ProjectNotFound):
        await storage.sessions.create_session(seed.new_session(project), public=False)
    assert not await storage.sessions.confirm_session(opened.key, identity, seed.now, seed.event(project))
    assert not await storage.sessions.cancel_session(opened.key, "1001", seed.now, seed.event(project))
    assert await storage.sessions.consume_session(confirmed.key, seed.now) is None
    assert await storage.deliveries.claim_deliveries(seed.now, seed.now + 1, 10) == []
    assert await storage.sessions.list_sessions([project.id], None, None, 10, seed.now) == []
    assert not await storage.projects.delete_project(ada.id, project.id)


async def test_delete_project_beats_a_tap_or_the_tap_beats_it(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """A Confirm and a deletion at the same time on two nodes never leave a confirmed session without a project."""
    for _ in range(5):
        project = await seed.project(webhook_url="https://example.com/")
        session = await seed.opened(project)
        await asyncio.gather(
            storage.projects.delete_project(project.developer_id, project.id),
            other_node.sessions.confirm_session(session.key, seed.identity("1001"), seed.now, seed.event(project)),
        )
        assert await storage.sessions.read_session(session.key) is None
    await seed.purge_projects(100)
    assert await storage.deliveries.claim_deliveries(seed.now, seed.now + 1, 10) == []


async def test_purge_deleted_projects_erases_only_deleted_ones_in_small_steps(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """Two nodes erase in turn in many small batches; a remaining project of the same users keeps every figure."""
    ada = await seed.developer()
    doomed = await seed.project(ada, webhook_url="https://example.com/")
    kept = await seed.project(ada, webhook_url="https://example.com/")
    statuses: dict[str, SignInStatus] = {}
    for number in range(30):
        await seed.confirmed(doomed, user=f"{number}", at=seed.now - (number % 3) * DAY)
        if number % 3 == 0:
            statuses[(await seed.confirmed(kept, user=f"{number}")).id] = "confirmed"
    figures = await storage.counts.read_daily_counts([kept.id], 0)
    assert await storage.projects.purge_deleted_projects(7) == 0
    await storage.projects.delete_project(ada.id, doomed.id)
    steps = []
    while erased := sum(
        await asyncio.gather(*(store.projects.purge_deleted_projects(7) for store in (storage, other_node)))
    ):
        steps.append(erased)
    assert max(steps) <= 2 * (7 + 7 + 2)
    assert await storage.counts.read_daily_counts([doomed.id], 0) == []
    assert await storage.counts.read_daily_counts([kept.id], 0) == figures
    assert {row.unique_users for row in await storage.counts.read_daily_users(ada.id, seed.now // DAY)} == {10}
    assert sum(row.latest_users for row in await storage.counts.read_daily_users(ada.id, 0)) == 10
    found = await storage.sessions.list_sessions([kept.id, doomed.id], None, None, 100, seed.now)
    assert {session.id: session.status for session in found} == statuses


async def test_count_projects_counts_a_developers_own(storage: Storage, seed: Seed) -> None:
    """Deleted projects do not count, and an unknown developer has none."""
    ada, bob = await seed.developer(), await seed.developer()
    first, _, _ = await seed.project(ada), await seed.project(ada), await seed.project(bob)
    assert await storage.projects.count_projects(ada.id) == 2
    assert await storage.projects.delete_project(ada.id, first.id)
    assert await storage.projects.count_projects(ada.id) == 1
    assert [await storage.projects.count_projects(nobody) for nobody in ("dev_nobody", "dev_\0")] == [0, 0]


async def test_name_projects_lists_a_developers_own(storage: Storage, seed: Seed) -> None:
    """Ids and names are listed, oldest first."""
    ada = await seed.developer()
    late, early = [await seed.project(ada, created_at=seed.now + number) for number in (2, 1)]
    await seed.project()
    assert await storage.projects.name_projects(ada.id) == [(early.id, early.name), (late.id, late.name)]
    assert [await storage.projects.name_projects(nobody) for nobody in ("dev_nobody", "dev_\0")] == [[], []]


async def test_read_projects_returns_those_asked_for(storage: Storage, seed: Seed) -> None:
    """Projects are returned oldest first with their counts, whatever the order of the ids.

    Other developers' are left out.
    """
    ada = await seed.developer()
    late, early = [await seed.project(ada, created_at=seed.now + number) for number in (2, 1)]
    await seed.project(ada)
    foreign = await seed.project()
    await seed.confirmed(late)
    counted = replace(late, sessions_count=1, confirmed_count=1)
    assert await storage.projects.read_projects(ada.id, [late.id, foreign.id, early.id, "proj_\0"]) == [early, counted]
    assert await storage.projects.read_projects(ada.id, []) == []
    assert [await storage.projects.read_projects(nobody, [late.id]) for nobody in ("dev_nobody", "dev_\0")] == [[], []]
