"""Export one user in bounded steps, with each session once, complete or visibly broken off."""

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest
from tests.databases import every_driver, expired_event
from tests.service.conftest import acting

from taproof.core.accounts import Developer
from taproof.core.clock import DAY, HOUR
from taproof.core.encryption import Encryptor, new_master_key
from taproof.core.entropy import system_entropy
from taproof.core.errors import ErasedMeanwhile, ProjectNotFound
from taproof.core.identity import MessengerIdentity
from taproof.core.projects import Project
from taproof.service.erasure import Erasure
from taproof.service.user_export import LAST_LINE, STEP, UserExports

if TYPE_CHECKING:
    from tests.service.conftest import Node

FILL = """
INSERT INTO sessions (day, token_hash, id, project_id, status, created_at, expires_at, opener_id, messenger_id)
SELECT $1, CAST(substr(hex(n + 4294967296), 2) AS BLOB), 'sess_' || n, $2, 'used', n, n, '1001', '1001'
FROM (WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < $3) SELECT n FROM s)"""

JOIN = """
INSERT INTO project_members (project_id, developer_id, role, created_at, invited_by)
VALUES ($1, $2, 'developer', 0, '') RETURNING role"""


class Steps:
    """Wraps a store's erasure: records the number of rows of each call, and runs an action before a call."""

    def __init__(self, node: "Node") -> None:
        self._real: Any = node.storage.erasure
        self.sizes: list[int] = []
        self.before: dict[int, Callable[[], Awaitable[object]]] = {}
        """The action before the call of `export_sessions` with this number."""
        self._calls = 0

    def __getattr__(self, name: str) -> Any:
        async def call(*values: Any, **named: Any) -> Any:
            if name == "export_sessions":
                if happens := self.before.get(self._calls):
                    await happens()
                self._calls += 1
            found = await getattr(self._real, name)(*values, **named)
            lists = found.values() if isinstance(found, dict) else [found] if isinstance(found, list) else []
            self.sizes += map(len, lists)
            return found

        return call


def watched(node: "Node", monkeypatch: pytest.MonkeyPatch) -> Steps:
    steps = Steps(node)
    monkeypatch.setattr(node.storage, "erasure", steps)
    return steps


def owner_of(project: Project) -> Developer:
    return Developer(project.developer_id, "ada@example.com", "free", 0)


async def export(node: "Node", project: Project) -> str:
    """Export the user 1001 for the developer of a project."""
    texts = await UserExports(node.storage, node.encryptor, node.clock, step=2).export_user(owner_of(project), "1001")
    return "".join([text async for text in texts])


async def test_an_export_reads_and_writes_in_bounded_steps(node: "Node", monkeypatch: pytest.MonkeyPatch) -> None:
    """However many sign-ins there are, a step reads at most STEP rows of a list, and each text has one item."""
    project, _ = await node.project()
    await node.storage.database.add(FILL, node.clock.now // DAY, project.id, 2_000)
    steps = watched(node, monkeypatch)
    texts = [text async for text in UserExports(node.storage, node.encryptor, node.clock).export_everywhere("1001")]
    assert max(steps.sizes) == STEP
    assert max(map(len, texts)) < 2_000
    text = "".join(texts)
    assert sorted(each["id"] for each in json.loads(text)["sessions"]) == sorted(f"sess_{n}" for n in range(1, 2_001))
    assert text.endswith(f"\n{LAST_LINE}")
    assert len(text.splitlines()) > 2_000


@every_driver
async def test_an_export_shows_each_session_once_while_they_change(
    node: "Node", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions are confirmed, used, cancelled and expire between the steps, and others are opened."""
    project, _ = await node.project(webhook_url="https://example.com/")
    tokens = [await node.opened(project) for _ in range(8)]
    tokens += [await node.confirmed(project) for _ in range(4)]
    steps = watched(node, monkeypatch)

    async def change() -> None:
        for token in tokens[:3]:
            await node.signin.confirm_session(token, MessengerIdentity("1001", "Ada", "ada"))
        for token in (*tokens[:2], *tokens[8:10]):
            await node.signin.verify_session(project.id, token, public=True)
        await node.signin.cancel_session(tokens[4], "1001")
        node.clock.now += HOUR
        while await node.storage.sessions.expire_sessions(node.clock.now, 100, expired_event):
            pass

    steps.before = dict.fromkeys((1, 3), change)
    sessions = json.loads(await export(node, project))["sessions"]
    assert len({each["id"] for each in sessions}) == len(sessions) == len(tokens)


async def _erase_all(node: "Node", project: Project) -> None:
    await Erasure(node.storage, node.clock, system_entropy).erase_everywhere("1001", lambda _: None)


async def _erase_own(node: "Node", project: Project) -> None:
    await Erasure(node.storage, node.clock, system_entropy).erase_user(acting(owner_of(project)), "1001")


async def _erase_first(node: "Node", project: Project) -> None:
    """Leave an erasure unfinished, as if its process was killed."""
    await node.storage.erasure.erase_sessions("1001", project.id, None, 3, describe=lambda _: [])


async def _delete_project(node: "Node", project: Project) -> None:
    assert await node.storage.projects.delete_project(project.developer_id, project.id)


@pytest.mark.parametrize(
    ("happens", "at", "error"),
    [
        (_erase_all, 1, ErasedMeanwhile),
        (_erase_own, 1, ErasedMeanwhile),
        (_erase_first, 1, ErasedMeanwhile),
        (_erase_all, 5, ErasedMeanwhile),
        (_delete_project, 1, ProjectNotFound),
        (_erase_all, 0, None),
    ],
)
async def test_an_export_is_complete_or_breaks_off(
    node: "Node",
    monkeypatch: pytest.MonkeyPatch,
    happens: Callable[["Node", Project], Awaitable[None]],
    at: int,
    error: type[Exception] | None,
) -> None:
    """If something is erased during the export, its end is missing. Before the first session, there is nothing left."""
    developer = await node.developer()
    projects = [(await node.project(developer))[0] for _ in range(3)]
    projects.sort(key=lambda each: each.id)
    for project in projects:
        for _ in range(5):
            await node.confirmed(project)
    steps = watched(node, monkeypatch)
    steps.before[at] = lambda: happens(node, projects[0])
    if error is None:
        assert json.loads(await export(node, projects[0]))["sessions"] == []
    else:
        with pytest.raises(error):
            await export(node, projects[0])


@pytest.mark.parametrize("named", ["find_project", "export_sessions", "export_days"])
async def test_an_export_breaks_off_if_the_rights_end(
    node: "Node", monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """Before each kind of step. Otherwise the later lists would lack the project, and the export look complete."""
    owner, other = [await node.developer() for _ in range(2)]
    project, _ = await node.project(owner)
    await node.confirmed(project)
    await node.storage.database.add(JOIN, project.id, other.id)
    real = getattr(node.storage.erasure, named)

    async def after_the_end(*values: Any) -> Any:
        await node.storage.members.delete_member(owner.id, project.id, other.id)
        return await real(*values)

    steps = watched(node, monkeypatch)
    setattr(steps, named, after_the_end)
    pieces = await UserExports(node.storage, node.encryptor, node.clock).export_user(other, "1001")
    with pytest.raises(ProjectNotFound):
        _ = [piece async for piece in pieces]


async def test_values_that_cannot_be_decrypted_are_logged_once(node: "Node", capfd: pytest.CaptureFixture[str]) -> None:
    """With the wrong master key, all of them are left out, and the log has one line for each kind."""
    project, _ = await node.project(webhook_url="https://example.com/")
    for _ in range(3):
        await node.confirmed(project)
    node.encryptor = Encryptor(new_master_key(system_entropy))
    sessions = json.loads(await export(node, project))["sessions"]
    assert [each["deliveries"][0]["body"] for each in sessions] == [None] * 3
    assert "".join(capfd.readouterr()).count("export_unreadable") == 1
