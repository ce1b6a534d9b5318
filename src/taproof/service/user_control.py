"""Let users list and report their past sign-ins, and block and unblock projects.

A project bot shows and changes only its own project's data, because the owner of the bot's token can read all of the
bot's messages and which buttons users tap.
"""

from dataclasses import dataclass
from typing import Final

from taproof.core.clock import DAY, Clock
from taproof.core.projects import NamedProject
from taproof.core.service_bot import SERVICE_BOT
from taproof.core.sessions import Session, SessionKey
from taproof.service.sessions.decide import Decisions
from taproof.service.sessions.seen import SeenSession
from taproof.storage.protocol import Storage

LOOK_BACK: Final = 30 * DAY
SHOWN: Final = 10
"""The maximum number of sign-ins or projects in one message: each has a button."""
_LOOKED_AT: Final = 50
"""The number of latest sign-ins whose projects are offered for blocking."""


@dataclass(frozen=True, slots=True)
class RecentSignIn:
    """A sign-in that a user confirmed. `confirmed_at` is in ms; `is_reported`: the user reported it as not theirs."""

    key: SessionKey
    project: NamedProject
    confirmed_at: int
    is_reported: bool


class UserControl:
    """Answers users' requests to the bot `bot_id`. No user can see or change the data of another user."""

    def __init__(self, storage: Storage, decisions: Decisions, clock: Clock) -> None:
        self._storage = storage
        self._decisions = decisions
        self._clock = clock

    async def list_sign_ins(self, user_id: str, bot_id: int = SERVICE_BOT) -> list[RecentSignIn]:
        """Return at most `SHOWN` sign-ins that a user confirmed in the last 30 days, newest first."""
        return [_recent(session) for session in await self._sign_ins(user_id, bot_id, SHOWN)]

    async def list_blockable(self, user_id: str, bot_id: int = SERVICE_BOT) -> list[NamedProject]:
        """Return the projects that a user recently signed in to and has not blocked, most recent first."""
        sign_ins = await self._sign_ins(user_id, bot_id, _LOOKED_AT)
        found = dict.fromkeys(NamedProject(each.project_id, each.project_name) for each in sign_ins)
        return [each for each in found if not await self._storage.users.is_blocked(user_id, each.project_id)][:SHOWN]

    async def list_blocks(self, user_id: str, bot_id: int = SERVICE_BOT) -> list[NamedProject]:
        """Return at most `SHOWN` projects that a user has blocked, most recent first."""
        if bot_id == SERVICE_BOT:
            return await self._storage.users.list_blocks(user_id, SHOWN)
        project_id = await self._project_of(bot_id)
        return [] if project_id is None else await self._storage.users.list_blocks(user_id, 1, project_id=project_id)

    async def block_project(self, user_id: str, project_id: str, bot_id: int = SERVICE_BOT) -> NamedProject | None:
        """Block a project for a user and return it; None if it does not exist or this bot may not show it."""
        project = await self._find(project_id, bot_id)
        if project is not None:
            await self._storage.users.block_project(user_id, project_id, self._clock())
        return project

    async def unblock_project(self, user_id: str, project_id: str, bot_id: int = SERVICE_BOT) -> NamedProject | None:
        """End a user's block, if any, and return the project; None if it does not exist or this bot may not show it."""
        project = await self._find(project_id, bot_id)
        if project is not None:
            await self._storage.users.unblock_project(user_id, project_id)
        return project

    async def report_sign_in(self, key: SessionKey, user_id: str, bot_id: int = SERVICE_BOT) -> SeenSession:
        """Report a past sign-in that this bot may show, even if another bot confirmed it."""
        if bot_id != SERVICE_BOT:
            session = await self._storage.sessions.read_session(key)
            if session is None or session.project_id != await self._project_of(bot_id):
                return SeenSession("unknown")
        return await self._decisions.report_sign_in(key, user_id)

    async def _sign_ins(self, user_id: str, bot_id: int, limit: int) -> list[Session]:
        now = self._clock()
        if bot_id == SERVICE_BOT:
            return await self._storage.sessions.list_sign_ins(user_id, now - LOOK_BACK, limit, now)
        project_id = await self._project_of(bot_id)
        if project_id is None:
            return []
        return await self._storage.sessions.list_sign_ins(user_id, now - LOOK_BACK, limit, now, project_id=project_id)

    async def _find(self, project_id: str, bot_id: int) -> NamedProject | None:
        if bot_id != SERVICE_BOT and project_id != await self._project_of(bot_id):
            return None
        project = await self._storage.projects.read_project(project_id)
        return None if project is None else NamedProject(project.id, project.name)

    async def _project_of(self, bot_id: int) -> str | None:
        """Return the id of the only project that this project bot may show; None if it serves no project."""
        bot = await self._storage.bots.read_project_bot(bot_id)
        return None if bot is None else bot.project_id


def _recent(session: Session) -> RecentSignIn:
    return RecentSignIn(
        session.key,
        NamedProject(session.project_id, session.project_name),
        session.created_at if session.confirmed_at is None else session.confirmed_at,
        session.reported_at is not None,
    )
