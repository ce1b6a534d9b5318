"""The calls for the users of projects; see `developer_calls.py`."""

from dataclasses import dataclass
from typing import Any, Final

from taproof.contract.user import ProjectUser
from taproof.sdk.developer_api import ask_developer_api, path_id
from taproof.sdk.developer_calls import Pages
from taproof.sdk.exchange import ANSWER_LIMIT, Call, Service
from taproof.sdk.reading import read

_EXPORT_LIMIT: Final = 64 * ANSWER_LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class _Erased:
    erased: bool


def list_users(service: Service, project_id: str, *, page_size: int = 50) -> Pages[ProjectUser]:
    """Iterate over the users of a project, the latest sign-in first; pages are read as needed.

    Args:
        project_id: the project.
        page_size: number of items per request, 1 to 200.
    """
    path = f"/projects/{path_id(project_id)}/users"
    return Pages(service, path, {"limit": page_size}, "users", ProjectUser)


def export_user(service: Service, messenger_id: str) -> Call[dict[str, Any]]:
    """Return all data about a messenger user in your projects that `erase_user` removes, as JSON values."""
    path = f"/users/{path_id(messenger_id)}"
    return ask_developer_api(service, "GET", path, answer_limit=_EXPORT_LIMIT)


def erase_user(service: Service, messenger_id: str) -> Call[bool]:
    """Erase a messenger user's data in your projects: sessions, with id, names and phone number, and webhook events.

    This cannot be undone. Counts do not change. Return whether there was anything to erase.
    """
    return read(_Erased, (yield from ask_developer_api(service, "DELETE", f"/users/{path_id(messenger_id)}"))).erased
