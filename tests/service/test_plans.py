"""Plans: their limits, the counted sign-ins, and the effect of a change."""

import functools
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest
from tests.service.conftest import acting
from tests.whole_sign_in import WholeSignIn

from taproof.contract.account import Plan
from taproof.core.address_rules import AddressRules
from taproof.core.clock import DAY, MINUTE, month_of
from taproof.core.entropy import system_entropy
from taproof.core.errors import InvalidRequest, PlanLimitReached, ProjectNotFound, StoreUnavailable, TooManyProjects
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import SERVICE_DEVELOPER, ProjectChanges
from taproof.service import projects as project_service
from taproof.service.console.sign_in import CONSOLE, DeveloperSignIns
from taproof.service.plans import FRESH, Plans
from taproof.service.projects import Projects

if TYPE_CHECKING:
    from tests.service.conftest import Node


def plans_of(node: "Node", sign_ins: dict[Plan, int]) -> Plans:
    return Plans(node.storage, node.clock, system_entropy, projects={}, sign_ins=sign_ins)


async def test_a_month_is_counted_afresh_now_and_then(node: "Node", monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's sign-ins are counted at most every ten seconds, however many start; then the limit takes effect."""
    plans = plans_of(node, sign_ins={"free": 2})
    developer, project = await node.owned()
    reads = 0
    read_used = node.storage.plans.read_used

    async def counted(developer_id: str, first_day: int) -> object:
        nonlocal reads
        reads += 1
        return await read_used(developer_id, first_day)

    monkeypatch.setattr(node.storage.plans, "read_used", counted)
    for _ in range(50):
        await plans.require_room(developer.id, "free")
    assert reads == 1
    for user in ("1001", "1002"):
        await node.confirmed(project, user)
    node.clock.now += FRESH - 1
    await plans.require_room(developer.id, "free")
    node.clock.now += 1
    with pytest.raises(PlanLimitReached):
        await plans.require_room(developer.id, "free")
    assert reads == 2
    for plan in ("pro", "business"):
        await plans.require_room(developer.id, plan)
    assert reads == 2


async def test_a_clock_that_goes_back_counts_again(node: "Node") -> None:
    """A count from a time in the future is not used."""
    plans = plans_of(node, sign_ins={"free": 1})
    developer, project = await node.owned()
    await plans.require_room(developer.id, "free")
    await node.confirmed(project)
    node.clock.now -= MINUTE
    with pytest.raises(PlanLimitReached):
        await plans.require_room(developer.id, "free")


async def test_the_next_month_has_room_at_its_first_instant(node: "Node") -> None:
    """A sign-in counts in the month in which its session was created, even if it is confirmed later.

    This also applies to a cached count.
    """
    plans = plans_of(node, sign_ins={"free": 1})
    node.clock.now = month_of(node.clock.now).stop * DAY - 1
    developer, project = await node.owned()
    token = await node.opened(project)
    await plans.require_room(developer.id, "free")
    node.clock.now += 1
    await node.signin.confirm_session(token, MessengerIdentity("1001", "Ada", ""))
    await plans.require_room(developer.id, "free")
    assert (await plans.read_usage(developer)).sign_ins_this_month == 0


async def test_a_store_that_is_away_is_told_and_not_taken_for_room(
    node: "Node", monkeypatch: pytest.MonkeyPatch
) -> None:
    """If nothing was counted yet, the error is raised; otherwise, the last count applies for another ten seconds."""
    plans = plans_of(node, sign_ins={"free": 1})
    developer = await node.developer()

    async def fail(*_: object) -> None:
        raise StoreUnavailable

    with monkeypatch.context() as patched:
        patched.setattr(node.storage.plans, "read_used", fail)
        with pytest.raises(StoreUnavailable):
            await plans.require_room(developer.id, "free")
    await plans.require_room(developer.id, "free")


async def test_signing_in_to_the_service_itself_has_no_limit(node: "Node") -> None:
    """No limit applies, because otherwise nobody could sign in to the console to change anything."""
    room = plans_of(node, sign_ins={"free": 0, "pro": 0, "business": 0}).require_room
    signin = WholeSignIn(node.storage, node.encryptor, node.link, node.clock, system_entropy, require_room=room)
    console = DeveloperSignIns(node.storage, node.encryptor, signin, node.clock, system_entropy, waiting=signin.waiting)
    assert (await console.start(CONSOLE)).deeplink
    assert await node.storage.projects.list_projects(SERVICE_DEVELOPER)


async def test_no_plan_has_room_for_more_than_any_developer(node: "Node", monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of all developers stays, with its own error."""
    monkeypatch.setattr(project_service, "PROJECT_LIMIT", 1)
    developer = await node.developer()
    made = Projects(
        node.storage,
        node.encryptor,
        node.clock,
        system_entropy,
        address_rules=AddressRules(),
        webhook_ports=frozenset({443}),
        allow_loopback_http=False,
        limits={"free": 5},
    )
    await made.create_project(acting(developer), ProjectChanges(name="Shop"))
    with pytest.raises(TooManyProjects):
        await made.create_project(acting(developer), ProjectChanges(name="Shop"))


async def test_a_plan_that_is_another_one_for_a_moment(
    node: "Node", other_node: "Node", monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal has the reason that the store found, even if it no longer applies.

    It is not taken for another limit.
    """
    developer, project = await node.owned("pro")
    changes = ProjectChanges(name="Shop", collect_phone=True)

    async def while_free(store: Callable[..., Awaitable[Any]], *values: Any, **more: Any) -> Any:
        assert await other_node.storage.plans.update_plan(developer.id, "free")
        try:
            return await store(*values, **more)
        finally:
            assert await other_node.storage.plans.update_plan(developer.id, "pro")

    for method in ("update_project", "create_project"):
        monkeypatch.setattr(
            node.storage.projects, method, functools.partial(while_free, getattr(node.storage.projects, method))
        )
    with pytest.raises(InvalidRequest, match=r"^collect_phone is available"):
        await node.projects.update_project(acting(developer), project.id, changes)
    with pytest.raises(InvalidRequest, match=r"^collect_phone is available"):
        await node.projects.create_project(acting(developer), changes)
    monkeypatch.undo()
    await node.storage.projects.delete_project(developer.id, project.id)
    with pytest.raises(ProjectNotFound):
        await node.projects.update_project(acting(developer), project.id, changes)


async def test_generate_is_refused_and_what_is_under_way_goes_on(node: "Node") -> None:
    """New sessions are refused for every caller and not stored; existing ones are opened, confirmed and read."""
    room = plans_of(node, sign_ins={"free": 1}).require_room
    signin = WholeSignIn(node.storage, node.encryptor, node.link, node.clock, system_entropy, require_room=room)
    _, project = await node.owned()
    under_way = [(await signin.create_session(project.id, public=True)).session_token for _ in range(3)]
    await node.confirmed(project)
    node.clock.now += FRESH
    for public in (True, False):
        with pytest.raises(PlanLimitReached):
            await signin.create_session(project.id, public=public)
    stored = await node.storage.projects.read_project(project.id)
    assert stored is not None
    assert stored.sessions_count == 4
    for token in under_way:
        await signin.open_session(token, "7")
        assert (await signin.confirm_session(token, MessengerIdentity("7", "Ada", ""))).outcome == "confirmed"
        assert (await signin.verify_session(project.id, token, public=True)).proof
