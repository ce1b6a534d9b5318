"""Sign-ins from Mini Apps obey the settings and blocks of projects and users like every other sign-in."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import jwt
import pytest
from tests.giving_bots import give_bot
from tests.mini_apps import BOT_ID, PUBLIC_KEY, init_data
from tests.signals import signals
from tests.whole_sign_in import WholeSignIn

from taproof.core.accounts import Developer
from taproof.core.clock import MINUTE
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.errors import (
    BotBroken,
    DecryptionFailed,
    InitDataExpired,
    InitDataInvalid,
    InitDataUsed,
    OriginNotAllowed,
    PhoneNeeded,
    ProjectBotNeeded,
    ProjectNotFound,
    ProjectPaused,
    PublicAccessDisabled,
    SignInBlocked,
    TaproofError,
)
from taproof.core.project_bots import ProjectBot
from taproof.core.projects import Project, ProjectChanges
from taproof.core.request_context import Requester
from taproof.service.plans import Plans
from taproof.service.projects import ProjectSecrets
from taproof.service.sessions.mini_apps import MiniAppSignIns

if TYPE_CHECKING:
    from tests.service.conftest import Node


def mini_apps(node: "Node", encryptor: Encryptor | None = None, sessions: WholeSignIn | None = None) -> MiniAppSignIns:
    return MiniAppSignIns(
        node.storage,
        node.encryptor,
        sessions or WholeSignIn(node.storage, encryptor or node.encryptor, node.link, node.clock, system_entropy),
        node.clock,
        system_entropy,
        public_key=PUBLIC_KEY,
        signals=signals(event_recorded=node.receiver.recorded),
    )


async def project_with_bot(node: "Node", developer: Developer | None = None) -> tuple[Project, ProjectSecrets]:
    project, secrets = await node.project(developer, webhook_url="https://shop.example/hook")
    bot = ProjectBot(project.id, BOT_ID, "shop_bot", b"token")
    assert await give_bot(node.storage, project.developer_id, project.id, bot) == "set"
    return project, secrets


async def test_a_sign_in(node: "Node") -> None:
    """The answer is that of verify; the proof has its eight claims; the webhook, the list and analytics know of it."""
    developer = await node.developer()
    project, secrets = await project_with_bot(node, developer)
    data = init_data(node.clock.now)
    result = await mini_apps(node).sign_in(project.id, data, public=True)
    assert result.identity is not None
    assert (result.status, result.confirmed_at, result.identity.messenger_id) == ("confirmed", node.clock.now, "1001")
    assert result.proof is not None
    options = {"verify_exp": False, "verify_iat": False}
    claims = jwt.decode(result.proof, secrets.webhook_secret, algorithms=["HS256"], options=options)  # type: ignore[arg-type]
    assert claims == {
        "iss": claims["iss"],
        "messenger_id": "1001",
        "messenger_name": "Ada Lovelace",
        "messenger_username": "ada",
        "project_id": project.id,
        "session_token": claims["session_token"],
        "iat": node.clock.now // 1_000,
        "exp": node.clock.now // 1_000 + 300,
    }
    assert (await node.signin.verify_session(project.id, claims["session_token"], public=True)).status == "used"
    page = await node.session_reader.list_sessions(developer, project_id=None, status=None, limit=5, cursor=None)
    (listed,) = page.sessions
    assert (listed.status, listed.identity) == ("used", result.identity)
    counted = await node.analytics.read_analytics(developer, days=7, project_id=project.id)
    assert (counted.totals["confirmed"], counted.totals["used"]) == (1, 1)
    assert node.receiver.times_recorded == 1
    (due,) = await node.webhooks.claim_deliveries(5)
    assert due.event.type == "auth.confirmed"


CHANGES: dict[type[TaproofError], Callable[["Node", Project], Awaitable[object]]] = {
    ProjectPaused: lambda node, project: change(node, project, is_active=False),
    PublicAccessDisabled: lambda node, project: change(node, project, public_access=False),
    OriginNotAllowed: lambda node, project: change(node, project, allowed_origins=("https://shop.example",)),
    PhoneNeeded: lambda node, project: change(node, project, collect_phone=True),
    SignInBlocked: lambda node, project: node.storage.users.block_project("1001", project.id, 1),
    BotBroken: lambda node, project: node.storage.bots.mark_bot_broken(project.id, b"token", 1),
    ProjectBotNeeded: lambda node, project: give_bot(node.storage, project.developer_id, project.id, None),
    InitDataInvalid: lambda node, project: give_bot(
        node.storage, project.developer_id, project.id, ProjectBot(project.id, BOT_ID + 1, "new_bot", b"token")
    ),
    ProjectNotFound: lambda node, project: node.storage.projects.delete_project(project.developer_id, project.id),
}


async def change(node: "Node", project: Project, **fields: object) -> None:
    changes = ProjectChanges(**fields)  # type: ignore[arg-type]
    assert await node.storage.projects.update_project(project.developer_id, project.id, changes, node.clock.now)


async def test_refusals(node: "Node", subtests: pytest.Subtests) -> None:
    """Each refusal leaves the data unused, so that the user can sign in as soon as the reason is gone."""
    for number, (error, cause) in enumerate(CHANGES.items()):
        with subtests.test(error=error.__name__):
            project, _ = await project_with_bot(node, await node.developer("pro"))
            data = init_data(node.clock.now, start_param=f"{number}")
            requester = Requester(origin="https://evil.example")
            await cause(node, project)
            with pytest.raises(error):
                await mini_apps(node).sign_in(project.id, data, public=True, requester=requester)
            counts = await node.storage.counts.read_daily_counts([project.id], 0)
            assert counts == []
            await node.storage.projects.delete_project(project.developer_id, project.id)


async def test_a_phone_number_that_is_optional_is_not_needed(node: "Node") -> None:
    """Mini Apps are refused only if the number is required and the plan allows collecting it."""
    developer = await node.developer("pro")
    project, _ = await project_with_bot(node, developer)
    await change(node, project, collect_phone=True, phone_required=False)
    sign_ins = mini_apps(node)
    assert (await sign_ins.sign_in(project.id, init_data(node.clock.now), public=True)).proof
    await change(node, project, phone_required=True)
    plans = Plans(node.storage, node.clock, system_entropy, projects={}, sign_ins={})
    await plans.update_plan(developer, "free")
    assert (await sign_ins.sign_in(project.id, init_data(node.clock.now, 1002), public=True)).proof


async def test_a_secret_key_needs_no_public_access(node: "Node") -> None:
    """The project's server signs in with public access off, and its call has no origin."""
    project, _ = await project_with_bot(node)
    await change(node, project, public_access=False, allowed_origins=("https://shop.example",))
    assert (await mini_apps(node).sign_in(project.id, init_data(node.clock.now), public=False)).proof


async def test_a_proof_that_cannot_be_signed_uses_nothing_up(node: "Node") -> None:
    """With the wrong master key, nothing is stored, so the same data signs in once the key is right."""
    project, _ = await project_with_bot(node)
    data = init_data(node.clock.now)
    with pytest.raises(DecryptionFailed):
        await mini_apps(node, Encryptor(new_master_key(system_entropy))).sign_in(project.id, data, public=True)
    assert (await mini_apps(node).sign_in(project.id, data, public=True)).proof


async def test_age_and_second_use(node: "Node") -> None:
    """Data signs in once and for five minutes; after that it is stale, whether it was used or not."""
    project, _ = await project_with_bot(node)
    sign_ins = mini_apps(node)
    used, unused = init_data(node.clock.now), init_data(node.clock.now, 1002)
    await sign_ins.sign_in(project.id, used, public=True)
    for again in (used, used.replace("hash=0", "hash=1"), "&".join(reversed(used.split("&")))):
        with pytest.raises(InitDataUsed):
            await sign_ins.sign_in(project.id, again, public=True)
    node.clock.now += 5 * MINUTE
    for stale in (used, unused):
        with pytest.raises(InitDataExpired):
            await sign_ins.sign_in(project.id, stale, public=True)
    with pytest.raises(InitDataExpired):
        await sign_ins.sign_in(project.id, init_data(node.clock.now + MINUTE), public=True)


async def test_data_serves_one_project(node: "Node") -> None:
    """A bot that moves to another project does not make used data valid there."""
    first, _ = await project_with_bot(node)
    data = init_data(node.clock.now)
    await mini_apps(node).sign_in(first.id, data, public=True)
    await give_bot(node.storage, first.developer_id, first.id, None)
    second, _ = await project_with_bot(node)
    with pytest.raises(InitDataUsed):
        await mini_apps(node).sign_in(second.id, data, public=True)
