"""The developer endpoints of users: the list per project, and the export and erasure of one user's data.

`developer.py` authenticates each request and registers the routes.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from fastapi import Request, Response
from pydantic import BaseModel, Field

from taproof.api.models import Time, answer_model, list_model
from taproof.api.parameters import Caller, Cursor, Limit, ProjectId, UserId, Writer
from taproof.contract.user import ProjectUser
from taproof.core.accounts import Developer
from taproof.http.download import Download, joined
from taproof.http.limits.developers import HoldLimits
from taproof.service import json_fields
from taproof.service.erasure import Erasure
from taproof.service.user_export import UserExports
from taproof.service.users import Users

TAG: Final = "Users"

Rows = list[dict[str, Any]]


UserAnswer: Final = answer_model("UserAnswer", ProjectUser)
UserPageAnswer: Final = list_model(
    "UserPageAnswer", "One page of a project's users, the latest sign-in first.", "users", UserAnswer, in_pages=True
)


class UserExportAnswer(BaseModel):
    """All data about a user that an erasure removes. Secrets, such as session tokens and hashes, are left out."""

    messenger_id: str = Field(examples=["123456789"])
    exported_at: Time
    sessions: Rows = Field(
        description=(
            "The sessions that the user opened or confirmed, by project, with the phone number. Each has its webhook "
            "events in `deliveries`, with the bodies and the attempts to send them, and in `phone_request` and "
            "`prompt` the open request for the phone number and the message that asked the user, or null."
        ),
        examples=[
            [
                {
                    "id": "sess_7Wk2PdQ0Bv7TqLm29XcYdKpRfWz",
                    "status": "used",
                    "messenger_name": "Ada Lovelace",
                    "deliveries": [
                        {
                            "type": "auth.confirmed",
                            "state": "delivered",
                            "body": {"messenger_id": "123456789"},
                            "attempts": [{"number": 1, "status": 200, "answer": "ok"}],
                        }
                    ],
                    "phone_request": None,
                    "prompt": {"language": "en"},
                }
            ]
        ],
    )
    days: Rows = Field(
        description="The days on which the user signed in, by project. The newest one has the name and the number.",
        examples=[[{"day": "2026-11-20", "project_id": "proj_4Qm8ZtLw1Xc7Rb9Nd2KfVs", "sign_ins": 12}]],
    )
    grants: Rows = Field(
        description="What OpenID Connect clients hold of the user after a sign-in, with the name and phone number.",
        examples=[[{"id": "auth_3Kd9QwErTy7UiOpAsDfGhJ", "client_id": "oidc_6Fh2YzQw8sVb1KdTnXcR3L"}]],
    )
    groups: Rows = Field(
        description="The groups of OpenID Connect clients that contain the user.",
        examples=[[{"client_id": "oidc_6Fh2YzQw8sVb1KdTnXcR3L", "group_name": "staff"}]],
    )


class ErasedAnswer(BaseModel):
    """The user's data was erased."""

    erased: bool = Field(description="false: there was no data to erase.", examples=[True])


class UserEndpoints:
    """The endpoints, one method each. `across_projects` limits calls that search all projects of a developer."""

    def __init__(
        self,
        users: Users,
        exports: UserExports,
        erasure: Erasure,
        limits: HoldLimits,
        across_projects: Callable[[Developer], AbstractAsyncContextManager[None]],
    ) -> None:
        self._users = users
        self._exports = exports
        self._limits = limits
        self._erasure = erasure
        self._across_projects = across_projects

    async def list_users(
        self, caller: Caller, project_id: ProjectId, *, limit: Limit = 50, cursor: Cursor = None
    ) -> dict[str, Any]:
        """Return one page of the users who signed in to a project, the latest sign-in first.

        A user is listed until their last sign-in is older than the retention period, and for at least 91 days.
        """
        page = await self._users.list_users(caller, project_id, limit=limit, cursor=cursor)
        return {"users": [json_fields.user(each) for each in page.users], "next_cursor": page.next_cursor}

    async def export_user(self, request: Request, caller: Caller, messenger_id: UserId) -> Response:
        """Export a user's data in your projects: everything that erasing the user removes, and nothing of others.

        It covers the projects of which you are an owner or a developer. The response has no length in advance, and is
        sent as fast as you read it, for at most an hour. Each item of a list is on a line of its own.

        If the user is erased or your rights end meanwhile, or if you read nothing for 30 seconds, the response breaks
        off: the connection closes without the end of the chunked body. A complete response ends with a line that is
        only `}`. You can run two exports at a time.
        """
        async with self._across_projects(caller):
            pieces = joined(await self._exports.export_user(caller, messenger_id))
            first = await anext(pieces)
        slot = self._limits.developers.download(caller.id)
        return Download(first, pieces, request.state.authenticate, slot)

    async def erase_user(self, writer: Writer, messenger_id: UserId) -> ErasedAnswer:
        """Erase a user's data in your projects: sessions, phone number and webhook events, including unsent ones.

        It covers the projects of which you are an owner or a developer. Anonymous counts are kept. This cannot be
        undone; calling it again is safe. It can take a few seconds.
        """
        async with self._across_projects(writer.developer):
            return ErasedAnswer(erased=await self._erasure.erase_user(writer, messenger_id))

    @classmethod
    def add_routes(cls, add: Callable[..., None]) -> None:
        """Register every endpoint at its path with `add`, as `developer.py` does."""
        add(TAG, "GET", "/projects/{project_id}/users", cls.list_users, UserPageAnswer)
        add(TAG, "GET", "/users/{messenger_id}", cls.export_user, UserExportAnswer)
        add(TAG, "DELETE", "/users/{messenger_id}", cls.erase_user)
