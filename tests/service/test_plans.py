"""Plans: their limits, what is counted, and what a change of plan does."""

import asyncio
import functools
import itertools
import json
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

BOTH = pytest.mark.parametrize("driver", ["sqlite", "postgres"])


def plans_of(node: "Node", projects: dict[Plan, int] | None = None, sign_ins: dict[Plan, int] | None = None) -> Plans:
    return Plans(node.storage, node.clock, system_entropy, projects=projects or {}, sign_ins=sign_ins or {})


def projects_of(node: "Node", limits: dict[Plan, int]) -> Projects:
    return Projects(
        node.storage,
        node.encryptor,
        node.clock,
        system_entropy,
        address_rules=AddressRules(),
        webhook_ports=frozenset({443}),
        allow_loopback_http=False,
        limits=limits,
    )


def signin_of(node: "Node", plans: Plans) -> WholeSignIn:
    return WholeSignIn(
        node.storage, node.encryptor, node.link, node.clock, system_entropy, require_room=plans.require_room
    )


# ---- the month


async def test_a_month_is_counted_afresh_now_and_then(node: "Node", monkeypatch: pytest.MonkeyPatch) -> None:
    """At most every ten seconds for a developer, however many sign-ins they start; then the limit is seen."""
    plans = plans_of(node, sign_ins={"free": 2})
    developer = await node.developer()
    project, _ = await node.project(developer)
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


@BOTH
async def test_one_user_takes_at_most_one_sign_in_a_day(node: "Node") -> None:
    """A stranger who confirms session after session leaves the developer's other projects room for the whole month."""
    signin = signin_of(node, plans_of(node, sign_ins={"free": 32}))
    developer = await node.developer()
    project, other = [(await node.project(developer))[0] for _ in range(2)]
    first_day = month_of(node.clock.now).start
    for day in month_of(node.clock.now):
        node.clock.now = day * DAY
        for _ in range(5):
            token = (await signin.create_session(project.id, public=True)).session_token
            await signin.open_session(token, "666")
            assert (await signin.confirm_session(token, MessengerIdentity("666", "Mallory", ""))).changed
            node.clock.now += FRESH
    assert (await node.storage.plans.read_used(developer.id, first_day)).sign_ins == len(month_of(node.clock.now)) <= 31
    assert await signin.create_session(other.id, public=True)


async def test_a_clock_that_goes_back_counts_again(node: "Node") -> None:
    """A count from a time in the future is not used."""
    plans = plans_of(node, sign_ins={"free": 1})
    developer = await node.developer()
    project, _ = await node.project(developer)
    await plans.require_room(developer.id, "free")
    await node.confirmed(project)
    node.clock.now -= MINUTE
    with pytest.raises(PlanLimitReached):
        await plans.require_room(developer.id, "free")


async def test_the_next_month_has_room_at_its_first_instant(node: "Node") -> None:
    """Sign-ins count in the month of their session, though they be confirmed in the next; so does what was cached."""
    plans = plans_of(node, sign_ins={"free": 1})
    node.clock.now = month_of(node.clock.now).stop * DAY - 1
    developer = await node.developer()
    project, _ = await node.project(developer)
    token = await node.opened(project)
    await plans.require_room(developer.id, "free")
    node.clock.now += 1
    await node.signin.confirm_session(token, MessengerIdentity("1001", "Ada", ""))
    await plans.require_room(developer.id, "free")
    assert (await plans.read_usage(developer)).sign_ins_this_month == 0


async def test_a_store_that_is_away_is_told_and_not_taken_for_room(
    node: "Node", monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as nothing was counted; later calls go by the count before for another ten seconds."""
    plans = plans_of(node, sign_ins={"free": 1})
    developer = await node.developer()

    async def fail(*_: object) -> None:
        raise StoreUnavailable

    with monkeypatch.context() as patched:
        patched.setattr(node.storage.plans, "read_used", fail)
        with pytest.raises(StoreUnavailable):
            await plans.require_room(developer.id, "free")
    await plans.require_room(developer.id, "free")


async def test_generate_is_refused_and_what_is_under_way_goes_on(node: "Node") -> None:
    """Refused by any of its callers, with nothing stored; sessions of before are opened, confirmed and read."""
    signin = signin_of(node, plans_of(node, sign_ins={"free": 1}))
    developer = await node.developer()
    project, _ = await node.project(developer)
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


async def test_signing_in_to_the_service_itself_has_no_limit(node: "Node") -> None:
    """No limit applies: otherwise nobody could sign in to the console to change anything."""
    signin = signin_of(node, plans_of(node, sign_ins={"free": 0, "pro": 0, "business": 0}))
    console = DeveloperSignIns(node.storage, node.encryptor, signin, node.clock, system_entropy, waiting=signin.waiting)
    assert (await console.start(CONSOLE)).deeplink
    assert await node.storage.projects.list_projects(SERVICE_DEVELOPER)


# ---- projects


@BOTH
async def test_of_those_who_make_the_last_project_one_does(node: "Node", other_node: "Node") -> None:
    """On two nodes at the same instant; the others are told how many there may be."""
    developer = await node.developer()
    nodes = itertools.cycle([projects_of(each, {"free": 3}) for each in (node, other_node)])

    async def create() -> str:
        try:
            await next(nodes).create_project(acting(developer), ProjectChanges(name="Shop"))
        except PlanLimitReached as error:
            return error.sentence
        return "made"

    outcomes = await asyncio.gather(*(create() for _ in range(8)))
    assert outcomes.count("made") == 3
    sentence = (
        "The free plan allows 3 projects, and this account has reached that limit. Delete an unused project, "
        "or ask the operator of this service for another plan."
    )
    assert {each for each in outcomes if each != "made"} == {sentence}


async def test_no_plan_has_room_for_more_than_any_developer(node: "Node", monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of all developers stays, with its own error."""
    monkeypatch.setattr(project_service, "PROJECT_LIMIT", 1)
    developer = await node.developer()
    made = projects_of(node, {"free": 5})
    await made.create_project(acting(developer), ProjectChanges(name="Shop"))
    with pytest.raises(TooManyProjects):
        await made.create_project(acting(developer), ProjectChanges(name="Shop"))


# ---- a change of plan


@BOTH
async def test_a_downgrade_and_collecting_at_the_same_instant(node: "Node", other_node: "Node") -> None:
    """A request based on the old plan is refused with the new one; in the end no project collects numbers."""
    developer = await node.developer("pro")
    project, _ = await node.project(developer)
    other_plans = plans_of(other_node)
    assert await other_plans.update_plan(developer, "free")
    assert not await other_plans.update_plan(developer, "free")
    with pytest.raises(InvalidRequest, match=r"^collect_phone is available on the pro and business plans"):
        await node.projects.update_project(acting(developer), project.id, ProjectChanges(collect_phone=True))
    with pytest.raises(InvalidRequest, match=r"^collect_phone is available on the pro and business plans"):
        await node.projects.create_project(acting(developer), ProjectChanges(name="Shop", collect_phone=True))
    assert [each.collect_phone for each in await node.projects.list_projects(developer)] == [False]


@BOTH
async def test_a_plan_that_is_another_one_for_a_moment(
    node: "Node", other_node: "Node", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason of a refusal is what the store found, also if it is so no more; the limit is not mistaken for it."""
    developer = await node.developer("pro")
    project, _ = await node.project(developer)
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


async def test_a_change_of_plan_is_in_the_log_of_the_developer(node: "Node") -> None:
    """From what to what, once, by the operator."""
    developer = await node.developer()
    plans = plans_of(node)
    node.clock.now += 1
    assert await plans.update_plan(developer, "business")
    page = await node.audit.list_audit_entries(developer, limit=1, cursor=None)
    [entry] = page.entries
    assert (entry.action, entry.actor, entry.subject) == ("developer.plan_changed", "command line", developer.id)
    assert json.loads(entry.details) == {"plan": "business", "before": "free"}
