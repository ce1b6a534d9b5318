"""Return codes: with `same_device` set to "require", only the browser in which a sign-in began gets its proof."""

import asyncio
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.databases import every_driver
from tests.service.callers import never
from tests.service.conftest import acting
from tests.waiting import until

from taproof.contract.project import SameDevice
from taproof.core.code_challenge import REREAD_WINDOW
from taproof.core.errors import (
    CodeVerifierMissing,
    InvalidRequest,
    SameDeviceRequired,
    SessionNotFound,
)
from taproof.core.identity import MessengerIdentity
from taproof.core.oidc.clients import ClientChanges
from taproof.core.projects import Project, ProjectChanges
from taproof.core.return_code import RETURN_LIFETIME
from taproof.core.sessions import ReturnPolicy
from taproof.sdk.code_challenge import code_challenge
from taproof.service.oidc.clients import OidcClients
from taproof.service.sessions.results import VerifyResult

if TYPE_CHECKING:
    from tests.service.conftest import Node

USER = MessengerIdentity("1001", "Ada", "ada")
PAGE = "https://shop.example/sign-in?next=%2F"
VERIFIER = secrets.token_urlsafe(32)
PENDING = VerifyResult("pending", hint="return")


async def project_with(node: "Node", policy: SameDevice, webhook_url: str = "", **changes: object) -> Project:
    developer, project = await node.owned("pro", webhook_url=webhook_url)
    settings = {"same_device": policy, "allowed_origins": ("https://shop.example",), **changes}
    return await node.projects.update_project(acting(developer), project.id, ProjectChanges(**settings))  # type: ignore[arg-type]


async def start(node: "Node", project: Project, page: str | None = PAGE) -> str:
    created = await node.signin.create_session(
        project.id, public=True, code_challenge=code_challenge(VERIFIER), return_url=page
    )
    assert (await node.signin.open_session(created.session_token, "1001")).outcome == "opened"
    return created.session_token


async def returning(node: "Node", project: Project) -> tuple[str, str]:
    """Return the token and the return code of a session that the user has confirmed."""
    token = await start(node, project)
    return token, code_of((await node.signin.confirm_session(token, USER)).return_link)


def code_of(link: str | None) -> str:
    assert link is not None
    page, _, code = link.partition("#taproof_return=")
    assert page == PAGE
    return code


async def read(node: "Node", project: Project, token: str, code: object = None) -> VerifyResult:
    return await node.signin.verify_session(project.id, token, public=True, code_verifier=VERIFIER, return_code=code)


async def events_of(node: "Node") -> list[str]:
    now = node.clock.now
    due = await node.storage.deliveries.claim_deliveries(now, now + 1, 100)
    await node.storage.deliveries.release_deliveries(due, now)
    return [each.event.type for each in due]


async def test_require_gives_the_proof_to_the_holder_of_the_code(node: "Node", other_node: "Node") -> None:
    """Until the code arrives, neither the page, webhook, analytics, developer nor user sees the confirmation."""
    project = await project_with(node, "require", "https://example.com/hook")
    token = await start(node, project)
    seen = await node.signin.confirm_session(token, USER)
    assert (seen.outcome, seen.changed) == ("returning", True)
    code = code_of(seen.return_link)
    assert code not in repr(seen)
    assert await read(other_node, project, token) == PENDING
    assert await events_of(node) == []
    (before,) = await node.storage.counts.read_daily_counts([project.id], 0)
    assert before.confirmed == 0
    node.clock.now += RETURN_LIFETIME - 1
    answer = await read(other_node, project, token, code)
    assert (answer.status, answer.identity, answer.confirmed_at) == ("confirmed", USER, node.clock.now)
    assert await events_of(node) == ["auth.confirmed"]
    (after,) = await node.storage.counts.read_daily_counts([project.id], 0)
    assert (after.confirmed, after.used, after.unique_users) == (1, 1, 1)


async def test_hostile_codes_give_nothing(node: "Node") -> None:
    """Guessed, malformed, foreign, replaced and expired codes are answered like a missing one.

    The user's code works.
    """
    project = await project_with(node, "require", "https://example.com/hook")
    token, replaced = await returning(node, project)
    other_token, foreign = await returning(node, project)
    code = code_of((await node.signin.confirm_session(token, USER)).return_link)
    hostile = [
        *(secrets.token_urlsafe(24) for _ in range(200)),
        *("", code[:-1], f"{code}A", code.swapcase(), f" {code}", f"{code}\0", "\ud800" * 32, "A" * 100_000),
        *(None, 7, True, [code], {"code": code}, code.encode(), replaced, foreign),
    ]
    for each in hostile:
        assert await read(node, project, token, each) == PENDING, each
    assert await events_of(node) == []
    with pytest.raises(CodeVerifierMissing):
        await node.signin.verify_session(project.id, token, public=True, return_code=code)
    wrong = secrets.token_urlsafe(32)
    with pytest.raises(SessionNotFound):
        await node.signin.verify_session(project.id, token, public=True, code_verifier=wrong, return_code=code)
    assert (await read(node, project, token, code)).status == "confirmed"
    node.clock.now += RETURN_LIFETIME
    assert await read(node, project, other_token, foreign) == VerifyResult("expired")
    assert await events_of(node) == ["auth.confirmed"]


@every_driver
async def test_a_code_works_once(node: "Node", other_node: "Node") -> None:
    """Concurrent calls on two nodes all get the same proof; afterwards, reading it again needs the code too."""
    project = await project_with(node, "require", "https://example.com/hook")
    token, code = await returning(node, project)
    answers = await asyncio.gather(*(read((node, other_node)[n % 2], project, token, code) for n in range(12)))
    assert {answer.proof for answer in answers} == {answers[0].proof}
    assert await events_of(node) == ["auth.confirmed"]
    for other in (None, "A" * 32):
        assert await read(node, project, token, other) == VerifyResult("used")
    assert await read(node, project, token, code) == answers[0]
    node.clock.now += REREAD_WINDOW
    assert await read(node, project, token, code) == VerifyResult("used")


async def test_a_lost_answer_between_the_two_writes_is_made_up_for(
    node: "Node", monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a process ends after the confirmation, the session can only be consumed with the code.

    For all other callers it expires, so that nobody waits forever.
    """
    project = await project_with(node, "require")
    token, code = await returning(node, project)
    with monkeypatch.context() as killed:
        killed.setattr(node.storage.sessions, "consume_session", never_consume)
        with pytest.raises(InterruptedError):
            await read(node, project, token, code)
    node.clock.now += RETURN_LIFETIME - 1
    assert await read(node, project, token) == PENDING
    assert (await cancel(node, project, token)) == ("confirmed", False)
    node.clock.now += 1
    wait = node.signin.waiting.wait(project.id, token, 30, never, public=True, code_verifier=VERIFIER)
    async with asyncio.timeout(20):
        assert await wait == "over"
    assert await read(node, project, token) == VerifyResult("expired")
    assert (await cancel(node, project, token)) == ("expired", False)
    assert (await read(node, project, token, code)).status == "confirmed"
    assert (await cancel(node, project, token)) == ("used", False)


async def cancel(node: "Node", project: Project, token: str) -> tuple[str, bool]:
    return await node.signin.withdraw_session(project.id, token, public=True, code_verifier=VERIFIER)


async def never_consume(*_: object) -> None:
    raise InterruptedError


async def test_a_blocked_project_gets_no_new_code(node: "Node") -> None:
    """If the user blocks the project after Confirm, no new code is given."""
    project = await project_with(node, "require")
    token, _ = await returning(node, project)
    await node.storage.users.block_project("1001", project.id, node.clock.now)
    for seen in (await node.signin.open_session(token, "1001"), await node.signin.confirm_session(token, USER)):
        assert (seen.outcome, seen.return_link) == ("blocked", None)


async def test_a_phone_number_travels_with_the_return(node: "Node") -> None:
    """The number is stored encrypted with the identity, and is part of the answer and the event."""
    project = await project_with(node, "require", "https://example.com/hook", collect_phone=True)
    token = await start(node, project)
    assert (await node.signin.confirm_session(token, USER)).outcome == "phone"
    seen = await node.signin.give_phone(USER, "1001", "+4915123456789", answers=lambda _: True)
    assert (seen.outcome, seen.changed) == ("returning", True)
    again = await node.signin.give_phone(USER, "1001", "+4915123456789", answers=lambda _: True)
    answer = await read(node, project, token, code_of(again.return_link))
    assert answer.identity is not None
    assert answer.identity.messenger_phone == "+4915123456789"


@pytest.mark.parametrize("policy", ["off", "offer"])
async def test_without_require_the_code_is_not_needed(node: "Node", policy: SameDevice) -> None:
    """The policy "offer" shows the button and "off" none; verify gives the proof with any code or none."""
    project = await project_with(node, policy)
    for code in (None, "wrong", secrets.token_urlsafe(24)):
        token = await start(node, project)
        seen = await node.signin.confirm_session(token, USER)
        assert (seen.outcome, seen.return_link is not None) == ("confirmed", policy == "offer")
        assert (await read(node, project, token, code)).status == "confirmed"
    token = await start(node, project, page=None)
    assert (await node.signin.confirm_session(token, USER)).return_link is None


async def test_require_needs_a_challenge_and_a_page(node: "Node") -> None:
    """Both endpoints check this. A later change of the policy does not change a session."""
    project = await project_with(node, "require")
    challenge = code_challenge(VERIFIER)
    for given, page in ((None, None), (challenge, None), (None, PAGE)):
        for public in (True, False):
            with pytest.raises(SameDeviceRequired):
                await node.signin.create_session(project.id, public=public, code_challenge=given, return_url=page)
    token = await start(node, project)
    await node.storage.projects.update_project(
        project.developer_id, project.id, ProjectChanges(same_device="off"), node.clock.now
    )
    assert (await node.signin.confirm_session(token, USER)).outcome == "returning"
    assert await read(node, project, token) == PENDING


async def test_require_begins_while_a_session_is_created(node: "Node", monkeypatch: pytest.MonkeyPatch) -> None:
    """If the policy changes while a session is created, the session obeys the new policy or is refused."""
    create = node.storage.sessions.create_session
    for challenge in (None, code_challenge(VERIFIER)):
        project = await project_with(node, "off")

        async def create_late(*session: Any, owner: Project = project, **options: Any) -> ReturnPolicy:
            changes = ProjectChanges(same_device="require")
            await node.storage.projects.update_project(owner.developer_id, owner.id, changes, node.clock.now)
            return await create(*session, **options)

        monkeypatch.setattr(node.storage.sessions, "create_session", create_late)
        call = node.signin.create_session(project.id, public=True, code_challenge=challenge, return_url=PAGE)
        if challenge is None:
            with pytest.raises(SameDeviceRequired):
                await call
        else:
            assert (await call).return_required
        counts = await node.storage.counts.read_daily_counts([project.id], 0)
        assert [each.requested for each in counts] == ([] if challenge is None else [1])


async def test_a_policy_keeps_a_page_to_return_to(node: "Node") -> None:
    """A change that would leave "offer" or "require" without a page is refused whole, whichever setting it changes.

    A page that Telegram does not open does not count, because no sign-in could return to it.
    """
    developer, project = await node.owned()
    actor = acting(developer)
    update = node.projects.update_project
    local = ("http://localhost:3000", "https://sso")
    pages = ("https://sso/a.b", "http://localhost:3000/?a.b")
    for nowhere in (ProjectChanges(), ProjectChanges(allowed_origins=local), ProjectChanges(return_urls=pages)):
        with pytest.raises(InvalidRequest, match="same_device"):
            await node.projects.create_project(actor, replace(nowhere, name="Shop", same_device="offer"))
        with pytest.raises(InvalidRequest, match="same_device"):
            await update(actor, project.id, replace(nowhere, name="Other", same_device="require"))
    origins = ("https://shop.example", *local)
    await update(actor, project.id, ProjectChanges(same_device="require", allowed_origins=origins))
    # Other pages do not count beside return_urls.
    for left in (*(ProjectChanges(allowed_origins=each) for each in ((), local)), ProjectChanges(return_urls=pages)):
        with pytest.raises(InvalidRequest, match="same_device"):
            await update(actor, project.id, left)
    changed = await update(
        actor, project.id, ProjectChanges(allowed_origins=(), return_urls=("https://a.example/r",) * 2)
    )
    assert (changed.name, changed.same_device, changed.return_urls) == ("Shop", "require", ("https://a.example/r",))
    for urls in (
        ("https://a.example/#x",),
        ("nothing",),
        (f"https://a.example/{'a' * 300}",),
        ("https://a.example/",) * 11,
    ):
        with pytest.raises(InvalidRequest, match="return_urls"):
            await update(actor, project.id, ProjectChanges(return_urls=urls))


@every_driver
async def test_two_nodes_leave_no_policy_without_a_page(node: "Node", other_node: "Node") -> None:
    """Of two concurrent changes, one to the policy and one that removes the page, one is refused."""
    developer = await node.developer()
    for _ in range(5):
        project, _ = await node.project(developer)
        page = ProjectChanges(allowed_origins=("https://shop.example",))
        await node.projects.update_project(acting(developer), project.id, page)
        halves = (node, ProjectChanges(same_device="require")), (other_node, ProjectChanges(allowed_origins=()))
        results = await asyncio.gather(
            *(each.projects.update_project(acting(developer), project.id, half) for each, half in halves),
            return_exceptions=True,
        )
        assert [isinstance(result, InvalidRequest) for result in results].count(True) == 1
        after = await node.projects.read_project(developer, project.id)
        assert (after.same_device == "require") is (after.allowed_origins != ())


async def test_openid_clients_need_no_page(node: "Node") -> None:
    """OpenID Connect sign-ins return to a page of the service, so the project needs no page."""
    developer, project = await node.owned()
    wanted = ClientChanges(name="Shop", redirect_uris=("https://shop.example/callback",))
    await OidcClients(node.storage, node.clock, secrets.token_bytes).create_client(
        acting(developer), project.id, wanted
    )
    changed = await node.projects.update_project(acting(developer), project.id, ProjectChanges(same_device="require"))
    assert changed.same_device == "require"
    other, _ = await node.project(developer)
    with pytest.raises(InvalidRequest, match="same_device"):
        await node.projects.update_project(acting(developer), other.id, ProjectChanges(same_device="require"))


async def test_a_waiting_page_waits_for_the_code(node: "Node") -> None:
    """Confirm does not end the wait, but the code in any other call does; a call with the code does not wait."""
    project = await project_with(node, "require")
    token = await start(node, project)
    waiting = node.signin.waiting

    async def wait(code: object = None) -> str:
        return await waiting.wait(project.id, token, 30, never, public=True, code_verifier=VERIFIER, return_code=code)

    page = asyncio.create_task(wait())
    await until(lambda: waiting.count == 1)
    code = code_of((await node.signin.confirm_session(token, USER)).return_link)
    assert await wait(code) == "over"
    assert not page.done()
    assert (await read(node, project, token, code)).status == "confirmed"
    assert await page == "over"
