"""Shared by the tests of projects' bots."""

import json
from typing import TYPE_CHECKING

from taproof.core.accounts import Developer
from taproof.core.projects import Project

if TYPE_CHECKING:
    from tests.service.conftest import Node


async def read(node: "Node", project: Project) -> Project:
    found = await node.storage.projects.read_member_project(project.developer_id, project.id)
    assert found is not None
    return found


async def bot_entries(node: "Node", developer: Developer) -> list[tuple[str, str, dict[str, object]]]:
    entries = await node.storage.audit.list_audit_entries(developer.id, None, 50)
    return [(each.action, each.subject, json.loads(each.details)) for each in entries if each.action.startswith("bot.")]
