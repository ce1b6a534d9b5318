"""An application on Starlette alone. Every site here has the same pages; see conftest.py."""

import os

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from taproof.integrations.starlette import (
    TaproofSettings,
    current_identity,
    signed_in,
    signed_in_or_redirect,
    taproof_routes,
)
from taproof.sdk.guard import SqliteGuard

signed_in_or_home = signed_in_or_redirect("/")


async def home(_: Request) -> Response:
    return PlainTextResponse("home")


async def plant(request: Request) -> Response:
    request.session["planted"] = "yes"
    return PlainTextResponse("planted")


async def whoami(request: Request) -> Response:
    await signed_in(request)
    return JSONResponse({"session": dict(request.session)})


async def members(request: Request) -> Response:
    return PlainTextResponse((await signed_in_or_home(request)).messenger_name)


async def anybody(request: Request) -> Response:
    return JSONResponse({"somebody": current_identity(request) is not None, "session": dict(request.session)})


app = Starlette(
    routes=[
        Route("/", home),
        Route("/plant", plant),
        Route("/whoami", whoami),
        Route("/members", members),
        Route("/anybody", anybody),
        *taproof_routes(TaproofSettings.from_mapping(os.environ), guard=SqliteGuard(os.environ["SITE_GUARD"])),
    ],
    middleware=[Middleware(SessionMiddleware, secret_key="not a secret: a test's")],
)
