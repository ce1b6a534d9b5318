"""The developer API without a server, for the operator's command line: every call acts for one developer.

It is the application that serves HTTP, so the command line gives the same answers on a database as on a service.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from fastapi import Request, Response
from starlette.types import ASGIApp

from taproof.config.settings import Settings
from taproof.core.accounts import Actor, Developer
from taproof.runtime.pages import developer_api
from taproof.runtime.services import open_services
from taproof.storage.protocol import Storage


@asynccontextmanager
async def open_operator_api(
    settings: Settings, choose: Callable[[Storage], Awaitable[Developer]]
) -> AsyncIterator[ASGIApp]:
    """Yield the application that serves `/api/v1/dev/*`. Its calls need no credentials: the operator has the database.

    `choose` returns the developer for whom every call acts.
    """
    async with open_services(settings) as services:
        developer = await choose(services.storage)

        async def act(request: Request, _response: Response) -> None:
            request.state.authenticate = _still_there
            request.state.actor = Actor(developer, "command_line")

        yield developer_api(services).build_app(act)


async def _still_there() -> None:
    """Replace the second authentication, after the body: the operator's rights do not end."""
