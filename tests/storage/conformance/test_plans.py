"""Conformance: plans, and their usage."""

import asyncio
import itertools
from dataclasses import replace
from typing import Any

import pytest
from tests.databases import NOW
from tests.storage.seed import Seed

from taproof.core.clock import DAY, day_number
from taproof.core.errors import InvalidRequest
from taproof.core.projects import ProjectChanges
from taproof.storage.protocol import Storage

TODAY = day_number(NOW)


async def test_update_plan_changes_one_developer(storage: Storage, seed: Seed) -> None:
    """Other developers keep their plans; calls that change nothing are in `test_audit.scenes`."""
    ada, bob = await seed.developer(plan="pro"), await seed.developer(plan="pro")
    assert await storage.plans.update_plan(ada.id, "business", entry=seed.entry(ada.id))
    assert await storage.developers.read_developer(ada.email) == replace(ada, plan="business")
    assert await storage.developers.read_developer(bob.email) == bob


async def test_update_plan_stops_collecting_on_free(storage: Storage, seed: Seed) -> None:
    """Collecting stops in all projects of this developer only. Other plans change no project."""
    ada, bob = await seed.developer(plan="business"), await seed.developer(plan="pro")
    first, second, others = await seed.project(ada), await seed.project(ada), await seed.project(bob)
    collect = ProjectChanges(collect_phone=True)
    for project in (first, second, others):
        assert await storage.projects.update_project(project.developer_id, project.id, collect, NOW)
    assert await storage.plans.update_plan(ada.id, "pro")
    assert [project.collect_phone for project in await storage.projects.list_projects(ada.id)] == [True, True]
    assert await storage.plans.update_plan(ada.id, "free")
    assert [project.collect_phone for project in await storage.projects.list_projects(ada.id)] == [False, False]
    assert [project.collect_phone for project in await storage.projects.list_projects(bob.id)] == [True]


async def test_update_project_collects_on_paid_plans_only(storage: Storage, seed: Seed) -> None:
    """A refused change does nothing and adds no audit entry. Every other change is accepted."""
    ada = await seed.developer()
    project = await seed.project(ada)
    changes = ProjectChanges(name="Other", collect_phone=True)
    with pytest.raises(InvalidRequest, match="collect_phone"):
        await storage.projects.update_project(ada.id, project.id, changes, NOW, entry=seed.entry(ada.id))
    assert await storage.projects.read_project(project.id) == project
    assert not await storage.audit.list_audit_entries(ada.id, None, 9)
    allowed = ProjectChanges(name="Other", collect_phone=False)
    assert await storage.projects.update_project(ada.id, project.id, allowed, NOW) == replace(project, name="Other")


async def test_create_project_collects_on_paid_plans_only(storage: Storage, seed: Seed) -> None:
    """On the free plan, the project is not created."""
    ada = await seed.developer()
    project = replace(await seed.project(ada), id="proj_other", collect_phone=True)
    with pytest.raises(InvalidRequest, match="collect_phone"):
        await storage.projects.create_project(project, b"k" * 32)
    assert await storage.projects.read_project("proj_other") is None
    assert await storage.plans.update_plan(ada.id, "pro")
    assert await storage.projects.create_project(project, b"k" * 32)


async def test_update_plan_wins_over_whoever_sets_collecting_at_the_same_instant(
    storage: Storage, other_node: Storage, seed: Seed
) -> None:
    """On two nodes and in any order of calls, no project collects after a downgrade."""
    ada = await seed.developer(plan="pro")
    projects = [await seed.project(ada) for _ in range(4)]
    collect = ProjectChanges(collect_phone=True)
    outcomes = set()
    for turn in range(12):
        made = [replace(projects[0], id=seed.name("proj"), collect_phone=True) for _ in range(2)]
        nodes = itertools.cycle((storage, other_node) if turn % 2 else (other_node, storage))
        calls: list[Any] = [next(nodes).projects.update_project(ada.id, each.id, collect, NOW) for each in projects]
        calls += [next(nodes).projects.create_project(each, seed.key_hash(each)) for each in made]
        calls.insert(turn % len(calls), next(nodes).plans.update_plan(ada.id, "free"))
        results = await asyncio.gather(*calls, return_exceptions=True)
        outcomes |= {not isinstance(result, InvalidRequest) for result in results if result is not False}
        assert not [project for project in await storage.projects.list_projects(ada.id) if project.collect_phone]
        assert await storage.plans.update_plan(ada.id, "pro")
    assert outcomes == {True, False}


async def test_read_used_counts_a_user_once_a_day(storage: Storage, seed: Seed) -> None:
    """All projects of a developer count, by the day of the session. Unconfirmed sessions do not count."""
    ada = await seed.developer()
    first, second, others = await seed.project(ada), await seed.project(ada), await seed.project()
    await seed.confirmed(first, at=NOW - DAY)
    for project in (first, first, second):
        await seed.confirmed(project)
    await seed.confirmed(second, "1002")
    await seed.opened(second, "1003")
    await seed.confirmed(others, "1004")
    assert await storage.plans.read_used(ada.id, TODAY - 1) == (2, 3)
    assert await storage.plans.read_used(ada.id, TODAY) == (2, 2)
    assert await storage.plans.read_used(ada.id, TODAY + 1) == (2, 0)
    assert await storage.plans.read_used("dev_nobody", 0) == (0, 0)
    assert await storage.plans.read_used("dev_\0", 0) == (0, 0)


async def test_read_used_counts_a_user_once_for_all_nodes(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Concurrent sign-ins of one user count once, on two nodes and in two projects."""
    ada = await seed.developer()
    projects = [await seed.project(ada) for _ in range(2)]
    calls = []
    for turn, user in itertools.product(range(40), ("1001", "1002")):
        project = projects[turn % 2]
        session = await seed.opened(project, user)
        node = (storage, other_node)[turn // 2 % 2]
        calls.append(
            node.sessions.confirm_session(session.key, seed.identity(user), session.created_at, seed.event(project))
        )
    assert all(await asyncio.gather(*calls))
    assert await storage.plans.read_used(ada.id, TODAY) == (2, 2)
    (users,) = await storage.counts.read_daily_users(ada.id, 0)
    assert (users.unique_users, users.latest_users) == (2, 2)
    rows = await storage.counts.read_daily_counts([project.id for project in projects], 0)
    assert [(row.confirmed, row.unique_users, row.latest_users) for row in rows] == [(40, 2, 2)] * 2


async def test_delete_project_leaves_what_it_used(storage: Storage, seed: Seed) -> None:
    """The usage stays the same at each step of the erasure, also for users of two projects."""
    ada = await seed.developer()
    first, second = await seed.project(ada), await seed.project(ada)
    await seed.confirmed(first, at=NOW - DAY)
    for user in ("1001", "1002", "1003"):
        await seed.confirmed(first, user)
    for user in ("1003", "1004"):
        await seed.confirmed(second, user)
    assert not await storage.projects.delete_project("dev_other", first.id)
    for project, left in ((first, 1), (second, 0)):
        assert await storage.projects.delete_project(ada.id, project.id)
        while await storage.projects.purge_deleted_projects(1):
            assert await storage.plans.read_used(ada.id, TODAY - 1) == (left, 5)
            assert await storage.plans.read_used(ada.id, TODAY) == (left, 4)
    assert await storage.plans.read_used(ada.id, TODAY - 1) == (0, 5)


async def test_delete_project_of_two_at_once_counts_both(storage: Storage, other_node: Storage, seed: Seed) -> None:
    """Two nodes that erase at the same time write the same rows."""
    ada = await seed.developer()
    projects = [await seed.project(ada) for _ in range(6)]
    for (at, project), day in itertools.product(enumerate(projects), range(3)):
        await seed.confirmed(project, str(at), at=NOW - day * DAY)
    nodes = itertools.cycle((storage, other_node))
    assert all(await asyncio.gather(*(next(nodes).projects.delete_project(ada.id, project.id) for project in projects)))
    while any(await asyncio.gather(*(node.projects.purge_deleted_projects(1) for node in (storage, other_node)))):
        pass
    assert await storage.plans.read_used(ada.id, TODAY - 2) == (0, 18)


async def test_purge_removed_usage_is_bounded(storage: Storage, seed: Seed) -> None:
    """Only days before the limit are erased, a few at a time."""
    ada = await seed.developer()
    project = await seed.project(ada)
    for day in range(5):
        await seed.confirmed(project, at=NOW - day * DAY)
    assert await storage.projects.delete_project(ada.id, project.id)
    await seed.purge_projects(100)
    assert [await storage.plans.purge_removed_usage(TODAY - 1, 2) for _ in range(3)] == [2, 1, 0]
    assert await storage.plans.read_used(ada.id, 0) == (0, 2)
